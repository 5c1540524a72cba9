/* SQLite in a worker of its own: a query that takes too long is ended with it. Its tables are empty
   until a query names them; then the page brings the rows of the columns that the query reads. */
import start, { Database, Sqlite, Value } from "@sqlite.org/sqlite-wasm";

import { bytes } from "./format";
import { overtime } from "./sql-protocol";
import type { Needs, SqlAnswer, SqlRequest, SqlResponse, SqlRules, SqlTable } from "./sql-protocol";

const STEPS = 1000; // instructions of SQLite between two looks at the clock

class Sql {
	private readonly db: Database;
	private own = true; // what runs is the page's, not the user's
	private deadline = Infinity;
	private read = new Map<number, Set<number>>();
	private readonly actions: Set<number | undefined>;

	constructor(
		private readonly sqlite: Sqlite,
		private readonly tables: SqlTable[],
		private readonly rules: SqlRules,
	) {
		this.db = new sqlite.oo1.DB(":memory:");
		this.actions = new Set(rules.actions.map((name) => sqlite.capi[`SQLITE_${name}`]));
		this.harden();
		for (const t of tables) {
			const columns = t.columns.map((c) => `"${c.name}" ${c.type}`);
			this.db.exec(`CREATE TABLE "${t.name}"(${columns.join(", ")})`);
		}
		sqlite.capi.sqlite3_set_authorizer(
			this.db.pointer,
			(_context, action, a, b) => (this.own || this.may(action, a, b) ? 0 : 1),
			0,
		);
		this.own = false;
	}

	/* As tacho__sql_harden() in src/query/guard.c. */
	private harden(): void {
		const { capi, wasm } = this.sqlite;
		const db = this.db.pointer;
		for (const [name, value] of Object.entries(this.rules.config))
			if (capi.sqlite3_db_config(db, capi[`SQLITE_DBCONFIG_${name}`] ?? -1, value, 0) && value)
				throw new Error(`SQLite does not know the setting ${name}.`);
		for (const [name, value] of Object.entries(this.rules.limits))
			capi.sqlite3_limit(db, capi[`SQLITE_LIMIT_${name}`] ?? -1, value);
		wasm.scopedAllocCall(() => capi.sqlite3_drop_modules(db, wasm.scopedAllocMainArgv(this.rules.modules)));
		this.db.exec(`PRAGMA hard_heap_limit = ${this.rules.bytes}`);
		capi.sqlite3_progress_handler(db, STEPS, () => (performance.now() > this.deadline ? 1 : 0), 0);
	}

	/* Queries read, and nothing else. */
	private may(action: number, a: string, b: string): boolean {
		const c = this.sqlite.capi;
		if (action === c.SQLITE_FUNCTION) return this.rules.functions.includes(b.toLowerCase());
		if (action === c.SQLITE_PRAGMA) return this.rules.pragmas.includes(a.toLowerCase());
		if (action === c.SQLITE_READ) this.note(a, b);
		return this.actions.has(action);
	}

	/* A query that only counts rows reads the column "". */
	private note(table: string, column: string): void {
		const t = this.tables.findIndex((one) => one.name === table);
		if (t < 0) return;
		const columns = this.read.get(t) ?? new Set<number>();
		const i = this.tables[t]?.columns.findIndex((one) => one.name === column) ?? -1;
		if (i >= 0) columns.add(i);
		this.read.set(t, columns);
	}

	needs(sql: string): Needs {
		this.read = new Map();
		this.checkAlone(sql);
		return [...this.read].map(([t, columns]) => [t, [...columns]]);
	}

