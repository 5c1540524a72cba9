/* The top line: what program this is, where and when it ran, how it ended; and below it what of the
   trace is missing. */
import type { Overview, Process, Report } from "./answers";
import { $, el } from "./dom";
import { count, duration } from "./format";

function utc(ms: number): string {
	return new Date(ms).toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");
}

function facts(p: Process, overview: Overview): (Node | string)[] {
	/* Without events there is no window, but somebody has taken it. */
	const end = overview.window && p.real_ms ? p.real_ms + overview.window / 1e6 : p.taken_ms;
	const until = end > 0 ? ` until ${utc(end)}` : "";
	const when = el("span", "", `${duration(overview.window)}${until}`);
	if (until) when.title = `${new Date(end).toLocaleString()} here`;
	const events = overview.processes.reduce((sum, one) => sum + one.events, 0);
	const all = [when, el("span", "", `${count(events)} events`)];
	if (p.host) all.unshift(el("span", "", `on ${p.host}`));
	if (p.imported) all.push(el("span", "", `from ${p.imported}`));
	if (p.end) all.push(el("span", "", p.end));
	if (p.why) all.push(el("span", "", `taken because of ${p.why}`));
	if (p.service) all.push(el("span", "", `service ${p.service}`));
	return all;
}

export function showHeader(overview: Overview, report: Report): void {
	const named = overview.processes.find((p) => p.pid === report.verdict.pid) ?? overview.processes[0];
	const others = overview.processes.length - 1;
	if (!named) return $("what").replaceChildren("a trace of no process");
	const who = named.pid ? `${named.comm ?? "?"} (${named.pid})` : (named.comm ?? "?");
	$("what").replaceChildren(
		el("b", "", others ? `${who} and ${count(others)} more` : who),
		...facts(named, overview),
	);
	$("what").title = $("what").innerText;
	document.title = `${who}: ${report.verdict.category.replace(/-/g, " ")} · tacho`;
}

/* ------------------------------------------------------------- what is missing */

function many(n: number, one: string, more: string): string {
	return n === 1 ? `1 ${one}` : `${count(n)} ${more}`;
}

/* One line that opens: who has seen it once need not see it again. */
export function showNotices(overview: Overview): void {
	const { problems, gaps, dropped, thinned } = overview;
	const what: string[] = [];
	if (problems.length) what.push(many(problems.length, "problem", "problems"));
	if (gaps.length) what.push(many(gaps.length, "gap", "gaps"));
	const whole = !what.length;
	if (dropped) what.push(`${many(dropped, "thing has", "things have")} no place on the lanes`);
	if (thinned) what.push(`${many(thinned, "thing is", "things are")} too short to be seen`);
	if (!what.length) return $("notices").replaceChildren();
	const list = el("ul", "");
	for (const text of problems) list.append(el("li", "", text));
	for (const g of gaps)
		list.append(el("li", "", `From +${duration(g.from)} to +${duration(g.to)}: ${g.text}`));
	if (dropped)
		list.append(el("li", "", "More of them overlap than there are rows for, or the page had no memory left. Findings, ledger and numbers count them; tacho cat lists them."));
	if (thinned)
		list.append(el("li", "", `A page has no room for all of a trace this large: of its later part, what is shorter than ${duration(overview.thin_ns)} is left out of the lanes. Findings and ledger count it.`));
	const text = whole ? `Not all is drawn: ${what.join(", ")}.` : `This trace is not whole: ${what.join(", ")}. What is there is shown.`;
	$("notices").replaceChildren(el("details", "notice", el("summary", "", text), list));
}
