/* What finds and follows things: search, times, flows, tasks, SQL, another trace. */
import { noViolations } from "./libaxe.mjs";
import { TACHO, equal, matches, ok, output, painted, shot, suite, until } from "./libpage.mjs";
import { startEngine } from "./libengine.mjs";
import { report, trace } from "./librecord.mjs";
import { viewAfter, viewOf } from "./libview.mjs";

const OPEN = ".tabpanel:not([hidden])";

async function sql(file, query) {
	return (await output([TACHO, "sql", "--json", file, query])).trim().split("\n").map((line) => JSON.parse(line));
}

async function search(page, text) {
	if (!await page.evaluate(() => document.activeElement?.id === "search")) await page.keyboard.press("/");
	await page.keyboard.type(text);
	await page.waitForSelector("#results:not([hidden]) .result, #results:not([hidden]) .hint");
	await until("results of what was typed last", async () =>
		(await page.getAttribute("#results", "data-of")) === text);
}

/* What stands in the SQL tab when a query has ended. */
async function run(page, query) {
	await page.fill(`${OPEN} textarea`, query);
	await page.keyboard.press("Control+Enter");
	await until("the end of the query", async () => (await page.textContent(`${OPEN} .primary`)) === "Run");
	return page.textContent(`${OPEN} [role=status]`);
}

