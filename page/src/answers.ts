/* What the engine answers. Times are ns since the beginning of the window. */

/* enum tacho__track_type of src/view/view.h */
export const enum Track {
	Polls = 1,
	Calls = 2,
	Locks = 3,
	Signals = 4,
	Runnable = 5,
	Off = 6,
	Late = 7,
	Work = 8,
	Spans = 9,
	Samples = 10,
	Holes = 11,
	Counters = 12,
	Parks = 13,
	Waiting = 14,
	Lag = 15,
	Tasks = 16,
	Held = 17,
	Stopped = 18,
	Busy = 19,
}

export interface Process {
	pid: number;
	comm: string | null;
	exe: string | null;
	service: string | null;
	host: string | null;
	why: string | null;
	end: string | null;
	imported: string | null; // from what
	taken_ms: number;
	real_ms: number;
	from: number;
	to: number;
	events: number;
}

export interface Row {
	type: Track;
	row: number;
	count: number;
	unnamed?: number; // of callbacks: those that are turns of a loop
	most?: number; // of a curve
	name: string | null;
}

export interface Lane {
	lane: number;
	process: number;
	thread: number;
	tid: number;
	numbered: boolean; // the kernel knows its tid
	name: string | null;
	loop: string | null;
	rows: Row[];
}

export interface Mark {
	type: "trigger" | "crash";
	at: number;
	process: number;
	tid: number;
	text: string | null;
}

export interface Overview {
	window: number;
	stopped: number; // reading was, at this part of the trace; 0: it was not
	things: number;
	dropped: number;
	crowded: number; // tasks that found no row, as too many are alive at once
	thinned: number; // shorter than thin_ns, and left out for want of memory
	thin_ns: number;
	processes: Process[];
	lanes: Lane[];
	marks: Mark[];
	gaps: { process: number; from: number; to: number; text: string }[];
	problems: string[];
}

/* As `tacho report --json --ledger`; docs/report.md. Integers from 2^53 on are texts, so times, which
   are CLOCK_MONOTONIC there, are of either type. */
export type Time = number | string;

export interface Place {
	function: string | null;
	file: string | null;
	line: number | null;
	module: string | null;
	offset: string | null;
	called_the_one_before?: boolean;
}

export interface Finding {
	rule: string;
	severity: "info" | "warning" | "critical";
	pid: number;
	program: string | null;
	summary: string;
	where: Place[];
	evidence: { from_ns: Time; to_ns: Time; tid: number | null; task: Time | null; value: number; text: string }[];
	advice: string | null;
	names: string | null;
	loop: string | null;
	cost_ns: number;
	explained_by: number | null;
}

export interface OwnerSums {
	owner: string;
	key: string | null;
	place: Place | null;
	ns: number;
	count: number;
	longest_ns: number;
	waiting_ns: number;
}

export interface LedgerThread {
	pid: number;
	tid: number | null;
	loop: string | null;
	pool: boolean;
	from_ns: Time;
	to_ns: Time;
	waiting_ns: number;
	owners: OwnerSums[];
}

export interface Report {
	trace: { from_ns: Time; to_ns: Time; events: number };
	verdict: {
		category: string;
		pid: number;
		program: string | null;
		summary: string;
		judged_loops: number;
		other_threads: number;
		other_cpus: number | null;
		readable: { damaged: boolean; cut: boolean; share: number; records: number; lost_records: number; text: string | null };
	};
	findings: Finding[];
	considered: { rule: string; what: string; cost_ns: number; reason: string }[];
	coverage: Record<string, { checked: boolean; why: string | null }>;
	ledger: { waiting_ns: number; threads: LedgerThread[] };
}

/* As `tacho blame --json`: a subject. */
export interface Piece {
	owner: string;
	depth: number;
	ns: number;
	parts: number;
	from_ns: Time;
	to_ns: Time;
	tid: number | null;
	text: string | null;
	where: Place[];
}

export interface Blame {
	type: string;
	name: string;
	task: Time;
	from_ns: Time;
	to_ns: Time;
	ns: number;
	cut: boolean;
	pieces: Piece[];
}

/* All things of one type and name. A bucket is half of an octave, from 64 ns on. */
export interface Kind {
	count: number;
	sum: number;
	buckets: number[];
	longest: Like[];
}

/* A thing by its number. */
export interface Like {
	lane: number;
	row: number;
	index: number;
	begin: number;
	ns: number;
}

/* struct tacho__box of src/view/track.h: begin, ns, those of the longest (doubles), what, count, index
   (words), busy (float) */
export type Boxes = ArrayBuffer;
export const BOX_BYTES = 48;

export class BoxReader {
	readonly count: number;
	private readonly doubles: Float64Array;
	private readonly words: Uint32Array;
	private readonly floats: Float32Array;

	constructor(boxes: Boxes) {
		this.count = boxes.byteLength / BOX_BYTES;
		this.doubles = new Float64Array(boxes);
		this.words = new Uint32Array(boxes);
		this.floats = new Float32Array(boxes);
	}
	/* The first that ends after `ns`. They are in order, and do not overlap. */
	first(ns: number): number {
		let low = 0, high = this.count;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (this.begin(middle) + this.ns(middle) < ns) low = middle + 1;
			else high = middle;
		}
		return low;
	}
	/* Of the box: where it is drawn. */
	begin(i: number): number {
		return this.doubles[6 * i] as number;
	}
	ns(i: number): number {
		return this.doubles[6 * i + 1] as number;
	}
	/* Of the longest thing in it, as are `what` and `index`. */
	longestBegin(i: number): number {
		return this.doubles[6 * i + 2] as number;
	}
	longestNs(i: number): number {
		return this.doubles[6 * i + 3] as number;
	}
	what(i: number): number {
		return this.words[12 * i + 8] as number;
	}
	things(i: number): number {
		return this.words[12 * i + 9] as number;
	}
	index(i: number): number {
		return this.words[12 * i + 10] as number;
	}
	busy(i: number): number {
		return this.floats[12 * i + 11] as number;
	}
}
