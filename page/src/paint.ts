/* One frame of the lanes: what is at hand, and nothing is asked for. */
import type { BoxReader } from "./answers";
import { Track } from "./answers";
import { colourByDuration, colourOf, Palette, palette } from "./colours";
import { duration, moment } from "./format";
import { GUTTER, HEAD, Line, Place, RULER } from "./layout";
import type { Span, Timeline } from "./timeline";

type Pen = CanvasRenderingContext2D;

const SMALL = "11px system-ui, sans-serif";

/* Drawn when all boxes of a lane are, and only where no other is. */
interface Label {
	text: string;
	x: number;
	y: number;
	room: number;
	colour: string;
}

export class Painter {
	private colours: Palette = palette();
	private readonly known = new Map<string, Map<number, string>>();
	private readonly hatches = new Map<string, CanvasPattern | string>();

	constructor(
		private readonly timeline: Timeline,
		private readonly canvas: HTMLCanvasElement,
	) {}

	recolour(): void {
		this.colours = palette();
		this.known.clear();
		this.hatches.clear();
	}

	paint(): void {
		const t = this.timeline, c = this.canvas;
		const scale = window.devicePixelRatio || 1;
		const { width, height } = t.size;
		if (c.width !== Math.round(width * scale) || c.height !== Math.round(height * scale)) {
			c.width = Math.round(width * scale);
			c.height = Math.round(height * scale);
		}
		const g = c.getContext("2d");
		if (!g) return;
		t.labels.length = 0;
		g.setTransform(scale, 0, 0, scale, 0, 0);
		g.fillStyle = this.colours.ground;
		g.fillRect(0, 0, width, height);
		g.save();
		g.beginPath();
		g.rect(0, RULER, width, height - RULER);
		g.clip();
		this.grid(g, height);
		this.marks(g, height);
		g.fillStyle = this.colours.raised;
		for (const head of t.layout.heads) g.fillRect(0, head.y - t.scroll, width, HEAD - 2);
		for (const place of t.visible()) this.lane(g, place);
		this.gaps(g);
		this.range(g, height);
		g.restore();
		for (const overlay of t.overlays) {
			g.save();
			g.beginPath();
			g.rect(GUTTER, RULER, t.width, height - RULER);
			g.clip();
			overlay(g, t);
			g.restore();
		}
		this.ruler(g, width);
		this.flags(g, height);
	}

	/* -------------------------------------------------------------- ruler */

	private step(): number {
		const t = this.timeline;
		const least = (90 / t.width) * (t.view.to - t.view.from);
		const ten = 10 ** Math.floor(Math.log10(least));
		return ten * ([1, 2, 5, 10].find((n) => n * ten >= least) ?? 10);
	}

	private grid(g: Pen, height: number): void {
		const { view } = this.timeline, step = this.step();
		g.fillStyle = this.colours.line;
		for (let t = Math.ceil(view.from / step) * step; t < view.to; t += step)
			g.fillRect(Math.round(this.timeline.x(t)), RULER, 1, height);
	}

	private ruler(g: Pen, width: number): void {
		const { view } = this.timeline, step = this.step();
		g.fillStyle = this.colours.raised;
		g.fillRect(0, 0, width, RULER);
		g.fillStyle = this.colours.line;
		g.fillRect(0, RULER - 1, width, 1);
		g.font = SMALL;
		g.textBaseline = "middle";
		g.fillStyle = this.colours.faint;
		for (let t = Math.ceil(view.from / step) * step; t < view.to; t += step) {
			const x = this.timeline.x(t);
			g.fillRect(Math.round(x), RULER - 6, 1, 5);
			g.fillText(moment(t, step), x + 4, RULER / 2);
		}
		g.fillStyle = this.colours.raised;
		g.fillRect(0, 0, GUTTER, RULER - 1);
	}

	/* ------------------------------------------------- what is at one time */

	private marks(g: Pen, height: number): void {
		const t = this.timeline;
		for (const mark of t.marks) {
			const x = t.x(mark.at), w = Math.max(t.x(mark.to) - x, 2);
			if (x + w < GUTTER || x > GUTTER + t.width) continue;
			/* The first is what happened, the others say more of it: these may be all of the window. */
			g.globalAlpha = mark.number ? 0.5 : 0.16;
			g.fillStyle = this.colours.mark;
			g.fillRect(x, RULER, w, mark.number ? 3 : height);
			g.globalAlpha = 1;
		}
	}

