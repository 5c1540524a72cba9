/* The engine (page/engine, WASM) as functions. Runs in the worker. */
import { ZSTDDecoder } from "zstddec";

import { BOX_BYTES } from "./answers";
import type { Boxes, Overview } from "./answers";
import type { Argument } from "./protocol";

interface Exports {
	memory: WebAssembly.Memory;
	_initialize(): void;
	page_room(size: number): number;
	page_load_begin(): number;
	page_load_some(events: number): number;
	page_load_stop(): number;
	page_share(): number;
	page_events(): number;
	page_message(): number;
	page_other_room(size: number): number;
	page_text(slot: number, size: number): number;
	page_draw(lane: number, row: number, from: number, to: number, columns: number): number;
	page_boxes(): number;
	page_curve(lane: number, row: number, from: number, to: number, columns: number): number;
	page_map(columns: number): number;
}


export class Engine {
	private readonly text = new TextDecoder();

	private constructor(private readonly x: Exports) {}

	static async start(wasm: BufferSource): Promise<Engine> {
		const zstd = new ZSTDDecoder();
		await zstd.init();
		let x: Exports | undefined;
		const bytes = (at: number, size: number): Uint8Array =>
			new Uint8Array((x as Exports).memory.buffer, at, size);
		const page = {
			unzstd(from: number, size: number, to: number, whole: number): number {
				try {
					const out = zstd.decode(bytes(from, size), whole);
					if (out.length !== whole) return 0;
					bytes(to, whole).set(out);
					return 1;
				} catch {
					return 0;
				}
			},
		};
		/* The C library asks for files, of which there are none. */
		const none = 8;
		const wasi = new Proxy({}, { get: () => (): number => none });
		const made = await WebAssembly.instantiate(wasm, {
			page,
			wasi_snapshot_preview1: wasi as WebAssembly.ModuleImports,
		});
		x = (made as WebAssembly.WebAssemblyInstantiatedSource).instance
			.exports as unknown as Exports;
		x._initialize();
		return new Engine(x);
	}

	private string(at: number): string {
		const all = new Uint8Array(this.x.memory.buffer);
		return this.text.decode(all.subarray(at, all.indexOf(0, at)));
	}

	/* -------------------------------------------------------------- loading */

	private room = 0;

	/* For a trace of that size, which comes in pieces. */
	makeRoom(size: number): void {
		this.room = this.x.page_room(size);
		if (!this.room) throw new Error("This trace needs more memory than the browser gives a page.");
	}

	fill(at: number, data: Uint8Array): void {
		new Uint8Array(this.x.memory.buffer, this.room + at, data.length).set(data);
	}

	/* Throws a sentence that says why it can not be shown. */
	private check(result: number): number {
		if (result < 0) throw new Error(this.string(this.x.page_message()));
		return result;
	}
	begin(): void {
		this.check(this.x.page_load_begin());
	}
	/* Reads so many events; false: that was all. */
	some(events: number): boolean {
		return this.check(this.x.page_load_some(events)) > 0;
	}
	stop(): void {
		this.check(this.x.page_load_stop());
	}
	get progress(): { share: number; events: number } {
		return { share: this.x.page_share(), events: this.x.page_events() };
	}
	overview(): Overview {
		return this.call("overview", []) as Overview;
	}

	/* -------------------------------------------------------------- answers */

	/* What a function of the engine answers in JSON. Texts are put where it can read them. */
	call(name: string, args: Argument[]): unknown {
		const f = (this.x as unknown as Record<string, unknown>)[`page_${name}`];
		if (typeof f !== "function") throw new Error(`the engine has no page_${name}`);
		const passed = args.map((arg, slot) => (typeof arg === "string" ? this.put(slot, arg) : arg));
		const answer: unknown = JSON.parse(this.string((f as (...args: number[]) => number)(...passed)));
		const failed = (answer as { failed?: string } | null)?.failed;
		if (failed) throw new Error(failed);
		return answer;
	}

	/* Another trace with this one; it is the first of the two, or the second. */
	diff(other: Uint8Array, first: boolean): unknown {
		const at = this.x.page_other_room(other.length);
		if (!at) throw new Error("Both traces together need more memory than the browser gives a page.");
		new Uint8Array(this.x.memory.buffer, at, other.length).set(other);
		return this.call("diff", [first ? 1 : 0]);
	}

	private put(slot: number, text: string): number {
		const bytes = new TextEncoder().encode(text);
		const at = this.x.page_text(slot, bytes.length);
		if (!at) throw new Error("This page has no memory left.");
		new Uint8Array(this.x.memory.buffer, at, bytes.length).set(bytes);
		return at;
	}

	draw(lane: number, row: number, from: number, to: number, columns: number): Boxes {
		const count = this.x.page_draw(lane, row, from, to, columns);
		const at = this.x.page_boxes();
		return this.x.memory.buffer.slice(at, at + count * BOX_BYTES);
	}

	/* The most in each column; NaN: nothing. */
	curve(lane: number, row: number, from: number, to: number, columns: number): ArrayBuffer {
		const at = this.x.page_curve(lane, row, from, to, columns);
		return this.x.memory.buffer.slice(at, at ? at + 4 * columns : 0);
	}

	map(columns: number): Float32Array {
		const at = this.x.page_map(columns);
		return new Float32Array(this.x.memory.buffer.slice(at, at + 3 * 4 * columns));
	}
}
