/* Ledger, details, range and flame graph: what a person clicks leads to numbers that are the terminal's. */
import { TACHO, equal, matches, ok, output, painted, shot, suite, until } from "./libpage.mjs";
import { startEngine } from "./libengine.mjs";
import { report, trace } from "./librecord.mjs";
import { GUTTER, lanesBox, near, viewAfter, viewOf } from "./libview.mjs";
import fs from "node:fs";

async function stats(file, ...more) {
	return JSON.parse(await output([TACHO, "stats", "--json", "--top", "1000", file, ...more]));
}

function since(found, ns) {
	return Number(BigInt(ns) - BigInt(found.trace.from_ns));
}

/* The range that a person drags over the lanes, as the address tells it. */
async function drag(page, from, to) {
	const box = await lanesBox(page);
	const x = (share) => box.x + GUTTER + share * (box.width - GUTTER);
	await page.mouse.move(x(from), box.y + 80);
	await page.mouse.down();
	await page.mouse.move(x((from + to) / 2), box.y + 80);
	await page.mouse.move(x(to), box.y + 80);
	await page.mouse.up();
	let last;
	return until("the same range twice in the address", async () => {
		const now = new URLSearchParams(new URL(page.url()).hash.slice(1)).get("range"), same = now && now === last;
		last = now;
		await page.waitForTimeout(250); // the address waits 200 ms for more to come
		return same && now.split("-").map(Number);
	});
}

/* Rows of a table of the range: name, count, total, ... as texts. */
function rows(page, title) {
	return page.$$eval(
		".range section",
		(all, wanted) => {
			const table = all.find((s) => s.querySelector("h3")?.textContent === wanted);
			return [...(table?.querySelectorAll("tbody tr") ?? [])].map((row) =>
				[...row.children].map((cell) => cell.firstChild?.textContent ?? ""));
		},
		title,
	);
}

function openTab(page, name) {
	return page.click(`#tab-${name}`);
}

