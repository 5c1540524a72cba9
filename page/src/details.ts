/* All about the thing that is selected: when and where, its time in pieces that add up, and its like. */
import type { Blame, Finding, Kind, Piece, Place, Time } from "./answers";
import { Track } from "./answers";
import { bar } from "./bars";
import { el } from "./dom";
import { count, duration, sentence, share } from "./format";
import { kindOf, many } from "./kinds";
import { ownerClass, placeText } from "./owners";
import type { Shown } from "./shown";
import type { Tab } from "./tabs";
import { Hit, laneName } from "./timeline";

/* As page_thing of the engine tells it. */
interface Thing {
	real_ns: Time;
	task: Time;
	woken: number | null;
	fields: { name: string; text: string; thread?: number; at?: number }[];
	stack: Frame[];
	records: { at: number; type: string; fields: Record<string, unknown> }[];
	record_count: number;
	all_counted: boolean;
}

interface Frame extends Place {
	own: boolean;
	kernel: boolean;
}

interface Crash {
	signal: string;
	tid: number;
	thread_name: string | null;
	address: string;
	said: string | null;
	survived: boolean;
	real_ns: Time;
	stack: Frame[];
}

export class Details implements Tab {
	readonly name = "Details";
	readonly host = el("div", "");
	private asked = 0;

	constructor(private readonly shown: Shown) {
		this.empty();
	}

	empty(): void {
		this.asked++;
		this.host.replaceChildren(
			el("p", "hint", "Click a box to see where its time went. n and p go through the findings."),
		);
	}

	async show(hit: Hit): Promise<void> {
		const asked = ++this.asked;
		const { client } = this.shown;
		const at = [hit.lane.lane, hit.row, hit.index] as const;
		try {
			const [thing, kind] = await Promise.all([
				client.call<Thing>("thing", ...at),
				client.kind(hit.lane.process, hit.type, hit.what),
			]);
			if (asked !== this.asked) return;
			const time = el("div", "time");
			const left = el("div", "about", this.title(hit), time, this.facts(hit, thing));
			left.append(this.stack(thing.stack), this.records(thing));
			this.host.replaceChildren(el("div", "details", left, this.likes(hit, kind)));
			/* This may need more of the trace to be read. */
			const blame = await client.call<Blame | null>("blame", ...at, 0);
			if (asked === this.asked && blame) time.append(...this.blame(blame, ""));
			if (asked !== this.asked || thing.woken === null) return;
			const woken = await client.call<Blame | null>("blame", ...at, 1);
			if (asked === this.asked && woken?.type === "wake")
				time.append(...this.blame(woken, `From its wake, ${duration(woken.ns)}`));
		} catch (error) {
			if (asked === this.asked) this.fail(error);
		}
	}

	private fail(error: unknown): void {
		this.host.replaceChildren(el("p", "hint", error instanceof Error ? error.message : String(error)));
	}

	private title(hit: Hit): HTMLElement {
		const others = hit.things > 1 ? ` · the longest of ${many(hit)} in ${duration(hit.box.to - hit.box.from)}` : "";
		const what = kindOf(hit);
		return el(
			"h2",
			"",
			hit.name || what,
			el("span", "cost", ` ${hit.ns ? duration(hit.ns) : ""} · ${what} on ${laneName(hit.lane)}${others}`),
		);
	}

	/* --------------------------------------------------------- when and where */

	private facts(hit: Hit, thing: Thing): HTMLElement {
		const rows: [string, string | Node][] = [
			["from", `+${exact(hit.begin)}`],
			...(hit.ns ? ([["to", `+${exact(hit.begin + hit.ns)}`]] as [string, string][]) : []),
			...clocks(thing.real_ns),
		];
		const top = thing.stack.find((f) => f.own) ?? thing.stack[0];
		if (top) rows.push(["place", el("span", "place", placeText(top))]);
		for (const f of thing.fields) {
			const { at, thread } = f;
			if (at === undefined || thread === undefined) {
				rows.push([f.name, f.text]);
				continue;
			}
			const link = el("button", "link", f.text);
			link.addEventListener("click", () => void this.shown.goToThing(hit.lane.process, thread, at, at));
			rows.push([f.name, link]);
		}
		return table(rows);
	}

	private stack(stack: Frame[]): HTMLElement {
		const list = el("ol", "stack");
		for (const f of stack)
			list.append(
				el("li", f.own ? "own" : "", placeText(f), f.kernel ? el("span", "cost", " kernel") : ""),
			);
		const box = el("details", "", el("summary", "", `Stack (${stack.length})`), list);
		box.open = true;
		box.hidden = stack.length < 2;
		return box;
	}

