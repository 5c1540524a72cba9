/* The tab of tasks: which there are; of one its life on one line, where it went idle, its polls and
   who woke it. */
import { Track } from "./answers";
import { el } from "./dom";
import { count, duration, share } from "./format";
import { Phase, PHASES, TaskLife, TaskLine, TaskList, TaskPoll } from "./found";
import type { Shown } from "./shown";
import type { Tab } from "./tabs";
import type { Hit } from "./timeline";
import { WakeGraph, Wakes } from "./wakes";

const COLUMNS = 600;
const POLLS = 100; // listed at once

/* What a phase is called, and the owner whose colour it has. */
const WORDS: Record<Phase, [text: string, owner: string]> = {
	running: ["running: a poll of it runs", "code"],
	ready: ["ready: woken or spawned, and not running", "late"],
	idle: ["waiting to be woken", "idle"],
	gone: ["ended; its number is used again later", "gone"],
	unseen: ["not observed: records are missing", "unseen"],
};

const ORDERS = ["waited longest", "ran longest", "most polls", "spawned first"];
const POLL_ORDERS = ["in the order of time", "longest first", "longest ready first"];

export class TaskTab implements Tab {
	readonly name = "Task";
	readonly host = el("div", "");
	private asked = 0;
	private offered: { process: number; id: string } | undefined;
	private order = 0;
	private empty = true;
	private current: { process: number; id: string } | undefined; // undefined: the list

	constructor(private readonly shown: Shown) {
		shown.address.part(
			"task",
			() => (this.current ? `${this.current.process}:${this.current.id}` : ""),
			(value) => {
				const [, process, id] = /^(\d+):(\w+)$/.exec(value) ?? [];
				if (process !== undefined && id !== undefined) this.open(Number(process), id);
			},
		);
		shown.keys.add("t", "the task of what is selected", () => this.openOffered());
	}

	/* It is seen from now on. */
	opened(): void {
		if (!this.empty) return;
		if (this.offered) this.openOffered();
		else void this.list();
	}

	/* Something was selected: its task is one key away, or shown at once if tasks are looked at. */
	async offer(hit: Hit | undefined): Promise<void> {
		const asked = ++this.asked;
		this.offered = undefined;
		if (hit?.type !== Track.Polls && hit?.type !== Track.Tasks) return;
		const id = await this.shown.client.call<string | null>("task_of", hit.lane.lane, hit.row, hit.index);
		if (asked !== this.asked || id === null) return;
		this.offered = { process: hit.lane.process, id };
		this.empty = true;
		if (this.shown.tabs.seen === this.name) this.openOffered();
	}

	private openOffered(): void {
		if (this.offered) this.open(this.offered.process, this.offered.id);
	}

	open(process: number, id: string): void {
		this.empty = false;
		this.current = { process, id };
		this.shown.address.changed();
		this.shown.tabs.open(this.name);
		void this.show(process, id);
	}

	/* ----------------------------------------------------------------- list */

	private async list(): Promise<void> {
		const asked = ++this.asked;
		this.current = undefined;
		this.shown.address.changed();
		const list = await this.shown.client.call<TaskList>("tasks", this.order);
		if (asked !== this.asked) return;
		this.empty = false;
		if (!list.count) {
			this.host.replaceChildren(
				el("p", "", "This trace has no tasks."),
				el(
					"p",
					"hint",
					"Callbacks of libuv and libevent belong to their handles, which count as tasks. Of other " +
						"programs tasks are known where their runtime tells of them: with tacho_task_spawn, " +
						"tacho_poll_begin and tacho_wake of tacho.h.",
				),
			);
			return;
		}
		const rows = list.tasks.map((t) => this.line(t));
		const more = list.count - list.tasks.length;
		this.host.replaceChildren(
			el(
				"p",
				"hint",
				`${count(list.count)} tasks${more > 0 ? `, of which ${count(list.tasks.length)} are listed` : ""}` +
					`${list.missed ? `; ${count(list.missed)} more found no room` : ""}. Those that `,
				chooser("Order of tasks", ORDERS, this.order, (n) => {
					this.order = n;
					void this.list();
				}),
				" are first.",
			),
			table(["task", "polls", "ran", "ready", "spawned in"], rows),
		);
	}

