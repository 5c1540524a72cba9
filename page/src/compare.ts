/* The tab that compares: the trace that is shown with another, which has an engine of its own. What
   `tacho diff` says, both verdicts, and the lanes of the other below, moving together. */
import type { Finding, Overview, Report } from "./answers";
import { Client } from "./client";
import { el } from "./dom";
import { count, duration, sentence, verdictText } from "./format";
import { Minimap } from "./map";
import { placeText } from "./owners";
import { get, getJson } from "./served";
import type { Shown } from "./shown";
import { engineCode, startWorker } from "./source";
import type { Tab } from "./tabs";
import { Timeline } from "./timeline";

/* As `tacho diff --json`. */
interface Side {
	count: number;
	per_second: number;
	p50_ns?: number;
	p99_ns?: number;
}

interface DiffRow {
	name: string;
	of: "poll" | "span";
	change: string;
	ratio: number | null;
	a: Side;
	b: Side;
}

interface Diff {
	changed: number;
	compared: number;
	missed: number;
	common: number;
	a: { window_ns: number; polls: number };
	b: { window_ns: number; polls: number };
	rows: DiffRow[];
}

const SHOWN = 200;

const CHANGES: Record<string, string> = {
	none: "no more than chance",
	"too-few": "too few to tell",
	new: "only in B",
	gone: "only in A",
};

interface Other {
	name: string;
	data: ArrayBuffer;
	client: Client;
	overview: Overview;
	report: Report;
}

export class Compare implements Tab {
	readonly name = "Compare";
	readonly host = el("div", "");
	private readonly state = el("p", "hint");
	private readonly body = el("div", "");
	private readonly choices = el("div", "chosen");
	private other: Other | undefined;
	private otherFirst = true;
	private lanes: Timeline | undefined;
	private asked = 0;
	private moving = false;
	private follows = false; // the lanes of the trace that is shown

	constructor(private readonly shown: Shown) {
		const file = el("input", "");
		file.type = "file";
		file.setAttribute("aria-label", "The other trace");
		file.addEventListener("change", () => {
			const one = file.files?.[0];
			if (one) void this.take(one.name, one.arrayBuffer());
		});
		this.state.setAttribute("role", "status");
		this.say("Compare this trace with another: drop it here, or choose it.");
		this.choices.append(file);
		this.host.append(this.choices, this.state, this.body);
		/* Elsewhere on the page a trace that is dropped takes the place of this one. */
		this.host.addEventListener("drop", (e) => {
			const one = e.dataTransfer?.files[0];
			e.preventDefault();
			e.stopPropagation();
			if (one) void this.take(one.name, one.arrayBuffer());
		});
	}

	/* It is seen from now on. */
	opened(): void {
		if (location.protocol.startsWith("http") && this.choices.childElementCount === 1) void this.offerFolder();
	}

	/* A trace of a folder is most often compared with another of it. */
	private async offerFolder(): Promise<void> {
		const what = await fetch("what");
		if (!what.headers.get("Content-Type")?.startsWith("application/json")) return;
		if (((await what.json()) as { shows: string }).shows !== "folder") return;
		const { traces } = await getJson<{ traces?: { name: string; href: string; error?: string | null }[] }>("list/0");
		const good = (traces ?? []).filter((t) => !t.error);
		const select = el("select", "", el("option", "", "of this folder"), ...good.map((t) => el("option", "", t.name)));
		select.setAttribute("aria-label", "A trace of this folder");
		select.addEventListener("change", () => {
			const t = good[select.selectedIndex - 1];
			if (t) void this.take(t.name, get(`traces/${t.href}`).then((r) => r.arrayBuffer()));
		});
		if (this.choices.childElementCount === 1) this.choices.append(select);
	}

	private say(text: string, failed = false): void {
		this.state.className = "hint";
		this.state.textContent = text;
		this.state.classList.toggle("failed", failed);
	}

	/* ------------------------------------------------------------------ load */

	async take(name: string, coming: Promise<ArrayBuffer>): Promise<void> {
		const asked = ++this.asked;
		this.end();
		this.body.replaceChildren();
		this.say(`Reading ${name} …`);
		let client: Client | undefined;
		try {
			const data = await coming;
			client = new Client(await startWorker());
			await client.start(await engineCode());
			const overview = await client.load(data.slice(0));
			const report = await client.report();
			if (asked !== this.asked) return client.end();
			this.other = { name, data, client, overview, report };
			const taken = (o: Overview): number => o.processes[0]?.taken_ms ?? 0;
			/* The older of them is the one before. */
			this.otherFirst = taken(overview) <= taken(this.shown.overview);
			await this.compare();
		} catch (error) {
			if (!this.other) client?.end();
			if (asked === this.asked) this.say(error instanceof Error ? error.message : String(error), true);
		}
	}

	private async compare(): Promise<void> {
		const { other } = this;
		if (!other) return;
		this.say("Comparing …");
		const diff = await this.shown.client.diff<Diff | string>(other.data.slice(0), this.otherFirst);
		if (this.other !== other) return;
		if (typeof diff === "string") throw new Error(diff);
		this.show(other, diff);
	}

	/* -------------------------------------------------------------- findings */

