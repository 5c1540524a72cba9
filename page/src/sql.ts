/* The tab of SQL: the tables of `tacho sql`, read only. Times and threads in results are links. */
import type { Value } from "@sqlite.org/sqlite-wasm";

import { el } from "./dom";
import { count, duration } from "./format";
import type { Shown } from "./shown";
import { sqliteCode } from "./source";
import { overtime } from "./sql-protocol";
import type { Needs, SqlAnswer, SqlRequest, SqlResponse, SqlRules, SqlTable } from "./sql-protocol";
import type { Tab } from "./tabs";

const BATCH = 10000; // rows at once
const SHOWN = 1000;
const GRACE = 10; // seconds, after which a query is ended that does not stop by itself

const EXAMPLES = [
	"SELECT function, count(*), max(ns) AS longest_ns, begin_ns, tid, pid FROM polls GROUP BY function ORDER BY 3 DESC",
	"SELECT name, caller, count(*), sum(ns) AS sum_ns FROM calls GROUP BY name, caller ORDER BY 4 DESC",
	"SELECT ns, begin_ns, end_ns, tid, pid, wait_function, release_function FROM locks WHERE NOT signal ORDER BY ns DESC LIMIT 50",
	"SELECT kind, count(*), max(latency_ns), ns, poll_tid, pid FROM wakes GROUP BY kind ORDER BY 3 DESC",
	"SELECT owner, key, sum(ns) AS sum_ns, sum(waiting_ns) FROM ledger GROUP BY owner, key ORDER BY 3 DESC",
];

/* SQLite in its worker. */
class Sqlite {
	private readonly worker = new Worker("sql.js");
	private readonly open = new Map<number, [(value: never) => void, (error: Error) => void]>();
	private next = 1;
	/* The columns of a table that are there. */
	readonly filled = new Map<number, Set<number>>();

	constructor() {
		this.worker.onmessage = (event: MessageEvent<SqlResponse>) => {
			const entry = this.open.get(event.data.id);
			this.open.delete(event.data.id);
			if ("error" in event.data) entry?.[1](new Error(event.data.error));
			else entry?.[0](event.data.value as never);
		};
		this.worker.onerror = () => this.end("SQLite could not be loaded.");
	}

	ask<T>(request: SqlRequest): Promise<T> {
		const id = this.next++;
		return new Promise<T>((done, failed) => {
			this.open.set(id, [done as (value: never) => void, failed]);
			this.worker.postMessage({ id, request });
		});
	}

	end(why: string): void {
		this.worker.terminate();
		for (const [, failed] of this.open.values()) failed(new Error(why));
		this.open.clear();
	}
}

export class SqlTab implements Tab {
	readonly name = "SQL";
	readonly host = el("div", "");
	private readonly input = el("textarea", "");
	private readonly button = el("button", "primary", "Run");
	private readonly state = el("p", "hint");
	private readonly results = el("div", "");
	private readonly help = el("div", "tables");
	private tables: SqlTable[] = [];
	private rules: SqlRules | undefined;
	private sqlite: Sqlite | undefined;
	private running = false;

