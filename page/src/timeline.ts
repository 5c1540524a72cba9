/* Lanes over time, on one canvas. A frame draws the boxes that are at hand, at once; those for
   what is in view now are asked for meanwhile. */
import { BoxReader, Lane, Like, Overview, Track } from "./answers";
import type { Client } from "./client";
import { LanesBar } from "./lanesbar";
import { Choice } from "./choice";
import { el } from "./dom";
import { Gutter } from "./gutter";
import { GUTTER, isCurve, Layout, Line, Place, RULER } from "./layout";
import { Painter } from "./paint";
import { Pointer } from "./pointer";

export { laneName } from "./layout";

export interface Span {
	from: number;
	to: number;
}

/* A box that was pointed at. It stands for the longest thing in it, whose begin, length and name these are. */
export interface Hit {
	lane: Lane;
	row: number;
	type: Track;
	index: number;
	what: number;
	things: number;
	begin: number;
	ns: number;
	name: string;
	box: Span; // all of them together
}

export class Timeline {
	view: Span;
	range: Span | undefined;
	selected: Hit | undefined;
	scroll = 0;
	moved = false; // what is in view was chosen
	marks: { at: number; to: number; number: number }[] = [];
	/* Called in each frame to draw over the lanes, with all behind the gutter and the ruler cut off. */
	readonly overlays: ((g: CanvasRenderingContext2D, timeline: Timeline) => void)[] = [];
	/* Where names are, in this frame: an overlay may not write there. */
	readonly labels: { y: number; left: number; right: number }[] = [];
	onView: () => void = () => undefined;
	onSelect: (hit: Hit | undefined) => void = () => undefined;
	onRange: (range: Span | undefined) => void = () => undefined;

	onChoice: () => void = () => undefined;

	/* When processes were stopped. */
	readonly stops = new Map<number, BoxReader>();
	readonly choice = new Choice();
	readonly layout: Layout;
	private readonly painter: Painter;
	private readonly stage = el("div", "stage");
	private readonly canvas = el("canvas", "");
	private readonly gutter: Gutter;
	private readonly bar: LanesBar;
	private readonly resized = new ResizeObserver(() => this.measure());
	private asking = false;
	private stale = true;
	private framed = false;
	private selectWhenDrawn: { lane: number; row: number; index: number } | undefined;

	constructor(
		host: HTMLElement,
		private readonly client: Client,
		public overview: Overview,
	) {
		this.view = { from: 0, to: Math.max(overview.window, 1) };
		this.layout = new Layout(overview, this.choice);
		this.painter = new Painter(this, this.canvas);
		this.gutter = new Gutter(this);
		this.bar = new LanesBar(this);
		this.canvas.tabIndex = 0;
		this.canvas.setAttribute("role", "img");
		this.canvas.setAttribute(
			"aria-label",
			"Timeline. Arrow keys or w a s d move and zoom; findings and details are beside it as text.",
		);
		this.stage.append(this.canvas, this.gutter.host);
		host.replaceChildren(this.bar.host, this.stage);
		this.gutter.lay();
		new Pointer(this, this.canvas, this.stage);
		this.measure();
		this.resized.observe(this.stage);
	}

	/* More has been read. */
	update(overview: Overview): void {
		this.overview = overview;
		this.layout.update(overview);
		this.gutter.lay();
		this.refresh();
	}

	/* Another choice of lanes. */
	change(what: () => unknown): void {
		what();
		this.layout.lay();
		this.gutter.lay();
		this.bar.update();
		this.scrollBy(0);
		this.onChoice();
	}

	end(): void {
		this.resized.disconnect();
	}

	/* ------------------------------------------------------- where things are */

	/* Asked for each column of a picture, so it is not measured each time. */
	size = { width: 0, height: 0 };
	/* Of what is behind the gutter. */
	width = 1;

	private measure(): void {
		this.size = { width: this.stage.clientWidth, height: this.stage.clientHeight };
		this.width = Math.max(this.size.width - GUTTER, 1);
		this.refresh();
	}
	x(ns: number): number {
		return GUTTER + ((ns - this.view.from) / (this.view.to - this.view.from)) * this.width;
	}
	time(x: number): number {
		return this.view.from + ((x - GUTTER) / this.width) * (this.view.to - this.view.from);
	}
	/* The row of a lane on the canvas, also where it is scrolled out of sight; undefined: it is not shown. */
	yOf(lane: number, row: number): { y: number; height: number } | undefined {
		const line = this.layout.line(lane, row)?.line;
		return line && { y: line.y - this.scroll, height: line.height };
	}
	visible(): Place[] {
		const top = this.scroll, bottom = this.scroll + this.size.height;
		return this.layout.places.filter((p) => p.y + p.height > top && p.y < bottom);
	}

	/* ------------------------------------------------------------ pictures */

	refresh(): void {
		this.stale = true;
		this.frame();
	}

