/* Zoomed out, a box stands for many things: what is said of it is true of the things, as tacho sql has them. */
import fs from "node:fs";

import { TACHO, equal, matches, ok, output, painted, shot, suite, until } from "./libpage.mjs";
import { pageModule, startEngine } from "./libengine.mjs";
import { trace } from "./librecord.mjs";
import { GUTTER, RULER, lanesBox, viewAfter } from "./libview.mjs";

const POLLS = 1; // of page/src/answers.ts

async function sql(file, query) {
	return (await output([TACHO, "sql", "--json", file, query])).trim().split("\n").map((line) => JSON.parse(line));
}

/* All of the window is in view. */
async function zoomOut(page) {
	await viewAfter(page, () => page.keyboard.press("w"));
	await viewAfter(page, () => page.keyboard.press("f"));
	await painted(page);
}

/* The first point of the lanes at which the pointer is told something like this. */
async function findTip(page, pattern) {
	const box = await lanesBox(page);
	const found = await page.evaluate(([box, source, left, top]) => {
		const canvas = document.querySelector("#lanes canvas"), tip = document.querySelector(".tip");
		for (let y = top + 2; y < box.height; y += 2)
			for (let x = left + 1; x < box.width; x++) {
				const at = { clientX: box.x + x, clientY: box.y + y };
				canvas.dispatchEvent(new PointerEvent("pointermove", at));
				const match = !tip.hidden && new RegExp(source).exec(tip.textContent);
				if (match) return { match: [...match], x: at.clientX, y: at.clientY };
			}
		return null;
	}, [box, pattern.source, GUTTER, RULER]);
	if (!found) throw new Error(`no tip is like ${pattern}`);
	return found;
}

/* "+1.234 567 890 s" in ns */
function nanoseconds(text) {
	const [, whole, parts] = /^\+(\d+)\.([\d ]+) s$/.exec(text);
	return Number(whole) * 1e9 + Number(parts.replace(/ /g, ""));
}

/* What the panel says of what was clicked on. */
async function panel(page, at) {
	await page.mouse.click(at.x, at.y);
	await page.waitForSelector("#panel .details h2");
	const rows = Object.fromEntries(await page.$$eval("#panel .details .about tr", (all) =>
		all.map((row) => [row.cells[0]?.textContent, row.cells[1]?.textContent])));
	return { title: await page.textContent("#panel .details h2"), from: nanoseconds(rows.from), to: nanoseconds(rows.to) };
}

await suite("boxes", async (t) => {
	const file = await trace("uv_flood");
	const engine = await startEngine();
	engine.load(fs.readFileSync(file));
	const overview = engine.overview();
	const { duration } = await pageModule("format");
	const { BoxReader } = await pageModule("answers");
	const first = BigInt(JSON.parse(await output([TACHO, "report", "--json", file])).trace.from_ns);
	const since = (ns) => Number(BigInt(ns) - first);
	const polls = (await sql(file, "SELECT tid, depth, begin_ns, ns, kind, function FROM polls ORDER BY begin_ns"))
		.map((p) => ({ ...p, begin: since(p.begin_ns), ns: Number(p.ns) }));

	await t.test("each box of callbacks has the number and the longest of its callbacks", async () => {
		let merged = 0;
		for (const lane of overview.lanes)
			for (const [r, row] of lane.rows.entries()) {
				if (row.type !== POLLS || row.unnamed) continue;
				const own = polls.filter((p) => p.tid === lane.tid && p.depth === row.row);
				equal(own.length, row.count, `callbacks of ${lane.tid} at depth ${row.row}`);
				const boxes = new BoxReader(engine.draw(lane.lane, r, 0, overview.window, 300));
				let at = 0;
				for (let i = 0; i < boxes.count; i++) {
					const inside = own.slice(at, at += boxes.things(i));
					const longest = Math.max(...inside.map((p) => p.ns));
					equal([boxes.longestNs(i), inside.some((p) => p.begin === boxes.longestBegin(i) && p.ns === longest)],
						[longest, true], `the longest of box ${i}`);
					merged += inside.length > 1;
				}
				equal(at, own.length, "callbacks in boxes");
			}
		ok(merged > 10, `only ${merged} boxes stand for several`);
	});

	await t.test("a box of many callbacks: its title and times are those of the longest", async () => {
		const page = await t.view(file);
		await zoomOut(page);
		const at = await findTip(page, /^([\d\s]+) callbacks, longest (.+?): (.+)$/);
		const [, count, longest, name] = at.match;
		const { title, from, to } = await panel(page, at);
		const poll = polls.find((p) => p.begin === from);
		ok(poll, `no callback begins at ${from}`);
		equal(to - from, poll.ns, "the time that it took");
		equal(longest, duration(poll.ns), "the length that the pointer is told");
		ok(title.startsWith(`${name} ${duration(poll.ns)} `), `the title is ${title}`);
		matches(title, new RegExp(`the longest of ${count} callbacks in [\\d.]+ .?s$`));
		await shot(page, "boxes");
	});

	await t.test("a box of many waits: its title and times are those of the longest", async () => {
		const idle = await trace("guess");
		const begin = BigInt(JSON.parse(await output([TACHO, "report", "--json", idle])).trace.from_ns);
		const page = await t.view(idle);
		await zoomOut(page);
		const at = await findTip(page, /^([\d\s]+) waits for work, longest (.+?): parked$/);
		const { title, from, to } = await panel(page, at);
		equal(at.match[2], duration(to - from), "the length that the pointer is told");
		ok(title.startsWith(`parked ${duration(to - from)} `), `the title is ${title}`);
		/* It lies between two turns of the loop. */
		const turns = (await sql(idle, "SELECT begin_ns, end_ns FROM turns"))
			.map((turn) => [turn.begin_ns, turn.end_ns].map((ns) => Number(BigInt(ns) - begin)));
		ok(turns.some((turn) => turn[1] === from) && turns.some((turn) => turn[0] === to),
			`no turns end at ${from} and begin at ${to}`);
	});

	await t.test("a double click goes to all of the box", async () => {
		const page = await t.view(file);
		await zoomOut(page);
		const at = await findTip(page, /^([\d\s]+) callbacks, longest/);
		const things = Number(at.match[1].replace(/\s/g, ""));
		const [from, to] = await viewAfter(page, () => page.mouse.dblclick(at.x, at.y));
		await until("the view holds them", () =>
			polls.filter((p) => p.begin >= from && p.begin + p.ns <= to).length >= things);
	});
});
