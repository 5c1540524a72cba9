/* Mouse and touchpad over the lanes, as people know them from Perfetto: the wheel scrolls, with ctrl it
   zooms at the pointer; a drag selects a range, with shift it pans. */
import { Track } from "./answers";
import { count, duration, share } from "./format";
import { many } from "./kinds";
import { GUTTER, Line } from "./layout";
import type { Hit, Span, Timeline } from "./timeline";

export class Pointer {
	private drag: { x: number; from: number; pan: boolean; view: Span } | undefined;
	private readonly tip = document.createElement("div");

	constructor(
		private readonly timeline: Timeline,
		private readonly canvas: HTMLCanvasElement,
		host: HTMLElement,
	) {
		this.tip.className = "tip";
		this.tip.hidden = true;
		host.append(this.tip);
		canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
		canvas.addEventListener("pointerdown", (e) => this.down(e));
		canvas.addEventListener("pointermove", (e) => this.moved(e));
		canvas.addEventListener("pointerup", (e) => this.up(e));
		canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
		canvas.addEventListener("dblclick", (e) => {
			const h = timeline.hit(e.offsetX, e.offsetY);
			if (!h) return;
			const size = h.box.to - h.box.from;
			timeline.show({ from: h.box.from - size, to: h.box.to + size });
		});
	}

	private wheel(e: WheelEvent): void {
		const t = this.timeline, unit = e.deltaMode === 1 ? 16 : 1;
		e.preventDefault();
		if (e.ctrlKey || e.metaKey) t.zoom(Math.exp(e.deltaY * unit * 0.004), t.time(e.offsetX));
		else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))
			t.move(((e.deltaX || e.deltaY) * unit) / t.width);
		else t.scrollBy(e.deltaY * unit);
	}

	private down(e: PointerEvent): void {
		const t = this.timeline;
		if (e.button !== 0) return;
		this.canvas.setPointerCapture(e.pointerId);
		this.drag = { x: e.offsetX, from: t.time(e.offsetX), pan: e.shiftKey, view: t.view };
	}

	private moved(e: PointerEvent): void {
		const t = this.timeline, d = this.drag;
		if (!d || Math.abs(e.offsetX - d.x) <= 3) {
			this.say(t.hit(e.offsetX, e.offsetY), e.offsetX, e.offsetY);
		} else if (d.pan) {
			const by = ((e.offsetX - d.x) / t.width) * (d.view.to - d.view.from);
			t.show({ from: d.view.from - by, to: d.view.to - by });
		} else {
			const to = t.time(Math.max(e.offsetX, GUTTER));
			t.setRange({ from: Math.min(d.from, to), to: Math.max(d.from, to) });
		}
	}

	private up(e: PointerEvent): void {
		const t = this.timeline, d = this.drag;
		this.drag = undefined;
		if (!d || Math.abs(e.offsetX - d.x) > 3) return;
		const hit = t.hit(e.offsetX, e.offsetY);
		if (!hit && t.range) t.setRange(undefined);
		t.choose(hit);
	}

	private text(h: Hit | undefined, x: number, y: number): string {
		if (h && h.things > 1) return `${many(h)}, longest ${duration(h.ns)}: ${h.name}`;
		if (h) return `${h.name} · ${duration(h.ns)}`;
		for (const line of this.timeline.linesAt(x, y)) {
			const text = curveText(line, this.timeline.time(x));
			if (text) return text;
		}
		return "";
	}

	private say(h: Hit | undefined, x: number, y: number): void {
		const text = this.text(h, x, y);
		this.tip.hidden = !text;
		if (!text) return;
		this.tip.textContent = text;
		this.tip.style.left = `${Math.min(x + 14, this.timeline.size.width - 260)}px`;
		this.tip.style.top = `${y + 16}px`;
	}
}

/* "" where it is no curve, or nothing is known. */
function curveText(line: Line, time: number): string {
	const c = line.curve;
	if (!c) return "";
	const value = c.values[Math.floor(((time - c.from) / (c.to - c.from)) * c.values.length)];
	if (value === undefined || Number.isNaN(value)) return "";
	switch (line.type) {
		case Track.Waiting:
			return `${count(Math.round(10 * value) / 10)} waiting`;
		case Track.Busy:
			return `${line.title}: ${share(value)}`;
		case Track.Lag:
			return `${line.title}: ${duration(value)}`;
		default:
			return `${line.title}: ${count(value)}`;
	}
}
