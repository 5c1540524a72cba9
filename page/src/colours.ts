/* Colours are decided once, in style.css; canvases read them from there. */
import { Track } from "./answers";

export interface Palette {
	code: string[];
	call: string;
	lock: string;
	late: string;
	stopped: string;
	runtime: string;
	gap: string;
	text: string;
	faint: string;
	line: string;
	ground: string;
	raised: string;
	onCode: string;
	selected: string;
	mark: string;
}

let known: Palette | undefined;

/* They have changed: light has become dark. */
export function forgetColours(): void {
	known = undefined;
}

/* Variables have two values each; only the colour of an element is one of them. */
export function palette(): Palette {
	if (known) return known;
	const probe = document.body.appendChild(document.createElement("i"));
	const get = (name: string): string => {
		probe.style.color = `var(--${name})`;
		return getComputedStyle(probe).color;
	};
	known = {
		code: [1, 2, 3, 4, 5, 6].map((n) => get(`code-${n}`)),
		call: get("call"),
		lock: get("lock"),
		late: get("late"),
		stopped: get("stopped"),
		runtime: get("runtime"),
		gap: get("gap"),
		text: get("text"),
		faint: get("faint"),
		line: get("line"),
		ground: get("ground"),
		raised: get("raised"),
		onCode: get("on-code"),
		selected: get("selected"),
		mark: get("mark"),
	};
	probe.remove();
	return known;
}

/* The same kind has the same shade in every trace. */
export function shadeOf(name: string, shades: number): number {
	let hash = 2166136261;
	for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
	return (hash >>> 8) % shades;
}

/* As the ledger counts them: shorter than 1, 10 and 50 ms, and longer. */
export function colourByDuration(p: Palette, ns: number): string {
	return ns < 1e6 ? p.code[2] ?? p.text : ns < 1e7 ? p.late : ns < 5e7 ? p.call : p.stopped;
}

export function colourOf(p: Palette, type: Track, name: string): string {
	switch (type) {
		case Track.Calls:
			return p.call;
		case Track.Locks:
		case Track.Held:
			return p.lock;
		case Track.Runnable:
		case Track.Late:
		case Track.Lag:
		case Track.Waiting:
			return p.late;
		/* Most who wait for a condition wait for work. */
		case Track.Signals:
		case Track.Parks:
			return p.gap;
		case Track.Stopped:
			return p.stopped;
		case Track.Counters:
		case Track.Off:
		case Track.Holes:
			return p.gap;
		case Track.Spans:
			return p.runtime;
		default:
			return p.code[shadeOf(name, p.code.length)] ?? p.text;
	}
}
