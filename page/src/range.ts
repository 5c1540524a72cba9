/* Numbers of the range that is selected, or of all: as `tacho stats` has them for it. */
import { spanOf } from "./address";
import type { LedgerThread, OwnerSums, Time } from "./answers";
import { ownerLines, ownerText, threadBar, threadName } from "./bars";
import { el } from "./dom";
import { count, duration, share, some } from "./format";
import { ownerClass, placeText } from "./owners";
import type { Shown } from "./shown";
import type { Tab } from "./tabs";
import { laneName, Span } from "./timeline";

/* As `tacho stats --json`. */
interface StatsRow {
	name: string;
	distinct_name?: string;
	process: number;
	count: number;
	total_ns: number;
	p50_ns: number;
	p99_ns: number;
	max_ns: number;
	utilisation?: number;
	cut?: number;
	errors?: number;
}

interface Stats {
	events: number;
	from_ns: Time;
	to_ns: Time;
	loops: StatsRow[];
	polls: StatsRow[];
	wakes: StatsRow[];
	timers: StatsRow[];
	locks: StatsRow[];
	calls: StatsRow[];
	pool_waits: StatsRow[];
	pool_runs: StatsRow[];
	spans: StatsRow[];
}

interface RangeAnswer {
	stats: Stats;
	samples: number;
	ledger: { waiting_ns: number; threads: LedgerThread[]; owners: (OwnerSums & { pid: number; threads: number })[] };
}

const TABLES: [keyof Stats & string, string][] = [
	["polls", "Callbacks and polls"],
	["calls", "Blocking calls"],
	["locks", "Waits for locks"],
	["wakes", "From wake to poll"],
	["timers", "Lateness of timers"],
	["pool_waits", "Work waiting for the pool"],
	["pool_runs", "Work run by the pool"],
	["spans", "Spans"],
	["loops", "Turns of loops"],
];
const ROWS = 10;
const MOST_ROWS = 1000;
const THREADS = 20;
const MANY_EVENTS = 5e6;

/* What takes so long to read again that it is read only when somebody says so: till then the lanes
   stand still. undefined: it is not so much. */
export function offerToRead(shown: Shown, range: Span, read: () => void): HTMLElement | undefined {
	const { overview } = shown;
	const part = (range.to - range.from) / Math.max(overview.window, 1);
	const events = part * overview.processes.reduce((sum, p) => sum + (p.events ?? 0), 0);
	if (events < MANY_EVENTS) return undefined;
	const button = el("button", "", `Add up about ${count(Math.round(events / 1e6))} million events`);
	button.addEventListener("click", () => {
		button.disabled = true;
		button.textContent = "Adding up …";
		read();
	});
	return el("p", "hint", "Drag over the lanes to select a shorter range, or ", button);
}

export class RangeTab implements Tab {
	readonly name = "Range";
	readonly host = el("div", "");
	private asked = 0;
	private waiting = 0;
	private stale = true;
	private rows = ROWS;

	constructor(private readonly shown: Shown) {
		shown.address.part(
			"range",
			() => {
				const r = shown.timeline.range;
				return r ? `${Math.round(r.from)}-${Math.round(r.to)}` : "";
			},
			(value) => {
				const span = spanOf(value);
				if (span) shown.timeline.setRange(span);
			},
		);
	}

	get range(): Span {
		return this.shown.timeline.range ?? { from: 0, to: this.shown.overview.window };
	}

	opened(): void {
		if (this.stale) this.askIfShort();
	}

	/* It is another now. While it is still being dragged nothing is added up. */
	changed(): void {
		this.stale = true;
		this.rows = ROWS;
		window.clearTimeout(this.waiting);
		if (this.shown.tabs.seen === this.name) this.waiting = window.setTimeout(() => this.askIfShort(), 250);
	}

	private askIfShort(): void {
		const offer = offerToRead(this.shown, this.range, () => this.ask());
		if (offer) this.host.replaceChildren(offer);
		else this.ask();
	}

	private ask(): void {
		void this.fetch().catch((error: unknown) => {
			this.stale = true;
			this.host.replaceChildren(el("p", "hint", error instanceof Error ? error.message : String(error)));
		});
	}

	private async fetch(): Promise<void> {
		const asked = ++this.asked;
		const range = this.range;
		this.stale = false;
		this.host.setAttribute("aria-busy", "true");
		if (!this.host.childElementCount) this.host.append(el("p", "hint", "Adding up …"));
		try {
			const answer = await this.shown.client.call<RangeAnswer>("range", range.from, range.to, this.rows + 1);
			if (asked === this.asked) this.show(range, answer);
		} finally {
			if (asked === this.asked) this.host.removeAttribute("aria-busy");
		}
	}

	private show(range: Span, a: RangeAnswer): void {
		const tables = TABLES.map(([key, title]) => this.table(title, a.stats[key] as StatsRow[])).filter(
			(t): t is HTMLElement => t !== undefined,
		);
		this.host.replaceChildren(
			this.title(range, a),
			el("div", "range", el("div", "", this.threads(range, a), this.costs(a)), el("div", "", ...tables)),
		);
		if (!tables.length && !a.ledger.threads.length)
			this.host.append(el("p", "hint", "Nothing that takes time lies wholly in this range. Choose a longer one."));
	}