	/* What stands behind the first statement would not be run: nobody must think that it was. */
	private checkAlone(sql: string): void {
		const { capi, wasm } = this.sqlite;
		const rest = wasm.scopedAllocCall(() => {
			const [text, size] = wasm.scopedAllocCString(sql, true);
			const statement = wasm.scopedAllocPtr(), tail = wasm.scopedAllocPtr();
			const result = capi.sqlite3_prepare_v3(this.db.pointer, text, size, 0, statement, tail);
			const left = result ? 0 : wasm.cstrlen(wasm.peekPtr(tail));
			if (!result) capi.sqlite3_finalize(wasm.peekPtr(statement));
			return left ? new TextEncoder().encode(sql).slice(-left) : undefined;
		});
		if (rest && new TextDecoder().decode(rest).replace(/--.*|\s|;/g, ""))
			throw new Error("This is more than one query: give one at a time.");
		/* Its error says what is wrong. */
		this.db.prepare(sql).finalize();
	}

	empty(table: number): void {
		this.ours(() => this.db.exec(`DELETE FROM "${this.tables[table]?.name ?? ""}"`));
	}

	insert(table: number, columns: number[], rows: Value[][]): void {
		const t = this.tables[table];
		if (!t) return;
		const names = columns.map((c) => `"${t.columns[c]?.name ?? ""}"`);
		this.ours(() => {
			/* Without columns rows are only counted. */
			const s = this.db.prepare(
				names.length
					? `INSERT INTO "${t.name}"(${names.join(", ")}) VALUES(${names.map(() => "?").join(", ")})`
					: `INSERT INTO "${t.name}" DEFAULT VALUES`,
			);
			this.db.exec("BEGIN");
			try {
				for (const row of rows) (names.length ? s.bind(row) : s).stepReset();
			} finally {
				s.finalize();
				this.db.exec("COMMIT");
			}
		});
	}

	private ours(f: () => void): void {
		this.own = true;
		try {
			f();
		} finally {
			this.own = false;
		}
	}

	run(sql: string, most: number): SqlAnswer {
		const begin = performance.now();
		const s = this.db.prepare(sql);
		const rows: Value[][] = [];
		let more = false;
		this.deadline = begin + this.rules.seconds * 1000;
		try {
			while (s.step()) {
				more = rows.length === most;
				if (more) break;
				rows.push(s.get([]));
			}
			return { columns: s.getColumnNames(), rows, more, ms: performance.now() - begin };
		} catch (error) {
			if (performance.now() > this.deadline) throw new Error(overtime(this.rules.seconds));
			if (!/out of memory/.test(String(error))) throw error;
			throw new Error(`The query needs more than ${bytes(this.rules.bytes)} of memory. 'tacho sql --max-memory 4G' allows more.`);
		} finally {
			this.deadline = Infinity;
			s.finalize();
		}
	}
}

let sql: Sql | undefined;

async function handle(r: SqlRequest): Promise<unknown> {
	if (r.do === "start") {
		const quiet = (): void => undefined;
		/* It looks for files, of which there are none, and says so. */
		Object.assign(self, { sqlite3ApiConfig: { warn: quiet, log: quiet, debug: quiet } });
		const sqlite = await start({ wasmBinary: r.wasm, locateFile: (name) => name, print: quiet, printErr: quiet });
		sql = new Sql(sqlite, r.tables, r.rules);
		return null;
	}
	if (!sql) throw new Error("SQLite has not been started");
	switch (r.do) {
		case "needs":
			return sql.needs(r.sql);
		case "empty":
			return sql.empty(r.table);
		case "insert":
			return sql.insert(r.table, r.columns, r.rows);
		case "run":
			return sql.run(r.sql, r.most);
	}
}

self.onmessage = async (event: MessageEvent<{ id: number; request: SqlRequest }>): Promise<void> => {
	const { id, request } = event.data;
	let response: SqlResponse;
	try {
		response = { id, value: await handle(request) };
	} catch (error) {
		const text = error instanceof Error ? error.message : String(error);
		response = { id, error: text.replace(/^SQLITE_\w+: sqlite3 result code \d+: /, "") };
	}
	(self as unknown as Worker).postMessage(response);
};
