/* What led to the thing that is selected, and what it led to: arrows over the lanes, the same as a
   list, and keys that go along them. */
import { Palette, palette } from "./colours";
import { el } from "./dom";
import { count, duration } from "./format";
import type { Thing } from "./found";
import type { Shown } from "./shown";
import type { Tab } from "./tabs";
import { Hit, laneName, Timeline } from "./timeline";

interface Point {
	tid: number;
	thread: string | null;
	lane: number | null; // null: nothing of that thread is shown
	at: number;
	thing: Thing | null;
}

interface Flow {
	what: "wake" | "release" | "signal" | "submit" | "ready";
	leads_here: boolean;
	name: string | null;
	place: string | null;
	from: Point;
	to: Point;
}

/* [what led here, what it leads to] */
const WORDS: Record<Flow["what"], [string, string]> = {
	wake: ["Woken by", "Woke"],
	release: ["Lock released by", "Released a lock for"],
	signal: ["Signalled by", "Signalled"],
	submit: ["Handed in by", "Handed to the pool:"],
	ready: ["Ready since", "Then ran"],
};

export class Flows implements Tab {
	readonly name = "Flow";
	readonly host = el("div", "");
	private flows: Flow[] = [];
	private more = 0;
	private asked = 0;
	private of: Hit | undefined;

	constructor(private readonly shown: Shown) {
		shown.keys.add("[", "to what led here", () => this.follow(true));
		shown.keys.add("]", "to what this led to", () => this.follow(false));
		this.list();
	}

	/* Once there is a timeline. */
	drawOver(timeline: Timeline): void {
		timeline.overlays.push((g, t) => this.paint(g, t));
	}

	async show(hit: Hit | undefined): Promise<void> {
		const asked = ++this.asked;
		this.of = hit;
		this.flows = [];
		const answer = hit &&
			(await this.shown.client.call<{ flows: Flow[]; more: number }>(
				"flows", hit.lane.lane, hit.row, hit.index,
			));
		if (asked !== this.asked) return;
		this.flows = answer?.flows ?? [];
		this.more = answer?.more ?? 0;
		this.list();
		this.shown.timeline.frame();
	}

	/* ------------------------------------------------------------------ text */

	private list(): void {
		if (!this.of) {
			this.host.replaceChildren(
				el("p", "hint", "Click a box to see what led to it and what it led to. [ and ] go along the arrows."),
			);
			return;
		}
		const part = (title: string, here: boolean): HTMLElement => {
			const all = this.flows.filter((f) => f.leads_here === here);
			const list = el("ul", "flows", ...all.map((f) => this.item(f)));
			return el("div", "", el("h3", "", title), all.length ? list : el("p", "hint", "Nothing was seen."));
		};
		this.host.replaceChildren(
			el("h2", "", this.of.name, el("span", "cost", ` ${duration(this.of.ns)} · +${duration(this.of.begin)}`)),
			el("div", "columns", part("What led to it  [", true), part("What it led to  ]", false)),
		);
		if (this.more) this.host.append(el("p", "hint", `${count(this.more)} more are not listed.`));
	}

	private item(f: Flow): HTMLElement {
		const end = f.leads_here ? f.from : f.to;
		const [here, there] = WORDS[f.what];
		const name = f.name ?? f.place ?? (f.what === "ready" ? "" : "code outside of callbacks");
		const button = el(
			"button",
			"like",
			el(
				"span",
				"",
				`${f.leads_here ? here : there} ${name}`,
				el("span", "place", f.place && f.place !== name ? ` ${f.place}` : ""),
			),
			el("span", "cost", `${this.threadOf(end)} · ${duration(f.to.at - f.from.at)}`),
		);
		button.addEventListener("click", () => this.go(end));
		return el("li", "", button);
	}

	private threadOf(p: Point): string {
		const lane = this.shown.overview.lanes.find((l) => l.lane === p.lane);
		return lane ? laneName(lane) : `${p.thread ?? "thread"} ${p.tid}`;
	}

	/* ---------------------------------------------------------------- follow */

	private follow(back: boolean): void {
		const all = this.flows.filter((f) => f.leads_here === back);
		/* One that ends at a thing leads on from there. */
		const f = all.find((one) => (back ? one.from : one.to).thing) ?? all[0];
		if (f) this.go(back ? f.from : f.to);
		else this.shown.tabs.open(this.name);
	}

