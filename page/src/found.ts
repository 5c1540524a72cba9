/* What the engine answers about names and tasks. Times are ns since the beginning of the window. */
import type { Track } from "./answers";

/* One thing of a row of a lane. */
export interface Thing {
	lane: number;
	row: number;
	index: number;
	begin: number;
	ns: number;
}

/* All things of one type and name. */
export interface FoundKind {
	name: string;
	place: string | null;
	process: number;
	type: Track;
	what: number;
	count: number;
	longest: Thing;
}

export interface TaskLine {
	process: number;
	id: string;
	kind: string | null;
	spawned_in: string | null;
	spawn: number | null;
	end: number | null;
	polls: number;
	busy: number;
	waited: number;
	wakes: number;
}

export interface Found {
	least: number;
	most: number | null;
	things: FoundKind[];
	kinds: number;
	tasks: TaskLine[];
	task_count: number;
	threads: number[]; // lanes
	thread_count: number;
}

export interface FoundIds {
	found: { what: string; id: string; name: string | null; thing: Thing | null }[];
	spans: number;
	locks: number;
}

export interface TaskList {
	count: number;
	missed: number;
	tasks: TaskLine[];
}

/* In the order of page_task_line. */
export const PHASES = ["running", "ready", "idle", "gone", "unseen"] as const;
export type Phase = typeof PHASES[number];

export interface TaskLife {
	process: number;
	id: string;
	kind: string | null;
	place: string | null;
	spawned_in: string | null;
	parent: string | null;
	lives: number;
	spawn_seen: boolean;
	end_seen: boolean;
	woken_at_end: boolean;
	from: number;
	to: number;
	cut: boolean;
	polls: number;
	phases: Record<Phase, number>;
	idle: { what: string | null; place: string | null; count: number; ns: number; longest: number }[];
}

export interface TaskPoll {
	begin: number;
	ns: number;
	ready: number;
	idle: number;
	kind: string | null;
	tid: number;
	waits_for: string | null;
	waits_in: string | null;
	thing: Thing | null;
	woken_by: { at: number; tid: number; kind: string | null; task: string | null; thing: Thing | null } | null;
}
