/* Help, colours, edges that move: what every page has. */
import { equal, matches, ok, shot, shown, suite, until } from "./libpage.mjs";
import { noViolations } from "./libaxe.mjs";
import { trace } from "./librecord.mjs";
import { viewAfter, viewOf } from "./libview.mjs";

const ground = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
/* The colour of the lanes where nothing is. */
const lanesGround = (page) => page.evaluate(() => {
	const canvas = document.querySelector("#lanes canvas");
	return [...canvas.getContext("2d").getImageData(5, canvas.height - 5, 1, 1).data].slice(0, 3);
});

await suite("use", async (t) => {
	const guess = await trace("guess");

	await t.test("? opens the help with every key, Escape closes it", async () => {
		const page = await t.view(guess);
		await page.keyboard.press("?");
		const dialog = page.locator("dialog[open]");
		await dialog.waitFor();
		const keys = await dialog.locator("kbd").allTextContents();
		for (const key of ["w", "a", "s", "d", "f", "n", "p", "?", "←", "Esc"])
			ok(keys.includes(key), `the help has no ${key}: ${keys}`);
		await shot(page, "help");
		await page.keyboard.press("w");
		await page.keyboard.press("Escape");
		await dialog.waitFor({ state: "detached" }).catch(() => undefined);
		equal(await page.locator("dialog[open]").count(), 0, "open dialogs");
		equal(viewOf(page), undefined, "the view after w in the dialog");
	});

	await t.test("the button opens the help too, and Close closes it", async () => {
		const page = await t.view(guess);
		await page.click("#help");
		await page.click("dialog[open] >> text=Close");
		equal(await page.locator("dialog[open]").count(), 0, "open dialogs");
		await viewAfter(page, () => page.keyboard.press("w"));
	});

	await t.test("colours follow the system, and the button beats it, also on the lanes", async () => {
		const page = await t.view(guess, { colorScheme: "light", ignore: /getImageData/ });
		equal(await ground(page), "rgb(255, 255, 255)", "light");
		const dark = "rgb(20, 23, 27)";
		await page.emulateMedia({ colorScheme: "dark" });
		await until("dark", async () => (await ground(page)) === dark);
		await until("dark lanes", async () => (await lanesGround(page)).every((c) => c < 60));
		await page.click("#theme");
		await until("light", async () => (await ground(page)) === "rgb(255, 255, 255)");
		await until("light lanes", async () => (await lanesGround(page)).every((c) => c > 200));
		await page.reload();
		await shown(page);
		equal(await ground(page), "rgb(255, 255, 255)", "light after a reload");
		matches(await page.getAttribute("#theme", "aria-label"), /light/, "what the button says");
	});

	await t.test("the edges of the left column and of the panels move by pointer and by keys", async () => {
		const page = await t.view(guess);
		const width = async () => (await page.locator("#side").boundingBox()).width;
		const height = async () => (await page.locator("#panel").boundingBox()).height;
		const edge = await page.locator("#split-side").boundingBox();
		await page.mouse.move(edge.x, 400);
		await page.mouse.down();
		await page.mouse.move(450, 400);
		await page.mouse.up();
		equal(Math.round(await width()), 450, "the column after a drag");
		await page.keyboard.press("ArrowRight");
		equal(Math.round(await width()), 466, "the column after a key");
		await page.focus("#split-panel");
		const before = await height();
		await page.keyboard.press("ArrowUp");
		equal(Math.round((await height()) - before), 16, "the panels after a key");
		equal(viewOf(page), undefined, "the view");
		await page.reload();
		await shown(page);
		equal(Math.round(await width()), 466, "the column after a reload");
	});

	await t.test("what has no room in the header or the ledger is left out, not cut in its middle", async () => {
		const page = await t.view(await trace("guess"), { viewport: { width: 900, height: 700 } });
		const cut = await page.$$eval("#what > *", (all) => {
			const box = all[0].parentElement.getBoundingClientRect();
			return all.filter((e) => {
				const r = e.getBoundingClientRect();
				return r.top < box.bottom && (r.right > box.right + 1 || e.scrollWidth > e.clientWidth + 1);
			}).map((e) => e.textContent);
		});
		equal(cut, [], "what is cut in the header");
		const names = await page.$$eval(".thread-name", (all) => all.map((e) => e.scrollWidth <= e.clientWidth + 1));
		ok(names.length && names.every(Boolean), "the number of a thread is cut");
	});

	await t.test("in a small window the answer is above the lanes, and both have room", async () => {
		const page = await t.view(await trace("guess"), { viewport: { width: 480, height: 640 } });
		const [side, lanes] = await Promise.all(["#side", "#lanes .stage"].map((s) => page.locator(s).boundingBox()));
		ok(side.width > 440 && lanes.width > 440, `they are ${side.width} and ${lanes.width} wide`);
		ok(lanes.y >= side.y + side.height - 1 && lanes.height > 100, `the lanes are ${JSON.stringify(lanes)}`);
		ok(await page.evaluate(() => document.documentElement.scrollWidth <= 480), "the page is wider than the window");
		await noViolations(page);
		await shot(page, "small");
	});

	await t.test("the header says what, where, when and how it ended", async () => {
		const page = await t.view(guess);
		const text = await page.textContent("#what");
		matches(text, /case-guess \(\d+\)/, "the header");
		matches(text, /until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/, "the header");
		matches(text, /ended by itself|exited with status/, "the header");
		matches(await page.title(), /case-guess \(\d+\): .* tacho/, "the title");
	});

	for (const [width, height] of [[1280, 800], [2560, 1440]])
		for (const colorScheme of ["light", "dark"])
			await t.test(`fits ${width} by ${height}, ${colorScheme}`, async () => {
				for (const name of ["guess", "crash", "tasks"]) {
					const page = await t.view(await trace(name), { viewport: { width, height }, colorScheme });
					if (await page.locator(".finding").count()) await viewAfter(page, () => page.keyboard.press("n"));
					const over = await page.evaluate(() => [...document.querySelectorAll("body *")]
						.filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && getComputedStyle(e).position !== "absolute")
						.map((e) => `${e.tagName}.${e.className}`));
					equal(over, [], "what is wider than the page");
					equal(await page.evaluate(() => document.documentElement.scrollHeight <= innerHeight), true, "it fits");
					await shot(page, `${name}-${width}-${colorScheme}`);
				}
			});
});
