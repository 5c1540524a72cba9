/* Lanes fold, move, hide, come back and are filtered; what waits is under them; a large trace is seen
   before it is loaded, and loading it can be stopped. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

import { BUILD, TACHO, equal, matches, ok, output, painted, shot, shown, suite, until } from "./libpage.mjs";
import { trace } from "./librecord.mjs";
import { GUTTER, RULER, lanesBox } from "./libview.mjs";

const names = (page) => page.locator("#lanes .lane .name").allTextContents();
const lane = (page, name) => page.locator("#lanes .lane .fold", { has: page.locator(".name", { hasText: name }) }).first();
const picture = (page) => page.locator("#lanes canvas").screenshot();

/* What the tips say while the pointer goes down the lanes at one time. */
async function tips(page, share) {
	const box = await lanesBox(page);
	const said = new Set();
	for (let y = RULER + 20; y < box.height; y += 3) {
		await page.mouse.move(box.x + GUTTER + share * (box.width - GUTTER), box.y + y);
		if (await page.isVisible("#lanes .tip")) said.add(await page.textContent("#lanes .tip"));
	}
	return [...said];
}

/* Copies of a trace, one after the other in time. */
async function multiplied(file, events) {
	const folder = fs.mkdtempSync(path.join(process.env.TMPDIR ?? os.tmpdir(), "lanes-"));
	const large = path.join(folder, "large.tacho");
	await output([path.join(BUILD, "bench/bench-multiply"), file, large, String(events)]);
	return large;
}

