/* What the page says is what `tacho report` says: the same C has computed it. */
import fs from "node:fs";
import path from "node:path";

import { TACHO, Program, drop, equal, ok, output, suite } from "./libpage.mjs";
import { pageModule, squeezed, startEngine } from "./libengine.mjs";
import { trace, traces } from "./librecord.mjs";

const CASES = ["guess", "crash", "tasks", "names", "uv_long_callback", "uv_lock", "uv_pool", "uv_timer_late",
	"event_short_lock", "event_condition", "epoll_rwlock", "epoll_stopped", "api_downstream",
	"healthy_tasks"];

/* What the terminal prints, or why it prints nothing. */
async function fromTerminal(file) {
	const program = new Program([TACHO, "report", "--json", "--ledger", file]);
	const status = await program.ended;
	return status === 0 ? { text: program.out } : { message: program.err };
}

function fromEngine(engine, file) {
	try {
		engine.load(fs.readFileSync(file));
		return { text: engine.textOf("report") };
	} catch (error) {
		return { message: error.message };
	}
}

/* The first place at which two texts differ. */
function difference(a, b) {
	let i = 0;
	while (i < a.length && a[i] === b[i]) i++;
	return `at ${i}: ${a.slice(Math.max(i - 60, 0), i + 60)} / ${b.slice(Math.max(i - 60, 0), i + 60)}`;
}

/* What a person reads in the left column, when all of it is opened. */
async function fromPage(page) {
	return page.evaluate(async () => {
		const closed = () => [...document.querySelectorAll("#side details:not([open]):not([hidden])")];
		while (closed().length) {
			for (const details of closed()) details.open = true;
			await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
		}
		const texts = (root, selector) => [...root.querySelectorAll(selector)].map((e) => e.textContent);
		return {
			category: texts(document, ".verdict h2")[0],
			verdict: texts(document, ".verdict p")[0],
			findings: [...document.querySelectorAll(".finding")].map((f) => ["b", ".cost", ".summary"]
				.map((part) => texts(f, part)[0] ?? "")),
			considered: texts(document, "ul.considered .reason"),
			ledger: [...document.querySelectorAll(".thread")].map((thread) => ({
				pieces: [...thread.querySelectorAll(".owners i:not(.absent)")].map((i) => Number(i.style.flexGrow)),
				lines: texts(thread, ".pieces-list .cost"),
			})),
		};
	});
}

/* "1.49 s": the number of ns that it says, and how far that may be from what it is. */
function said(text) {
	const match = /^([\d.]+) (ns|µs|ms|s)$/.exec(text);
	if (!match) throw new Error(`"${text}" is no length of time`);
	const unit = { ns: 1, µs: 1e3, ms: 1e6, s: 1e9 }[match[2]];
	const digits = match[1].split(".")[1]?.length ?? 0;
	ok(unit === 1 || match[1].replace(".", "").length >= 3, `"${text}" has less than three digits`);
	return { ns: Number(match[1]) * unit, slack: 0.501 * unit * 10 ** -digits };
}

function says(text, ns) {
	const is = said(text);
	ok(Math.abs(is.ns - ns) <= is.slack, `"${text}" is said of ${ns} ns`);
}

/* "123 ms · 4.8 %" */
function saysShare(text, ns, whole) {
	const [time, share] = text.split(" · ");
	const percent = parseFloat(share);
	says(time, ns);
	ok(Math.abs(percent - (100 * ns) / whole) <= (percent < 9.95 ? 0.0501 : 0.501), `"${text}" is said of ${ns} of ${whole} ns`);
}

function same(is, wanted) {
	const texts = (all) => ({ ...all, findings: all.findings.map(([rule, , summary]) => [rule, summary]), ledger: all.ledger.length });
	equal(texts(is), texts(wanted), "the page");
	is.findings.forEach(([, cost], i) => {
		const ns = wanted.findings[i][1];
		if (ns) says(cost, ns);
		else equal(cost, "", "a cost");
	});
	is.ledger.forEach(({ pieces, lines }, i) => {
		const { owners, whole } = wanted.ledger[i];
		equal([pieces.length, lines.length], [owners.length, owners.length], "the number of pieces");
		pieces.forEach((piece, k) => ok(Math.abs(piece - owners[k]) <= 1e-5 * owners[k], `a piece is ${piece}, not ${owners[k]}`));
		lines.forEach((line, k) => saysShare(line, owners[k], whole));
	});
}

