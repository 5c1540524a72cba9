/* Traces for the tests: of programs that really run. Each is recorded once, by the first test that
 * wants it, into build/page-traces, which tests/run.py empties before. */
import fs from "node:fs";
import path from "node:path";

import { BUILD, Program, SOURCE, TACHO, output } from "./libpage.mjs";

const FOLDER = path.join(BUILD, "page-traces");

function caseOf(name) {
	return path.join(BUILD, "tests/cases", `case-${name}`);
}

/* Programs that record and save themselves (docs: tests/cases/libtable.py, `api`). */
async function ofItself(argv, file) {
	const program = new Program(argv, { env: { ...process.env, TACHO_CASE_FILE: file } });
	await program.ended;
}

/* It comes before what else runs on the machine, which is not its subject. */
const FIRST = process.getuid() === 0 ? ["chrt", "-r", "1"] : [];

async function ofRun(argv, file) {
	await new Program([...FIRST, TACHO, "run", "-q", "-o", file, "--", ...argv]).ended;
}

const RECORDED = {
	guess: (file) => ofRun([caseOf("guess")], file),
	crash: (file) => ofRun([caseOf("uv_crash")], file),
	tasks: (file) => ofRun([caseOf("api_wake_latency")], file),
	/* Tasks that go on on another loop before their poll on the first has ended. */
	handed: (file) => ofRun(["timeout", "2", path.join(BUILD, "examples/tasks")], file),
	nothing: (file) => ofItself([path.join(BUILD, "tests/page/page-names"), "nothing"], file),
	names: (file) => ofItself([path.join(BUILD, "tests/page/page-names")], file),
};

/* The path of a trace: of RECORDED, or of a program of the casebook under tacho run. */
export async function trace(name) {
	const file = path.join(FOLDER, `${name}.tacho`);
	if (fs.existsSync(file)) return file;
	fs.mkdirSync(FOLDER, { recursive: true });
	const part = path.join(FOLDER, `.${name}-${process.pid}.tacho`);
	const record = RECORDED[name] ?? ((to) => ofRun([caseOf(name)], to));
	await record(part);
	if (!fs.existsSync(part)) throw new Error(`${name} left no trace`);
	fs.renameSync(part, file);
	return file;
}

/* Those of the golden tests, and those of the casebook that need no CPU for themselves. */
export async function traces(names) {
	const golden = path.join(SOURCE, "tests/golden");
	const files = fs.readdirSync(golden).filter((name) => name.endsWith(".tacho"))
		.map((name) => path.join(golden, name));
	for (let i = 0; i < names.length; i += 4)
		files.push(...await Promise.all(names.slice(i, i + 4).map((name) => trace(name))));
	return files;
}

export async function report(file) {
	return output([TACHO, "report", "--json", "--ledger", file]);
}