	private go(p: Point): void {
		const { timeline, overview } = this.shown;
		const lane = overview.lanes.find((l) => l.lane === p.lane);
		if (p.thing) timeline.select(p.thing);
		else if (lane) timeline.goTo(lane.process, lane.thread, { from: p.at - 1e4, to: p.at + 1e4 });
		else timeline.show({ from: p.at - 1e6, to: p.at + 1e6 });
	}

	/* ---------------------------------------------------------------- arrows */

	private paint(g: CanvasRenderingContext2D, t: Timeline): void {
		if (!this.flows.length || t.selected !== this.of) return;
		const colours = palette();
		for (const f of this.flows) {
			const from = this.yOf(t, f.from), to = this.yOf(t, f.to);
			if (from === undefined && to === undefined) continue;
			/* A thread that is not shown is above all that are. */
			const y1 = from ?? (to as number) - 40, y2 = to ?? (from as number) - 40;
			this.arrow(g, f, colours, t.x(f.from.at), y1, t.x(f.to.at), y2);
		}
	}

	private yOf(t: Timeline, p: Point): number | undefined {
		if (p.lane === null) return undefined;
		const row = p.thing && t.yOf(p.lane, p.thing.row);
		if (row) return row.y + row.height / 2;
		const place = t.layout.of(p.lane);
		return place && place.y - t.scroll + 13;
	}

	private arrow(
		g: CanvasRenderingContext2D,
		f: Flow,
		colours: Palette,
		x1: number,
		y1: number,
		x2: number,
		y2: number,
	): void {
		/* Both in one line: in an arc over it. Nearly at one time: straight down or up. */
		const near = Math.abs(x2 - x1) < 24, level = Math.abs(y2 - y1) < 8 ? -28 : 0;
		const bend = near ? 0 : (x2 - x1) / 2;
		const angle = near && level ? Math.PI / 2 : near ? Math.atan2(y2 - y1, x2 - x1) : Math.atan2(-level, bend);
		if (near && level) y1 += level;
		g.save();
		g.strokeStyle = g.fillStyle = this.colour(f, colours);
		g.lineWidth = 2;
		g.setLineDash(f.what === "signal" || f.what === "ready" ? [6, 4] : []);
		g.beginPath();
		g.moveTo(x1, y1);
		if (near) g.lineTo(x2, y2);
		else g.bezierCurveTo(x1 + bend, y1 + level, x2 - bend, y2 + level, x2, y2);
		g.stroke();
		g.setLineDash([]);
		g.beginPath();
		g.arc(x1, y1, 3, 0, 2 * Math.PI);
		g.fill();
		g.translate(x2, y2);
		g.rotate(angle);
		g.beginPath();
		g.moveTo(0, 0);
		g.lineTo(-9, -5);
		g.lineTo(-9, 5);
		g.fill();
		g.restore();
		if (Math.abs(x2 - x1) < 90) return;
		this.label(g, `${f.what} ${duration(f.to.at - f.from.at)}`, (x1 + x2) / 2, (y1 + y2 + 1.5 * level) / 2, colours);
	}

	private label(g: CanvasRenderingContext2D, text: string, x: number, y: number, colours: Palette): void {
		g.font = "11px system-ui, sans-serif";
		g.textBaseline = "middle";
		const width = g.measureText(text).width;
		const hides = (at: number): boolean =>
			this.shown.timeline.labels.some(
				(l) => Math.abs(l.y - at) < 14 && l.left < x + width / 2 + 4 && l.right > x - width / 2 - 4,
			);
		y = [0, -16, 16, -32, 32].map((by) => y + by).find((at) => !hides(at)) ?? y;
		g.fillStyle = colours.ground;
		g.fillRect(x - width / 2 - 4, y - 8, width + 8, 16);
		g.fillStyle = colours.text;
		g.fillText(text, x - width / 2, y);
	}

	private colour(f: Flow, colours: Palette): string {
		switch (f.what) {
			case "wake":
				return colours.runtime;
			case "ready":
				return colours.late;
			case "submit":
				return colours.text;
			default:
				return colours.lock;
		}
	}
}
