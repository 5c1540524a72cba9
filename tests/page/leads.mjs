/* Findings that are about no box of the lanes lead to what they are about. Traces of Go and of dial9 are
   told as what they are. */
import path from "node:path";

import { SOURCE, equal, matches, ok, painted, shot, suite, until } from "./libpage.mjs";
import { noViolations } from "./libaxe.mjs";
import { report, trace } from "./librecord.mjs";
import { GUTTER, lanesBox, viewAfter } from "./libview.mjs";

const OPEN = "#panel .tabpanel:not([hidden])";
const golden = (name) => path.join(SOURCE, "tests/golden-import", name);
const lane = (page, name) => page.locator("#lanes .lane .fold", { has: page.locator(`.name:text-is("${name}")`) });

await suite("leads", async (t) => {
	const go = golden("go-downstream.trace.gz");
	const found = JSON.parse(await report(go));
	const { task } = found.findings[0].evidence[0];

	await t.test("a crash leads to its stack", async () => {
		const page = await t.view(await trace("crash"));
		await page.keyboard.press("n");
		await page.waitForSelector(`${OPEN} .stack li`);
		matches(await page.textContent(`${OPEN} h2`), /^SIGSEGV in /, "the title");
		matches(await page.textContent(`${OPEN} .stack li`), /end_session/, "the innermost frame");
	});

	await t.test("a finding about many things tells itself, and what else was at that time", async () => {
		const file = await trace("uv_pool");
		const { findings } = JSON.parse(await report(file));
		const page = await t.view(file);
		await viewAfter(page, () => page.click(".finding"));
		await page.waitForSelector(`${OPEN} .about`);
		equal(await page.textContent(`${OPEN} .about p`), findings[0].summary, "the sentence");
		for (const colorScheme of ["light", "dark"]) {
			await page.emulateMedia({ colorScheme });
			await painted(page);
			await noViolations(page, "#side", "#panel");
		}
		await page.click(`${OPEN} button:has-text("Numbers of this time")`);
		await page.waitForSelector("#tab-range[aria-selected=true]");
		await until("the range", () => page.url().includes("range="));
	});

	await t.test("a finding about a goroutine leads to it", async () => {
		const page = await t.view(go);
		await page.keyboard.press("n");
		await page.waitForSelector("#tab-task[aria-selected=true]");
		await until("the task", async () => (await page.textContent(`${OPEN}`)).includes(`main.main ${task}`));
		await noViolations(page, "#side", "#panel");
		await shot(page, "go-task");
		/* What the next one is about is a box. */
		await page.keyboard.press("n");
		await page.waitForSelector("#tab-details[aria-selected=true]");
	});

	await t.test("Ps are called as Go does, in their order, and the header says where they are from", async () => {
		const page = await t.view(go);
		const names = await page.locator("#lanes .lane .name").allTextContents();
		const ps = names.filter((name) => /^P\d/.test(name));
		ok(ps.length > 1, `the lanes are ${names}`);
		equal(ps, ps.map((_, i) => `P${i}`), "the Ps");
		matches(await page.textContent("#what"), /from a Go 1\.26 execution trace/, "the header");
	});

	await t.test("a task is found by its number, and by a click in its lane", async () => {
		const page = await t.view(go);
		for (const words of [`task ${task}`, `main ${task}`, String(task)]) {
			await page.fill(".search input", words);
			await page.waitForSelector(`.result:has-text("main.main ${task}")`);
			await page.fill(".search input", "");
		}
		await page.fill(".search input", `nothing ${task}`);
		await page.waitForSelector(".results .hint");
		equal(await page.locator(".result").count(), 0, "tasks of that number and another name");
		await page.keyboard.press("Escape");
		await lane(page, "tasks").click();
		await painted(page);
		const box = await lanesBox(page), at = await lane(page, "tasks").boundingBox();
		for (let y = at.y + 10; y < Math.min(at.y + at.height, box.y + box.height) - 4; y += 15) {
			await page.mouse.click(box.x + GUTTER + (box.width - GUTTER) / 2, y);
			await painted(page);
			if (await page.locator(`${OPEN} .details h2`).count()) break;
		}
		const kind = (await page.locator(`${OPEN} .details h2`).textContent()).split(" ")[0];
		await until("its task", async () => {
			await page.keyboard.press("t");
			return page.locator("#tab-task[aria-selected=true]").count();
		});
		await until("the same kind", async () => (await page.textContent(OPEN)).includes(kind));
	});

	await t.test("a trace of dial9 opens with its workers and its spans", async () => {
		const page = await t.view(golden("dial9/0.5.7.bin.gz"));
		matches(await page.textContent("#what"), /from a dial9 0\.5\.7 trace/, "the header");
		const names = (await page.locator("#lanes .lane .name").allTextContents()).join(", ");
		matches(names, /worker.*spans.*tasks/, "the lanes");
		await shot(page, "dial9");
	});
});
