/* A process that runs: followed, held, kept, and its end. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

import { noViolations } from "./libaxe.mjs";
import { Program, TACHO, equal, matches, ok, output, shot, shown, suite, until } from "./libpage.mjs";

/* Turns of a loop until it is killed. */
const LOOP = "import select\nloop = select.epoll()\nwhile True: loop.poll(0.005)";

async function watch(t, options) {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tacho-live-"));
	t.toEnd.push(() => fs.rmSync(folder, { recursive: true }));
	const run = new Program([TACHO, "run", "-q", "-o", path.join(folder, "end.trace"), "--", "/usr/bin/python3", "-c", LOOP]);
	const child = () => fs.readFileSync(`/proc/${run.child.pid}/task/${run.child.pid}/children`, "ascii").trim();
	await until("a recorded process", async () => {
		const status = child() && await output([TACHO, "status", child(), "--json"]).catch(() => "{}");
		return status && (JSON.parse(status).events ?? 0) > 60;
	});
	const pid = Number(child());
	t.toEnd.push(async () => {
		try {
			process.kill(pid, "SIGKILL");
		} catch {
			/* It has ended. */
		}
		await run.ended;
	});
	const site = new Program([TACHO, "view", String(pid), "--no-browser"], { cwd: folder });
	t.toEnd.push(() => site.stop());
	const page = await t.newPage(options);
	await page.goto((await site.says(/http:\S+/))[0]);
	await shown(page);
	return { page, pid, folder, site };
}

const state = (page) => page.textContent(".live-state");
const what = (page) => page.textContent("#what");

await suite("serve_live", async (t) => {
	await t.test("the page follows, is held, and follows again", async () => {
		const { page } = await watch(t);
		const first = await what(page);
		await until("another snapshot", async () => (await what(page)) !== first);
		matches(await state(page), /^Live: the last \d/, "what is said");
		await page.click("text=Hold");
		matches(await state(page), /^Held/, "what is said when it is held");
		const held = await what(page);
		await page.waitForTimeout(3000); // three snapshots would have come
		equal(await what(page), held, "what is held");
		await noViolations(page, "#top");
		await shot(page, "live-held");
		await page.click("text=Follow");
		await until("another snapshot after that", async () => (await what(page)) !== held);
	});

	await t.test("pointing at something holds it, and keys do", async () => {
		const { page } = await watch(t);
		await page.click("#lanes", { position: { x: 500, y: 60 } });
		matches(await state(page), /^Held/, "after a click");
		await page.click("text=Follow");
		await until("that it follows", async () => /^Live/.test(await state(page)));
		await page.keyboard.press("w");
		matches(await state(page), /^Held/, "after a key");
	});

	await t.test("one click keeps it, with its path and a link", async () => {
		const { page, pid, folder } = await watch(t);
		await page.click("text=Keep");
		const link = page.locator(".live-kept a");
		const file = await link.textContent();
		equal(path.dirname(file), fs.realpathSync(folder), "its folder");
		equal(JSON.parse(await output([TACHO, "info", "--json", file])).processes[0].pid, pid, "whose it is");
		const [opened] = await Promise.all([page.context().waitForEvent("page"), link.click()]);
		await shown(opened);
		matches(await what(opened), new RegExp(String(pid)), "what the link opens");
	});

	await t.test("its end is told, and the whole window is left", async () => {
		const { page, pid } = await watch(t);
		process.kill(pid, "SIGSEGV");
		await page.waitForSelector(".live-state.ended");
		matches(await state(page), /^Ended: killed by SIGSEGV/, "what is said");
		matches(await what(page), /killed by SIGSEGV/, "what is shown");
		ok(await page.isHidden("text=Hold"), "there is nothing to hold any more");
		await shot(page, "live-end");
	});

	await t.test("when tacho ends, the page says so and what was shown stays", async () => {
		const { page, site } = await watch(t, { ignore: /ERR_(CONNECTION_(REFUSED|RESET)|EMPTY_RESPONSE)/ });
		await site.stop("SIGINT");
		await page.waitForSelector(".live-state.ended");
		matches(await state(page), /does not answer any more/, "what is said");
		ok(await page.isVisible("#lanes"), "the lanes are gone");
	});
});
