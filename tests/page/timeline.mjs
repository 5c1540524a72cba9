/* The lanes by keys, wheel and pointer; what is selected; the address. */
import { equal, matches, ok, painted, shot, shown, suite, until } from "./libpage.mjs";
import { report, trace } from "./librecord.mjs";
import { GUTTER, RULER, lanesBox, near, viewAfter, viewOf } from "./libview.mjs";

const size = ([from, to]) => to - from;
const middle = ([from, to]) => (from + to) / 2;

/* Goes to the first finding and clicks about there until there is something. */
async function selectSomething(page) {
	await viewAfter(page, () => page.click(".finding"));
	const box = await lanesBox(page);
	for (let y = RULER + 30; y < box.height; y += 6) {
		await page.mouse.click(box.x + GUTTER + (box.width - GUTTER) / 2, box.y + y);
		await painted(page);
		if (await page.locator("#panel .details h2").count()) return;
	}
	throw new Error("no click selects anything");
}

await suite("timeline", async (t) => {
	const guess = await trace("guess");
	const { trace: window_ } = JSON.parse(await report(guess));
	const whole = Number(BigInt(window_.to_ns) - BigInt(window_.from_ns));

	await t.test("keys zoom, move and fit", async () => {
		const page = await t.view(guess);
		const nearer = await viewAfter(page, () => page.keyboard.press("w"));
		near(size(nearer), 0.7 * whole, 2, "the view after w");
		near(middle(nearer), whole / 2, 2, "its middle");
		const later = await viewAfter(page, () => page.keyboard.press("d"));
		near(later[0] - nearer[0], 0.2 * size(nearer), 2, "the move by d");
		const earlier = await viewAfter(page, () => page.keyboard.press("ArrowLeft"));
		near(earlier[0], nearer[0], 2, "the view after the arrow back");
		const wider = await viewAfter(page, () => page.keyboard.press("s"));
		near(size(wider ?? [0, whole]), whole, 4, "the view after s");
		await viewAfter(page, () => page.keyboard.press("w"));
		equal(await viewAfter(page, () => page.keyboard.press("f")), undefined, "the view after f");
	});

	await t.test("the wheel with Ctrl zooms at the pointer, with Shift moves", async () => {
		const page = await t.view(guess);
		const box = await lanesBox(page);
		const width = box.width - GUTTER;
		await page.mouse.move(box.x + GUTTER + width / 4, box.y + 100);
		await page.keyboard.down("Control");
		const zoomed = await viewAfter(page, () => page.mouse.wheel(0, -200));
		await page.keyboard.up("Control");
		ok(size(zoomed) < 0.6 * whole, `the view is ${zoomed}`);
		near(zoomed[0] + size(zoomed) / 4, whole / 4, whole / 500, "the time at the pointer");
		await page.keyboard.down("Shift");
		const moved = await viewAfter(page, () => page.mouse.wheel(0, 100));
		await page.keyboard.up("Shift");
		near(size(moved), size(zoomed), 2, "the width");
		near(moved[0] - zoomed[0], (100 / width) * size(zoomed), size(zoomed) / 200, "the move");
	});

	await t.test("a drag selects a range, f fits it, Escape drops it", async () => {
		const page = await t.view(guess);
		const box = await lanesBox(page);
		const width = box.width - GUTTER;
		const at = (share) => box.x + GUTTER + share * width;
		await page.mouse.move(at(0.25), box.y + 200);
		await page.mouse.down();
		await page.mouse.move(at(0.4), box.y + 200);
		await page.mouse.move(at(0.5), box.y + 200);
		await page.mouse.up();
		await shot(page, "guess-range");
		const range = await viewAfter(page, () => page.keyboard.press("f"));
		near(range[0], whole / 4, whole / 300, "its beginning");
		near(range[1], whole / 2, whole / 300, "its end");
		await page.keyboard.press("Escape");
		equal(await viewAfter(page, () => page.keyboard.press("f")), undefined, "the view without a range");
	});

	await t.test("by keys alone: q and e go from box to box, r makes a range of what is in view", async () => {
		const page = await t.view(guess);
		await page.keyboard.press("q");
		const begin = async () => Number((await page.textContent("#panel .facts td")).replace(/[^\d.]/g, ""));
		await page.waitForSelector("#panel .details h2");
		const [e] = JSON.parse(await report(guess)).findings[0].evidence;
		const [, size, unit] = / (\d[\d.]*) (ms|s) ·/.exec(await page.textContent("#panel .details h2"));
		ok(Number(size) * (unit === "s" ? 1e9 : 1e6) > 0.99 * (Number(e.to_ns) - Number(e.from_ns)), `it is ${size} ${unit} long`);
		/* Of turns there are many before the longest, which may be the last. */
		await page.fill(".search input", "turn of the loop");
		await page.waitForSelector(".result");
		await page.keyboard.press("Enter");
		await page.waitForSelector("#panel .details h2:has-text('turn of the loop')");
		await page.evaluate(() => document.activeElement.blur());
		const first = await begin();
		await page.keyboard.press("q");
		await until("the box before", async () => (await begin()) < first);
		await page.keyboard.press("e");
		await until("the first again", async () => (await begin()) === first);
		await page.keyboard.press("f");
		const view = await viewAfter(page, () => page.keyboard.press("w"));
		await page.keyboard.press("r");
		await until("the range in the address", () => page.url().includes(`range=${view[0]}-${view[1]}`));
	});

	await t.test("names on the lanes hide no others, and flows do not either", async () => {
		const page = await t.newPage();
		await page.addInitScript(() => {
			const { fillText, fillRect } = CanvasRenderingContext2D.prototype;
			window.texts = [];
			CanvasRenderingContext2D.prototype.fillRect = function (x, y, w, h) {
				if (this.canvas.closest("#lanes") && !x && !y && w > 400 && h > 100) window.texts = [];
				fillRect.call(this, x, y, w, h);
			};
			CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
				if (this.canvas.closest("#lanes")) window.texts.push({ text, x, y, w: this.measureText(text).width });
				fillText.call(this, text, x, y);
			};
		});
		await page.goto(await t.serve("view", await trace("epoll_sched")));
		await shown(page);
		await viewAfter(page, () => page.keyboard.press("n"));
		await until("a flow with its name", () => page.evaluate(() => window.texts.some((t) => t.text.startsWith("ready "))));
		const hidden = await page.evaluate(() => window.texts.filter((a) => window.texts.some((b) => a !== b &&
			Math.abs(a.y - b.y) < 12 && a.x < b.x + b.w && b.x < a.x + a.w)).map((a) => a.text));
		equal(hidden, [], "names over one another");
	});

	await t.test("a drag with Shift moves", async () => {
		const page = await t.view(guess);
		const box = await lanesBox(page);
		const before = await viewAfter(page, () => page.keyboard.press("w"));
		await page.mouse.move(box.x + GUTTER + 300, box.y + 200);
		await page.keyboard.down("Shift");
		await page.mouse.down();
		const after = await viewAfter(page, async () => {
			await page.mouse.move(box.x + GUTTER + 280, box.y + 200);
			await page.mouse.move(box.x + GUTTER + 200, box.y + 200);
		});
		await page.mouse.up();
		await page.keyboard.up("Shift");
		near(after[0] - before[0], (100 / (box.width - GUTTER)) * size(before), size(before) / 200, "the move");
	});

	await t.test("the minimap goes where it is clicked", async () => {
		const page = await t.view(guess);
		await viewAfter(page, async () => {
			for (let i = 0; i < 4; i++) await page.keyboard.press("w");
		});
		const map = await page.locator("#map canvas").boundingBox();
		const view = await viewAfter(page, () =>
			page.mouse.click(map.x + GUTTER + 0.75 * (map.width - GUTTER), map.y + 30),
		);
		near(middle(view), 0.75 * whole, whole / 200, "the middle");
	});

	await t.test("a click says what a thing is and where its time went", async () => {
		const page = await t.view(guess);
		await selectSomething(page);
		matches(await page.textContent("#panel .details h2"), /\d (ns|µs|ms|s)\b/, "the title");
		await until("its like", () => page.locator(".like").count());
		await shot(page, "guess-details");
	});

	await t.test("pieces of what is selected add up to it", async () => {
		const page = await t.view(guess);
		await selectSomething(page);
		const bar = page.locator("#panel .owners");
		if (!(await bar.count())) return;
		const pixels = await bar.first().evaluate((e) => [e, ...e.children].map((i) => i.getBoundingClientRect().width));
		near(pixels.slice(1).reduce((a, b) => a + b, 0), pixels[0], 1, "their width");
	});

	await t.test("the address holds the view: a reload shows the same", async () => {
		const page = await t.view(guess);
		const view = await viewAfter(page, async () => {
			for (const key of ["w", "w", "w", "d", "d"]) await page.keyboard.press(key);
		});
		const before = await page.locator("#map canvas").screenshot();
		await page.reload();
		await shown(page);
		equal(viewOf(page), view, "the view after the reload");
		await until("the same picture", async () => before.equals(await page.locator("#map canvas").screenshot()));
	});

	await t.test("the address holds also what is before the beginning, and the range", async () => {
		const page = await t.view(guess, { hash: `#view=-${Math.round(0.05 * whole)}-${Math.round(0.9 * whole)}&range=1000000-2000000` });
		const after = await viewAfter(page, () => page.keyboard.press("d"));
		near(after[0], -0.05 * whole + 0.2 * 0.95 * whole, whole / 1000, "the view after d");
		const range = await viewAfter(page, () => page.keyboard.press("f"));
		near(range[0], 1e6, 2, "the range");
	});

	await t.test("an address with nonsense in it shows the trace all the same", async () => {
		for (const hash of ["#view=", "#view=9-1", "#view=a-b", "#view=-1e99-1e99", "#nothing=%E0%A4%A", "#view=NaN-NaN"]) {
			const page = await t.view(guess, { hash });
			ok(await page.isVisible(".verdict"), hash);
		}
	});
});