	private show(other: Other, diff: Diff): void {
		const swap = el("button", "", "Swap A and B");
		swap.addEventListener("click", () => {
			this.otherFirst = !this.otherFirst;
			this.compare().catch((e: Error) => this.say(e.message, true));
		});
		const one = (letter: string, isOther: boolean): HTMLElement =>
			isOther
				? side(letter, other.name, other.overview, other.report)
				: side(letter, "this trace", this.shown.overview, this.shown.report);
		const lanes = el("div", "other-lanes");
		const map = el("div", "other-map");
		this.say(verdict(diff));
		this.state.className = "outcome";
		this.body.replaceChildren(
			el("p", "hint", ...notes(diff), swap),
			el("div", "columns", one("A", this.otherFirst), one("B", !this.otherFirst)),
			this.table(diff),
			el("h3", "", "Lanes of ", el("span", "as-is", other.name)),
			el("p", "hint", "They move with those above, each from the beginning of its own window."),
			map,
			lanes,
		);
		this.follow(other, lanes, map);
	}

	private table(diff: Diff): HTMLElement {
		const number = (text: string): HTMLElement => el("td", "number", text);
		const time = (ns: number | undefined): HTMLElement => number(ns === undefined ? "" : duration(ns));
		const rows = diff.rows.slice(0, SHOWN).map((r) => {
			const changed = r.change === "slower" || r.change === "faster";
			return el(
				"tr",
				changed ? r.change : "",
				el("td", "", r.of === "span" ? `span ${r.name}` : r.name),
				number(r.a.per_second.toFixed(0)),
				number(r.b.per_second.toFixed(0)),
				time(r.a.p50_ns),
				time(r.b.p50_ns),
				number(r.ratio === null ? "" : percent(r.ratio - 1)),
				time(r.a.p99_ns),
				time(r.b.p99_ns),
				el("td", "", CHANGES[r.change] ?? r.change),
			);
		});
		const heads = ["", "A/s", "B/s", "A p50", "B p50", "change", "A p99", "B p99", ""];
		return el(
			"table",
			"plain rows",
			el("thead", "", el("tr", "", ...heads.map((h) => el("th", "", h)))),
			el("tbody", "", ...rows),
		);
	}

	/* ----------------------------------------------------------------- lanes */

	private follow(other: Other, host: HTMLElement, map: HTMLElement): void {
		const mine = this.shown.timeline;
		const its = new Timeline(host, other.client, other.overview);
		const strip = new Minimap(map, other.client, its, Math.max(other.overview.window, 1));
		this.lanes?.end();
		this.lanes = its;
		if (!this.follows) {
			const before = mine.onView;
			this.follows = true;
			mine.onView = () => {
				before();
				this.together(this.lanes, mine);
			};
		}
		its.onView = () => {
			strip.paint();
			this.together(mine, its);
		};
		other.client.onNames = () => its.frame();
		its.show(mine.view);
	}

	private together(to: Timeline | undefined, from: Timeline): void {
		if (this.moving || !to) return;
		this.moving = true;
		to.show(from.view);
		this.moving = false;
	}

	end(): void {
		this.lanes?.end();
		this.other?.client.end();
		this.other = undefined;
		this.lanes = undefined;
	}
}

/* -------------------------------------------------------------------- words */

function percent(part: number): string {
	return `${part < 0 ? "−" : "+"}${Math.abs(100 * part).toFixed(Math.abs(part) < 0.1 ? 1 : 0)} %`;
}

/* As `tacho diff` begins. */
function verdict(d: Diff): string {
	if (!d.rows.length) return "Nothing to compare: neither trace has complete callbacks, turns or spans.";
	if (!d.compared) return "Not enough data: nothing happened often enough in both traces.";
	if (!d.changed) return "No change: the differences are no larger than chance makes them.";
	const changed = d.rows.slice(0, d.changed);
	return changed
		.map((r) => `${r.change}: ${r.name}, ${percent((r.ratio ?? 1) / d.common - 1)}`)
		.join("; ");
}

function notes(d: Diff): string[] {
	const rate = (s: { window_ns: number; polls: number }): number => (s.window_ns ? (s.polls * 1e9) / s.window_ns : 0);
	const [a, b] = [rate(d.a), rate(d.b)];
	const all: string[] = [];
	if (d.common < 0.97 || d.common > 1.03)
		all.push(`Most differ by ${percent(d.common - 1)}: that is the machine or the load, and does not count. `);
	if (a && b && (a > 1.5 * b || b > 1.5 * a))
		all.push(`The load differs: ${count(Math.round(a))} callbacks a second in A, ${count(Math.round(b))} in B. `);
	if (d.missed) all.push(`${count(d.missed)} kinds or spans were not compared. `);
	return all;
}

function side(letter: string, name: string, overview: Overview, report: Report): HTMLElement {
	const p = overview.processes[0];
	const v = report.verdict;
	const calm = v.category === "none" || v.category === "not-enough-data";
	const who = p?.pid ? `${p.comm ?? "?"} (${p.pid})` : (p?.comm ?? "no process");
	/* Some that are imported do not say when they were recorded. */
	const taken = p?.taken_ms ? ` until ${new Date(p.taken_ms).toISOString().replace("T", " ").slice(0, 19)} UTC` : "";
	return el(
		"div",
		"",
		el("h3", "", `${letter} `, el("span", "as-is", name)),
		el("p", "hint", `${who} · ${duration(overview.window)}${taken}`),
		el(
			"section",
			`verdict ${calm ? "calm" : "alarm"}`,
			el("h2", "", verdictText(v.category)),
			el("p", sentence(v.summary), v.summary),
		),
		el("ul", "found", ...report.findings.slice(0, 8).map(found)),
	);
}

function found(f: Finding): HTMLElement {
	return el(
		"li",
		f.severity,
		el("b", "", f.rule),
		` ${f.summary} `,
		el("span", "place", placeText(f.where[0])),
	);
}
