/* The left column: how it ended, the verdict, the findings, the ledger. Who reads only this has the
   answer; all of it leads to the right. */
import type { Finding, LedgerThread, Report } from "./answers";
import { ownerLines, ownerText, threadBar, threadName } from "./bars";
import { el } from "./dom";
import { count, duration, sentence, some, verdictText } from "./format";
import { placeText } from "./owners";
import type { Shown } from "./shown";
import { laneName } from "./timeline";
import { Times } from "./times";

const THREADS_SHOWN = 40;
const MARKS_SHOWN = 5;
const FINDINGS_SHOWN = 8;

export class Side {
	private readonly report: Report;
	private readonly boxes: { button: HTMLButtonElement; more: HTMLElement }[] = [];
	/* Findings as they stand below one another: those that another explains follow it. */
	private readonly order: number[] = [];
	private readonly times: Times;
	private at = -1;

	constructor(
		host: HTMLElement,
		private readonly shown: Shown,
	) {
		this.report = shown.report;
		this.times = new Times(shown);
		host.replaceChildren(
			this.ends(),
			this.verdict(),
			this.findings(),
			this.considered(),
			this.coverage(),
			this.ledger(),
		);
		shown.address.part(
			"finding",
			() => (this.at < 0 ? "" : String(this.at + 1)),
			(value) => this.select(Number(value) - 1),
		);
	}

	/* ---------------------------------------------------------- how it ended */

	private ends(): HTMLElement {
		const box = el("section", "ends");
		const ends = this.shown.overview.processes.filter((p) => p.end);
		ends.slice(0, 3).forEach((p) => {
			box.append(el("p", "end", `${p.comm ?? "?"} (${p.pid}): ${p.end ?? ""}`));
		});
		if (ends.length > 3) {
			const rest = ends.slice(3).map((p) => el("p", "end", `${p.comm ?? "?"} (${p.pid}): ${p.end ?? ""}`));
			box.append(folded(rest.length === 1 ? "1 more process ended" : `${count(rest.length)} more processes ended`, () => rest));
		}
		const marks = this.shown.overview.marks.map((mark, i) => {
			const what = mark.type === "crash" ? "Crash" : "Trigger";
			const button = el("button", "mark-line", el("b", "", `${what} `), mark.text ?? "", el("span", "cost", ` +${duration(mark.at)}`));
			button.addEventListener("click", () => this.shown.showMark(i));
			return button;
		});
		box.append(...marks.slice(0, MARKS_SHOWN));
		if (marks.length > MARKS_SHOWN)
			box.append(folded(`${count(marks.length - MARKS_SHOWN)} more`, () => marks.slice(MARKS_SHOWN)));
		return box;
	}

	private verdict(): HTMLElement {
		const v = this.report.verdict;
		const calm = v.category === "none" || v.category === "not-enough-data";
		const damage = v.readable.text;
		return el(
			"section",
			`verdict ${calm ? "calm" : v.category === "recording" ? "doubt" : "alarm"}`,
			...(damage && damage !== v.summary ? [el("p", sentence(damage), damage)] : []),
			el("h2", "", verdictText(v.category)),
			el("p", sentence(v.summary), v.summary),
		);
	}

	/* ------------------------------------------------------------- findings */

	private findings(): HTMLElement {
		const all = this.report.findings;
		const list = el("ol", "findings");
		const add = (to: HTMLElement, i: number): void => {
			const f = all[i];
			if (!f || this.order.includes(i)) return;
			this.order.push(i);
			const item = this.finding(f, i);
			to.append(item);
			const inner = el("ol", "findings explained");
			all.forEach((other, k) => other.explained_by === i && add(inner, k));
			if (inner.childElementCount) item.append(inner);
		};
		all.forEach((f, i) => f.explained_by === null && add(list, i));
		all.forEach((_, i) => add(list, i));
		const box = el("section", "", el("h3", "", `Findings (${all.length})`), list);
		/* Of many, the costliest; so that the ledger is not far. */
		const rest = [...list.children].slice(FINDINGS_SHOWN);
		if (rest.length)
			box.append(
				el("details", "", el("summary", "", `${some(rest.length, "more finding")}`), el("ol", "findings", ...rest)),
			);
		return box;
	}

	private finding(f: Finding, i: number): HTMLElement {
		const button = el(
			"button",
			`finding ${f.severity}${f.explained_by === null ? "" : " folded"}`,
			el("span", "dot"),
			el("span", "unseen-text", `${f.severity}: `),
			el(
				"span",
				"what",
				el("b", "", f.rule),
				el("span", "cost", f.cost_ns ? duration(f.cost_ns) : ""),
				el("span", `summary ${sentence(f.summary)}`, f.summary),
				...(this.shown.overview.processes.length > 1
					? [el("span", "whose", `${f.program ?? "process"} (${f.pid})`)]
					: []),
				el("span", "place", placeText(f.where[0])),
			),
		);
		button.setAttribute("aria-expanded", "false");
		button.addEventListener("click", () => this.select(i));
		const more = this.more(f);
		this.boxes[i] = { button, more };
		return el("li", "", button, more);
	}

