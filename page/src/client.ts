/* The page's side of the worker. */
import type { Boxes, Kind, Overview, Report } from "./answers";
import { visible } from "./dom";
import { bytes } from "./format";
import type { Argument, Progress, Request, Response } from "./protocol";

/* Of a trace that is too large, so many bytes are read: what is made of them needs room, too. */
const PART = 1.5 * 2 ** 30;

/* Where a trace comes from. */
export type Source = ArrayBuffer | Blob | globalThis.Response;

export class Client {
	private next = 1;
	private readonly open = new Map<number, [(value: never) => void, (error: Error) => void]>();
	private readonly names = new Map<string, string>();
	onProgress: (progress: Progress) => void = () => undefined;
	/* Names that were asked for have come. */
	onNames: () => void = () => undefined;
	private wanted: [number, number][] = [];
	/* Why not all of the trace was read; undefined: it was. */
	cut: string | undefined;
	/* Of a fetch that goes on: what has come is enough. */
	private enough: (() => void) | undefined;

	constructor(private readonly worker: Worker) {
		worker.onmessage = (event: MessageEvent<Response>) => this.take(event.data);
	}

	private take(r: Response): void {
		if ("progress" in r) {
			this.onProgress(r.progress);
			return;
		}
		const entry = this.open.get(r.id);
		this.open.delete(r.id);
		if (!entry) return;
		if ("error" in r) entry[1](new Error(r.error));
		else entry[0](r.value as never);
	}

	private ask<T>(request: Request, move: Transferable[] = []): Promise<T> {
		const id = this.next++;
		return new Promise<T>((done, failed) => {
			this.open.set(id, [done as (value: never) => void, failed]);
			this.worker.postMessage({ id, request }, move);
		});
	}

	start(wasm: ArrayBuffer): Promise<void> {
		return this.ask({ do: "start", wasm });
	}

	/* Comes back when all has been read, or stop was called; onProgress tells how far it is. */
	async load(source: Source): Promise<Overview> {
		if (source instanceof ArrayBuffer) {
			await this.ask({ do: "room", size: source.byteLength });
			await this.ask({ do: "fill", at: 0, data: source }, [source]);
		} else await this.fetch(source);
		return this.ask({ do: "load" });
	}
	/* What is there by now is shown. */
	async stop(): Promise<void> {
		if (this.enough) this.enough();
		else await this.ask({ do: "stop" });
	}

	/* Piece by piece, so that it is in memory once. Without its size in front it is fetched first. */
	private async fetch(source: Blob | globalThis.Response): Promise<void> {
		if (source instanceof globalThis.Response) {
			if (!source.ok) throw new Error(`The server answered ${source.status} ${source.statusText}.`);
			if (!source.headers.has("content-length") || source.headers.has("content-encoding"))
				return this.fetch(await source.blob());
		}
		const size = source instanceof Blob ? source.size : Number(source.headers.get("content-length"));
		const reader = (source instanceof Blob ? source.stream() : source.body)?.getReader();
		const room = await this.room(size);
		let at = 0;
		const stopped = new Promise<"stopped">((done) => (this.enough = () => done("stopped")));
		for (;;) {
			const piece = await Promise.race([reader?.read(), stopped]);
			if (piece === "stopped") {
				/* What follows are zeros: to the engine it is a file that was cut. */
				void reader?.cancel();
				at = room;
				break;
			}
			if (!piece || piece.done) break;
			if (at + piece.value.length > size) throw new Error("The trace is larger than the server said.");
			/* Some are a part of a larger buffer. */
			const data = piece.value.slice(0, room - at), length = data.length;
			await this.ask({ do: "fill", at, data: data.buffer }, [data.buffer]);
			at += length;
			this.onProgress({ share: at / (room || 1) });
			if (at === room && room < size) {
				void reader?.cancel();
				break;
			}
		}
		this.enough = undefined;
		if (at < room) throw new Error("The trace did not arrive as a whole. Reload to try again.");
	}

	/* As many bytes as there is room for. */
	private async room(size: number): Promise<number> {
		try {
			await this.ask({ do: "room", size });
			return size;
		} catch (error) {
			if (size <= PART) throw error;
		}
		await this.ask({ do: "room", size: PART });
		this.cut = `A page has no memory for all of this trace: of its ${bytes(size)} the first ${bytes(PART)} were read. ` +
			"tacho report and tacho sql read all of it.";
		return PART;
	}

	draw(rows: [number, number][], from: number, to: number, columns: number): Promise<Boxes[]> {
		return this.ask({ do: "draw", rows, from, to, columns });
	}
	curves(rows: [number, number][], from: number, to: number, columns: number): Promise<ArrayBuffer[]> {
		return this.ask({ do: "curves", rows, from, to, columns });
	}
	/* The longest thing in each column, then the longest lag, then the most that wait. */
	map(columns: number): Promise<Float32Array> {
		return this.ask({ do: "map", columns });
	}

	diff<T>(data: ArrayBuffer, first: boolean): Promise<T> {
		return this.ask({ do: "diff", data, first }, [data]);
	}

	/* A function of the engine that answers in JSON. */
	call<T>(name: string, ...args: Argument[]): Promise<T> {
		return this.ask({ do: "call", name, args });
	}

	kind(process: number, type: number, what: number): Promise<Kind> {
		return this.call("kind", process, type, what);
	}
	/* Of what has been read by now. */
	overview(): Promise<Overview> {
		return this.call("overview");
	}
	report(): Promise<Report> {
		return this.call("report");
	}

	/* "" until it is known, which onNames tells. */
	name(process: number, id: number): string {
		const key = `${process}:${id}`;
		const known = this.names.get(key);
		if (known !== undefined) return known;
		this.names.set(key, "");
		if (!this.wanted.length) queueMicrotask(() => void this.fetchNames());
		this.wanted.push([process, id]);
		return "";
	}

	private async fetchNames(): Promise<void> {
		const ids = this.wanted;
		this.wanted = [];
		const names = await this.ask<string[]>({ do: "names", ids });
		ids.forEach(([process, id], i) => this.names.set(`${process}:${id}`, visible(names[i] ?? "")));
		this.onNames();
	}

	end(): void {
		this.worker.terminate();
	}
}
