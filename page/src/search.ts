/* The search box: names, files, tasks, threads and lengths, as "on_guess >5ms". What is chosen can be
   followed from one occurrence to the next. */
import { Track } from "./answers";
import { $, el } from "./dom";
import { count, duration } from "./format";
import type { Found, FoundIds, FoundKind, Thing } from "./found";
import type { Shown } from "./shown";
import { laneName } from "./timeline";

const GROUPS: [Track, string][] = [
	[Track.Polls, "Callbacks"],
	[Track.Work, "Work of pools"],
	[Track.Calls, "Blocking calls"],
	[Track.Locks, "Waits for locks"],
	[Track.Signals, "Waits for conditions"],
	[Track.Spans, "Spans"],
	[Track.Samples, "Samples"],
];

interface Option {
	element: HTMLElement;
	take: () => void;
}

/* What is stepped through. */
interface Followed {
	kind: FoundKind;
	least: number;
	most: number;
	at: Thing;
}

export class Search {
	private readonly input = el("input", "");
	private readonly list = el("div", "results");
	private readonly stepper = el("span", "stepper");
	private readonly host: HTMLElement;
	private options: Option[] = [];
	private at = -1;
	private asked = 0;
	private waiting = 0;
	private followed: Followed | undefined;
	private stepping: Promise<void> = Promise.resolve();

	constructor(private readonly shown: Shown) {
		this.input.type = "search";
		this.input.placeholder = "Search: a name, a file, >5ms";
		this.input.id = "search";
		this.input.setAttribute("role", "combobox");
		this.input.setAttribute("aria-label", "Search");
		this.input.setAttribute("aria-autocomplete", "list");
		this.input.setAttribute("aria-controls", "results");
		this.list.id = "results";
		this.list.setAttribute("role", "listbox");
		this.list.setAttribute("aria-label", "What was found");
		this.stepper.hidden = true;
		this.host = el("div", "search", this.stepper, this.input, this.list);
		/* What is typed stays while traces follow one another. */
		const before = document.querySelector<HTMLInputElement>("#search");
		const focused = before !== null && document.activeElement === before;
		this.input.value = before?.value ?? "";
		before?.parentElement?.remove();
		$("top").insertBefore(this.host, $("help"));
		if (focused) this.input.focus();
		this.close();
		this.listen();
		shown.keys.add("/", "search", () => this.input.focus());
		shown.keys.add("j", "next of what was searched", () => void this.step(1));
		shown.keys.add("k", "previous of what was searched", () => void this.step(-1));
	}

	private listen(): void {
		this.input.addEventListener("input", () => {
			window.clearTimeout(this.waiting);
			this.waiting = window.setTimeout(() => void this.find(), 120);
		});
		this.input.addEventListener("focus", () => this.options.length && this.open());
		this.input.addEventListener("keydown", (e) => this.pressed(e));
		this.host.addEventListener("focusout", (e) => {
			if (!this.host.contains(e.relatedTarget as Node | null)) this.close();
		});
		/* A click must not take the focus away first. */
		this.list.addEventListener("pointerdown", (e) => e.preventDefault());
	}

