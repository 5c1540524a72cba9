/* What the engine says of tasks, tables and two traces is what the commands say of them. */
import fs from "node:fs";

import { TACHO, equal, matches, ok, output } from "./libpage.mjs";
import { pageModule, startEngine } from "./libengine.mjs";
import { trace } from "./librecord.mjs";

let failed = 0;

async function test(name, body) {
	try {
		await body();
		console.log(`ok ${name}`);
	} catch (error) {
		failed++;
		console.log(`not ok ${name}: ${String(error.stack).replace(/\s*\n\s*/g, " | ").slice(0, 1500)}`);
	}
}

async function loadedEngine(file) {
	const engine = await startEngine();
	const bytes = fs.readFileSync(file);
	engine.makeRoom(bytes.length);
	engine.fill(0, bytes);
	engine.begin();
	while (engine.some(1e6));
	return engine;
}

/* Rows of a query, as `tacho sql` has them. */
async function sql(file, query) {
	const lines = (await output([TACHO, "sql", "--json", file, query])).trim();
	return lines ? lines.split("\n").map((line) => JSON.parse(line)) : [];
}

function all(engine, order) {
	return engine.call("task_polls", [order, 0, 1e6]);
}

/* ns in which two polls of the task run at once. */
function overlap(polls) {
	let end = 0, sum = 0;
	for (const p of polls) {
		sum += Math.max(0, Math.min(end, p.begin + p.ns) - p.begin);
		end = Math.max(end, p.begin + p.ns);
	}
	return sum;
}

for (const name of ["tasks", "api_wake_storm", "healthy_tasks", "handed", "uv_crash"]) {
	const file = await trace(name);
	const engine = await loadedEngine(file);

	await test(`the phases of each task of ${name} add up to its life, and its polls are all there`, async () => {
		const rows = await sql(file, "SELECT process, task, sum(polls) AS polls, sum(busy_ns) AS busy, " +
			"sum(waited_ns) AS waited FROM tasks GROUP BY process, task");
		const { count, tasks } = engine.call("tasks", [2]);
		equal(count, rows.length, "the number of tasks");
		for (const t of tasks) {
			const life = engine.call("task", [t.process, t.id]);
			const want = rows.find((r) => r.process === t.process && BigInt(r.task) === BigInt(t.id));
			const polls = all(engine, 0);
			const sum = Object.values(life.phases).reduce((a, b) => a + b, 0);
			equal(sum, life.to - life.from, `the sum of task ${t.id}`);
			equal(polls.length, want.polls, `polls of task ${t.id}`);
			equal(life.phases.running + overlap(polls), want.busy, `running of task ${t.id}`);
			equal(polls.reduce((a, p) => a + (p.woken_by ? p.ready : 0), 0), want.waited, `ready of task ${t.id}`);
			equal(all(engine, 1).map((p) => p.ns), polls.map((p) => p.ns).sort((a, b) => b - a), "the longest first");
		}
	});

	/* Handles of libuv are not woken. */
	if (name !== "uv_crash") await test(`who wakes whom in ${name} is as in the table of wakes`, async () => {
		const rows = await sql(file, "SELECT process, task, count(*) AS n FROM wakes GROUP BY process, task ORDER BY n DESC LIMIT 10");
		for (const r of rows) {
			const graph = engine.call("wakes", [r.process, String(r.task)]);
			if (graph.more_woken_by) continue;
			equal(graph.woken_by.reduce((sum, e) => sum + e.count, 0), r.n, `wakes of task ${r.task}`);
		}
	});

	await test(`what a search finds in ${name} is counted as in the table of polls`, async () => {
		const rows = await sql(file, "SELECT kind, count(*) AS n, max(ns) AS longest, sum(ns >= 100000) AS long FROM polls " +
			"WHERE kind IS NOT NULL AND kind NOT LIKE '% %' GROUP BY kind_id");
		const found = (text) => engine.call("search", [text]).things.filter((k) => k.type === 1);
		const total = (list) => list.reduce((sum, k) => sum + k.count, 0);
		for (const kind of new Set(rows.map((r) => r.kind))) {
			const named = rows.filter((r) => r.kind.toLowerCase().includes(kind.toLowerCase()));
			ok(total(found(kind)) >= named.reduce((sum, r) => sum + r.n, 0), `some of ${kind} were not found`);
			const long = found(`${kind.toUpperCase()} >100us`);
			ok(long.every((k) => k.longest.ns >= 100000), `one of ${kind} is too short`);
			ok(total(found(`${kind} >100us`)) + total(found(`${kind} <99.999us`)) === total(found(kind)),
				`long and short ones of ${kind} are not all`);
		}
	});
}

