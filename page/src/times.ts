/* All the times of a piece of the ledger: marked in the lanes, and gone through one by one. */
import type { LedgerThread } from "./answers";
import { el } from "./dom";
import { count, duration } from "./format";
import type { Shown } from "./shown";

interface TimesAnswer {
	count: number;
	sum: number;
	times: [begin: number, ns: number][];
}

export class Times {
	readonly host = el("div", "times");
	private found: TimesAnswer | undefined;
	private thread: LedgerThread | undefined;
	private at = 0;
	private asked = 0;
	private readonly position = el("span", "cost");

	constructor(private readonly shown: Shown) {
		this.host.hidden = true;
		this.host.setAttribute("role", "status");
		shown.keys.add(".", "next time of a piece of the ledger", () => this.step(1));
		shown.keys.add(",", "previous time of it", () => this.step(-1));
	}

	/* Piece and thread as the report counts them. */
	async show(thread: LedgerThread, index: number, owner: number, title: string): Promise<void> {
		const asked = ++this.asked;
		this.host.hidden = false;
		this.host.replaceChildren(el("b", "", title), el("p", "hint", "Looking for its times …"));
		try {
			const found = await this.shown.client.call<TimesAnswer>("times", index, owner);
			if (asked !== this.asked) return;
			this.found = found;
			this.thread = thread;
			this.tell(title, found, thread.owners[owner]?.ns ?? 0);
		} catch (error) {
			if (asked === this.asked)
				this.host.replaceChildren(el("p", "hint", error instanceof Error ? error.message : String(error)));
		}
	}

	private tell(title: string, found: TimesAnswer, ns: number): void {
		const { times } = found;
		const most = times.reduce((best, t, i) => (t[1] > (times[best]?.[1] ?? 0) ? i : best), 0);
		const button = (text: string, label: string, by: number): HTMLElement => {
			const b = el("button", "icon", text);
			b.setAttribute("aria-label", label);
			b.addEventListener("click", () => this.step(by));
			return b;
		};
		const close = el("button", "icon", "×");
		close.setAttribute("aria-label", "Forget these times");
		close.addEventListener("click", () => this.forget());
		const notes: string[] = [`${count(found.count)} times, ${duration(found.sum)} in all`];
		if (times.length < found.count) notes.push(`the longest ${count(times.length)} are marked`);
		/* Samples say which function ran, of the stretches that have one. */
		if (found.sum < 0.99 * ns) notes.push(`seen in samples; with the share of what has none it is ${duration(ns)}`);
		this.host.replaceChildren(
			el("b", "", title),
			el("p", "hint", notes.join("; ")),
			el("div", "stepping", button("‹", "Previous time", -1), this.position, button("›", "Next time", 1), close),
		);
		this.shown.showMarks(times.map(([at, length], number) => ({ at, to: at + length, number })));
		this.at = most;
		if (times.length) this.go();
		else this.position.textContent = "none";
	}

	private go(): void {
		const time = this.found?.times[this.at];
		if (!time || !this.found || !this.thread) return;
		const [at, ns] = time;
		this.position.textContent =
			`${count(this.at + 1)} of ${count(this.found.times.length)}: ${duration(ns)} at +${duration(at)}`;
		this.shown.goTo(this.thread.pid, this.thread.tid, { from: at, to: at + ns });
	}

	/* Whether there is something to step through. */
	step(by: number): boolean {
		const n = this.found?.times.length ?? 0;
		if (!n) return false;
		this.at = (this.at + by + n) % n;
		this.go();
		return true;
	}

	forget(): void {
		this.asked++;
		if (this.host.hidden) return;
		this.found = undefined;
		this.host.hidden = true;
		this.shown.showMarks([]);
	}
}
