/* What page and worker tell each other. */
export type Argument = number | string;

/* How much of it has been read, or before that fetched: then without events. */
export interface Progress {
	share: number;
	events?: number;
}

export type Request =
	| { do: "start"; wasm: ArrayBuffer }
	/* A trace comes in pieces; then it is loaded, which `stop` ends. */
	| { do: "room"; size: number }
	| { do: "fill"; at: number; data: ArrayBuffer }
	| { do: "load" }
	| { do: "stop" }
	| { do: "draw"; rows: [lane: number, row: number][]; from: number; to: number; columns: number }
	| { do: "curves"; rows: [lane: number, row: number][]; from: number; to: number; columns: number }
	| { do: "map"; columns: number }
	/* A function of the engine that answers in JSON, by its name without page_ in front. */
	| { do: "call"; name: string; args: Argument[] }
	| { do: "names"; ids: [process: number, id: number][] }
	/* Another trace compared with this one. */
	| { do: "diff"; data: ArrayBuffer; first: boolean };

export type Response =
	| { id: number; value: unknown }
	| { id: number; error: string }
	| { id: 0; progress: Progress };