	/* Triggers and crashes, with their text where there is room for it. */
	private flags(g: Pen, height: number): void {
		const t = this.timeline;
		let free = GUTTER;
		g.font = SMALL;
		g.textBaseline = "middle";
		for (const mark of [...t.overview.marks].sort((a, b) => a.at - b.at)) {
			const x = Math.round(t.x(mark.at));
			if (x < GUTTER || x > GUTTER + t.width) continue;
			g.fillStyle = mark.type === "crash" ? this.colours.stopped : this.colours.mark;
			for (let y = RULER; y < height; y += 6) g.fillRect(x, y, 1, 3);
			g.beginPath();
			g.moveTo(x, RULER - 8);
			g.lineTo(x + 7, RULER - 4);
			g.lineTo(x, RULER);
			g.fill();
			/* Beside the last there is room on its left only. */
			const text = fit(g, `${mark.type}${mark.text ? `: ${mark.text}` : ""}`, 260);
			const size = g.measureText(text).width + 12;
			const left = x + size > GUTTER + t.width ? x - size - 1 : x + 1;
			if (left < free) continue;
			g.fillRect(left, RULER + 3, size, 16);
			g.fillStyle = this.colours.onCode;
			g.fillText(text, left + 6, RULER + 11);
			free = left + size + 4;
		}
	}

	/* Of these times not all was recorded, or nothing ran: over all lanes of the process. */
	private gaps(g: Pen): void {
		const t = this.timeline;
		for (const gap of t.overview.gaps) this.band(g, gap.process, gap, this.colours.gap);
		for (const [process, boxes] of t.stops)
			for (let i = 0; i < boxes.count; i++) {
				const from = boxes.begin(i);
				this.band(g, process, { from, to: from + boxes.ns(i) }, this.colours.stopped);
			}
	}

	private band(g: Pen, process: number, span: Span, colour: string): void {
		const t = this.timeline;
		const places = t.layout.places.filter((p) => p.lane.process === process);
		const first = places[0], last = places[places.length - 1];
		const left = Math.max(t.x(span.from), GUTTER);
		const right = Math.min(Math.max(t.x(span.to), t.x(span.from) + 2), GUTTER + t.width);
		if (!first || !last || right <= left) return;
		g.fillStyle = this.hatch(g, colour);
		g.globalAlpha = 0.6;
		g.fillRect(left, first.y - t.scroll, right - left, last.y + last.height - first.y);
		g.globalAlpha = 1;
	}

	private hatch(g: Pen, colour: string): CanvasPattern | string {
		const made = this.hatches.get(colour);
		if (made) return made;
		const tile = document.createElement("canvas");
		tile.width = tile.height = 6;
		const pen = tile.getContext("2d");
		if (pen) {
			pen.strokeStyle = colour;
			pen.lineWidth = 1.5;
			pen.beginPath();
			for (const x of [-6, 0, 6]) {
				pen.moveTo(x, 6);
				pen.lineTo(x + 6, 0);
			}
			pen.stroke();
		}
		const pattern = g.createPattern(tile, "repeat") ?? colour;
		this.hatches.set(colour, pattern);
		return pattern;
	}

	private range(g: Pen, height: number): void {
		const t = this.timeline;
		if (!t.range) return;
		const left = Math.max(t.x(t.range.from), GUTTER), right = t.x(t.range.to);
		if (right < GUTTER) return;
		g.globalAlpha = 0.14;
		g.fillStyle = this.colours.selected;
		g.fillRect(left, RULER, right - left, height);
		g.globalAlpha = 1;
		g.fillRect(left, RULER, 1, height);
		g.fillRect(right, RULER, 1, height);
		g.font = SMALL;
		g.textBaseline = "middle";
		const text = duration(t.range.to - t.range.from);
		if (right - left > g.measureText(text).width + 8) g.fillText(text, left + 4, RULER + 10);
	}

	/* -------------------------------------------------------------- lanes */

	private lane(g: Pen, p: Place): void {
		const t = this.timeline;
		const y = p.y - t.scroll;
		const labels: Label[] = [];
		g.save();
		g.beginPath();
		g.rect(GUTTER, Math.max(y, RULER), t.width, p.height);
		g.clip();
		g.font = SMALL;
		g.textBaseline = "middle";
		for (const line of p.lines)
			if (line.curve) this.curve(g, line, line.y - t.scroll);
			else if (line.boxes) this.boxes(g, line, line.boxes, line.y - t.scroll, labels);
		this.labels(g, labels);
		g.restore();
		g.fillStyle = this.colours.line;
		g.fillRect(0, y + p.height - 1, GUTTER + t.width, 1);
		g.fillRect(GUTTER - 1, y, 1, p.height);
	}