	private line(t: TaskLine): HTMLElement {
		return row(
			link(`${t.kind ?? "task"} ${t.id}`, () => this.open(t.process, t.id)),
			count(t.polls),
			duration(t.busy),
			duration(t.waited),
			el("span", "place", t.spawned_in ?? ""),
		);
	}

	/* ----------------------------------------------------------------- task */

	private async show(process: number, id: string): Promise<void> {
		const asked = ++this.asked;
		this.host.replaceChildren(el("p", "hint", `Reading what the trace has of task ${id} …`));
		const { client } = this.shown;
		const life = await client.call<TaskLife | null>("task", process, id);
		if (asked !== this.asked) return;
		if (!life) {
			this.host.replaceChildren(this.back(), el("p", "", `This trace has no task ${id}.`));
			return;
		}
		const [line, polls, wakes] = await Promise.all([
			client.call<number[]>("task_line", COLUMNS),
			client.call<TaskPoll[]>("task_polls", 0, 0, POLLS),
			client.call<WakeGraph | null>("wakes", process, id),
		]);
		if (asked !== this.asked) return;
		const list = el("div", "");
		this.fillPolls(list, life, polls, 0);
		this.host.replaceChildren(
			this.back(),
			this.title(life),
			this.line_(life, line),
			this.sums(life),
			this.places(life),
			new Wakes(wakes, (task) => this.open(process, task)).host,
			list,
		);
	}

	private back(): HTMLElement {
		return link("All tasks", () => void this.list());
	}

	private title(t: TaskLife): HTMLElement {
		const p = el("p", "hint");
		const say = (...parts: (Node | string)[]): void => p.append(...parts);
		say(t.spawn_seen ? `Spawned at +${duration(t.from)}` : "Its spawn is not in this trace; seen first at " +
			`+${duration(t.from)}`);
		if (t.spawned_in) say(" in ", el("span", "place", t.spawned_in));
		if (t.parent) {
			const parent = t.parent;
			say(", by ", link(`task ${parent}`, () => this.open(t.process, parent)));
		}
		say(t.cut ? `; of its polls the first ${count(t.polls)} are shown, until +${duration(t.to)}.` :
			t.end_seen ? `; ended at +${duration(t.to)}.` :
			t.woken_at_end ? "; woken, and not run until the end of this trace." :
			"; not ended in this trace.");
		if (t.lives > 1) say(` ${count(t.lives)} tasks had this number one after the other.`);
		return el(
			"div",
			"",
			el("h2", "", `${t.kind ?? "task"} ${t.id}`, el("span", "cost", ` ${duration(t.to - t.from)}`)),
			p,
		);
	}

	/* Its life from left to right; a click goes there. */
	private line_(t: TaskLife, shares: number[]): HTMLElement {
		const line = el("button", "life");
		line.setAttribute("aria-label", `The life of this task in ${COLUMNS} columns; a click goes to that time`);
		const step = COLUMNS / 4;
		for (let column = 0; column < COLUMNS; column++) {
			const bar = el("span", "");
			PHASES.forEach((phase, i) => {
				const thousandths = shares[column * PHASES.length + i] ?? 0;
				if (!thousandths) return;
				const piece = el("i", WORDS[phase][1]);
				piece.style.flexGrow = String(thousandths);
				/* A short poll must not vanish in a long life. */
				if (phase === "running") piece.style.minHeight = "3px";
				bar.append(piece);
			});
			line.append(bar);
		}
		line.addEventListener("click", (e) => {
			const at = t.from + (e.offsetX / line.clientWidth) * (t.to - t.from);
			const half = (t.to - t.from) / step;
			this.shown.timeline.marks = [{ at, to: at, number: 0 }];
			this.shown.timeline.show({ from: at - half, to: at + half });
		});
		return line;
	}

