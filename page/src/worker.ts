/* The worker: holds the engine, answers requests one after the other. While a trace is loaded it reads for
   a moment at a time, and answers in between what can be answered by then. */
import type { Overview } from "./answers";
import type { Request, Response } from "./protocol";
import { Engine } from "./engine";

const MOMENT = 30; // ms
const TOLD = 100; // ms between two tellings of progress
const ANY_TIME = ["overview", "name"];

let engine: Engine | undefined;
let loaded: Promise<unknown> = Promise.resolve();
let stopping = false;

function send(response: Response, move: Transferable[] = []): void {
	(self as unknown as Worker).postMessage(response, move);
}

/* What has come meanwhile is handled first. Timers would wait for milliseconds. */
const turns = new MessageChannel();
function turn(): Promise<void> {
	return new Promise((done) => {
		turns.port1.onmessage = () => done();
		turns.port2.postMessage(0);
	});
}

async function load(e: Engine): Promise<Overview> {
	let events = 20000, told = 0;
	stopping = false;
	e.begin();
	for (;;) {
		const from = performance.now();
		const more = e.some(events);
		const now = performance.now();
		if (!more) break;
		events = Math.min(Math.max((events * MOMENT) / Math.max(now - from, 1), 1000), 1e6);
		if (now - told > TOLD) {
			told = now;
			send({ id: 0, progress: e.progress });
		}
		await turn();
		if (stopping) {
			e.stop();
			break;
		}
	}
	return e.overview();
}

async function handle(r: Request): Promise<unknown> {
	if (r.do === "start") {
		engine = await Engine.start(r.wasm);
		return null;
	}
	if (!engine) throw new Error("the engine has not been started");
	const e = engine;
	switch (r.do) {
		case "room":
			return e.makeRoom(r.size);
		case "fill":
			return e.fill(r.at, new Uint8Array(r.data));
		case "load": {
			const loading = load(e);
			loaded = loading.catch(() => undefined);
			return loading;
		}
		case "stop":
			stopping = true;
			return null;
		case "draw":
			return r.rows.map(([lane, row]) => e.draw(lane, row, r.from, r.to, r.columns));
		case "curves":
			return r.rows.map(([lane, row]) => e.curve(lane, row, r.from, r.to, r.columns));
		case "map":
			return e.map(r.columns);
		case "diff":
			await loaded;
			return e.diff(new Uint8Array(r.data), r.first);
		case "call":
			if (!ANY_TIME.includes(r.name)) await loaded;
			return e.call(r.name, r.args);
		case "names":
			return r.ids.map(([process, id]) => e.call("name", [process, id]));
	}
}

self.onmessage = async (event: MessageEvent<{ id: number; request: Request }>): Promise<void> => {
	const { id, request } = event.data;
	try {
		const value = await handle(request);
		send({ id, value }, Array.isArray(value) && value[0] instanceof ArrayBuffer ? value : []);
	} catch (error) {
		send({ id, error: error instanceof Error ? error.message : String(error) });
	}
};