await suite("panels", async (t) => {
	const guess = await trace("guess");
	const found = JSON.parse(await report(guess));
	const engine = await startEngine();

	await t.test("engine and terminal count the same, of all and of a range", async () => {
		for (const name of ["guess", "crash", "tasks", "uv_lock"]) {
			const file = await trace(name);
			engine.load(fs.readFileSync(file));
			equal(engine.call("stats", [1000]), await stats(file), `stats of ${name}`);
			const { window } = engine.call("overview", []);
			const [from, to] = [0.21, 0.63].map((share) => Math.round(share * window));
			equal(engine.call("range", [from, to, 1000]).stats,
				await stats(file, "--from", `${from}ns`, "--to", `${to}ns`), `stats of a range of ${name}`);
		}
	});

	await t.test("the times of a piece of the ledger are those that it has", async () => {
		engine.load(fs.readFileSync(guess));
		found.ledger.threads.forEach((thread, i) => thread.owners.forEach((owner, k) => {
			const times = engine.call("times", [i, k]);
			if (owner.owner !== "code") equal(times.sum, owner.ns, `${owner.owner} ${owner.key} of ${thread.tid}`);
			ok(times.sum <= owner.ns, `${times.sum} is more than ${owner.ns}`);
			ok(times.times.every(([at, ns], n) => ns > 0 && (!n || times.times[n - 1][0] < at)), "they are in order");
		}));
	});

	await t.test("a click on a piece marks its times, and keys go through them", async () => {
		const page = await t.view(guess);
		await page.click(".ledger .thread summary > span");
		await page.click(".ledger .pieces-list .line >> nth=0");
		const text = await until("where it is", () => page.textContent(".times .stepping .cost"));
		const [, at, count] = /^(\d+) of (\d+):/.exec(text.replace(/(\d) (?=\d)/g, "$1"));
		ok(Number(count) > 1, `there are ${count}`);
		const before = viewOf(page);
		await viewAfter(page, () => page.keyboard.press("."));
		matches((await page.textContent(".times .stepping .cost")).replace(/(\d) (?=\d)/g, "$1"),
			new RegExp(`^${(Number(at) % Number(count)) + 1} of ${count}:`), "the next");
		ok(JSON.stringify(viewOf(page)) !== JSON.stringify(before), "the view is elsewhere");
		await painted(page);
		await shot(page, "ledger-times");
		await page.click('.times [aria-label="Forget these times"]');
		equal(await page.isVisible(".times"), false, "whether they are still there");
	});

	await t.test("a finding opens with its advice, and selects what it is about", async () => {
		const page = await t.view(guess);
		await page.click(".finding");
		equal(await page.textContent(".more:not([hidden]) .advice"), found.findings[0].advice);
		equal(await page.locator(".more:not([hidden]) .evidence button").count(), found.findings[0].evidence.length);
		await page.waitForSelector("#panel .details h2");
		const e = found.findings[0].evidence[0];
		const ms = ((since(found, e.to_ns) - since(found, e.from_ns)) / 1e6).toFixed(0);
		matches(await page.textContent("#panel .details h2"), new RegExp(`${ms} ms|${(ms / 1000).toFixed(2)} s`), "the thing");
		/* Of one there is nothing to compare. */
		await page.waitForSelector("#panel .pieces tr");
		ok((await page.locator("#panel .pieces tr.inner").allTextContents()).every((text) => /meanwhile/.test(text)), "what the holder did");
		const alone = /^1 of these/.test(await page.textContent("#panel .kind h3"));
		equal(await page.locator("#panel .histogram").count(), alone ? 0 : 1, "histograms");
		await shot(page, "guess-details");
	});

	await t.test("what could not be checked can be opened, with why", async () => {
		const page = await t.view(guess);
		const not = Object.entries(found.coverage).filter(([, c]) => !c.checked);
		const box = page.locator("#side details:has(> summary:has-text('rules'))");
		await box.locator("summary").click();
		await box.locator("p").waitFor();
		const texts = await box.locator("li").allTextContents();
		equal(texts.length, not.length, "their number");
		not.forEach(([rule, c], i) => ok(texts[i].includes(rule) && texts[i].includes(c.why), `${texts[i]}: not ${c.why}`));
	});

	await t.test("details tell times, place, stack and pieces that add up", async () => {
		const page = await t.view(guess);
		await page.click(".finding");
		await page.waitForSelector("#panel .details .owners.tall i");
		const e = found.findings[0].evidence[0];
		const sum = await page.$eval("#panel .owners.tall", (bar) =>
			[...bar.children].reduce((all, piece) => all + Number(piece.style.flexGrow), 0));
		near(sum, since(found, e.to_ns) - since(found, e.from_ns), 1e-5 * sum, "the sum of the pieces");
		const names = await page.$$eval("#panel .facts th", (all) => all.map((e) => e.textContent));
		for (const name of ["from", "to", "UTC", "local time", "place"]) ok(names.includes(name), `${names} has no ${name}`);
		const real = await page.$$eval("#panel .facts tr", (all) =>
			all.find((r) => r.children[0].textContent === "UTC").children[1].textContent);
		const cat = (await output([TACHO, "cat", "--json", guess])).split("\n").filter(Boolean).map((l) => JSON.parse(l))
			.find((r) => String(r.ns) === String(e.from_ns) && r.tid === e.tid);
		ok(cat?.wall.startsWith(real.replace(" ", "T")), `the clock says ${real}, tacho cat ${cat?.wall}`);
		matches(await page.textContent("#panel .stack"), /\(.*:\d+\)/, "the stack");
		await page.click("#panel summary:has-text('records')");
		await page.waitForSelector("#panel .records tr");
		ok((await page.locator("#panel .likes .like").count()) > 1, "there are others of its kind");
		const view = viewOf(page);
		await viewAfter(page, () => page.click("#panel .likes .like:not(.selected) >> nth=0"));
		ok(JSON.stringify(viewOf(page)) !== JSON.stringify(view), "another of its kind is elsewhere");
	});

	await t.test("a crash opens with its stack", async () => {
		const page = await t.view(await trace("crash"));
		await page.click(".mark-line >> nth=0");
		await page.waitForSelector("#panel .stack li");
		matches(await page.textContent("#panel h2"), /^SIG/, "the title");
		matches(await page.textContent("#panel .stack .own"), /end_session/, "the innermost");
	});

	await t.test("a dragged range has the numbers of tacho stats for it", async () => {
		const page = await t.view(guess);
		await openTab(page, "range");
		await page.waitForSelector(".range .thread");
		const [from, to] = await drag(page, 0.2, 0.7);
		const wanted = await stats(guess, "--from", `${from}ns`, "--to", `${to}ns`);
		await until("the numbers of the range", async () =>
			(await page.textContent(".range-title")).replace(/(\d) (?=\d)/g, "$1").includes(` ${wanted.events} event`));
		const polls = await rows(page, "Callbacks and polls");
		equal(polls.map(([name, count]) => [name, Number(count.replace(/ /g, ""))]),
			wanted.polls.slice(0, 10).map((p) => [p.name, p.count]));
		const locks = await rows(page, "Waits for locks");
		equal(locks.map(([, count]) => Number(count.replace(/ /g, ""))), wanted.locks.slice(0, 10).map((l) => l.count));
		await shot(page, "range");
		await page.reload();
		await painted(page);
		equal(new URL(page.url()).hash.includes(`range=${from}-${to}`), true, "whether the range survives a reload");
	});

	await t.test("a flame graph is that of tacho flame, zooms, and finds", async () => {
		const page = await t.view(guess);
		await openTab(page, "flame");
		await page.selectOption(".flame-tools select >> nth=0", "1");
		await page.waitForSelector(".frame.lock");
		const lines = (await output([TACHO, "flame", "--off-cpu", guess])).trim().split("\n");
		const total = lines.reduce((sum, line) => sum + Number(line.split(" ").pop()), 0);
		const ours = await page.$eval("#flame-0", (e) => e.title);
		matches(ours, new RegExp(`^all · ${total >= 1e9 ? `${(total / 1e9).toPrecision(3)} s` : `${(total / 1e6).toPrecision(3)} ms`}`), "all");
		const name = /;([^;]*);\[lock\]/.exec(lines.find((l) => l.includes("[lock]")))[1];
		await page.fill(".flame-tools input", name);
		await page.waitForSelector(".frame.match");
		matches(await page.textContent(".flame-tools .cost"), /% in \d+ place/, "the share");
		await page.click(".frame.match >> nth=0");
		equal(await page.isEnabled('button:has-text("Zoom out")'), true, "whether it is zoomed");
		await shot(page, "flame");
		await page.keyboard.press("Escape");
		for (let i = 0; i < 20 && (await page.isEnabled('button:has-text("Zoom out")')); i++) await page.keyboard.press("Escape");
		equal(await page.isEnabled('button:has-text("Zoom out")'), false, "whether Esc led back");
	});
});
