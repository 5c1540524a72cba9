/* The traces of a folder: what is wrong in each, whose it is, when and why it was taken, how its
   process ended. Follows the folder. */
import { el } from "./dom";
import { bytes, duration, sentence, verdictText } from "./format";
import { getJson } from "./served";

interface Trace {
	name: string;
	href: string;
	bytes: number;
	changed_ms: number;
	judged: boolean;
	processes?: number;
	pid?: number;
	program?: string | null;
	service?: string | null;
	host?: string | null;
	taken_ms?: number | null;
	why?: string | null;
	taken_by?: string;
	end?: string | null;
	window_ns?: number;
	verdict?: { category: string; summary: string; severity: string };
	problems?: number;
	error?: string | null;
}

interface List {
	version: number;
	more?: number;
	error?: string;
	traces?: Trace[];
}

interface Column {
	id: string;
	title: string;
	/* What it is sorted by, and what is found in it. */
	value(t: Trace): string | number;
	cell(t: Trace): (Node | string)[];
}

const EVERY_MS = 2000;

/* Faults before what is well, and what is well before what nobody knows yet. */
function verdictRank(t: Trace): string {
	if (t.error) return `3 ${t.error}`;
	if (!t.verdict) return "4";
	const calm = isCalm(t);
	const rank = calm ? 2 : t.verdict.severity === "critical" ? 0 : 1;
	return `${rank} ${t.verdict.category} ${t.verdict.summary}`;
}

function isCalm(t: Trace): boolean {
	const category = t.verdict?.category;
	return category === "none" || category === "not-enough-data" || t.verdict?.severity === "info";
}

function verdictCell(t: Trace): Node[] {
	const kind = t.error ? "bad" : !t.verdict ? "waiting" : isCalm(t) ? "calm" : t.verdict.severity;
	const title = t.error ? "cannot be read" : t.verdict ? verdictText(t.verdict.category) : "reading …";
	const link = el("a", `judgement ${kind}`, el("span", "dot"), el("b", "", title));
	link.href = `?trace=${t.href}`;
	const damage = t.problems ? " Parts of it are damaged." : "";
	const text = `${t.error ?? t.verdict?.summary ?? ""}${damage}`;
	return [link, el("span", `summary ${sentence(text)}`, text)];
}

function program(t: Trace): string {
	if (!t.program) return "";
	const others = (t.processes ?? 1) - 1;
	const pid = t.pid ? ` (${t.pid})` : ""; // traces of other recorders may not know it
	return `${t.program}${pid}${others > 0 ? ` and ${others} more` : ""}`;
}

function when(t: Trace): number {
	return t.taken_ms ?? t.changed_ms;
}

/* In UTC, as the page has it above a trace. */
function whenText(ms: number): string {
	return new Date(ms).toISOString().slice(0, 19).replace("T", " ");
}

const reasons: Record<string, string> = {
	snapshot: "the program asked",
	"crash handler": "crash",
	dump: "tacho dump",
	recover: "end of the process",
	segment: "continuous recording",
};

function reason(t: Trace): string {
	return t.why ?? reasons[t.taken_by ?? ""] ?? "";
}

const plain = (id: string, title: string, text: (t: Trace) => string): Column => ({
	id,
	title,
	value: text,
	cell: (t) => [text(t)],
});

const columns: Column[] = [
	{ id: "verdict", title: "Verdict", value: verdictRank, cell: verdictCell },
	plain("program", "Program", program),
	plain("service", "Service", (t) => t.service ?? ""),
	plain("host", "Host", (t) => t.host ?? ""),
	{ id: "taken", title: "Taken (UTC)", value: when, cell: (t) => [whenText(when(t))] },
	plain("reason", "Because of", reason),
	plain("end", "How it ended", (t) => t.end ?? ""),
	{
		id: "window",
		title: "Window",
		value: (t) => t.window_ns ?? -1,
		cell: (t) => [t.window_ns === undefined ? "" : duration(t.window_ns)],
	},
	{
		id: "file",
		title: "File",
		value: (t) => t.name,
		cell: (t) => [t.name, el("span", "cost", ` ${bytes(t.bytes)}`)],
	},
];

export class Folder {
	private list: Trace[] = [];
	private version = 0;
	private by = "taken";
	private down = true;
	private readonly body = el("tbody", "");
	private readonly heads = new Map<string, HTMLElement>();
	private readonly filter = el("input", "");
	private readonly status = el("p", "hint");
	private readonly rows = new Map<string, [text: string, row: HTMLElement, found: string]>();

