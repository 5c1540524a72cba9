/* Where the parts of the page are: beside it, or all inside of it (tacho view --html), where scripts
   that are never run hold them. */

/* Not in TypeScript 4.8's list of what browsers have. */
declare const DecompressionStream: new (format: "gzip") => GenericTransformStream;

function decode(text: string): Uint8Array {
	const binary = atob(text.trim());
	const bytes = new Uint8Array(binary.length);
	for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
	return bytes;
}

async function inside(id: string): Promise<ArrayBuffer | undefined> {
	const holder = document.getElementById(id);
	if (!holder) return undefined;
	const packed = new Blob([decode(holder.textContent ?? "")]).stream();
	return new Response(packed.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

export async function engineCode(): Promise<ArrayBuffer> {
	return (await inside("engine-code")) ?? (await fetch("engine.wasm")).arrayBuffer();
}

/* undefined: the page of one file is without it. */
export async function sqliteCode(): Promise<ArrayBuffer | undefined> {
	if (document.getElementById("engine-code")) return undefined;
	const answer = await fetch("sqlite3.wasm");
	return answer.ok ? answer.arrayBuffer() : undefined;
}

export async function startWorker(): Promise<Worker> {
	const code = await inside("worker-code");
	if (!code) return new Worker("worker.js");
	const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
	try {
		return new Worker(url);
	} finally {
		URL.revokeObjectURL(url);
	}
}

/* The trace that the page was written with, in pieces, which are given up on the way: it may be
   large. */
export function traceInside(): ArrayBuffer | undefined {
	const holders = [...document.querySelectorAll("script.trace")];
	if (!holders.length) return undefined;
	const pieces = holders.map((holder) => {
		const piece = decode(holder.textContent ?? "");
		holder.remove();
		return piece;
	});
	const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
	let at = 0;
	for (const piece of pieces) {
		whole.set(piece, at);
		at += piece.length;
	}
	return whole.buffer;
}