	private records(thing: Thing): HTMLElement {
		const more = thing.all_counted ? "" : " or more";
		const box = el("details", "", el("summary", "", `${count(thing.record_count)}${more} records meanwhile`));
		box.hidden = !thing.record_count;
		box.addEventListener(
			"toggle",
			() => {
				const rows = thing.records.map((r) =>
					el(
						"tr",
						"",
						el("td", "number", `+${exact(r.at)}`),
						el("td", "", r.type),
						el("td", "fields", fieldsText(r.fields)),
					),
				);
				box.append(el("table", "pieces records", el("tbody", "", ...rows)));
				if (thing.records.length < thing.record_count)
					box.append(el("p", "hint", `The first ${count(thing.records.length)}. tacho cat shows all of them.`));
			},
			{ once: true },
		);
		return box;
	}

	/* ------------------------------------------------------------ where it went */

	private blame(b: Blame, title: string): HTMLElement[] {
		const pieces = b.pieces.filter((p) => p.depth === 0);
		const rows = b.pieces.filter((p) => p.ns >= b.ns / 1000);
		return [
			...(title ? [el("h3", "said", title)] : []),
			bar(
				pieces.map((p) => ({
					kind: ownerClass(p.owner),
					ns: p.ns,
					title: `${p.owner} ${p.text ?? ""}: ${duration(p.ns)}, ${share(p.ns / (b.ns || 1))}`,
				})),
				"owners tall",
			),
			el("table", "pieces", el("tbody", "", ...rows.map((p) => this.piece(b, p)))),
		];
	}

	private piece(b: Blame, p: Piece): HTMLElement {
		/* Inner ones are of the thread that was waited for. */
		const text = el("td", "", `${p.depth ? "meanwhile " : ""}${p.owner}${p.text ? `${p.owner === "not observed" ? ":" : ""} ${p.text}` : ""}`);
		text.style.paddingLeft = `${8 + 20 * p.depth}px`;
		return el(
			"tr",
			p.depth ? "inner" : "",
			el("td", "number", duration(p.ns)),
			el("td", "number", p.depth ? "" : share(p.ns / (b.ns || 1))),
			el("td", "", el("i", `swatch ${ownerClass(p.owner)}`)),
			text,
			el("td", "place", placeText(p.where[0])),
		);
	}

	/* ---------------------------------------------------------------- its like */

	private likes(hit: Hit, kind: Kind): HTMLElement {
		const list = el("ol", "likes");
		for (const like of kind.longest) {
			const button = el("button", "like", duration(like.ns), el("span", "cost", `+${duration(like.begin)}`));
			button.classList.toggle("selected", like.index === hit.index && like.row === hit.row &&
				like.lane === hit.lane.lane);
			button.addEventListener("click", () => this.shown.timeline.select(like));
			list.append(el("li", "", button));
		}
		const shown = kind.longest.length < kind.count ? `, the longest ${count(kind.longest.length)} below` : "";
		const flame = el("button", "", "Flame graph of these");
		flame.hidden = hit.type !== Track.Polls || !hit.what;
		/* "uv_timer: on_tick" is the function on_tick. */
		flame.addEventListener("click", () => this.shown.flame.showKind(hit.name.replace(/^.*: /, "")));
		return el(
			"div",
			"kind",
			el("h3", "said", `${count(kind.count)} of these, ${duration(kind.sum)} in all${shown}`),
			/* Of one there is nothing to compare. */
			kind.count > 1 ? histogram(kind) : "",
			flame,
			list,
		);
	}

	/* ------------------------------------------------- what happened only once */

	/* A finding that is about no single box. */
	showFinding(f: Finding, index: number): void {
		this.asked++;
		const e = f.evidence[index];
		const from = this.shown.since(e?.from_ns ?? 0), to = this.shown.since(e?.to_ns ?? 0);
		const rows: [string, string | Node][] = e ? [["seen", e.text], ["from", `+${exact(from)}`]] : [];
		if (to > from) rows.push(["to", `+${exact(to)}`], ["for", duration(to - from)]);
		if (f.loop) rows.push(["loop", f.loop]);
		if (f.where[0]) rows.push(["place", el("span", "place", placeText(f.where[0]))]);
		if (f.advice) rows.push(["advice", f.advice]);
		const range = el("button", "", "Numbers of this time");
		range.hidden = to <= from;
		range.addEventListener("click", () => {
			this.shown.timeline.setRange({ from, to });
			this.shown.tabs.open(this.shown.range.name);
		});
		this.host.replaceChildren(
			el("div", "about", el("h2", "", f.rule, el("span", "cost", ` ${f.cost_ns ? duration(f.cost_ns) : ""}`)),
				el("p", sentence(f.summary), f.summary), table(rows), range),
		);
	}