await suite("tasks", async (t) => {
	const guess = await trace("guess"), tasks = await trace("tasks");

	await t.test("search: a name and a length, Enter goes to the longest, j and k to others", async () => {
		const all = await sql(guess, "SELECT begin_ns, ns FROM locks WHERE wait_function = 'on_guess' AND NOT signal " +
			"AND ns >= 5000000 ORDER BY begin_ns");
		const start = BigInt(JSON.parse(await report(guess)).trace.from_ns);
		const longest = all.reduce((most, one, i) => (one.ns > all[most].ns ? i : most), 0);
		const holds = (view, i) => {
			const begin = Number(BigInt(all[i].begin_ns) - start);
			ok(view[0] <= begin && view[1] >= begin + all[i].ns && view[1] - view[0] < 10 * all[i].ns,
				`${view} is not about number ${i} at ${begin}`);
		};
		ok(all.length > 2, "the case has too few of them");
		const page = await t.view(guess);
		await search(page, "on_guess >5ms");
		matches(await page.textContent(".result .cost"), new RegExp(`^${all.length},`), "the number of them");
		await shot(page, "search");
		holds(await viewAfter(page, () => page.keyboard.press("Enter")), longest);
		await page.waitForSelector(`${OPEN} h2`);
		/* Faster than it can answer, to the last and back by one, or by two if that is where it was. */
		const back = longest === all.length - 2 ? 2 : 1;
		holds(await viewAfter(page, async () => {
			for (let i = 0; i < all.length; i++) await page.keyboard.press("j");
			for (let i = 0; i < back; i++) await page.keyboard.press("k");
		}), all.length - 1 - back);
	});

	await t.test("search: threads, tasks, nothing, and by arrows", async () => {
		const page = await t.view(tasks);
		const [task] = await sql(tasks, "SELECT task, kind FROM tasks WHERE polls > 3 ORDER BY waited_ns DESC");
		await search(page, task.kind);
		await page.click(`.result:has-text("${task.kind} ${task.task}")`);
		await page.waitForSelector(`${OPEN} h2:has-text("${task.kind} ${task.task}")`);
		await page.fill("#search", "no such name");
		await page.waitForSelector("#results .hint");
		matches(await page.textContent("#results .hint"), /^Nothing/);
		await page.fill("#search", "");
		await search(page, task.kind);
		await page.keyboard.press("ArrowDown");
		equal(await page.getAttribute("#search", "aria-activedescendant"), "result-0");
		equal(await page.getAttribute("#result-0", "aria-selected"), "true");
		await page.keyboard.press("Escape");
		ok(await page.isHidden("#results"), "Escape leaves the list");
	});

	await t.test("g goes to a time, and says what is wrong with one", async () => {
		const page = await t.view(guess);
		await page.keyboard.press("g");
		await page.keyboard.type("soon");
		await page.keyboard.press("Enter");
		matches(await page.textContent("dialog.goto [role=status]"), /Give a time/);
		await page.fill("dialog.goto input", "300ms");
		matches(await page.textContent("dialog.goto [role=status]"), /300\.0* ms|0\.3/);
		const view = await viewAfter(page, () => page.keyboard.press("Enter"));
		ok(Math.abs((view[0] + view[1]) / 2 - 3e8) < 2, `the middle of ${view} is not 300 ms`);
	});

	await t.test("a task: its phases are those of tacho sql, its polls lead to the lanes", async () => {
		const [want] = await sql(tasks, "SELECT task, kind, polls FROM tasks WHERE polls > 3 ORDER BY waited_ns DESC");
		const page = await t.view(tasks);
		await page.click("#tab-task");
		await page.click(`${OPEN} .plain .link`);
		await page.waitForSelector(`${OPEN} .life`);
		matches(await page.textContent(`${OPEN} h2`), new RegExp(`^${want.kind} ${want.task}`));
		matches(await page.textContent(OPEN), new RegExp(`${want.polls.toLocaleString("en-US").replace(/,/g, " ")} polls`));
		await shot(page, "task");
		await viewAfter(page, () => page.click(`${OPEN} table:last-of-type .link`));
		equal(await page.getAttribute("#tab-task", "aria-selected"), "true", "the tab stays open");
	});

	await t.test("a task and a query in the address survive a reload; the query waits", async () => {
		const page = await t.view(tasks);
		await page.click("#tab-sql");
		await run(page, "SELECT 1 AS one");
		await page.click("#tab-task");
		await page.click(`${OPEN} .plain .link`);
		const title = await page.textContent(`${OPEN} h2`);
		await until("the task in the address", () => /task=0%3A\d+/.test(page.url()));
		await page.reload();
		await page.waitForSelector(`${OPEN} h2:has-text("${title}")`);
		await page.click("#tab-sql");
		equal(await page.inputValue(`${OPEN} textarea`), "SELECT 1 AS one", "the query");
		equal(await page.$$eval(`${OPEN} .rows`, (all) => all.length), 0, "results");
	});

	await t.test("flows: from a wait for a lock to who released it, by key and by click", async () => {
		const [want] = await sql(guess, "SELECT holder_tid, release_function FROM locks WHERE NOT signal AND release_ns ORDER BY ns DESC LIMIT 1");
		const page = await t.view(guess);
		await search(page, "on_guess >5ms");
		await viewAfter(page, () => page.keyboard.press("Enter"));
		await page.waitForSelector(`${OPEN} h2`);
		await page.click("#tab-flow");
		await page.waitForSelector(`${OPEN} .flows .like`);
		const text = await page.textContent(`${OPEN} .flows`);
		matches(text, new RegExp(`${want.release_function}.*${want.holder_tid}`), "what led to it");
		await painted(page);
		await shot(page, "flows");
		await viewAfter(page, () => page.keyboard.press("["));
	});

	await t.test("SQL: the same as tacho sql, links lead to the time", async () => {
		const query = "SELECT function, count(*) AS n, sum(ns) AS sum_ns FROM polls GROUP BY function ORDER BY n, function";
		const want = (await sql(guess, query)).map((r) => Object.values(r).map((v) => (v === null ? "" : String(v))));
		const page = await t.view(guess);
		await page.click("#tab-sql");
		matches(await run(page, query), new RegExp(`^${want.length} rows?,`));
		equal(await page.$$eval(`${OPEN} .rows tbody tr`, (rows) =>
			rows.map((r) => [...r.cells].map((c) => c.textContent))), want, "the rows");
		await run(page, "SELECT begin_ns, end_ns, tid, pid FROM polls ORDER BY ns DESC LIMIT 1");
		await shot(page, "sql");
		const [longest] = await sql(guess, "SELECT begin_ns, end_ns, (SELECT min(begin_ns) FROM polls) AS first FROM polls ORDER BY ns DESC LIMIT 1");
		const view = await viewAfter(page, () => page.click(`${OPEN} .rows .link`));
		ok(view[1] - view[0] >= longest.end_ns - longest.begin_ns, `${view} does not hold it`);
	});

	await t.test("SQL: a row of many columns is one line, and what is pointed at can be read", async () => {
		const page = await t.view(guess);
		await page.click("#tab-sql");
		matches(await run(page, "SELECT * FROM polls ORDER BY ns DESC LIMIT 5"), /^5 rows,/);
		const heights = await page.$$eval(`${OPEN} .rows tbody tr`, (all) => all.map((e) => e.getBoundingClientRect().height));
		ok(heights.length === 5 && heights.every((h) => h < 30), `the rows are ${heights} high`);
		await page.hover(`${OPEN} .primary`);
		await page.waitForTimeout(200); // until its colour has changed
		await noViolations(page, "#panel");
	});

	await t.test("SQL reads and does nothing else, one query at a time, and can be ended", async () => {
		const page = await t.view(guess);
		await page.click("#tab-sql");
		for (const query of ["DELETE FROM polls", "CREATE TABLE x(y)", "ATTACH 'x' AS y", "PRAGMA writable_schema = 1",
			"VACUUM INTO 'x'", "SELECT load_extension('x')"])
			matches(await run(page, query), /not authorized|authorization denied|no such function/, query);
		matches(await run(page, "SELECT 1; SELECT 2"), /more than one/);
		matches(await run(page, "SELECT 1; -- that is all"), /^1 row,/);
		matches(await run(page, "SELEC"), /syntax error/);
		await page.fill(`${OPEN} textarea`, "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c");
		await page.click(`${OPEN} .primary`);
		await page.waitForSelector(`${OPEN} [role=status]:has-text("Running")`);
		await page.click(`${OPEN} .primary:has-text("Cancel")`);
		await page.waitForSelector(`${OPEN} [role=status]:has-text("Cancelled")`);
		matches(await run(page, "SELECT count(*) FROM polls"), /^1 row,/);
	});

	await t.test("SQL uses only what is listed, and ends by itself", async () => {
		const engine = await startEngine();
		const rules = engine.call("sql_rules", []);
		const page = await t.view(guess);
		/* The page's own worker, with less time. */
		const ask = (queries, changed) => page.evaluate(async ([queries, rules]) => {
			const worker = new Worker("sql.js");
			const send = (request) => new Promise((done) => {
				worker.onmessage = (event) => done(event.data.error ?? event.data.value);
				worker.postMessage({ id: 1, request });
			});
			const wasm = await (await fetch("sqlite3.wasm")).arrayBuffer();
			const answers = [await send({ do: "start", wasm, tables: [], rules })];
			for (const sql of queries) answers.push(await send({ do: "run", sql, most: 10 }));
			worker.terminate();
			return answers;
		}, [queries, { ...rules, ...changed }]);
		const refused = ["SELECT hex(fts3_tokenizer('simple'))", "SELECT fts5_source_id()", "SELECT sqlite_log(1, 'x')",
			"SELECT load_extension('x')", "SELECT rtreecheck('x')", "SELECT jsonb('[]')",
			"CREATE VIRTUAL TABLE x USING fts5(y)", "CREATE VIRTUAL TABLE x USING rtree(a, b, c)",
			"SELECT * FROM dbstat", "SELECT * FROM sqlite_dbpage", "SELECT * FROM sqlite_stmt", "SELECT * FROM bytecode('SELECT 1')",
			"PRAGMA trusted_schema = 1", "PRAGMA hard_heap_limit = 0", "SELECT * FROM pragma_cache_size"];
		const [start, ...answers] = await ask(refused, {});
		equal(start, null, "the start");
		answers.forEach((answer, i) => matches(String(answer), /not authorized|no such (function|table|module)/, refused[i]));
		const allowed = ["SELECT value FROM json_each('[5]')", "SELECT round(log2(8)) || upper('x')", "SELECT name FROM pragma_table_list",
			"SELECT sum(x) OVER (ORDER BY x) FROM (SELECT 1 AS x)"];
		for (const answer of (await ask(allowed, {})).slice(1)) ok(answer.rows?.length, String(answer));
		const endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
		matches((await ask([endless], { seconds: 1 }))[1], /stopped after 1 s.*--max-time/);
		/* A table that grows and grows. */
		const large = "WITH RECURSIVE c(x) AS (SELECT 1 UNION SELECT x + 1 FROM c) SELECT count(*) FROM c";
		matches((await ask([large], { bytes: 20 << 20 }))[1], /more than 20.0 MiB.*--max-memory/);
		matches((await ask(["SELECT zeroblob(100000000)"], {}))[1], /too big/);
	});

	await t.test("another trace: chosen, compared, and its lanes move along", async () => {
		const page = await t.view(guess);
		await page.click("#tab-compare");
		await page.setInputFiles(`${OPEN} input[type=file]`, tasks);
		await page.waitForSelector(`${OPEN} .other-lanes canvas`);
		const want = JSON.parse(await output([TACHO, "diff", "--json", guess, tasks]));
		const names = await page.$$eval(`${OPEN} .rows tbody tr`, (rows) => rows.map((r) => r.cells[0].textContent));
		equal([...names].sort(), want.rows.map((r) => (r.of === "span" ? `span ${r.name}` : r.name)).sort(), "what is compared");
		equal(await page.$$eval(`${OPEN} .verdict`, (all) => all.length), 2, "verdicts");
		const range = () => page.textContent(`${OPEN} .other-lanes`);
		const before = await range();
		await page.click("#lanes canvas", { position: { x: 400, y: 10 } });
		await page.keyboard.press("w");
		await until("the other's lanes move", async () => (await range()) !== before);
		await shot(page, "compare");
	});

	await t.test("another trace that is none: it says so, and this one stays", async () => {
		const page = await t.view(guess);
		await page.click("#tab-compare");
		await page.setInputFiles(`${OPEN} input[type=file]`, { name: "x.tacho", mimeType: "", buffer: Buffer.from("no trace") });
		await page.waitForSelector(`${OPEN} .failed`);
		ok(await page.isVisible("#lanes canvas"), "the lanes are gone");
		equal(viewOf(page), undefined, "the view");
	});

	await t.test("a trace without tasks says what would give some", async () => {
		const page = await t.view(await trace("nothing"));
		await page.click("#tab-task");
		await page.waitForSelector(`${OPEN} p`);
		matches(await page.textContent(OPEN), /no tasks.*tacho_task_spawn/);
	});

	for (const colorScheme of ["light", "dark"])
		await t.test(`axe finds nothing serious in what these show, ${colorScheme}`, async () => {
			const page = await t.view(guess, { colorScheme });
			await search(page, "on");
			await page.keyboard.press("ArrowDown");
			await noViolations(page, "#top", "#panel");
			await viewAfter(page, () => page.keyboard.press("Enter"));
			await page.click("#tab-flow");
			await page.waitForSelector(`${OPEN} .flows`);
			await noViolations(page, "#top", "#panel");
			await page.keyboard.press("g");
			await page.waitForSelector("dialog.goto[open]");
			await noViolations(page, "dialog.goto");
			await page.keyboard.press("Escape");
			await page.click("#tab-sql");
			await run(page, "SELECT begin_ns, tid, function FROM polls LIMIT 5");
			await noViolations(page, "#top", "#panel");
			await page.click("#tab-compare");
			await page.setInputFiles(`${OPEN} input[type=file]`, tasks);
			await page.waitForSelector(`${OPEN} .other-lanes canvas`);
			await noViolations(page, "#top", "#panel");
		});

	await t.test("axe finds nothing serious in a task", async () => {
		const page = await t.view(await trace("api_wake_storm"));
		await page.click("#tab-task");
		await page.click(`${OPEN} .plain .link`);
		await page.waitForSelector(`${OPEN} .wakes`);
		await noViolations(page, "#top", "#panel");
		await shot(page, "wakes");
	});
});
