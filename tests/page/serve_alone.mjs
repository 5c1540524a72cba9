/* The page in one file: with a trace inside, or to drop one on. Without a server. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

import { TACHO, drop, equal, matches, output, shot, shown, suite } from "./libpage.mjs";
import { report, trace } from "./librecord.mjs";

await suite("serve_alone", async (t) => {
	const guess = await trace("guess");
	const { verdict } = JSON.parse(await report(guess));
	const write = async (...file) => {
		const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tacho-alone-"));
		t.toEnd.push(() => fs.rmSync(folder, { recursive: true }));
		const out = path.join(folder, "page.html");
		await output([TACHO, "view", "--html", out, ...file]);
		return pathToFileURL(out).href;
	};

	await t.test("a trace inside is shown, and nothing is fetched", async () => {
		const page = await t.newPage();
		const asked = [];
		page.on("request", (request) => asked.push(request.url()));
		const address = await write(guess);
		await page.goto(address);
		await shown(page);
		equal(await page.textContent(".verdict p"), verdict.summary, "the verdict");
		equal(asked.filter((url) => url !== address && !/^(blob|data):/.test(url)), [], "what was asked for");
		await shot(page, "alone");
	});

	await t.test("without one, a trace can be dropped on it", async () => {
		const page = await t.newPage();
		await page.goto(await write());
		matches(await page.textContent("#start h1"), /Drop a trace/, "the start");
		await drop(page, "guess.tacho", fs.readFileSync(guess));
		await shown(page);
		equal(await page.textContent(".verdict p"), verdict.summary, "the verdict");
	});

	await t.test("a script that others put into it does not run", async () => {
		const page = await t.newPage({ ignore: /Content.Security.Policy/i });
		const address = await write(guess);
		const file = new URL(address).pathname;
		const text = fs.readFileSync(file, "utf8");
		fs.writeFileSync(file, text.replace("<header", "<script>window.ran = 'inline'</script>" +
			"<img src=x onerror=\"window.ran = 'handler'\"><header"));
		await page.goto(address);
		await shown(page);
		equal(await page.evaluate(() => window.ran ?? "nothing"), "nothing", "what ran");
	});
});