	async showMark(index: number): Promise<void> {
		const asked = ++this.asked;
		const { overview, client } = this.shown;
		const mark = overview.marks[index];
		if (!mark) return;
		const crashes = overview.marks.filter((m, i) => m.type === "crash" && i < index).length;
		try {
			const crash = mark.type === "crash" ? await client.call<Crash | null>("crash", crashes) : null;
			if (asked !== this.asked) return;
			const title = crash ? `${crash.signal} in ${crash.thread_name ?? "thread"} (${crash.tid})` : "Trigger";
			const rows: [string, string][] = [["at", `+${exact(mark.at)}`]];
			if (crash) rows.push(...clocks(crash.real_ns), ["address", crash.address]);
			if (mark.text) rows.push([crash ? "said" : "reason", mark.text]);
			if (crash?.survived) rows.push(["then", "the process went on"]);
			this.host.replaceChildren(el("div", "about", el("h2", "", title), table(rows), this.stack(crash?.stack ?? [])));
		} catch (error) {
			if (asked === this.asked) this.fail(error);
		}
	}
}

function table(rows: [string, string | Node][]): HTMLElement {
	return el("table", "facts", el("tbody", "", ...rows.map(([name, value]) =>
		el("tr", "", el("th", "", name), el("td", "", value)))));
}

/* To the nanosecond: "1.300 985 123 s". */
function exact(ns: number): string {
	const whole = Math.max(Math.round(ns), 0);
	const parts = String(whole % 1e9).padStart(9, "0").replace(/(\d{3})(?=\d)/g, "$1 ");
	return `${Math.floor(whole / 1e9)}.${parts} s`;
}

/* Of CLOCK_REALTIME, to the microsecond. */
function clocks(real: Time): [string, string][] {
	const ns = BigInt(real);
	if (!ns) return [];
	const date = new Date(Number(ns / 1000000n));
	const micro = String(Number((ns / 1000n) % 1000000n)).padStart(6, "0");
	const two = (n: number): string => String(n).padStart(2, "0");
	const local = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
		`${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${micro}`;
	return [
		["UTC", `${date.toISOString().slice(0, 19).replace("T", " ")}.${micro}`],
		["local time", local],
	];
}

/* Fields of a record as one line. What has a name is called by it. */
function fieldsText(fields: Record<string, unknown>): string {
	return Object.entries(fields)
		.filter(([, v]) => v !== null && v !== undefined)
		.map(([k, v]) => `${k} ${k === "lock" ? `0x${BigInt(v as Time).toString(16)}` : valueText(v)}`)
		.join(", ");
}

function valueText(v: unknown): string {
	if (Array.isArray(v)) return `[${v.map(valueText).join(" < ")}]`;
	if (typeof v !== "object" || v === null) return String(v);
	const o = v as Record<string, unknown>;
	if (Array.isArray(o.frames)) return valueText(o.frames);
	const name = o.name ?? o.function ?? o.module ?? o.address;
	if (name !== null && name !== undefined) return String(name);
	return o.code ? valueText(o.code) : JSON.stringify(v);
}

function histogram(kind: Kind): HTMLElement {
	const used = kind.buckets.map((n, i) => ({ n, i })).filter(({ n }) => n);
	const first = used[0]?.i ?? 0, last = used[used.length - 1]?.i ?? 0;
	const most = Math.log1p(Math.max(...kind.buckets));
	const bars = el("div", "histogram");
	const from = (i: number): string => duration(i ? 64 * 2 ** (i / 2) : 0);
	for (let i = first; i <= last; i++) {
		const n = kind.buckets[i] ?? 0;
		const bar = el("i", "code");
		bar.style.height = `${Math.round((100 * Math.log1p(n)) / (most || 1))}%`;
		bar.title = `${count(n)} of ${from(i)} and more`;
		bars.append(bar);
	}
	bars.setAttribute("role", "img");
	bars.setAttribute("aria-label", `How long they are, from ${from(first)} to ${from(last + 1)}`);
	return el("div", "", bars, el("div", "scale", el("span", "", from(first)), el("span", "", from(last + 1))));
}