	/* They add up to its life. */
	private sums(t: TaskLife): HTMLElement {
		const whole = t.to - t.from || 1;
		const rows = PHASES.filter((phase) => t.phases[phase]).map((phase) =>
			row(
				el("i", `swatch ${WORDS[phase][1]}`),
				duration(t.phases[phase]),
				share(t.phases[phase] / whole),
				WORDS[phase][0],
			),
		);
		return table(["", "time", "share", `of ${duration(t.to - t.from)}, ${count(t.polls)} polls`], rows);
	}

	private places(t: TaskLife): HTMLElement {
		const said = t.idle.filter((p) => p.what || p.place);
		const rows = said.map((p) =>
			row(duration(p.ns), count(p.count), duration(p.longest), el("b", "", p.what ?? ""),
				el("span", "place", p.place ?? "")),
		);
		return rows.length
			? el("div", "", el("h3", "", "Where it went idle"),
				table(["sum", "times", "longest", "it waited for", "in"], rows))
			: el("p", "hint", "The program does not say what this task waits for (tacho_task_waits).");
	}

	/* ---------------------------------------------------------------- polls */

	private fillPolls(host: HTMLElement, t: TaskLife, polls: TaskPoll[], order: number): void {
		const more = el("button", "", "More");
		more.hidden = polls.length >= t.polls;
		const get = async (n: number, from: number): Promise<void> => {
			const next = await this.shown.client.call<TaskPoll[]>("task_polls", n, from, POLLS);
			this.fillPolls(host, t, from ? [...polls, ...next] : next, n);
		};
		more.addEventListener("click", () => void get(order, polls.length));
		host.replaceChildren(
			el("h3", "", `${count(polls.length)} of ${count(t.polls)} polls`),
			el("p", "hint", chooser("Order of polls", POLL_ORDERS, order, (n) => void get(n, 0))),
			table(
				["began", "ready before", "ran", "on", "woken by", "then waited", "for"],
				polls.map((p) => this.poll(t, p)),
			),
			more,
		);
	}

	private poll(t: TaskLife, p: TaskPoll): HTMLElement {
		const { thing } = p;
		const began = `+${duration(p.begin)}`;
		return row(
			thing ? link(began, () => this.go(thing)) : began,
			p.ready ? duration(p.ready) : "",
			duration(p.ns),
			String(p.tid),
			this.waker(t, p),
			p.idle ? duration(p.idle) : "",
			el("span", "", p.waits_for ?? "", el("span", "place", p.waits_in ? ` ${p.waits_in}` : "")),
		);
	}

	private waker(t: TaskLife, p: TaskPoll): HTMLElement | string {
		const w = p.woken_by;
		if (!w) return "";
		const { task, thing } = w;
		const text = el("span", "");
		const poll = w.kind ?? (task ? "" : `thread ${w.tid}`);
		if (poll) text.append(thing ? link(poll, () => this.go(thing)) : poll, " ");
		if (task === t.id) text.append("itself");
		else if (task) text.append(link(`task ${task}`, () => this.open(t.process, task)));
		return text;
	}

	/* The tab stays as it is. */
	private go(thing: NonNullable<TaskPoll["thing"]>): void {
		this.shown.timeline.select(thing);
	}
}

/* ------------------------------------------------------------------ elements */

function link(text: string, action: () => void): HTMLElement {
	const b = el("button", "link", text);
	b.addEventListener("click", action);
	return b;
}

function row(...cells: (Node | string)[]): HTMLElement {
	return el("tr", "", ...cells.map((c) => el("td", "", c)));
}

function table(heads: string[], rows: HTMLElement[]): HTMLElement {
	return el(
		"table",
		"plain",
		el("thead", "", el("tr", "", ...heads.map((h) => el("th", "", h)))),
		el("tbody", "", ...rows),
	);
}

function chooser(label: string, texts: string[], chosen: number, take: (n: number) => void): HTMLElement {
	const select = el("select", "", ...texts.map((t) => el("option", "", t)));
	select.setAttribute("aria-label", label);
	select.selectedIndex = chosen;
	select.addEventListener("change", () => take(select.selectedIndex));
	return select;
}
