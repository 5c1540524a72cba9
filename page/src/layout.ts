/* Where the lanes are, and the lines of things in them. */
import type { BoxReader, Lane, Overview, Row } from "./answers";
import { Track } from "./answers";
import type { Choice } from "./choice";
import { count } from "./format";

/* A row of a lane, as it is drawn: as boxes, or as a curve. */
export interface Line {
	lane: Lane;
	row: number; // of the lane
	type: Track;
	y: number;
	height: number;
	label: boolean;
	title: string; // what a curve is of
	most: number; // of a curve
	boxes?: BoxReader;
	curve?: { from: number; to: number; values: Float32Array };
}

export interface Place {
	key: string; // the same whenever this trace is opened
	lane: Lane;
	name: string;
	note: string;
	folded: boolean;
	y: number;
	height: number;
	lines: Line[];
}

export interface Head {
	key: string;
	process: number;
	text: string;
	folded: boolean;
	y: number;
}

export const GUTTER = 190;
export const RULER = 26;
export const HEAD = 24;
const FOLDED = 24;
const THIN_HEIGHT = 13; // a name fits
const TEAM = 16; // threads of one name from which on the busiest are first
const MANY = 8; // rows from which on a group is folded at first

const CURVES = [Track.Counters, Track.Waiting, Track.Lag, Track.Busy];
const THIN = [Track.Calls, Track.Locks, Track.Signals, Track.Runnable, Track.Late, Track.Holes];
/* What belongs to all of a process: lanes by themselves. */
const GROUPS: [name: string, types: Track[], folded: boolean][] = [
	["spans", [Track.Spans], false],
	["locks", [Track.Held], false],
	["tasks", [Track.Tasks], true],
];

export const isCurve = (type: Track): boolean => CURVES.includes(type);

export class Layout {
	places: Place[] = [];
	heads: Head[] = [];
	height = 0;

	constructor(
		private overview: Overview,
		private readonly choice: Choice,
	) {
		this.lay();
	}

	/* More has been read. */
	update(overview: Overview): void {
		this.overview = overview;
		this.lay();
	}

	/* Pictures that are at hand stay until there are others. */
	lay(): void {
		const drawn = new Map(this.lines().map((l) => [`${l.lane.lane}/${l.row}`, l]));
		let y = RULER;
		this.places = [];
		this.heads = [];
		this.overview.processes.forEach((process, p) => {
			const places = this.placesOf(p);
			if (!places.length) return;
			const key = `p${p}`, folded = this.choice.folded(key, false);
			this.heads.push({ key, process: p, text: `${process.comm ?? "?"} ${process.pid || ""}`, folded, y });
			y += HEAD;
			for (const place of folded ? [] : places) {
				y = lay(place, y);
				this.places.push(place);
			}
			y += 8;
		});
		this.height = y;
		for (const line of this.lines()) {
			const before = drawn.get(`${line.lane.lane}/${line.row}`);
			if (before?.boxes) line.boxes = before.boxes;
			if (before?.curve) line.curve = before.curve;
		}
	}

	private lines(): Line[] {
		return this.places.flatMap((p) => p.lines);
	}

	/* Those of one process that are wanted, in their order. */
	private placesOf(process: number): Place[] {
		const lanes = this.overview.lanes.filter((l) => l.process === process);
		const threads = lanes.filter((l) => l.thread && weight(l) > 0);
		const all: Place[] = inOrder(threads)
			.map((lane) => this.place(`${process}/${lane.thread}`, lane, laneName(lane), lane.loop ?? "", threadLines(lane), false));
		const own = lanes.find((l) => !l.thread);
		for (const [name, types, folded] of own ? GROUPS : []) {
			const lines = linesOf(own as Lane, types, 14, true);
			const more = name === "tasks" && this.overview.crowded;
			const note = more ? `and ${count(more)} more` : lines.length > 1 ? `${lines.length} rows` : "";
			if (lines.length)
				all.push(this.place(`${process}/${name}`, own as Lane, name, note, lines, folded || lines.length > MANY));
		}
		const counters = lanes.flatMap(counterLines);
		const first = counters[0];
		if (first)
			all.push(this.place(`${process}/counters`, first.lane, "counters", `${counters.length} charts`, counters, true));
		const filter = this.choice.filter.toLowerCase();
		return this.choice
			.sort(all)
			.filter((p) => !this.choice.isHidden(p.key) && `${p.name} ${p.note}`.toLowerCase().includes(filter));
	}

	private place(key: string, lane: Lane, name: string, note: string, lines: Line[], fold: boolean): Place {
		const folded = this.choice.folded(key, fold);
		return { key, lane, name, note, folded, y: 0, height: 0, lines };
	}

	of(lane: number): Place | undefined {
		return this.places.find((p) => p.lane.lane === lane);
	}