	constructor(private readonly shown: Shown) {
		this.input.rows = 3;
		this.input.spellcheck = false;
		this.input.value = EXAMPLES[0] ?? "";
		this.input.setAttribute("aria-label", "Query");
		/* A query from an address waits for its reader to run it. */
		shown.address.part(
			"sql",
			() => (this.input.value === EXAMPLES[0] ? "" : this.input.value),
			(text) => (this.input.value = text),
		);
		this.state.setAttribute("role", "status");
		this.button.addEventListener("click", () => (this.running ? this.cancel() : void this.run()));
		this.input.addEventListener("keydown", (e) => {
			if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey)) return;
			e.preventDefault();
			void this.run();
		});
		const examples = el("select", "", el("option", "", "Examples"), ...EXAMPLES.map((q) => el("option", "", q)));
		examples.setAttribute("aria-label", "Examples");
		examples.addEventListener("change", () => {
			this.input.value = EXAMPLES[examples.selectedIndex - 1] ?? this.input.value;
		});
		this.host.append(
			el("div", "sql", this.input, el("div", "", this.button, examples)),
			this.state,
			this.results,
			this.help,
		);
		this.state.textContent = "Ctrl-Enter runs it. Queries read; they change nothing.";
	}

	/* It is seen from now on. */
	opened(): void {
		if (!this.tables.length) void this.start();
	}

	private async start(): Promise<void> {
		this.tables = await this.shown.client.call<SqlTable[]>("sql_tables");
		this.help.replaceChildren(
			el("h3", "", "Tables"),
			...this.tables.map((t) =>
				el(
					"details",
					"",
					el("summary", "", el("b", "", t.name), ` ${t.text}`),
					el("dl", "", ...t.columns.flatMap((c) => [el("dt", "", c.name), el("dd", "", c.text)])),
				),
			),
		);
	}

	end(): void {
		this.sqlite?.end("");
	}

	/* ------------------------------------------------------------------- run */

	private say(text: string, failed = false): void {
		this.state.textContent = text;
		this.state.classList.toggle("failed", failed);
	}

	private cancel(why = "Cancelled."): void {
		this.sqlite?.end(why);
		this.sqlite = undefined;
		this.running = false;
	}

	private async run(): Promise<void> {
		if (this.running) return;
		this.running = true;
		this.shown.address.changed();
		this.button.textContent = "Cancel";
		this.results.replaceChildren();
		try {
			const sql = this.input.value;
			const sqlite = await this.ready();
			const cut = await this.fill(sqlite, await sqlite.ask<Needs>({ do: "needs", sql }));
			this.say("Running …");
			const answer = await this.within(sqlite.ask<SqlAnswer>({ do: "run", sql, most: SHOWN }));
			this.put(answer);
			this.say([
				`${answer.more ? `The first ${count(SHOWN)}` : count(answer.rows.length)} ` +
					`row${answer.rows.length === 1 ? "" : "s"}, ${duration(answer.ms * 1e6)}.`,
				...cut,
			].join(" "));
		} catch (error) {
			this.say(error instanceof Error ? error.message : String(error), true);
		} finally {
			this.running = false;
			this.button.textContent = "Run";
		}
	}

	/* One call of a function may take any time, and SQLite looks at the clock between calls only. */
	private async within<T>(answer: Promise<T>): Promise<T> {
		const seconds = this.rules?.seconds ?? 0;
		const timer = setTimeout(() => this.cancel(overtime(seconds)), (seconds + GRACE) * 1000);
		try {
			return await answer;
		} finally {
			clearTimeout(timer);
		}
	}

	private async ready(): Promise<Sqlite> {
		if (this.sqlite) return this.sqlite;
		this.say("Loading SQLite …");
		if (!this.tables.length) await this.start();
		const rules = (this.rules ??= await this.shown.client.call<SqlRules>("sql_rules"));
		const wasm = await sqliteCode();
		if (!wasm) throw new Error("A page of one file has no SQLite in it; tacho sql has the same tables.");
		const sqlite = (this.sqlite = new Sqlite());
		await sqlite.ask({ do: "start", wasm, tables: this.tables, rules });
		return sqlite;
	}

	/* Brings what the query reads and is not there yet. Says what is not whole. */
	private async fill(sqlite: Sqlite, needs: Needs): Promise<string[]> {
		const cut: string[] = [];
		for (const [table, wanted] of needs) {
			const there = sqlite.filled.get(table);
			const name = this.tables[table]?.name ?? "";
			if (there && wanted.every((c) => there.has(c))) continue;
			const columns = [...new Set([...(there ?? []), ...wanted])];
			sqlite.filled.delete(table);
			await sqlite.ask({ do: "empty", table });
			const { error, rows, more } = await this.shown.client.call<{
				error: string | null;
				rows: number;
				more: number;
			}>("sql_open", table, columns.join(" "));
			if (error) throw new Error(`The table ${name} can not be read: ${error}.`);
			for (let from = 0; from < rows; from += BATCH) {
				this.say(`Reading the table ${name}: ${count(from)} of ${count(rows)} rows …`);
				const batch = await this.shown.client.call<Value[][]>("sql_rows", from, BATCH);
				await sqlite.ask({ do: "insert", table, columns, rows: batch });
			}
			await this.shown.client.call("sql_close");
			sqlite.filled.set(table, new Set(columns));
			if (more)
				cut.push(
					`Of ${name} only the first ${count(rows)} of ${count(rows + more)} rows are here; ` +
						"tacho sql has all of them.",
				);
		}
		return cut;
	}

	/* --------------------------------------------------------------- results */

	private put(answer: SqlAnswer): void {
		const body = answer.rows.map((row) =>
			el("tr", "", ...row.map((value, i) => this.cell(answer.columns, row, value, i))),
		);
		this.results.replaceChildren(
			el(
				"table",
				"plain rows",
				el("thead", "", el("tr", "", ...answer.columns.map((c) => el("th", "", c)))),
				el("tbody", "", ...body),
			),
		);
	}

	private cell(columns: string[], row: Value[], value: Value, i: number): HTMLElement {
		const name = columns[i] ?? "";
		const text = value === null ? "" : value instanceof Uint8Array ? "(bytes)" : String(value);
		const numeric = typeof value === "number" || typeof value === "bigint";
		const at = numeric ? this.moment(name, value) : undefined;
		if (at !== undefined) {
			const link = el("button", "link", text);
			link.title = `+${duration(at)}`;
			link.addEventListener("click", () => this.go(columns, row, at));
			return el("td", "number", link);
		}
		const td = el("td", numeric ? "number" : "", text);
		if (!numeric && text.length > 40) td.title = text;
		if (numeric && /(^|_)ns$/.test(name)) td.title = duration(Number(value));
		return td;
	}

	/* A time of the window, not a length: since its beginning. */
	private moment(name: string, value: number | bigint): number | undefined {
		if (!/(^|[_(])ns\)?$/.test(name) || (typeof value === "number" && !Number.isInteger(value))) return undefined;
		const at = this.shown.since(String(value));
		return at >= 0 && at <= this.shown.overview.window ? at : undefined;
	}

	/* To the thread of the row, if it says one, and from its begin to its end. */
	private go(columns: string[], row: Value[], at: number): void {
		const get = (what: RegExp): Value | undefined => row[columns.findIndex((c) => what.test(c))];
		const number = (v: Value | undefined): number | undefined =>
			typeof v === "number" || typeof v === "bigint" ? Number(v) : undefined;
		const pid = number(get(/^pid$/)) ?? this.shown.overview.processes[0]?.pid ?? 0;
		const tid = number(get(/^tid$/)) ?? number(get(/_tid$/)) ?? null;
		const [begin, end] = ["begin_ns", "end_ns"].map((name) => {
			const v = number(row[columns.indexOf(name)]);
			return v === undefined ? undefined : this.moment(name, v);
		});
		const inside = begin !== undefined && end !== undefined && at >= begin && at <= end;
		const span = inside ? { from: begin, to: end } : { from: at - 1e5, to: at + 1e5 };
		this.shown.timeline.marks = [{ at: inside ? begin : at, to: inside ? end : at, number: 0 }];
		if (tid === null) this.shown.timeline.show({ from: span.from - 1e5, to: span.to + 1e5 });
		else this.shown.goTo(pid, tid, span);
	}
}
