/* axe-core finds nothing serious in any state of the page. */
import fs from "node:fs";
import path from "node:path";

import { noViolations } from "./libaxe.mjs";
import { drop, shown, suite } from "./libpage.mjs";
import { trace } from "./librecord.mjs";
import { viewAfter } from "./libview.mjs";

await suite("axe", async (t) => {
	for (const colorScheme of ["light", "dark"]) {
		await t.test(`the start, ${colorScheme}`, async () => {
			const page = await t.newPage({ ignore: /404/, colorScheme });
			await page.goto(await t.serveFiles());
			await page.waitForSelector("#start .card");
			await noViolations(page);
		});

		await t.test(`what can not be shown, ${colorScheme}`, async () => {
			const page = await t.newPage({ ignore: /404/, colorScheme });
			await page.goto(await t.serveFiles());
			await drop(page, "x", Buffer.from("x"));
			await page.waitForSelector("#start.failed");
			await noViolations(page);
		});

		for (const name of ["guess", "crash", "tasks"])
			await t.test(`${name}, with all opened, ${colorScheme}`, async () => {
				const page = await t.view(await trace(name), { colorScheme });
				await viewAfter(page, () => page.keyboard.press("n"));
				for (const summary of await page.locator("#side summary").all())
					if (await summary.isVisible()) await summary.click();
				await noViolations(page);
				for (const tab of await page.locator("[role=tab]").all()) {
					await tab.click();
					await noViolations(page);
				}
			});

		await t.test(`the help, ${colorScheme}`, async () => {
			const page = await t.view(await trace("guess"), { colorScheme });
			await page.keyboard.press("?");
			await page.waitForSelector("dialog[open]");
			await noViolations(page);
		});

		await t.test(`search and go to a time, ${colorScheme}`, async () => {
			const page = await t.view(await trace("guess"), { colorScheme });
			await page.keyboard.press("/");
			await page.keyboard.type("on_");
			await page.waitForSelector("#results .result");
			await noViolations(page);
			await page.keyboard.press("Escape");
			await page.keyboard.press("Escape");
			await page.keyboard.press("g");
			await page.waitForSelector("dialog[open]");
			await noViolations(page);
		});

		await t.test(`a folder, ${colorScheme}`, async () => {
			const page = await t.newPage({ colorScheme });
			await page.goto(await t.serve("serve", "--dir", path.dirname(await trace("guess"))));
			await page.waitForSelector(".folder-list .judgement b");
			await noViolations(page);
		});

		await t.test(`a trace that is cut, ${colorScheme}`, async () => {
			const bytes = fs.readFileSync(await trace("guess"));
			const page = await t.newPage({ ignore: /404/, colorScheme });
			await page.goto(await t.serveFiles());
			await drop(page, "x", bytes.subarray(0, 0.6 * bytes.length));
			await shown(page);
			await page.click(".notice summary");
			await noViolations(page);
		});
	}
});
