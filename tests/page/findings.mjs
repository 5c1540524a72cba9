/* The left column: findings lead to their places, the ledger adds up. */
import { equal, matches, ok, painted, shot, suite } from "./libpage.mjs";
import { report, trace } from "./librecord.mjs";
import { near, viewAfter } from "./libview.mjs";

/* [from, to] of a finding's first evidence, since the beginning of the window. */
function evidence(found, number) {
	const e = found.findings[number].evidence[0];
	return [e.from_ns, e.to_ns].map((ns) => Number(BigInt(ns) - BigInt(found.trace.from_ns)));
}

function holds(view, [from, to], what) {
	ok(view[0] <= from && view[1] >= to, `${what}: ${from} to ${to} is not in view (${view})`);
	ok(view[1] - view[0] < 20 * Math.max(to - from, 1000), `${what}: the view ${view} is too wide for it`);
}

function selected(page) {
	return page.$$eval(".finding", (all) => all.findIndex((f) => f.classList.contains("selected")));
}

await suite("findings", async (t) => {
	const guess = await trace("guess");
	const found = JSON.parse(await report(guess));

	await t.test("each finding says what the report says, in its order", async () => {
		const page = await t.view(guess);
		equal(await page.$$eval(".finding .summary", (all) => all.map((e) => e.textContent)),
			found.findings.map((f) => f.summary));
		matches(await page.textContent(".finding .place"), /send_report/, "the place");
	});

	await t.test("a click goes to the evidence", async () => {
		const page = await t.view(guess);
		const view = await viewAfter(page, () => page.click(".finding"));
		holds(view, evidence(found, 0), "after a click");
		equal(await selected(page), 0, "the selected finding");
		await painted(page);
		await shot(page, "guess-finding");
	});

	await t.test("n and p go through them, around the ends", async () => {
		const page = await t.view(guess);
		const count = found.findings.length;
		for (const [key, wanted] of [["n", 0], ["n", 1 % count], ["p", 0], ["p", count - 1]]) {
			await page.keyboard.press(key);
			equal(await selected(page), wanted, `the finding after ${key}`);
		}
	});

	await t.test("by keyboard alone: Tab reaches a finding, Enter goes there", async () => {
		const page = await t.view(guess);
		await page.waitForSelector(".finding");
		for (let i = 0; i < 30; i++) {
			await page.keyboard.press("Tab");
			if (await page.evaluate(() => document.activeElement?.classList.contains("finding"))) break;
		}
		const view = await viewAfter(page, () => page.keyboard.press("Enter"));
		holds(view, evidence(found, 0), "after Enter");
	});

	await t.test("what was considered and dropped opens, with the reasons", async () => {
		const page = await t.view(await trace("tasks"));
		const { considered } = JSON.parse(await report(await trace("tasks")));
		const box = page.locator("details:has(summary:has-text('considered and dropped'))");
		equal(await box.isVisible(), considered.length > 0, "whether there is a list");
		if (!considered.length) return;
		await box.locator("summary").click();
		await page.waitForSelector(".considered li");
		const texts = await page.$$eval(".considered li", (all) => all.map((e) => e.textContent));
		equal(texts.length, considered.length, "their number");
		considered.forEach((c, i) => ok(texts[i].includes(c.reason), `${texts[i]} does not say ${c.reason}`));
	});

	await t.test("each bar of the ledger is as long as the window", async () => {
		const page = await t.view(guess);
		const bars = await page.$$eval(".thread .owners", (all) => all.map((bar) => ({
			whole: bar.getBoundingClientRect().width,
			owned: [...bar.children].filter((piece) => !piece.classList.contains("absent")).length,
			pieces: [...bar.children].map((piece) => piece.getBoundingClientRect().width),
			shares: [...bar.children].map((piece) => Number(piece.style.flexGrow)),
		})));
		const window_ = Number(BigInt(found.trace.to_ns) - BigInt(found.trace.from_ns));
		equal(bars.length, found.ledger.threads.length, "the number of bars");
		for (const bar of bars) {
			const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
			near(sum(bar.shares), window_, window_ * 1e-5, "the sum of a bar, in ns");
			ok(bar.owned > 0, "somebody has the time");
			ok(Math.abs(sum(bar.pieces) - bar.whole) < 1, `${sum(bar.pieces)} of ${bar.whole} pixels are filled`);
		}
	});

	await t.test("a crash says how it ended, first", async () => {
		const file = await trace("crash");
		const page = await t.view(file);
		const crash = JSON.parse(await report(file));
		equal(await page.textContent(".verdict p"), crash.verdict.summary);
		matches(await page.textContent("#what"), /killed by SIG/, "the header");
		matches(await page.textContent("#side .end"), /killed by SIG/, "the left column");
		await shot(page, "crash");
	});
});
