/* A folder of traces: the list, sorted, filtered and followed, and the way into a trace and back. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

import { noViolations } from "./libaxe.mjs";
import { equal, matches, ok, shot, shown, suite } from "./libpage.mjs";
import { report, trace } from "./librecord.mjs";

function folder(t) {
	const made = fs.mkdtempSync(path.join(os.tmpdir(), "tacho-folder-"));
	t.toEnd.push(() => fs.rmSync(made, { recursive: true }));
	return made;
}

/* The list once all verdicts are there. */
async function list(t, made, options) {
	const address = await t.serve("serve", "--dir", made);
	const page = await t.newPage(options);
	await page.goto(address);
	await judged(page);
	return page;
}

async function judged(page) {
	await page.waitForFunction(() => {
		const said = document.querySelector(".folder .hint")?.textContent ?? "";
		return /traces?$/.test(said);
	});
}

const column = (page, name) => page.locator(`tbody td.in-${name}`).allTextContents();

await suite("serve_folder", async (t) => {
	const files = { "guess.tacho": await trace("guess"), "crash.tacho": await trace("crash") };
	const hostile = "<img src=x onerror=alert(1)>.tacho";
	const fill = () => {
		const made = folder(t);
		for (const [name, file] of Object.entries(files)) fs.copyFileSync(file, path.join(made, name));
		fs.writeFileSync(path.join(made, hostile), "no trace");
		return made;
	};

	await t.test("each trace has its verdict, and what is none says why", async () => {
		const page = await list(t, fill());
		for (const [name, file] of Object.entries(files)) {
			const row = page.locator("tbody tr", { hasText: name });
			const { verdict } = JSON.parse(await report(file));
			equal(await row.locator(".summary").textContent(), verdict.summary, `the verdict on ${name}`);
		}
		const bad = page.locator("tbody tr.bad");
		equal(await bad.count(), 1, "how many are bad");
		matches(await bad.locator(".summary").textContent(), /neither a box nor a trace/, "why");
		ok((await bad.textContent()).includes(hostile), "its name is not shown as it is");
		matches(await page.locator("tbody tr", { hasText: "crash.tacho" }).locator(".in-end").textContent(),
			/^killed by SIG/, "how it ended");
		await shot(page, "folder");
	});

	await t.test("it is sorted by any column, and the address says by which", async () => {
		const page = await list(t, fill());
		await page.click("th >> text=File");
		const up = await column(page, "file");
		equal(up, [...up].sort(), "the files");
		await page.click("th >> text=File");
		equal(await column(page, "file"), [...up].reverse(), "the files the other way");
		equal(await page.getAttribute("th:has-text('File')", "aria-sort"), "descending", "what is said of it");
		await page.reload();
		await judged(page);
		equal(await column(page, "file"), [...up].reverse(), "the files after a reload");
		await page.click("th >> text=Verdict");
		matches((await column(page, "verdict")).at(-1), /^cannot be read/, "the last verdict");
	});

	await t.test("words filter it", async () => {
		const page = await list(t, fill());
		await page.fill("input[type=search]", "CRASH sig");
		equal((await column(page, "file")).map((text) => text.split(" ")[0]), ["crash.tacho"], "what is left");
		matches(await page.textContent(".folder .hint"), /^1 of 3 traces$/, "what is said");
		await page.fill("input[type=search]", "");
		equal(await page.locator("tbody tr").count(), 3, "how many there are again");
	});

	await t.test("a click opens a trace, its address can be kept, and there is a way back", async () => {
		const page = await list(t, fill());
		await page.fill("input[type=search]", "guess");
		await page.click("tbody tr .judgement");
		await shown(page);
		const { verdict } = JSON.parse(await report(files["guess.tacho"]));
		equal(await page.textContent(".verdict p"), verdict.summary, "the verdict");
		const again = await t.newPage();
		await again.goto(page.url());
		await shown(again);
		await page.click("a.back");
		await judged(page).catch(() => undefined);
		await page.waitForSelector("tbody tr");
		equal(await page.inputValue("input[type=search]"), "guess", "the filter on the way back");
	});

	await t.test("what can not be read says so when it is opened", async () => {
		const page = await list(t, fill());
		await page.click("tbody tr.bad .judgement");
		await page.waitForSelector("#start h1");
		await page.waitForFunction(() => /neither a box nor/.test(document.querySelector("#start")?.textContent ?? ""));
	});

	for (const colorScheme of ["light", "dark"])
		await t.test(`axe-core finds nothing serious in it, ${colorScheme}`, async () => {
			await noViolations(await list(t, fill(), { colorScheme }));
		});

	await t.test("a new trace comes by itself, and one that is gone goes", async () => {
		const made = folder(t);
		const address = await t.serve("view", made);
		const page = await t.newPage();
		await page.goto(address);
		await page.waitForFunction(() => /no traces/.test(document.querySelector(".folder .hint")?.textContent ?? ""));
		fs.copyFileSync(files["guess.tacho"], path.join(made, ".part"));
		fs.renameSync(path.join(made, ".part"), path.join(made, "late.tacho"));
		await page.waitForSelector("tbody tr .judgement:not(.waiting)");
		matches(await page.textContent("tbody tr"), /late\.tacho/, "the row");
		fs.rmSync(path.join(made, "late.tacho"));
		await page.waitForSelector("tbody tr", { state: "detached" });
	});
});