	/* What is seen of a finding once it is selected. */
	private more(f: Finding): HTMLElement {
		const box = el("div", "more");
		if (f.advice) box.append(el("p", "advice", f.advice));
		if (f.explained_by !== null)
			box.append(el("p", "hint", `Explained by ${this.report.findings[f.explained_by]?.rule ?? "another"}.`));
		if (f.names) box.append(el("p", "hint", f.names));
		if (f.where.length > 1) {
			const places = el("ul", "where");
			for (const p of f.where.slice(1))
				places.append(
					el("li", "", p.called_the_one_before ? "called by " : "and ", el("span", "place", placeText(p))),
				);
			box.append(places);
		}
		const evidence = el("ul", "evidence");
		f.evidence.forEach((e, k) => {
			const from = this.shown.since(e.from_ns);
			const button = el("button", "line", el("span", "", e.text), el("span", "cost", `+${duration(from)}`));
			button.addEventListener("click", () => this.shown.showFinding(f, k));
			evidence.append(el("li", "", button));
		});
		box.append(evidence);
		box.hidden = true;
		return box;
	}

	select(i: number): void {
		const f = this.report.findings[i];
		if (!f) return;
		this.at = i;
		this.times.forget();
		this.boxes.forEach(({ button, more }, k) => {
			button.classList.toggle("selected", k === i);
			button.setAttribute("aria-expanded", String(k === i));
			more.hidden = k !== i;
		});
		const around = this.boxes[i]?.button.closest("details");
		if (around) around.open = true;
		this.boxes[i]?.button.scrollIntoView({ block: "nearest" });
		this.shown.showFinding(f, 0);
		this.shown.address.changed();
	}

	step(by: number): void {
		const n = this.order.length;
		const now = this.order.indexOf(this.at);
		const next = this.order[now < 0 ? (by > 0 ? 0 : n - 1) : (now + by + n) % n];
		if (next !== undefined) this.select(next);
	}

	/* ------------------------------------------ what is no finding, and why */

	private considered(): HTMLElement {
		const all = this.report.considered;
		const box = folded(`${count(all.length)} considered and dropped`, () => [
			el(
				"ul",
				"considered",
				...all.map((c) =>
					el("li", "", el("b", "", c.rule), ` ${c.what}`, el("span", "reason", `Dropped because ${c.reason}`)),
				),
			),
		]);
		box.hidden = !all.length;
		return box;
	}

	private coverage(): HTMLElement {
		const all = Object.entries(this.report.coverage);
		const not = all.filter(([, c]) => !c.checked);
		const title = not.length
			? `${count(not.length)} of ${count(all.length)} rules could not be checked`
			: `All ${count(all.length)} rules were checked`;
		return folded(title, () => [
			el(
				"ul",
				"considered",
				...not.map(([rule, c]) => el("li", "", el("b", "", rule), ` ${c.why ?? "what it needs was not recorded"}`)),
			),
			el("p", "considered", `Checked: ${all.filter(([, c]) => c.checked).map(([rule]) => rule).join(", ") || "none"}`),
		]);
	}

	/* --------------------------------------------------------------- ledger */

	private ledger(): HTMLElement {
		const all = this.report.ledger.threads.map((t, index) => ({ t, index }));
		const box = el("section", "ledger", el("h3", "", `Ledger (${some(all.length, "thread")})`), this.times.host);
		let left = THREADS_SHOWN;
		const pids = [...new Set(all.map(({ t }) => t.pid))];
		for (const pid of pids) {
			const own = all.filter(({ t }) => t.pid === pid).sort((a, b) => b.t.waiting_ns - a.t.waiting_ns);
			const name = this.shown.overview.processes.find((p) => p.pid === pid)?.comm ?? "?";
			const rows = (list: typeof own): HTMLElement[] => list.map(({ t, index }) => this.thread(t, index));
			const group = (): HTMLElement[] => {
				const first = rows(own.slice(0, THREADS_SHOWN));
				if (own.length > THREADS_SHOWN)
					first.push(folded(`${some(own.length - THREADS_SHOWN, "more thread")}`, () => rows(own.slice(THREADS_SHOWN))));
				return first;
			};
			if (pids.length === 1 || own.length === 1) box.append(...group());
			else {
				const head = folded(`${name} ${pid} (${some(own.length, "thread")})`, group);
				head.open = left > 0;
				box.append(head);
			}
			left -= own.length;
		}
		box.hidden = !all.length;
		return box;
	}

	private thread(t: LedgerThread, index: number): HTMLElement {
		const { shown } = this;
		const from = shown.since(t.from_ns), to = shown.since(t.to_ns);
		const lane = shown.laneOf(t.pid, t.tid);
		const name = lane ? laneName(lane) : `thread ${t.tid ?? ""}`;
		const go = (owner: number): void => {
			const o = t.owners[owner];
			if (o) void this.times.show(t, index, owner, `${ownerText(o)} of ${name}`);
		};
		const waited = t.waiting_ns ? el("p", "hint", `${duration(t.waiting_ns)} of waiting for it, in all`) : "";
		const box = folded(
			"",
			() => [waited, ownerLines(t, to - from, go)].filter((e): e is HTMLElement => e !== ""),
			"thread",
		);
		box.querySelector("summary")?.append(
			threadName(name),
			threadBar(t, from, to, { from: 0, to: shown.overview.window }, go),
		);
		return box;
	}
}

/* What can be opened; it is made then. */
function folded(title: string, make: () => HTMLElement[], className = ""): HTMLDetailsElement {
	const box = el("details", className, el("summary", "", title));
	let made = false;
	box.addEventListener("toggle", () => {
		if (made || !box.open) return;
		made = true;
		box.append(...make());
	});
	return box;
}