	/* Colours have changed. */
	recolour(): void {
		this.painter.recolour();
		this.frame();
	}

	frame(): void {
		this.stage.dataset.drawn = "false";
		if (this.framed) return;
		this.framed = true;
		requestAnimationFrame(() => {
			this.framed = false;
			this.painter.paint();
			if (this.stale && !this.asking) void this.fetch();
			/* Who waits for the picture of what is in view can see that it is there. */
			this.stage.dataset.drawn = String(!this.asking);
			if (!this.asking && !performance.getEntriesByName("picture").length) performance.mark("picture");
		});
	}

	/* A little more than what is seen, so that a small move needs nothing new. */
	private async fetch(): Promise<void> {
		this.asking = true;
		this.stale = false;
		const lines = this.visible().flatMap((p) => p.lines);
		const curves = lines.filter((l) => isCurve(l.type)), boxed = lines.filter((l) => !isCurve(l.type));
		const rows = (of: Line[]): [number, number][] => of.map((l) => [l.lane.lane, l.row]);
		const stops = this.overview.lanes.flatMap((lane) =>
			lane.rows.flatMap((r, row) => (r.type === Track.Stopped ? [{ lane, row }] : [])),
		);
		const size = this.view.to - this.view.from;
		const wide = { from: Math.max(this.view.from - size / 2, 0), to: this.view.to + size / 2 };
		const columns = Math.max(Math.round((this.width * (wide.to - wide.from)) / size), 1);
		try {
			const [boxes, values] = await Promise.all([
				this.client.draw(
					[...rows(boxed), ...stops.map(({ lane, row }): [number, number] => [lane.lane, row])],
					wide.from,
					wide.to,
					columns,
				),
				this.client.curves(rows(curves), wide.from, wide.to, columns),
			]);
			boxed.forEach((line, i) => (line.boxes = new BoxReader(boxes[i] ?? new ArrayBuffer(0))));
			stops.forEach(({ lane }, i) =>
				this.stops.set(lane.process, new BoxReader(boxes[boxed.length + i] ?? new ArrayBuffer(0))),
			);
			curves.forEach((line, i) => {
				line.curve = { ...wide, values: new Float32Array(values[i] ?? new ArrayBuffer(0)) };
			});
			this.selectDrawn();
		} finally {
			this.asking = false;
			this.frame();
		}
	}

	nameOf(lane: Lane, type: Track, what: number): string {
		switch (type) {
			case Track.Runnable:
				return "runnable, not running";
			case Track.Late:
				return "woken, not running";
			case Track.Off:
				return "off the CPU";
			case Track.Holes:
				return "records are missing";
			case Track.Samples:
				return "sample";
			case Track.Parks:
				return "parked";
			case Track.Stopped:
				return "the process was stopped";
			case Track.Held:
				return what ? `held, released in ${this.client.name(lane.process, what)}` : "held";
			case Track.Tasks:
				return what ? this.client.name(lane.process, what) : "task";
			case Track.Locks:
				return what ? `lock in ${this.client.name(lane.process, what)}` : "lock";
			case Track.Signals:
				return what ? `condition in ${this.client.name(lane.process, what)}` : "condition";
			default:
				return what ? this.client.name(lane.process, what) : "turn of the loop";
		}
	}

	/* -------------------------------------------------------------- moving */

	show(span: Span): void {
		const most = Math.max(this.overview.window, 1);
		const size = Math.min(Math.max(span.to - span.from, 20), 1.2 * most);
		const middle = (span.from + span.to) / 2;
		const from = Math.min(Math.max(middle - size / 2, -0.1 * most), 1.1 * most - size);
		this.view = { from, to: from + size };
		this.moved = true;
		this.stale = true;
		this.bar.update();
		this.onView();
		this.frame();
	}

	zoom(factor: number, at = (this.view.from + this.view.to) / 2): void {
		this.show({
			from: at - (at - this.view.from) * factor,
			to: at + (this.view.to - at) * factor,
		});
	}

	move(share: number): void {
		const by = (this.view.to - this.view.from) * share;
		this.show({ from: this.view.from + by, to: this.view.to + by });
	}

	scrollBy(pixels: number): void {
		const most = Math.max(this.layout.height - this.size.height + 20, 0);
		this.scroll = Math.min(Math.max(this.scroll + pixels, 0), most);
		this.gutter.scrolled();
		this.stale = true;
		this.frame();
	}

	/* What is at that height is in sight. */
	reveal(y: number, height: number): void {
		if (y - this.scroll < RULER) this.scrollBy(y - RULER - this.scroll);
		else if (y + height - this.scroll > this.size.height)
			this.scrollBy(y + height - this.scroll - this.size.height);
	}

	fit(): void {
		this.show(this.range ?? { from: 0, to: this.overview.window });
	}

