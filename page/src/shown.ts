/* A trace that is shown: the parts of the page that belong to it, and how they reach one another. */
import type { Finding, Lane, Like, Overview, Report, Time } from "./answers";
import { Address, spanOf } from "./address";
import type { Client } from "./client";
import { Compare } from "./compare";
import { Details } from "./details";
import { $, el } from "./dom";
import { FlameTab } from "./flame";
import { sentence } from "./format";
import { Flows } from "./flows";
import { GoTo } from "./goto";
import { showHeader, showNotices } from "./header";
import { Help } from "./help";
import { Keys } from "./keys";
import { Minimap } from "./map";
import { addMoves } from "./moves";
import { RangeTab } from "./range";
import { Search } from "./search";
import { Side } from "./side";
import { SqlTab } from "./sql";
import { Tabs } from "./tabs";
import { TaskTab } from "./task";
import { Span, Timeline } from "./timeline";

export class Shown {
	readonly timeline: Timeline;
	readonly map: Minimap;
	readonly side: Side;
	readonly details: Details;
	private going = 0;
	readonly range: RangeTab;
	readonly flame: FlameTab;
	readonly tabs = new Tabs($("panel"));
	readonly keys = new Keys();
	readonly address = new Address();
	readonly task = new TaskTab(this);
	readonly flows = new Flows(this);
	readonly sql = new SqlTab(this);
	readonly compare = new Compare(this);
	private readonly help: Help;

	constructor(
		readonly client: Client,
		readonly overview: Overview,
		readonly report: Report,
	) {
		this.timeline = new Timeline($("lanes"), client, overview);
		this.map = new Minimap($("map"), client, this.timeline, Math.max(overview.window, 1));
		this.map.findings = report.findings.flatMap((f) =>
			f.evidence.map((e) => ({ at: this.since(e.from_ns), critical: f.severity === "critical" })),
		);
		this.side = new Side($("side"), this);
		this.details = new Details(this);
		this.tabs.add(this.details);
		this.tabs.add((this.range = new RangeTab(this)));
		this.tabs.add((this.flame = new FlameTab(this)));
		this.tabs.add(this.flows);
		this.flows.drawOver(this.timeline);
		this.tabs.add(this.task);
		this.tabs.add(this.sql);
		this.tabs.add(this.compare);
		new Search(this);
		new GoTo(this);
		this.connect();
		this.addKeys();
		this.help = new Help(this.keys, $("help"));
		showHeader(overview, report);
		showNotices(overview);
		if (!overview.things) $("lanes").append(nothing(report));
		this.address.read();
	}

	/* Colours have changed. */
	recolour(): void {
		this.timeline.recolour();
		this.map.recolour();
	}

	private connect(): void {
		this.timeline.onView = () => {
			this.map.paint();
			this.address.changed();
		};
		this.timeline.onSelect = (hit) => {
			void this.task.offer(hit);
			void this.flows.show(hit);
			if (!hit) return this.details.empty();
			/* These follow what is selected. */
			if (this.tabs.seen !== this.task.name && this.tabs.seen !== this.flows.name)
				this.tabs.open(this.details.name);
			void this.details.show(hit);
		};
		this.timeline.onRange = () => {
			this.range.changed();
			this.flame.changed();
			this.address.changed();
		};
		this.client.onNames = () => this.timeline.frame();
		const { view, choice } = this.timeline;
		this.timeline.onChoice = () => this.address.changed();
		this.address.part("lanes", () => choice.text, (text) => this.timeline.change(() => (choice.text = text)));
		this.address.part(
			"view",
			() => {
				const { from, to } = this.timeline.view;
				return from === view.from && to === view.to ? "" : `${Math.round(from)}-${Math.round(to)}`;
			},
			(value) => {
				const span = spanOf(value);
				if (span) this.timeline.show(span);
			},
		);
		const first = this.tabs.seen;
		this.tabs.onOpen = () => this.address.changed();
		this.address.part(
			"tab",
			() => (this.tabs.seen === first ? "" : this.tabs.seen),
			(name) => this.tabs.open(name),
		);
	}

	private addKeys(): void {
		const { keys, timeline, side } = this;
		addMoves(keys, timeline);
		keys.add("n", "next finding", () => side.step(1));
		keys.add("p", "previous finding", () => side.step(-1));
		keys.add("Escape", "drop the range", () => timeline.setRange(undefined));
	}

	/* ns since the beginning of the window. Differences of texts beyond 2^53 are exact as BigInt. */
	since(t: Time): number {
		return Number(BigInt(t) - BigInt(this.report.trace.from_ns));
	}

	processOf(pid: number): number {
		return this.overview.processes.findIndex((p) => p.pid === pid);
	}