	/* Wherever a row is folded or hidden: it is shown again. */
	bring(lane: Lane, row: number): void {
		const type = lane.rows[row]?.type ?? Track.Polls;
		const group = GROUPS.find(([, types]) => !lane.thread && types.includes(type))?.[0];
		this.choice.showAll();
		this.choice.filter = "";
		this.choice.fold(`p${lane.process}`, false);
		this.choice.fold(`${lane.process}/${isCurve(type) ? "counters" : group ?? lane.thread}`, false);
	}

	/* Where a row is shown; undefined: nowhere, it is folded or hidden. */
	line(lane: number, row: number): { place: Place; line: Line } | undefined {
		for (const place of this.places) {
			const line = place.lines.find((l) => l.lane.lane === lane && l.row === row);
			if (line) return { place, line };
		}
		return undefined;
	}
}

/* ------------------------------------------------------------------- lines */

function lineOf(lane: Lane, row: number, height: number, label: boolean): Line {
	const r = lane.rows[row] as Row;
	return { lane, row, type: r.type, y: 0, height, label, title: titleOf(lane, r), most: r.most ?? 1 };
}

function linesOf(lane: Lane, types: Track[], height: number, label: boolean): Line[] {
	return lane.rows
		.map((r, row) => ({ r, row }))
		.filter(({ r }) => types.includes(r.type) && (r.count || isCurve(r.type)))
		.sort((a, b) => types.indexOf(a.r.type) - types.indexOf(b.r.type) || a.r.row - b.r.row)
		.map(({ row }, i) => lineOf(lane, row, i ? Math.min(height, 14) : height, label));
}

/* What waits is under what runs. A park is where nothing runs, so it needs no line of its own. */
function threadLines(lane: Lane): Line[] {
	return [
		...linesOf(lane, [Track.Polls], 20, true),
		...linesOf(lane, [Track.Parks], 2, false),
		...linesOf(lane, [Track.Work], 20, true),
		...linesOf(lane, THIN, THIN_HEIGHT, true),
		...linesOf(lane, [Track.Spans], 14, true),
		...linesOf(lane, [Track.Samples], 4, false),
		...linesOf(lane, [Track.Waiting], 14, false).filter((l) => l.most > 0),
	];
}

function counterLines(lane: Lane): Line[] {
	const types = lane.thread ? [Track.Busy, Track.Lag] : [Track.Counters];
	return linesOf(lane, types, 24, false).map((l) => ({ ...l, height: 24 }));
}

function titleOf(lane: Lane, r: Row): string {
	switch (r.type) {
		case Track.Waiting:
			return "waiting";
		case Track.Busy:
			return `utilisation of ${laneName(lane)}`;
		case Track.Lag:
			return `lag of ${laneName(lane)}`;
		case Track.Counters:
			return r.row ? `queue depth of ${r.name ?? "?"}` : r.name ?? "?";
		default:
			return r.name ?? "";
	}
}

/* Gives each line its place; where the next lane begins. */
function lay(place: Place, top: number): number {
	let y = top + 3, thin = 0, polls = 0;
	place.y = top;
	if (place.folded) place.lines = place.lines.filter((l) => l.type === Track.Polls).slice(0, 1);
	for (const line of place.lines) {
		const isThin = THIN.includes(line.type);
		if (line.type === Track.Parks) {
			line.y = (polls || y) + 9;
			y = Math.max(y, line.y + 11);
			continue;
		}
		if (thin && !isThin) y = thin + THIN_HEIGHT + 1;
		if (isThin) thin = thin || y;
		else thin = 0;
		if (line.type === Track.Polls && !polls) polls = y;
		line.y = thin || y;
		if (place.folded) line.height = 16;
		if (!thin) y += line.height + 1;
	}
	if (thin) y = thin + THIN_HEIGHT + 1;
	place.height = Math.max(y - top + 4, FOLDED);
	return top + place.height;
}

/* The busiest first. A few that have one name, as the workers of a server, are together in their order. */
function inOrder(lanes: Lane[]): Lane[] {
	const teams = new Map<string, Lane[]>();
	for (const lane of lanes) {
		const name = (lane.name ?? "").replace(/\d+/g, "");
		teams.set(name, [...(teams.get(name) ?? []), lane]);
	}
	const most = (team: Lane[]): number => Math.max(...team.map(weight));
	const byNumber = new Intl.Collator("en", { numeric: true }).compare;
	return [...teams.values()]
		.flatMap((team) => (team.length > TEAM ? team.map((lane) => [lane]) : [team]))
		.sort((a, b) => most(b) - most(a))
		.flatMap((team) => team.sort((a, b) => byNumber(laneName(a), laneName(b))));
}

function weight(lane: Lane): number {
	return lane.rows.reduce(
		(sum, r) => sum + (r.type === Track.Samples ? 0 : r.type === Track.Polls ? 100 : 1) * r.count,
		0,
	);
}

export function laneName(lane: Lane): string {
	if (!lane.thread) return "spans and counters";
	return lane.numbered ? `${lane.name ?? "thread"} ${lane.tid}` : (lane.name ?? "thread");
}
