/* Flame graph of the range, or of all: from the outermost function above to the innermost below. */
import { el } from "./dom";
import { shadeOf } from "./colours";
import { count, duration, share, some } from "./format";
import { offerToRead } from "./range";
import type { Shown } from "./shown";
import type { Tab } from "./tabs";

/* As page_flame of the engine: columns; the first is the root, and each comes after its parent. */
interface FlameAnswer {
	unit: "ns" | "samples";
	total: number;
	stacks: number;
	hidden: number;
	advice: string | null;
	parent: number[];
	value: number[];
	self: number[];
	name: string[];
}

interface Box {
	node: number;
	left: number; // shares of the width
	width: number;
	depth: number;
}

const ROW = 18;
const NARROW = 1.5; // px: what is less wide is not drawn
const TOP = 40;

export class FlameTab implements Tab {
	readonly name = "Flame";
	readonly host = el("div", "");
	private answer: FlameAnswer | undefined;
	private children: number[][] = [];
	private root = 0;
	private focused = 0;
	private stale = true;
	private asked = 0;
	private waiting = 0;
	private kind = ""; // only of callbacks of this name

	private readonly what = choice("What", [["0", "On the CPU"], ["1", "Waiting, off the CPU"]]);
	private readonly by = choice("By", [["0", "by thread"], ["1", "by callback"], ["2", "by task"]]);
	private readonly search = el("input", "");
	private readonly found = el("span", "cost");
	private readonly out = el("button", "", "Zoom out");
	private readonly only = el("button", "", "");
	private readonly summary = el("span", "cost");
	private readonly drawing = el("div", "flame");
	private readonly about = el("p", "flame-about");
	private readonly top = el("div", "flame-top");

	constructor(private readonly shown: Shown) {
		this.search.type = "search";
		this.search.placeholder = "Function";
		this.search.setAttribute("aria-label", "Functions to highlight");
		this.search.addEventListener("input", () => this.paint());
		this.found.setAttribute("role", "status");
		this.what.addEventListener("change", () => this.ask());
		this.by.addEventListener("change", () => this.ask());
		this.out.addEventListener("click", () => this.zoomOut());
		this.only.addEventListener("click", () => {
			this.kind = "";
			this.ask();
		});
		this.drawing.tabIndex = 0;
		this.drawing.setAttribute("role", "group");
		this.drawing.setAttribute("aria-label", "Flame graph. Arrows go to caller, callee and neighbours, Enter zooms.");
		this.drawing.addEventListener("keydown", (e) => this.key(e));
		this.host.addEventListener("keydown", (e) => this.escape(e));
		this.host.replaceChildren(
			el("div", "flame-tools", this.what, this.by, this.search, this.found, this.out, this.only, this.summary),
			el("div", "flame-body", el("div", "", this.drawing, this.about), this.top),
		);
		new ResizeObserver(() => this.paint()).observe(this.drawing);
	}

	opened(): void {
		if (this.stale) this.askIfShort();
	}

	/* The range is another now. */
	changed(): void {
		this.stale = true;
		window.clearTimeout(this.waiting);
		if (this.shown.tabs.seen === this.name) this.waiting = window.setTimeout(() => this.askIfShort(), 250);
	}

	private askIfShort(): void {
		const offer = offerToRead(this.shown, this.shown.range.range, () => this.ask());
		if (!offer) return this.ask();
		this.answer = undefined;
		this.drawing.style.height = "auto";
		this.drawing.replaceChildren(offer);
	}

	/* Only of callbacks of one kind. */
	showKind(name: string): void {
		this.kind = name;
		this.stale = true;
		this.shown.tabs.open(this.name);
		if (this.stale) this.ask();
	}

	private ask(): void {
		void this.fetch().catch((error: unknown) => {
			this.stale = true;
			this.answer = undefined;
			this.drawing.replaceChildren(el("p", "hint", error instanceof Error ? error.message : String(error)));
		});
	}