	private pressed(e: KeyboardEvent): void {
		if (e.key === "Escape") {
			e.stopPropagation();
			if (this.list.hidden) this.input.blur();
			this.close();
		} else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
			e.preventDefault();
			this.mark(this.at + (e.key === "ArrowDown" ? 1 : -1));
		} else if (e.key === "Enter") {
			e.preventDefault();
			void this.enter();
		}
	}

	/* What is typed may be newer than what is listed. */
	private async enter(): Promise<void> {
		const marked = this.at;
		window.clearTimeout(this.waiting);
		if (marked < 0) await this.find();
		this.options[Math.max(marked, 0)]?.take();
	}

	/* -------------------------------------------------------------- results */

	private async find(): Promise<void> {
		const text = this.input.value.trim();
		const asked = ++this.asked;
		if (!text) {
			this.options = [];
			this.close();
			return;
		}
		const found = await this.shown.client.call<Found>("search", text);
		if (asked !== this.asked) return;
		this.options = [];
		const groups = [
			...GROUPS.map(([type, title]) => this.things(found, type, title)),
			this.tasks(found),
			this.threads(found),
			this.ids(text),
		];
		this.list.dataset["of"] = text;
		this.fill(groups, `Nothing is called so${found.least || found.most !== null ? ", or is so long" : ""}.`);
	}

	private fill(groups: (HTMLElement | undefined)[], nothing: string): void {
		const some = groups.filter((g): g is HTMLElement => g !== undefined);
		this.list.replaceChildren(...(some.length ? some : [el("p", "hint", nothing)]));
		this.at = -1;
		this.open();
	}

	private group(title: string, options: HTMLElement[], more: number): HTMLElement | undefined {
		if (!options.length) return undefined;
		const text = more > 0 ? `${title}, and ${count(more)} more` : title;
		const heading = el("div", "title", text);
		const g = el("div", "", heading, ...options);
		heading.setAttribute("aria-hidden", "true");
		g.setAttribute("role", "group");
		g.setAttribute("aria-label", text);
		return g;
	}

	private option(name: string, place: string, numbers: string, take: () => void): HTMLElement {
		const element = el(
			"div",
			"result",
			el("b", "", name),
			el("span", "cost", numbers),
			el("span", "place", place),
		);
		const i = this.options.length;
		element.id = `result-${i}`;
		element.setAttribute("role", "option");
		element.setAttribute("aria-selected", "false");
		element.addEventListener("click", () => this.options[i]?.take());
		element.addEventListener("pointermove", () => this.at !== i && this.mark(i));
		this.options.push({
			element,
			take: () => {
				this.close();
				this.input.blur();
				take();
			},
		});
		return element;
	}

	private things(found: Found, type: Track, title: string): HTMLElement | undefined {
		const options = found.things
			.filter((k) => k.type === type)
			.map((k) =>
				this.option(
					k.name,
					k.place === k.name ? "" : k.place ?? "",
					type === Track.Samples
						? `${count(k.count)} samples`
						: `${count(k.count)}, longest ${duration(k.longest.ns)}`,
					() => this.follow({ kind: k, least: found.least, most: found.most ?? 0, at: k.longest }),
				),
			);
		return this.group(title, options, 0);
	}

	private tasks(found: Found): HTMLElement | undefined {
		const options = found.tasks.map((t) =>
			this.option(
				`${t.kind ?? "task"} ${t.id}`,
				t.spawned_in ?? "",
				`${count(t.polls)} polls, waited ${duration(t.waited)}`,
				() => this.shown.task.open(t.process, t.id),
			),
		);
		return this.group("Tasks", options, found.task_count - options.length);
	}

	private threads(found: Found): HTMLElement | undefined {
		const lanes = found.threads.map((n) => this.shown.overview.lanes.find((l) => l.lane === n));
		const options = lanes.flatMap((lane) => {
			if (!lane) return [];
			return this.option(laneName(lane), lane.loop ?? "", "thread", () => {
				const { from, to } = this.shown.timeline.view;
				const eighth = (to - from) / 8;
				const middle = (from + to) / 2;
				/* goTo shows half as much again on either side. */
				this.shown.timeline.goTo(lane.process, lane.thread, {
					from: middle - eighth,
					to: middle + eighth,
				});
			});
		});
		return this.group("Threads", options, found.thread_count - options.length);
	}

	/* ------------------------------------------------------------------ ids */

	/* Trace ids and locks are not kept: they are looked for when somebody asks. */
	private ids(text: string): HTMLElement | undefined {
		if (!/^(0x)?[0-9a-f]{4,32}$/i.test(text)) return undefined;
		const option = this.option(`${text}…`, "", "reads the trace again", () => undefined);
		const last = this.options[this.options.length - 1];
		if (last) last.take = () => void this.findIds(text);
		return this.group("Look for a trace id or a lock", [option], 0);
	}

	private async findIds(text: string): Promise<void> {
		const asked = ++this.asked;
		const found = await this.shown.client.call<FoundIds>("search_ids", text.toLowerCase());
		if (asked !== this.asked) return;
		this.options = [];
		const options = found.found.map((f) =>
			this.option(f.name ?? f.what, f.id, `${f.what}${f.thing ? `, ${duration(f.thing.ns)}` : ""}`, () => {
				if (f.thing) this.shown.timeline.select(f.thing);
			}),
		);
		this.fill(
			[this.group("Spans and locks", options, found.spans + found.locks - options.length)],
			"No trace id and no lock begins so.",
		);
	}

	/* ---------------------------------------------------------- occurrences */

	private follow(f: Followed): void {
		this.followed = f;
		const button = (text: string, label: string, by: number): HTMLElement => {
			const b = el("button", "", text);
			b.setAttribute("aria-label", label);
			b.addEventListener("click", () => void this.step(by));
			return b;
		};
		this.stepper.replaceChildren(
			button("‹", `previous ${f.kind.name}`, -1),
			el("span", "", `${f.kind.name}, ${count(f.kind.count)}`),
			button("›", `next ${f.kind.name}`, 1),
		);
		this.stepper.hidden = false;
		this.shown.timeline.select(f.at);
	}

	/* One after the other, however fast keys are pressed. */
	private step(by: number): Promise<void> {
		this.stepping = this.stepping.then(() => this.stepOnce(by));
		return this.stepping;
	}

	private async stepOnce(by: number): Promise<void> {
		const f = this.followed;
		if (!f) return;
		const { process, type, what } = f.kind;
		const next = await this.shown.client.call<Thing | null>(
			"next", process, type, what, f.at.begin, f.at.lane, f.at.row, by, f.least, f.most,
		);
		if (!next || f !== this.followed) return;
		f.at = next;
		this.shown.timeline.select(next);
	}

	/* ----------------------------------------------------------------- list */

	private mark(i: number): void {
		if (!this.options.length) return;
		this.at = (i + this.options.length) % this.options.length;
		this.options.forEach(({ element }, k) => element.setAttribute("aria-selected", String(k === this.at)));
		const marked = this.options[this.at]?.element;
		marked?.scrollIntoView({ block: "nearest" });
		this.input.setAttribute("aria-activedescendant", marked?.id ?? "");
	}

	private open(): void {
		this.list.hidden = false;
		this.input.setAttribute("aria-expanded", "true");
	}

	private close(): void {
		this.list.hidden = true;
		this.input.setAttribute("aria-expanded", "false");
		this.input.removeAttribute("aria-activedescendant");
	}
}