	constructor(host: HTMLElement, private readonly name: string) {
		this.filter.type = "search";
		this.filter.placeholder = "Filter: words, as in lock web-3";
		this.filter.setAttribute("aria-label", "Filter traces by words");
		this.filter.addEventListener("input", () => this.changed());
		this.status.setAttribute("role", "status");
		this.readAddress();
		const bar = el("div", "folder-bar", el("h1", "", name), this.filter);
		const table = el("table", "folder-list", el("thead", "", this.head()), this.body);
		host.className = "folder";
		host.replaceChildren(bar, this.status, table);
		document.title = `${name.replace(/.*\//, "")} · tacho`;
		void this.follow();
	}

	/* ------------------------------------------------------------- address */

	private readAddress(): void {
		const given = new URLSearchParams(location.hash.slice(1));
		const by = given.get("sort") ?? "";
		if (columns.some((c) => c.id === by)) this.by = by;
		if (given.get("up")) this.down = false;
		this.filter.value = given.get("filter") ?? "";
	}

	private changed(): void {
		const given = new URLSearchParams({ sort: this.by });
		if (!this.down) given.set("up", "1");
		if (this.filter.value) given.set("filter", this.filter.value);
		const hash = `#${given.toString()}`;
		history.replaceState(null, "", hash);
		/* For the way back from a trace. */
		sessionStorage.setItem("list", hash);
		this.paint();
	}

	/* --------------------------------------------------------------- table */

	private head(): HTMLElement {
		const row = el("tr", "");
		for (const c of columns) {
			const button = el("button", "", c.title);
			button.addEventListener("click", () => {
				this.down = this.by === c.id ? !this.down : c.id === "taken" || c.id === "window";
				this.by = c.id;
				this.changed();
			});
			const head = el("th", "", button);
			head.scope = "col";
			this.heads.set(c.id, head);
			row.append(head);
		}
		return row;
	}

	/* A row is made again only when what it says has changed: it may be in use. */
	private row(t: Trace): [row: HTMLElement, found: string] {
		const text = JSON.stringify(t);
		const known = this.rows.get(t.href);
		if (known && known[0] === text) return [known[1], known[2]];
		const row = el("tr", t.error ? "bad" : "", ...columns.map((c) => el("td", `in-${c.id}`, ...c.cell(t))));
		row.addEventListener("click", (e) => {
			if (e.target instanceof HTMLElement && !e.target.closest("a") && !getSelection()?.toString())
				location.href = `?trace=${t.href}`;
		});
		const found = (row.textContent ?? "").toLowerCase();
		this.rows.set(t.href, [text, row, found]);
		return [row, found];
	}

	private paint(): void {
		const column = columns.find((c) => c.id === this.by) as Column;
		const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
		const sign = this.down ? -1 : 1;
		const sorted = this.list
			.map((t) => ({ key: column.value(t), t }))
			.sort((a, b) => {
				if (a.key !== b.key) return (a.key < b.key ? -1 : 1) * sign;
				return when(b.t) - when(a.t);
			});
		const shown: HTMLElement[] = [];
		for (const { t } of sorted) {
			const [row, found] = this.row(t);
			if (words.every((w) => found.includes(w))) shown.push(row);
		}
		if (shown.length !== this.body.childElementCount || shown.some((r, i) => r !== this.body.children[i]))
			this.body.replaceChildren(...shown);
		for (const [id, head] of this.heads) {
			if (id === this.by) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
			else head.removeAttribute("aria-sort");
		}
		this.tell(shown.length);
	}

	private tell(shown: number): void {
		const all = this.list.length;
		const waiting = this.list.filter((t) => !t.judged).length;
		const text = !all
			? "There are no traces (*.tacho) in this folder yet. They are listed when they come."
			: `${shown === all ? all : `${shown} of ${all}`} ${all === 1 ? "trace" : "traces"}` +
				(waiting ? `, ${waiting} being read` : "");
		if (this.status.textContent !== text) this.status.textContent = text;
	}

	/* -------------------------------------------------------------- follow */

	private take(list: List): void {
		this.version = list.version;
		if (!list.traces) return;
		this.list = list.traces;
		const there = new Set(list.traces.map((t) => t.href));
		for (const href of this.rows.keys()) if (!there.has(href)) this.rows.delete(href);
		this.paint();
		const more = list.more ? ` ${list.more} more are not listed.` : "";
		const error = list.error ? ` ${this.name}: ${list.error}.` : "";
		if (more || error) this.status.append(more, error);
	}

	private async follow(): Promise<void> {
		for (;;) {
			try {
				this.take(await getJson<List>(`list/${this.version}`));
			} catch (error) {
				this.status.textContent = error instanceof Error ? error.message : String(error);
			}
			const busy = this.list.some((t) => !t.judged);
			await new Promise((done) => setTimeout(done, busy ? EVERY_MS / 4 : EVERY_MS));
		}
	}
}
