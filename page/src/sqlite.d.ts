/* What the page uses of SQLite's own WASM build. */
declare module "@sqlite.org/sqlite-wasm" {
	export type Value = number | bigint | string | Uint8Array | null;
	export interface Statement {
		bind(values: Value[]): Statement;
		step(): boolean;
		stepReset(): Statement;
		get(into: Value[]): Value[];
		getColumnNames(): string[];
		readonly columnCount: number;
		finalize(): void;
	}
	export interface Database {
		readonly pointer: number;
		exec(sql: string): Database;
		prepare(sql: string): Statement;
		close(): void;
	}
	export interface Sqlite {
		oo1: { DB: new (name: string) => Database };
		capi: Record<string, number> & {
			sqlite3_set_authorizer(
				db: number,
				ask: (context: number, action: number, a: string, b: string, c: string, d: string) => number,
				context: number,
			): number;
			sqlite3_db_config(db: number, what: number, value: number, old: number): number;
			sqlite3_drop_modules(db: number, keep: number): number;
			sqlite3_limit(db: number, what: number, value: number): number;
			sqlite3_progress_handler(db: number, steps: number, ask: (context: number) => number, context: number): void;
			sqlite3_prepare_v3(db: number, sql: number, size: number, flags: number, statement: number, tail: number): number;
			sqlite3_finalize(statement: number): number;
		};
		wasm: {
			scopedAllocCall<T>(f: () => T): T;
			scopedAllocCString(text: string, withSize: true): [number, number];
			scopedAllocMainArgv(texts: string[]): number;
			scopedAllocPtr(): number;
			peekPtr(at: number): number;
			cstrlen(at: number): number;
		};
	}
	export default function start(options: {
		wasmBinary: ArrayBuffer;
		locateFile: (name: string) => string;
		print: () => void;
		printErr: () => void;
	}): Promise<Sqlite>;
}
