/*
 * The recordings of tests/golden-answers: the page's engine says and draws what stands beside them.
 *
 *	engine_golden.mjs             compares
 *	engine_golden.mjs --update    writes what it says now
 */
import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";

import { SOURCE } from "./libpage.mjs";
import { startEngine } from "./libengine.mjs";

const FOLDER = path.join(SOURCE, "tests/golden-answers");
const COLUMNS = 300;
const SOME = 3; // tasks that are looked at
const update = process.argv[2] === "--update";
let failed = 0;

function digest(data) {
	return crypto.createHash("sha256").update(data).digest("hex").slice(0, 8);
}

/* Its text, cut where it is long. */
function told(value) {
	const text = JSON.stringify(value);
	return text.length > 100 ? `${text.slice(0, 100)}... ${digest(text)}` : text;
}

/* What is no number has many forms. */
function numbers(buffer) {
	return digest(Array.from(new Float32Array(buffer), (n) => (Number.isNaN(n) ? "-" : n)).join());
}

/* First, middle and last. */
function some(count) {
	return [...new Set([0, Math.floor(count / 2), count - 1])].filter((i) => i >= 0 && i < count);
}

function* row(engine, at, r, window) {
	yield `row ${r.type} ${r.row}, ${r.count} things${r.most === undefined ? "" : `, most ${r.most}`}: ${r.name}`;
	for (const [from, to] of [[0, window], [window * 0.4, window * 0.5]])
		yield `  ${Math.round(from)}: boxes ${digest(new Uint8Array(engine.draw(...at, from, to, COLUMNS)))}, ` +
			`curve ${numbers(engine.curve(...at, from, to, COLUMNS))}`;
	for (const index of r.most === undefined ? some(r.count) : []) {
		yield `  thing ${index}: ${told(engine.call("thing", [...at, index]))}`;
		yield `  blame ${index}: ${told(engine.call("blame", [...at, index, 0]))}, ` +
			`from its wake ${told(engine.call("blame", [...at, index, 1]))}`;
		yield `  flows ${index}: ${told(engine.call("flows", [...at, index]))}`;
		yield `  after ${index}: ${told(engine.call("beside", [...at, index, 1]))}`;
		yield `  task ${index}: ${told(engine.call("task_of", [...at, index]))}`;
	}
}

function* tasks(engine) {
	for (const order of [0, 1, 2]) {
		const { tasks, ...rest } = engine.call("tasks", [order]);
		yield `tasks by ${order}: ${told(rest)} ${told(tasks)}`;
	}
	for (const t of engine.call("tasks", [0]).tasks.slice(0, SOME)) {
		yield `task ${told(t)}`;
		yield `  life ${told(engine.call("task", [t.process, t.id]))}`;
		yield `  line ${told(engine.call("task_line", [COLUMNS]))}`;
		yield `  polls ${told(engine.call("task_polls", [0, 0, 50]))}, longest ${told(engine.call("task_polls", [1, 0, 5]))}`;
		yield `  wakes ${told(engine.call("wakes", [t.process, t.id]))}`;
	}
}

function* answers(engine) {
	const { lanes, ...rest } = engine.overview(), window = rest.window;
	for (const [key, value] of Object.entries(rest)) yield `${key}: ${told(value)}`;
	yield `map: ${numbers(engine.map(COLUMNS).buffer)}`;
	yield `report: ${told(engine.call("report", []))}`;
	yield `stats: ${told(engine.call("stats", [5]))}`;
	yield `range: ${told(engine.call("range", [window * 0.2, window * 0.6, 5]))}`;
	yield `flame: ${told(engine.call("flame", [0, window, 0, 0, "", ""]))}, waits ${told(engine.call("flame", [0, window, 1, 0, "", ""]))}`;
	for (const text of [">1ms", "work", "on_"]) yield `search ${text}: ${told(engine.call("search", [text]))}`;
	for (const [i, thread] of engine.call("report", []).ledger.threads.entries())
		for (const owner of thread.owners.keys())
			yield `times ${i} ${owner}: ${told(engine.call("times", [i, owner]))}`;
	yield `crash: ${told(engine.call("crash", [0]))}`;
	yield* tasks(engine);
	for (const { rows, ...lane } of lanes) {
		yield `lane ${told(lane)}`;
		for (const [i, r] of rows.entries()) yield* row(engine, [lane.lane, i], r, window);
	}
}

/* Each recording, and each text whose recording is missing. */
const names = fs.readdirSync(FOLDER).filter((n) => /\.(tacho|page\.txt)$/.test(n)).map((n) => n.replace(".page.txt", ".tacho"));

for (const name of [...new Set(names)].sort()) {
	const beside = path.join(FOLDER, name.replace(".tacho", ".page.txt"));
	let why = "";
	try {
		const engine = await startEngine();
		engine.load(fs.readFileSync(path.join(FOLDER, name)));
		const is = [...answers(engine)];
		if (update) fs.writeFileSync(beside, is.join("\n") + "\n");
		const was = fs.readFileSync(beside, "utf8").trimEnd().split("\n");
		const at = Array.from({ length: Math.max(is.length, was.length) }, (_, i) => i).find((i) => is[i] !== was[i]);
		if (at !== undefined) why = `line ${at + 1} was ${was[at]} and is ${is[at]}`;
	} catch (error) {
		why = String(error.stack).replace(/\s*\n\s*/g, " | ");
	}
	failed += why ? 1 : 0;
	console.log(why ? `not ok ${name}: ${why.slice(0, 1500)}` : `ok ${name}`);
}
process.exit(failed ? 1 : 0);