	private title(range: Span, a: RangeAnswer): HTMLElement {
		const whole = !this.shown.timeline.range;
		const where = whole ? "of the whole window" : `from +${duration(range.from)} to +${duration(range.to)}`;
		const text = el(
			"h2",
			"",
			duration(range.to - range.from),
			el("span", "cost", ` ${where} · ${some(a.stats.events, "event")} · ${some(a.samples, "sample")}`),
		);
		if (whole) return el("div", "range-title", text, el("p", "hint", "Drag over the lanes to select a range."));
		const button = (name: string, action: () => void): HTMLElement => {
			const b = el("button", "", name);
			b.addEventListener("click", action);
			return b;
		};
		return el(
			"div",
			"range-title",
			text,
			button("Zoom to it", () => this.shown.timeline.fit()),
			button("All of the window", () => this.shown.timeline.setRange(undefined)),
		);
	}

	/* --------------------------------------------------------------- threads */

	private threads(range: Span, a: RangeAnswer): HTMLElement {
		const all = [...a.ledger.threads].sort((x, y) => busy(this.shown, y) - busy(this.shown, x));
		const box = el("section", "ledger", el("h3", "", "Threads, busiest first"));
		for (const t of all.slice(0, THREADS)) box.append(this.thread(range, t));
		if (all.length > THREADS) {
			const more = el("details", "", el("summary", "", some(all.length - THREADS, "more thread")));
			more.addEventListener(
				"toggle",
				() => more.append(...all.slice(THREADS).map((t) => this.thread(range, t))),
				{ once: true },
			);
			box.append(more);
		}
		box.hidden = !all.length;
		return box;
	}

	private thread(range: Span, t: LedgerThread): HTMLElement {
		const { shown } = this;
		const from = shown.since(t.from_ns), to = shown.since(t.to_ns);
		const lane = shown.laneOf(t.pid, t.tid);
		return el(
			"details",
			"thread",
			el(
				"summary",
				"",
				threadName(lane ? laneName(lane) : `thread ${t.tid ?? ""}`),
				threadBar(t, from, to, range),
				el("small", "cost", `${share(busy(shown, t))} busy`),
			),
			ownerLines(t, to - from),
		);
	}

	/* Who had the threads while things waited. */
	private costs(a: RangeAnswer): HTMLElement {
		const all = a.ledger.owners.filter((o) => o.waiting_ns).slice(0, ROWS);
		const rows = all.map((o) =>
			el(
				"tr",
				"",
				el("td", "", el("i", `swatch ${ownerClass(o.owner)}`)),
				el("td", "", ownerText(o), el("span", "place", ` ${placeText(o.place)}`)),
				el("td", "number", duration(o.waiting_ns)),
				el("td", "number", duration(o.ns)),
			),
		);
		const box = el(
			"section",
			"",
			el("h3", "said", `What waited: ${duration(a.ledger.waiting_ns)}`),
			el("table", "numbers", head(2, "", "while the threads were with", "waiting", "its time"), el("tbody", "", ...rows)),
		);
		box.hidden = !all.length;
		return box;
	}

	/* ---------------------------------------------------------------- tables */

	private table(title: string, rows: StatsRow[]): HTMLElement | undefined {
		if (!rows.length) return undefined;
		const several = this.shown.overview.processes.length > 1;
		const body = rows.slice(0, this.rows).map((r) => {
			const pid = several ? `${this.shown.overview.processes[r.process]?.pid ?? "?"}: ` : "";
			const more = [
				r.utilisation === undefined ? "" : `${share(r.utilisation)} busy`,
				r.cut ? `${count(r.cut)} cut by the edge` : "",
				r.errors ? `${count(r.errors)} errors` : "",
			].filter(Boolean);
			return el(
				"tr",
				"",
				el("td", "", pid + (r.distinct_name ?? r.name), el("span", "cost", more.length ? ` ${more.join(", ")}` : "")),
				...[count(r.count), duration(r.total_ns), duration(r.p50_ns), duration(r.p99_ns), duration(r.max_ns)].map(
					(text) => el("td", "number", text),
				),
			);
		});
		const box = el(
			"section",
			"",
			el("h3", "", title),
			el("table", "numbers", head(1, "name", "count", "total", "median", "99 %", "longest"), el("tbody", "", ...body)),
		);
		if (rows.length > this.rows) {
			const more = el("button", "", "All rows");
			more.addEventListener("click", () => {
				this.rows = MOST_ROWS;
				this.ask();
			});
			box.append(more);
		}
		return box;
	}
}

/* The first `texts` columns hold texts, the rest numbers. */
function head(texts: number, ...names: string[]): HTMLElement {
	return el("thead", "", el("tr", "", ...names.map((n, i) =>
		el(n ? "th" : "td", i < texts ? "" : "number", n))));
}

function busy(shown: Shown, t: LedgerThread): number {
	const whole = shown.since(t.to_ns) - shown.since(t.from_ns);
	const idle = t.owners.filter((o) => o.owner === "idle").reduce((sum, o) => sum + o.ns, 0);
	return whole > 0 ? 1 - idle / whole : 0;
}