await test("the next of a kind, again and again, are all of them in the order of time", async () => {
	const file = await trace("tasks");
	const engine = await loadedEngine(file);
	const [kind] = engine.call("search", [">1us"]).things.filter((k) => k.type === 1);
	const step = (at, by) => engine.call("next", [kind.process, 1, kind.what, at.begin, at.lane, at.row, by, 1000, 0]);
	const forward = [];
	for (let at = { begin: -1, lane: 0, row: 0 }; (at = step(at, 1)); ) forward.push(at);
	equal(forward.length, kind.count, "how many there are");
	ok(forward.every((t, i) => !i || t.begin >= forward[i - 1].begin), "they are not in order");
	const back = [];
	for (let at = { begin: 1e15, lane: 1e6, row: 0 }; (at = step(at, -1)); ) back.unshift(at);
	equal(back, forward, "the way back");
});

await test("trace ids and locks are found by their first digits", async () => {
	const [names, guess] = [await trace("names"), await trace("guess")];
	const [spans] = await sql(names, "SELECT count(*) AS n FROM spans WHERE trace_id LIKE '01234567%'");
	ok(spans.n > 0, "the trace has no trace ids");
	const ids = (await loadedEngine(names)).call("search_ids", ["01234567"]);
	equal([ids.spans, ids.found[0].id], [spans.n, "0123456789abcdeffedcba9876543210"], "spans");
	ok(ids.found[0].thing !== null, "its place in the lanes is not known");
	const [lock] = await sql(guess, "SELECT lock, count(*) AS n FROM locks GROUP BY lock ORDER BY n DESC LIMIT 1");
	const found = (await loadedEngine(guess)).call("search_ids", [`0x${BigInt(lock.lock).toString(16)}`]);
	equal(found.locks, lock.n, "waits for the lock");
	equal(found.found.length, Math.min(lock.n, 50), "those that are listed");
});

await test("tables are as those of tacho sql, row by row", async () => {
	for (const name of ["guess", "tasks", "names"]) {
		const file = await trace(name);
		const engine = await loadedEngine(file);
		for (const [i, t] of engine.call("sql_tables", []).entries()) {
			const { rows, more } = engine.call("sql_open", [i, t.columns.map((_, c) => c).join(" ")]);
			const own = engine.call("sql_rows", [0, 1e7]);
			const want = (await sql(file, `SELECT * FROM ${t.name}`)).map((r) => t.columns.map((c) => r[c.name]));
			equal([rows, more], [want.length, 0], `rows of ${t.name} in ${name}`);
			equal(own, want, `${t.name} in ${name}`);
		}
	}
});

await test("two traces compared are as with tacho diff --json", async () => {
	const [a, b] = [await trace("guess"), await trace("tasks")];
	const engine = await loadedEngine(a);
	for (const [first, pair] of [[false, [a, b]], [true, [b, a]], [true, [a, a]]]) {
		const other = first ? pair[0] : pair[1];
		const want = JSON.parse(await output([TACHO, "diff", "--json", ...pair]));
		equal(engine.diff(fs.readFileSync(other), first), want, `${pair}`);
	}
	equal(typeof engine.diff(Buffer.from("no trace at all"), true), "string", "what it says of no trace");
});

await test("moments as people write them", async () => {
	const { parseMoment } = await pageModule("moment");
	/* From a second before midnight, UTC. */
	const window = { ns: 5e9, realMs: Date.UTC(2026, 10, 16, 23, 59, 59) };
	const at = (text, utc = true) => parseMoment(text, window, utc);
	for (const [text, ns] of [["1.25s", 1.25e9], ["+300ms", 3e8], ["-1s", 4e9], [" 20 us ", 20e3], ["23:59:59.5", 5e8],
		["00:00:02", 3e9], ["2026-11-17T00:00:01.25Z", 2.25e9], ["0s", 0]])
		ok(Math.abs(at(text) - ns) < 1, `${text} is ${at(text)}, not ${ns}`);
	const local = new Date(window.realMs + 2000);
	const two = (n) => String(n).padStart(2, "0");
	equal(at(`${two(local.getHours())}:${two(local.getMinutes())}:${two(local.getSeconds())}`, false), 2e9, "local time");
	for (const [text, why] of [["6s", /after the end/], ["-6s", /before the beginning/], ["1 week", /no unit/],
		["25:00", /no such time/], ["soon", /Give a time/]])
		matches(at(text), why, text);
	matches(parseMoment("12:00", { ns: 1, realMs: 0 }, true), /does not say/, "without a clock");
});

process.exitCode = failed ? 1 : 0;