	private boxes(g: Pen, line: Line, b: BoxReader, y: number, labels: Label[]): void {
		const t = this.timeline;
		const { from, to } = t.view, scale = t.width / (to - from);
		const byDuration = t.choice.byDuration && (line.type === Track.Polls || line.type === Track.Work);
		/* Waits for a condition are as pale as what is idle. */
		const colour = line.type === Track.Signals ? this.colours.text : this.colours.onCode;
		const hatched = line.type === Track.Holes && this.hatch(g, this.colours.gap);
		for (let i = b.first(from); i < b.count && b.begin(i) < to; i++) {
			const x = GUTTER + (b.begin(i) - from) * scale;
			const w = Math.max(b.ns(i) * scale, 1);
			const alone = b.things(i) === 1;
			g.fillStyle = hatched || (byDuration ? colourByDuration(this.colours, b.longestNs(i)) : this.colour(line, b.what(i)));
			g.globalAlpha = alone ? 1 : 0.35 + 0.65 * Math.min(b.busy(i), 1);
			g.fillRect(x, y, alone && w > 3 ? w - 0.5 : w, line.height);
			if (line.label && alone && w > 34 && line.height > 8) {
				const left = Math.max(x, GUTTER), right = Math.min(x + w, GUTTER + t.width);
				const text = t.nameOf(line.lane, line.type, b.what(i));
				if (right - left > 34)
					labels.push({ text, x: left + 4, y: y + line.height / 2 + 0.5, room: right - left - 8, colour });
			}
			if (this.isSelected(line, b.index(i))) {
				g.globalAlpha = 1;
				g.strokeStyle = this.colours.selected;
				g.lineWidth = 2;
				g.strokeRect(x - 1, y - 1, w + 2, line.height + 2);
			}
		}
		g.globalAlpha = 1;
	}

	private labels(g: Pen, labels: Label[]): void {
		const drawn: Timeline["labels"] = [];
		for (const l of labels) {
			const text = fit(g, l.text, l.room);
			/* Three letters of a name say nothing. */
			if (text.endsWith("…") && text.length < 6) continue;
			const left = l.x, right = l.x + g.measureText(text).width;
			if (!text || drawn.some((d) => Math.abs(d.y - l.y) < 9 && left < d.right && right > d.left)) continue;
			g.fillStyle = l.colour;
			g.fillText(text, l.x, l.y);
			drawn.push({ y: l.y, left, right });
			this.timeline.labels.push({ y: l.y, left, right });
		}
	}

	/* Names come later: what has none yet is looked up again. */
	private colour(line: Line, what: number): string {
		const key = `${line.lane.process}/${line.type}`;
		const known = this.known.get(key) ?? new Map<number, string>();
		const colour = known.get(what);
		if (colour) return colour;
		const name = this.timeline.nameOf(line.lane, line.type, what);
		const found = colourOf(this.colours, line.type, name);
		if (name) known.set(what, found);
		this.known.set(key, known);
		return found;
	}

	private curve(g: Pen, line: Line, y: number): void {
		const t = this.timeline, c = line.curve;
		if (!c?.values.length || !(line.most > 0)) return;
		const width = (c.to - c.from) / c.values.length;
		const first = Math.max(Math.floor((t.view.from - c.from) / width), 0);
		const last = Math.min(Math.ceil((t.view.to - c.from) / width), c.values.length);
		const bottom = y + line.height;
		g.fillStyle = colourOf(this.colours, line.type, "");
		g.beginPath();
		for (let i = first; i < last; i++) {
			const value = c.values[i] ?? NaN;
			if (!(value > 0)) continue;
			const size = Math.max((Math.min(value, line.most) / line.most) * line.height, 1);
			const x = t.x(c.from + i * width);
			g.rect(x, bottom - size, t.x(c.from + (i + 1) * width) - x + 0.5, size);
		}
		g.fill();
		if (line.type === Track.Waiting) return;
		g.fillStyle = this.colours.text;
		g.fillText(fit(g, line.title, 300), GUTTER + 6, y + 6);
	}

	private isSelected(line: Line, index: number): boolean {
		const s = this.timeline.selected;
		return s !== undefined && s.lane.lane === line.lane.lane && s.row === line.row && s.index === index;
	}
}

/* As much of the text as there is room for. */
function fit(g: Pen, text: string, room: number): string {
	if (g.measureText(text).width <= room) return text;
	let size = Math.floor((text.length * room) / g.measureText(text).width) - 1;
	while (size > 1 && g.measureText(`${text.slice(0, size)}…`).width > room) size--;
	return size > 1 ? `${text.slice(0, size)}…` : "";
}
