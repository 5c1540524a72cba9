/* The whole window in one strip above the lanes: how long the longest thing is at each time, how many
   wait, where the findings are, and what is in view. */
import type { Client } from "./client";
import { Palette, palette } from "./colours";
import { GUTTER } from "./layout";
import type { Span, Timeline } from "./timeline";

export class Minimap {
	private readonly canvas = document.createElement("canvas");
	/* All of it but what changes with what is in view. */
	private ground: HTMLCanvasElement | undefined;
	private values = new Float32Array(0);
	private colours: Palette = palette();
	private drag: { x: number; view: Span; moves: boolean } | undefined;
	/* Where findings are; the critical ones stand out. */
	findings: { at: number; critical: boolean }[] = [];

	constructor(
		private readonly host: HTMLElement,
		private readonly client: Client,
		private readonly timeline: Timeline,
		private readonly window: number,
	) {
		this.canvas.setAttribute("role", "img");
		this.canvas.setAttribute("aria-label", "The whole window: the longest thing at each time, and how many things wait");
		host.replaceChildren(this.canvas);
		new ResizeObserver(() => void this.refresh()).observe(host);
		this.canvas.addEventListener("pointerdown", (e) => this.down(e));
		this.canvas.addEventListener("pointermove", (e) => this.moved(e));
		this.canvas.addEventListener("pointerup", (e) => this.up(e));
		this.canvas.addEventListener("dblclick", () => timeline.show({ from: 0, to: this.window }));
	}

	private get width(): number {
		return Math.max(this.host.clientWidth - GUTTER, 1);
	}
	private x(ns: number): number {
		return GUTTER + (ns / this.window) * this.width;
	}
	private time(x: number): number {
		return Math.min(Math.max((x - GUTTER) / this.width, 0), 1) * this.window;
	}

	/* -------------------------------------------------------------- pointer */

	/* What is in view is moved; elsewhere a drag chooses what to see. */
	private down(e: PointerEvent): void {
		const { view } = this.timeline, at = this.time(e.offsetX);
		const whole = view.to - view.from >= 0.95 * this.window;
		this.canvas.setPointerCapture(e.pointerId);
		this.drag = { x: e.offsetX, view, moves: !whole && at >= view.from && at <= view.to };
	}

	private moved(e: PointerEvent): void {
		const d = this.drag;
		if (!d || Math.abs(e.offsetX - d.x) < 4) return;
		const from = this.time(d.x), to = this.time(e.offsetX);
		if (d.moves) this.timeline.show({ from: d.view.from + to - from, to: d.view.to + to - from });
		else this.timeline.show({ from: Math.min(from, to), to: Math.max(from, to) });
	}

	private up(e: PointerEvent): void {
		const d = this.drag;
		this.drag = undefined;
		if (!d || d.moves || Math.abs(e.offsetX - d.x) >= 4) return;
		const half = (d.view.to - d.view.from) / 2, at = this.time(e.offsetX);
		this.timeline.show({ from: at - half, to: at + half });
	}

	/* ------------------------------------------------------------- pictures */

	/* It is of another width, or more has been read. */
	async refresh(): Promise<void> {
		this.values = await this.client.map(Math.round(this.width));
		this.ground = undefined;
		this.paint();
	}

	recolour(): void {
		this.colours = palette();
		this.ground = undefined;
		this.paint();
	}

	paint(): void {
		const scale = window.devicePixelRatio || 1;
		const width = Math.round(this.host.clientWidth * scale), height = Math.round(this.host.clientHeight * scale);
		if (this.canvas.width !== width || this.canvas.height !== height) {
			this.canvas.width = width;
			this.canvas.height = height;
			this.ground = undefined;
		}
		const g = this.canvas.getContext("2d");
		if (!g || !width || !height) return;
		this.ground ??= this.paintGround(width, height, scale);
		g.setTransform(1, 0, 0, 1, 0, 0);
		g.drawImage(this.ground, 0, 0);
		g.scale(scale, scale);
		const p = this.colours;
		g.fillStyle = p.mark;
		for (const mark of this.timeline.marks) g.fillRect(this.x(mark.at) - 1, 0, 3, 6);
		this.paintView(g, this.timeline.view, p.text);
	}

	private paintGround(width: number, height: number, scale: number): HTMLCanvasElement {
		const ground = document.createElement("canvas");
		ground.width = width;
		ground.height = height;
		const g = ground.getContext("2d"), p = this.colours;
		if (!g) return ground;
		g.scale(scale, scale);
		g.fillStyle = p.raised;
		g.fillRect(0, 0, width, height);
		this.paintValues(g, this.host.clientHeight, p);
		for (const f of this.findings) {
			const x = this.x(f.at), size = f.critical ? 5 : 3;
			g.fillStyle = f.critical ? p.stopped : p.call;
			g.beginPath();
			g.moveTo(x - size, 0);
			g.lineTo(x + size, 0);
			g.lineTo(x, 2 * size);
			g.fill();
		}
		g.fillStyle = p.faint;
		g.font = "11px system-ui, sans-serif";
		g.textBaseline = "middle";
		g.fillText("whole window: longest,", 12, this.host.clientHeight / 2 - 8);
		g.fillText("and how many wait", 12, this.host.clientHeight / 2 + 8);
		return ground;
	}

	/* Lengths on a scale of logarithms, from 10 µs on: a stall of 50 ms shows in an hour. Behind them how
	   many things wait, and the lag as a line above. */
	private paintValues(g: CanvasRenderingContext2D, height: number, p: Palette): void {
		const columns = this.values.length / 3;
		const room = height - 10;
		const length = (ns: number): number => Math.min(Math.max(Math.log10(ns / 1e4), 0) / 5, 1) * room;
		const waiting = this.values.subarray(2 * columns);
		const most = waiting.reduce((a, b) => Math.max(a, b), 1);
		for (let i = 0; i < columns; i++) {
			const x = GUTTER + i, waits = ((waiting[i] ?? 0) / most) * room;
			const longest = length(this.values[i] ?? 0), lag = length(this.values[columns + i] ?? 0);
			g.fillStyle = p.late;
			g.globalAlpha = 0.45;
			g.fillRect(x, height - waits, 1, waits);
			g.globalAlpha = 1;
			if (lag > 0) g.fillRect(x, height - lag, 1, 2);
			g.fillStyle = p.code[0] ?? p.text;
			g.fillRect(x, height - longest, 1, longest);
		}
	}

	private paintView(g: CanvasRenderingContext2D, v: Span, colour: string): void {
		const height = this.host.clientHeight, right = GUTTER + this.width;
		const x = Math.max(this.x(v.from), GUTTER), end = Math.min(Math.max(this.x(v.to), x + 2), right);
		g.fillStyle = colour;
		g.globalAlpha = 0.1;
		g.fillRect(GUTTER, 0, x - GUTTER, height);
		g.fillRect(end, 0, right - end, height);
		g.globalAlpha = 1;
		g.strokeStyle = colour;
		g.strokeRect(x + 0.5, 0.5, end - x - 1, height - 1);
	}
}
