/* Who wakes a task and whom it wakes, two steps far: drawn from left to right, and the same as a table. */
import { el } from "./dom";
import { count, duration } from "./format";

interface WakeNode {
	task: string | null;
	kind: string | null;
	thread: string | null;
	tid: number | null;
	woken_by?: WakeEdge[];
	more_woken_by?: number;
	wakes?: WakeEdge[];
	more_wakes?: number;
}

interface WakeEdge extends WakeNode {
	self: boolean;
	count: number;
	polls: number;
	again: number;
	waited: number;
	longest: number;
}

export interface WakeGraph extends WakeNode {
	missed: number;
}

const ROW = 44; // px
const COLUMN = 20; // per cent
const WIDTH = 15;

interface Drawn {
	node: WakeNode;
	column: number; // -2 to 2
	y: number;
}

export function nodeName(n: WakeNode): string {
	if (n.task) return `${n.kind ?? "task"} ${n.task}`;
	return n.kind ?? `${n.thread ?? "thread"} ${n.tid ?? ""}`;
}

export class Wakes {
	readonly host = el("div", "");
	private readonly box = el("div", "wakes");
	private readonly lines = document.createElementNS("http://www.w3.org/2000/svg", "svg");
	private height = 0;

	constructor(
		graph: WakeGraph | null,
		private readonly open: (task: string) => void,
	) {
		this.host.append(el("h3", "", "Who wakes whom"));
		if (!graph) {
			this.host.append(el("p", "hint", "No wake of this task or by it is in this trace."));
			return;
		}
		this.lines.setAttribute("aria-hidden", "true");
		this.box.append(this.lines);
		const left = this.lay(graph, "woken_by", -1);
		const leftHeight = this.height;
		this.height = 0;
		const right = this.lay(graph, "wakes", 1);
		this.height = Math.max(this.height, leftHeight, 1);
		const centre: Drawn = { node: graph, column: 0, y: ((this.height - 1) / 2) * ROW };
		this.connect(centre, left);
		this.connect(centre, right);
		this.put(centre, undefined);
		this.box.style.height = `${this.height * ROW}px`;
		this.lines.setAttribute("viewBox", `0 0 100 ${this.height * ROW}`);
		this.lines.setAttribute("preserveAspectRatio", "none");
		this.host.append(this.box, this.table(graph));
		const more = (graph.more_woken_by ?? 0) + (graph.more_wakes ?? 0);
		if (more || graph.missed)
			this.host.append(el("p", "hint", `${count(more + graph.missed)} with fewer wakes are not drawn.`));
	}

	/* ---------------------------------------------------------------- layout */

	/* Nodes of a side, each in the middle of what it has behind it. */
	private lay(of: WakeNode, way: "woken_by" | "wakes", column: number): Drawn[] {
		return (of[way] ?? []).map((edge) => {
			const first = this.height;
			const behind = Math.abs(column) < 2 ? this.lay(edge, way, 2 * column) : [];
			this.height = Math.max(this.height, first + 1);
			if (Math.abs(column) === 2) this.height = first + 1;
			const drawn = { node: edge, column, y: ((first + this.height - 1) / 2) * ROW };
			this.connect(drawn, behind);
			this.put(drawn, edge);
			return drawn;
		});
	}

	private put(d: Drawn, edge: WakeEdge | undefined): void {
		const { task } = d.node;
		const name = edge?.self ? "itself" : nodeName(d.node);
		const node = task && edge && !edge.self ? el("button", "node") : el("div", "node");
		node.append(el("b", "", name));
		if (edge)
			node.append(el("span", "cost", `${count(edge.count)}, ${edge.polls ? `longest ${duration(edge.longest)}` : "no poll"}`));
		else node.classList.add("centre");
		node.title = name;
		node.style.left = `${this.x(d)}%`;
		node.style.width = `${WIDTH}%`;
		node.style.top = `${d.y}px`;
		if (task && node instanceof HTMLButtonElement) node.addEventListener("click", () => this.open(task));
		this.box.append(node);
	}

	private x(d: Drawn): number {
		return (d.column + 2) * COLUMN + (COLUMN - WIDTH) / 2;
	}

	private connect(d: Drawn, others: Drawn[]): void {
		for (const o of others) {
			const [from, to] = o.column < d.column ? [o, d] : [d, o];
			const [x1, x2] = [this.x(from) + WIDTH, this.x(to)];
			const [y1, y2] = [from.y + ROW / 2 - 2, to.y + ROW / 2 - 2];
			const middle = (x1 + x2) / 2;
			const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
			path.setAttribute("d", `M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`);
			const wakes = Math.max((o.node as WakeEdge).count, 1);
			path.setAttribute("stroke-width", String(Math.min(1 + Math.log10(wakes), 5)));
			this.lines.append(path);
		}
	}

	/* ------------------------------------------------------------------ text */

	private table(g: WakeGraph): HTMLElement {
		const row = (way: string, e: WakeEdge): HTMLElement =>
			el(
				"tr",
				"",
				el("td", "", way),
				el("td", "", e.self ? "itself" : nodeName(e)),
				el("td", "number", count(e.count)),
				el("td", "number", count(e.polls)),
				el("td", "number", e.again ? count(e.again) : ""),
				el("td", "number", e.polls ? duration(e.waited / e.polls) : ""),
				el("td", "number", e.polls ? duration(e.longest) : ""),
			);
		const heads = ["", "", "wakes", "polls", "woken again by anyone before the poll", "ready on average", "longest"];
		return el(
			"table",
			"plain",
			el("thead", "", el("tr", "", ...heads.map((h) => el("th", "", h)))),
			el(
				"tbody",
				"",
				...(g.woken_by ?? []).map((e) => row("woken by", e)),
				...(g.wakes ?? []).map((e) => row("wakes", e)),
			),
		);
	}
}