await suite("lanes", async (t) => {
	const guess = await trace("guess");

	await t.test("lanes fold and unfold by key, hide, and come back", async () => {
		const page = await t.view(guess);
		const all = await names(page);
		const first = lane(page, all[0]);
		await first.focus();
		await page.keyboard.press("Enter");
		await painted(page);
		equal(await lane(page, all[0]).getAttribute("aria-expanded"), "false", "the first lane");
		ok(await lane(page, all[0]).evaluate((e) => e === document.activeElement), "the focus stays");
		await page.keyboard.press("Enter");
		equal(await lane(page, all[0]).getAttribute("aria-expanded"), "true", "the first lane");
		await page.keyboard.press("Delete");
		equal(await names(page), all.slice(1), "lanes after one is hidden");
		await page.click("#lanes .lanesbar button:has-text('hidden')");
		equal(await names(page), all, "lanes when it is back");
	});

	await t.test("lanes move by key and by drag", async () => {
		const page = await t.view(guess);
		const all = await names(page);
		await lane(page, all[0]).focus();
		await page.keyboard.press("Alt+ArrowDown");
		equal((await names(page)).slice(0, 2), [all[1], all[0]], "the first two");
		const from = await lane(page, all[1]).boundingBox(), to = await lane(page, all[0]).boundingBox();
		await page.mouse.move(from.x + 40, from.y + 8);
		await page.mouse.down();
		await page.mouse.move(from.x + 40, from.y + 20);
		await page.mouse.move(from.x + 40, to.y + to.height - 2);
		await page.mouse.up();
		equal(await names(page), all, "lanes after the drag back");
	});

	await t.test("the address holds the order of lanes", async () => {
		const page = await t.view(guess);
		const all = await names(page);
		await lane(page, all[0]).focus();
		await page.keyboard.press("Alt+ArrowDown");
		await until("the address", () => page.url().includes("lanes="));
		await page.reload();
		await shown(page);
		equal((await names(page)).slice(0, 2), [all[1], all[0]], "the first two after a reload");
	});

	await t.test("a finding shows its lane, even one that was hidden", async () => {
		const page = await t.view(guess);
		const all = await names(page);
		await lane(page, all[0]).focus();
		await page.keyboard.press("Delete");
		equal(await names(page), all.slice(1), "lanes after one is hidden");
		await page.click(".finding");
		await until("it is back", async () => (await names(page)).includes(all[0]));
	});

	await t.test("a filter leaves the lanes that it names", async () => {
		const page = await t.view(guess);
		const all = await names(page);
		await page.fill("#lanes .filter", "LOCKS");
		equal(await names(page), ["locks"], "lanes");
		await page.fill("#lanes .filter", "no such lane");
		equal(await names(page), [], "lanes");
		await page.fill("#lanes .filter", "");
		equal(await names(page), all, "lanes");
	});

	await t.test("colours are of kinds or of durations", async () => {
		const page = await t.view(guess);
		const before = await picture(page);
		await page.click("#lanes .lanesbar button:has-text('duration')");
		await painted(page);
		ok(!before.equals(await picture(page)), "the picture changes");
		await shot(page, "guess-by-duration");
		await page.click("#lanes .lanesbar button:has-text('duration')");
		await painted(page);
		await until("the picture as it was", async () => before.equals(await picture(page)));
	});

	await t.test("what waits is told under its loop, and who held the lock", async () => {
		/* The first: the longest may be the last, after which nobody asked any more what was ready. */
		const [first] = (await output([TACHO, "sql", "--json", guess, "SELECT min(begin_ns) AS ns FROM locks WHERE ns > 50000000"])).split("\n");
		const from = JSON.parse(first).ns - JSON.parse(await output([TACHO, "info", "--json", guess])).first_ns;
		const page = await t.view(guess, { hash: `#view=${from}-${from + 50_000_000}` });
		await painted(page);
		const said = await tips(page, 0.5);
		ok(said.some((s) => /^[\d.]+ waiting$/.test(s)), `what waits: ${said.join(" | ")}`);
		ok(said.some((s) => s.startsWith("lock in ")), `the lock: ${said.join(" | ")}`);
		await shot(page, "guess-waiting");
	});

	await t.test("counters unfold as charts", async () => {
		const page = await t.view(guess);
		const before = await picture(page);
		await lane(page, "counters").click();
		await painted(page);
		equal(await lane(page, "counters").getAttribute("aria-expanded"), "true", "the lane");
		ok(!before.equals(await picture(page)), "the picture changes");
		const said = await tips(page, 0.5);
		ok(said.some((s) => /^utilisation of case-guess \d+: \d+(\.\d)? %$/.test(s)), `a chart: ${said.join(" | ")}`);
		await shot(page, "guess-counters");
	});

	await t.test("a large trace is seen before it is loaded, and loading can be stopped", async () => {
		const address = await t.serve("view", await multiplied(guess, 6_000_000));
		const page = await t.newPage();
		/* Clicked in the page, where it is fast enough on any machine; once, so not after the reload. */
		await page.addInitScript(() => {
			const seen = new MutationObserver(() => {
				if (!document.querySelector("#side [role=progressbar]")) return;
				const stop = [...document.querySelectorAll("#side button")].find((b) => /Stop/.test(b.textContent));
				if (!stop) return;
				seen.disconnect();
				sessionStorage.loads = Number(sessionStorage.loads ?? 0) + 1;
				if (sessionStorage.loads === "1") stop.click();
			});
			seen.observe(document, { childList: true, subtree: true });
		});
		await page.goto(address);
		await page.waitForSelector(".verdict");
		matches(await page.textContent(".verdict p"), /stopped at \d+(\.\d)? %/, "the verdict");
		ok((await names(page)).length > 0, "lanes of what was read");
		await page.reload();
		await shot(page, "loading");
		await page.waitForSelector(".verdict");
		ok((await page.evaluate(() => sessionStorage.loads)) === "2", "progress is shown");
		ok(!/stopped at/.test(await page.textContent(".verdict p")), "all of it is judged");
	});

	await t.test("fetching can be stopped: what has come is shown as what was cut", async () => {
		const page = await t.newPage();
		const large = await multiplied(guess, 1_000_000);
		/* Of the first piece half comes, and then nothing. */
		await page.addInitScript(() => {
			const { read } = ReadableStreamDefaultReader.prototype;
			let pieces = 0;
			ReadableStreamDefaultReader.prototype.read = async function () {
				if (pieces++) return new Promise(() => undefined);
				const { value } = await read.call(this);
				return { done: false, value: value.subarray(0, value.length / 2) };
			};
		});
		await page.goto(await t.serve("view", large));
		await page.click("#start button:has-text('Stop')");
		await shown(page);
		matches(await page.textContent(".notice summary"), /not whole/, "the notice");
		ok((await names(page)).length > 0, "lanes of what has come");
	});
});
