/* A trace is opened: by command, by drop, and on a page that is plain files. */
import fs from "node:fs";

import { drop, equal, matches, shot, shown, suite } from "./libpage.mjs";
import { report, trace } from "./librecord.mjs";

await suite("open", async (t) => {
	const guess = await trace("guess");
	const { verdict } = JSON.parse(await report(guess));

	await t.test("by command", async () => {
		const page = await t.view(guess);
		equal(await page.textContent(".verdict p"), verdict.summary, "the verdict");
		await shot(page, "guess");
	});

	await t.test("by drop, on plain files", async () => {
		const page = await t.newPage({ ignore: /404/ });
		await page.goto(await t.serveFiles());
		matches(await page.textContent("#start h1"), /Drop a trace/, "the start");
		await drop(page, "guess.tacho", fs.readFileSync(guess));
		await shown(page);
		equal(await page.textContent(".verdict p"), verdict.summary, "the verdict");
	});

	await t.test("another by drop, in place of the first", async () => {
		const page = await t.view(guess);
		const crash = await trace("crash");
		await drop(page, "crash.tacho", fs.readFileSync(crash));
		const other = JSON.parse(await report(crash)).verdict.summary;
		await page.waitForFunction((text) => document.querySelector(".verdict p")?.textContent === text, other);
	});
});