	laneOf(pid: number, tid: number | null): Lane | undefined {
		const process = this.processOf(pid);
		return this.overview.lanes.find((l) => l.process === process && l.tid === tid);
	}

	/* Goes to a thread and a stretch of time. */
	goTo(pid: number, tid: number | null, span: Span): void {
		this.timeline.goTo(this.processOf(pid), this.laneOf(pid, tid)?.thread ?? 0, span);
	}

	/* Goes to a stretch of a thread, and selects what is there, if there is one thing that it is; unless
	   somebody has gone elsewhere by then. */
	async goToThing(process: number, thread: number, from: number, to: number): Promise<"selected" | "nothing" | "elsewhere"> {
		const mine = ++this.going;
		/* What happened at one moment is seen with what was before it. */
		const before = to > from ? 0 : Math.min(this.overview.window / 100, 1e7);
		this.timeline.goTo(process, thread, { from: from - before, to: to + before / 4 });
		const lane = this.overview.lanes.find((l) => l.process === process && l.thread === thread);
		const found = lane && (await this.client.call<Like | null>("find", lane.lane, from, to));
		if (mine !== this.going) return "elsewhere";
		if (found) this.timeline.select(found);
		else this.timeline.choose(undefined);
		return found ? "selected" : "nothing";
	}

	/* Those that overlap are one. */
	showMarks(marks: Timeline["marks"]): void {
		const united: Timeline["marks"] = [];
		for (const mark of [...marks].sort((a, b) => a.at - b.at)) {
			const last = united[united.length - 1];
			if (last && mark.at <= last.to) last.to = Math.max(last.to, mark.to);
			else united.push({ ...mark });
		}
		this.timeline.marks = united;
		this.timeline.frame();
		this.map.paint();
	}

	/* The lanes go to one piece of its evidence. It is marked, and others like it; not sums over most of
	   the window, which would hide it. */
	showFinding(f: Finding, index: number): void {
		const all = f.evidence.map((e, number) => ({ at: this.since(e.from_ns), to: this.since(e.to_ns), number }));
		const mark = all[index];
		if (!mark) return;
		const length = mark.to - mark.at;
		this.showMarks(all.filter((m) => m === mark || m.to - m.at <= 2 * length));
		const thread = this.laneOf(f.pid, f.evidence[index]?.tid ?? null)?.thread ?? 0;
		void this.goToThing(this.processOf(f.pid), thread, mark.at, mark.to).then((what) => {
			if (what === "nothing") this.tell(f, index);
			/* What an other finding was about is not what this one is about. */
			else if (what === "selected" && this.tabs.seen === this.task.name) this.tabs.open(this.details.name);
		});
	}

	/* No box on the lanes is what the evidence is about: a task is, a crash, or the finding itself. */
	private tell(f: Finding, index: number): void {
		const task = f.evidence[index]?.task ?? null;
		if (task !== null) return this.task.open(this.processOf(f.pid), idText(task));
		const process = this.processOf(f.pid);
		const crash = f.rule === "crash" ? this.overview.marks.findIndex((m) => m.type === "crash" && m.process === process) : -1;
		this.tabs.open(this.details.name);
		if (crash >= 0) void this.details.showMark(crash);
		else this.details.showFinding(f, index);
	}

	showMark(index: number): void {
		const mark = this.overview.marks[index];
		if (!mark) return;
		const lane = this.overview.lanes.find((l) => l.process === mark.process && l.tid === mark.tid);
		this.showMarks([{ at: mark.at, to: mark.at, number: 0 }]);
		this.timeline.goTo(mark.process, lane?.thread ?? 0, { from: mark.at - 1e6, to: mark.at + 1e6 });
		this.tabs.open(this.details.name);
		void this.details.showMark(index);
	}

	/* It makes room for another. */
	end(): void {
		this.sql.end();
		this.compare.end();
		this.keys.end();
		this.help.end();
		this.address.end();
		this.client.end();
	}
}

/* As the terminal writes the number of a task. */
function idText(id: Time): string {
	const n = BigInt(id);
	return n >> 32n ? `0x${n.toString(16)}` : String(n);
}

/* Over the lanes, of which there are none. */
function nothing(report: Report): HTMLElement {
	const damage = report.verdict.readable.text;
	if (damage)
		return el("p", `nothing ${sentence(damage)}`, `${damage}.`);
	return el(
		"p",
		"nothing",
		el("b", "", "No thread recorded anything in this window."),
		" A program is recorded once it runs an event loop that tacho knows, or calls tacho.h; ",
		el("code", "", "tacho doctor -- COMMAND"),
		" says what is missing.",
	);
}