	private async fetch(): Promise<void> {
		const asked = ++this.asked;
		const range = this.shown.timeline.range ?? { from: 0, to: 0 };
		this.stale = false;
		this.only.textContent = `Only ${this.kind} ×`;
		this.only.hidden = !this.kind;
		this.summary.textContent = "Adding up …";
		const answer = await this.shown.client.call<FlameAnswer>(
			"flame", range.from, range.to, Number(this.what.value), Number(this.by.value), this.kind, "");
		if (asked !== this.asked) return;
		this.answer = answer;
		this.root = this.focused = 0;
		this.children = answer.name.map(() => []);
		answer.parent.forEach((p, i) => i && this.children[p]?.push(i));
		for (const list of this.children) list.sort((a, b) => (this.nameOf(a) < this.nameOf(b) ? -1 : 1));
		this.tell(answer);
		this.paint();
	}

	private tell(a: FlameAnswer): void {
		const where = this.shown.timeline.range ? "in the range" : "in the whole window";
		const hidden = a.hidden ? ` · ${count(a.hidden)} narrow frames are left out` : "";
		this.summary.textContent = a.total ? `${this.size(a.total)} ${where}${hidden}` : "";
		this.about.textContent = a.advice ?? "";
		/* The same as text: what is innermost, by function. */
		const self = new Map<string, number>();
		a.self.forEach((v, i) => v && self.set(this.nameOf(i), (self.get(this.nameOf(i)) ?? 0) + v));
		const first = [...self].sort((x, y) => y[1] - x[1]).slice(0, TOP);
		const list = el("ol", "likes");
		for (const [name, value] of first) {
			const button = el("button", "like", el("span", "", name), el("span", "cost", `${this.size(value)} · ${share(value / a.total)}`));
			button.addEventListener("click", () => {
				this.search.value = name;
				this.paint();
			});
			list.append(el("li", "", button));
		}
		this.top.replaceChildren(el("h3", "", "Innermost"), list);
		this.top.hidden = !first.length;
	}

	private nameOf(i: number): string {
		return this.answer?.name[i] ?? "";
	}

	private valueOf(i: number): number {
		return this.answer?.value[i] ?? 0;
	}

	private size(value: number): string {
		return this.answer?.unit === "ns" ? duration(value) : some(value, "sample");
	}

	/* --------------------------------------------------------------- drawing */

	private boxes(width: number): Box[] {
		const boxes: Box[] = [];
		const callers: number[] = [];
		for (let i = this.root; i; i = this.answer?.parent[i] ?? 0) callers.unshift(this.answer?.parent[i] ?? 0);
		callers.forEach((node, depth) => boxes.push({ node, left: 0, width: 1, depth }));
		const lay = (node: number, left: number, depth: number): void => {
			const size = this.valueOf(node) / (this.valueOf(this.root) || 1);
			if (size * width < NARROW) return;
			boxes.push({ node, left, width: size, depth });
			for (const child of this.children[node] ?? []) {
				lay(child, left, depth + 1);
				left += this.valueOf(child) / (this.valueOf(this.root) || 1);
			}
		};
		lay(this.root, 0, callers.length);
		return boxes;
	}

	private paint(): void {
		const a = this.answer;
		const width = this.drawing.clientWidth;
		this.out.disabled = this.root === 0;
		if (!a || !width) return;
		if (!a.total) {
			this.found.textContent = "";
			this.drawing.style.height = "auto";
			this.drawing.replaceChildren(el("p", "hint", this.nothing()));
			this.drawing.setAttribute("role", "group");
			this.drawing.removeAttribute("aria-activedescendant");
			return;
		}
		const wanted = this.search.value.trim().toLowerCase();
		const boxes = this.boxes(width);
		const depth = boxes.reduce((most, b) => Math.max(most, b.depth), 0);
		this.drawing.style.height = `${(depth + 1) * (ROW + 1)}px`;
		this.drawing.replaceChildren(...boxes.map((b) => this.frame(b, width, wanted)));
		this.drawing.setAttribute("role", "tree");
		this.drawing.setAttribute("aria-activedescendant", `flame-${this.focused}`);
		this.found.textContent = wanted ? this.matches(wanted) : "";
	}