	/* Goes to a thread and a stretch of time. */
	goTo(process: number, thread: number, span: Span): void {
		const lane = this.overview.lanes.find((l) => l.process === process && l.thread === thread);
		const row = lane?.rows.findIndex((r) => r.count) ?? 0;
		const place = lane && (this.layout.of(lane.lane) ?? this.bring(lane.lane, row)?.place);
		const size = Math.max(span.to - span.from, 1000);
		if (place) this.scroll = Math.max(place.y - RULER - 60, 0);
		this.scrollBy(0);
		this.show({ from: span.from - 1.5 * size, to: span.to + 1.5 * size });
	}

	setRange(range: Span | undefined): void {
		this.range = range;
		this.onRange(range);
		this.frame();
	}

	/* ----------------------------------------------------------- selecting */

	/* One thing by its number: goes there, and selects it. */
	select(at: { lane: number; row: number; index: number; begin: number; ns: number }): void {
		const found = this.bring(at.lane, at.row);
		if (!found) return;
		const size = Math.max(at.ns, 1000);
		this.scroll = Math.max(found.place.y - RULER - 60, 0);
		this.scrollBy(0);
		this.show({ from: at.begin - 1.5 * size, to: at.begin + at.ns + 1.5 * size });
		this.selectWhenDrawn = at;
	}

	/* The next box of the row of what is selected. What is in view stays as wide, where the box can be seen
	   in it. */
	async step(by: number): Promise<void> {
		const s = this.selected;
		if (!s) return this.choose(this.longestInView());
		const at = await this.client.call<Like | null>("beside", s.lane.lane, s.row, s.index, by);
		if (!at || this.selected !== s) return;
		const size = this.view.to - this.view.from;
		if ((at.ns / size) * this.width < 4) return this.select(at);
		this.bring(at.lane, at.row);
		this.selectWhenDrawn = at;
		const middle = at.begin + at.ns / 2;
		if (at.begin < this.view.from || at.begin + at.ns > this.view.to)
			this.show({ from: middle - Math.max(size, at.ns) / 2, to: middle + Math.max(size, at.ns) / 2 });
		else this.refresh();
	}

	private longestInView(): Hit | undefined {
		let longest: Hit | undefined;
		for (const line of this.visible().flatMap((p) => p.lines)) {
			const b = line.boxes;
			if (!b || line.type === Track.Parks || line.type === Track.Tasks) continue;
			for (let i = b.first(this.view.from); i < b.count && b.begin(i) < this.view.to; i++)
				if (b.longestNs(i) > (longest?.ns ?? -1)) longest = this.hitOf(line, b, i);
		}
		return longest;
	}

	/* Where the row is; what is folded or hidden is shown for it. */
	private bring(lane: number, row: number): { place: Place; line: Line } | undefined {
		const found = this.layout.line(lane, row);
		const of = this.overview.lanes.find((l) => l.lane === lane);
		if (found || !of) return found;
		this.change(() => this.layout.bring(of, row));
		return this.layout.line(lane, row);
	}

	choose(hit: Hit | undefined): void {
		this.selected = hit;
		this.onSelect(hit);
		this.frame();
	}

	private selectDrawn(): void {
		const want = this.selectWhenDrawn;
		const line = want && this.layout.line(want.lane, want.row)?.line;
		for (let i = 0; want && line?.boxes && i < line.boxes.count; i++)
			if (line.boxes.index(i) === want.index) {
				this.selectWhenDrawn = undefined;
				this.choose(this.hitOf(line, line.boxes, i));
			}
	}

	private hitOf(line: Line, b: BoxReader, i: number): Hit {
		return {
			lane: line.lane,
			row: line.row,
			type: line.type,
			index: b.index(i),
			what: b.what(i),
			things: b.things(i),
			begin: b.longestBegin(i),
			ns: b.longestNs(i),
			box: { from: b.begin(i), to: b.begin(i) + b.ns(i) },
			name: this.nameOf(line.lane, line.type, b.what(i)),
		};
	}

	/* The lines at a point of the canvas, those that are drawn last first. */
	linesAt(x: number, y: number): Line[] {
		const at = y + this.scroll;
		if (x < GUTTER || y < RULER) return [];
		const place = this.layout.places.find((p) => at >= p.y && at < p.y + p.height);
		/* A thin one can be hit, too. */
		const slack = (l: Line): number => (l.height < 6 ? 4 : 0);
		return (place?.lines ?? [])
			.filter((l) => at >= l.y - slack(l) && at < l.y + l.height + slack(l))
			.reverse();
	}

	/* What is drawn at a point of the canvas. */
	hit(x: number, y: number): Hit | undefined {
		const t = this.time(x), slack = (2 / this.width) * (this.view.to - this.view.from);
		for (const line of this.linesAt(x, y)) {
			const b = line.boxes;
			if (!b) continue;
			const low = b.first(t);
			for (const i of [low, low - 1])
				if (i >= 0 && i < b.count && t >= b.begin(i) - slack && t <= b.begin(i) + b.ns(i) + slack)
					return this.hitOf(line, b, i);
		}
		return undefined;
	}
}
