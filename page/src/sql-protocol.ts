/* What the page and the worker of SQLite tell each other. */
import type { Value } from "@sqlite.org/sqlite-wasm";

export interface SqlTable {
	name: string;
	text: string;
	columns: { name: string; type: string; text: string }[];
}

/* What queries may use, and how much of it: src/query/allow.h, by way of the engine. */
export interface SqlRules {
	functions: string[];
	modules: string[];
	pragmas: string[];
	actions: string[];
	config: Record<string, number>;
	limits: Record<string, number>;
	seconds: number;
	bytes: number;
}

export type SqlRequest =
	| { do: "start"; wasm: ArrayBuffer; tables: SqlTable[]; rules: SqlRules }
	/* Which columns of which tables it reads. */
	| { do: "needs"; sql: string }
	| { do: "empty"; table: number }
	| { do: "insert"; table: number; columns: number[]; rows: Value[][] }
	| { do: "run"; sql: string; most: number };

/* Columns by table. */
export type Needs = [table: number, columns: number[]][];

export interface SqlAnswer {
	columns: string[];
	rows: Value[][];
	more: boolean; // there are more rows than were wanted
	ms: number;
}

export type SqlResponse = { id: number; value: unknown } | { id: number; error: string };

export function overtime(seconds: number): string {
	return `The query was stopped after ${seconds} s. 'tacho sql --max-time 10m' allows more.`;
}