/* Those that another explains follow it. */
function inOrder(findings) {
	const all = findings.map((f, i) => ({ f, i }));
	const after = (i) => all.filter(({ f }) => f.explained_by === i).flatMap((one) => [one, ...after(one.i)]);
	return all.filter(({ f }) => f.explained_by === null).flatMap((one) => [one, ...after(one.i)]).map(({ f }) => f);
}

function wantedOnPage(report, visible) {
	const threads = [...new Set(report.ledger.threads.map((t) => t.pid))].flatMap((pid) =>
		report.ledger.threads.filter((t) => t.pid === pid).sort((a, b) => b.waiting_ns - a.waiting_ns));
	const { category, summary } = report.verdict;
	return {
		category: category === "none" ? "no trouble found" : category.replace(/-/g, " "),
		verdict: visible(summary),
		findings: inOrder(report.findings).map((f) => [f.rule, f.cost_ns, visible(f.summary)]),
		considered: report.considered.map((c) => visible(`Dropped because ${c.reason}`)),
		ledger: threads.map((thread) => ({
			owners: thread.owners.map((o) => o.ns),
			whole: Math.max(Number(BigInt(thread.to_ns) - BigInt(thread.from_ns)), 1),
		})),
	};
}

await suite("numbers", async (t) => {
	const files = await traces(CASES);
	const engine = await startEngine();
	const { visible } = await pageModule("dom");

	const stats = async (file, top) => squeezed(await output([TACHO, "stats", "--json", "--top", String(top), file]));
	await t.test("there are twenty traces", async () => ok(files.length >= 20, `there are ${files.length}`));
	for (const file of files) {
		const name = path.basename(file);
		await t.test(`engine and terminal say the same of ${name}`, async () => {
			const wanted = await fromTerminal(file), is = fromEngine(engine, file);
			if (wanted.message !== undefined)
				ok(is.message !== undefined && wanted.message.includes(is.message),
					`the engine says ${JSON.stringify(is)}, the terminal ${wanted.message}`);
			else {
				ok(is.text !== undefined, `the engine says ${is.message}`);
				const [a, b] = [is.text, wanted.text].map(squeezed);
				ok(a === b, `they differ ${difference(a, b)}`);
				const [c, d] = [squeezed(engine.textOf("stats", 20)), await stats(file, 20)];
				ok(c === d, `their statistics differ ${difference(c, d)}`);
			}
		});
	}

	await t.test("the page's worker says the same", async () => {
		const file = await trace("guess");
		const page = await t.view(file);
		const report = await page.evaluate(async () => {
			const worker = new Worker("worker.js");
			const ask = (request) => new Promise((done, failed) => {
				worker.onmessage = ({ data }) => {
					if ("progress" in data) return;
					if ("error" in data) failed(new Error(data.error));
					else done(data.value);
				};
				worker.postMessage({ id: 1, request });
			});
			const get = async (name) => (await fetch(name)).arrayBuffer();
			await ask({ do: "start", wasm: await get("engine.wasm") });
			const data = await get("trace");
			await ask({ do: "room", size: data.byteLength });
			await ask({ do: "fill", at: 0, data });
			await ask({ do: "load" });
			return ask({ do: "call", name: "report", args: [] });
		});
		equal(report, JSON.parse((await fromTerminal(file)).text));
	});

	const page = await t.forAll(async () => {
		const one = await t.newPage({ ignore: /404/ });
		await one.goto(await t.serveFiles());
		return one;
	});
	for (const file of files) {
		const { text } = await fromTerminal(file);
		if (text === undefined) continue;
		await t.test(`the page shows the same of ${path.basename(file)}`, async () => {
			await page.evaluate(() => document.querySelector("#side")?.replaceChildren());
			await drop(page, path.basename(file), fs.readFileSync(file));
			await page.waitForSelector("#page:not([hidden]) .verdict");
			same(await fromPage(page), wantedOnPage(JSON.parse(text), visible));
		});
	}
});