	private frame(b: Box, width: number, wanted: string): HTMLElement {
		const name = this.nameOf(b.node);
		const part = this.valueOf(b.node) / (this.answer?.total || 1);
		const text = `${name} · ${this.size(this.valueOf(b.node))} · ${share(part)}`;
		const box = el("div", `frame ${kindOf(name, b.node)}`, b.width * width > 24 ? name : "");
		box.id = `flame-${b.node}`;
		box.style.left = `${100 * b.left}%`;
		box.style.width = `${100 * b.width}%`;
		box.style.top = `${b.depth * (ROW + 1)}px`;
		box.title = text;
		box.setAttribute("role", "treeitem");
		box.setAttribute("aria-label", text);
		box.setAttribute("aria-level", String(b.depth + 1));
		box.classList.toggle("focused", b.node === this.focused);
		box.classList.toggle("caller", b.depth > 0 && b.width === 1 && b.node !== this.root);
		box.classList.toggle("match", wanted !== "" && name.toLowerCase().includes(wanted));
		box.classList.toggle("faded", wanted !== "" && !name.toLowerCase().includes(wanted));
		box.addEventListener("click", () => this.zoom(b.node));
		return box;
	}

	/* Of what is seen; what a match calls is not counted again. */
	private matches(wanted: string): string {
		let sum = 0, frames = 0;
		const look = (node: number): void => {
			if (this.nameOf(node).toLowerCase().includes(wanted)) {
				frames++;
				sum += this.valueOf(node);
			} else this.children[node]?.forEach(look);
		};
		look(this.root);
		return frames ? `${share(sum / (this.valueOf(this.root) || 1))} in ${some(frames, "place")}` : "no match";
	}

	private nothing(): string {
		const off = this.what.value === "1";
		if (this.kind) return `There is nothing of ${this.kind} here.`;
		if (this.shown.timeline.range) return off ? "Nothing waited in this range." : "There are no CPU samples in this range.";
		return off
			? "The trace has no waits for locks, no blocking calls and no switches."
			: "The trace has no CPU samples. tacho run records them; what threads waited for is under “Waiting”.";
	}

	/* --------------------------------------------------------------- zooming */

	private zoom(node: number): void {
		this.root = this.focused = node;
		this.paint();
		this.drawing.focus({ preventScroll: true });
	}

	private zoomOut(): void {
		this.zoom(this.answer?.parent[this.root] ?? 0);
	}

	private escape(e: KeyboardEvent): void {
		if (e.key !== "Escape" || (!this.root && !this.search.value)) return;
		e.preventDefault();
		e.stopPropagation();
		if (this.search.value && e.target === this.search) {
			this.search.value = "";
			this.paint();
		} else this.zoomOut();
	}

	private key(e: KeyboardEvent): void {
		const up = this.answer?.parent[this.focused] ?? 0;
		const down = this.children[this.focused]?.reduce<number | undefined>(
			(best, c) => (best === undefined || this.valueOf(c) > this.valueOf(best) ? c : best), undefined);
		const beside = this.focused ? (this.children[up] ?? []) : [];
		const at = beside.indexOf(this.focused);
		const next: Record<string, number | undefined> = {
			ArrowUp: up,
			ArrowDown: down,
			ArrowLeft: beside[at - 1],
			ArrowRight: beside[at + 1],
		};
		if (e.key === "Enter") this.zoom(this.focused);
		else if (e.key === "Backspace") this.zoomOut();
		else if (e.key in next) {
			this.focused = next[e.key] ?? this.focused;
			this.paint();
			this.about.textContent = this.drawing.querySelector<HTMLElement>(".focused")?.title ?? "";
			this.drawing.querySelector(".focused")?.scrollIntoView({ block: "nearest" });
		} else return;
		e.preventDefault();
		e.stopPropagation();
	}
}

function choice(label: string, options: [string, string][]): HTMLSelectElement {
	const box = el("select", "", ...options.map(([value, text]) => {
		const o = el("option", "", text);
		o.value = value;
		return o;
	}));
	box.setAttribute("aria-label", label);
	return box;
}

/* The colours are those of the ledger: what it waits in stands in brackets, below the function. */
function kindOf(name: string, node: number): string {
	if (!node) return "all";
	if (name === "[lock]" || name === "[condition]") return "lock";
	if (name === "[preempted]" || name === "[switched out]") return "late";
	if (name.endsWith("_[k]") || name === "[kernel]") return "runtime";
	if (/^\[[a-z_0-9]+\]$/.test(name)) return "call";
	return `code-${1 + shadeOf(name, 6)}`;
}
