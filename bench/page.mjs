/* page.mjs URL: opens a page that `tacho view` serves in Debian's Chromium, moves through all of its
 * trace, and prints what that took, as JSON:
 *
 *   first_ms, loaded_ms      from the start of loading until the first picture, and until all is there
 *   loaded_cpu_ms            CPU time of the process of the tab until then
 *   peak_bytes               most memory that the process of the tab ever had
 *   frame_ms                 of each frame while it zooms and pans
 *   picture_ms               from each move until the picture for it was drawn
 */
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const source = path.resolve(path.dirname(new URL(import.meta.url).pathname), "..");
const { chromium } = createRequire(path.join(source, "page/package.json"))("playwright-core");
const PATIENCE = 1_200_000;

/* All that are below a process. */
function descendants(pid) {
	const parents = new Map();
	for (const name of fs.readdirSync("/proc").filter((n) => /^\d+$/.test(n)))
		try {
			const stat = fs.readFileSync(`/proc/${name}/stat`, "latin1");
			parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]));
		} catch {
			/* It has just ended. */
		}
	const found = new Set([pid]);
	for (let before = 0; before !== found.size; ) {
		before = found.size;
		for (const [child, parent] of parents) if (found.has(parent)) found.add(child);
	}
	return [...found];
}

/* Of the tab: the largest of its kind. CPU time is told in hundredths of a second. */
function tab(pid) {
	const of = descendants(pid).map((p) => {
		try {
			const renderer = fs.readFileSync(`/proc/${p}/cmdline`, "latin1").includes("--type=renderer");
			const most = /VmHWM:\s+(\d+)/.exec(fs.readFileSync(`/proc/${p}/status`, "latin1"));
			const stat = fs.readFileSync(`/proc/${p}/stat`, "latin1");
			const [user, system] = stat.slice(stat.lastIndexOf(")") + 2).split(" ").slice(11, 13).map(Number);
			return { peak_bytes: renderer && most ? 1024 * Number(most[1]) : 0, cpu_ms: 10 * (user + system) };
		} catch {
			return { peak_bytes: 0, cpu_ms: 0 };
		}
	});
	return of.reduce((a, b) => (b.peak_bytes > a.peak_bytes ? b : a));
}

/* In the page: by keys, as a person does, one for each frame: in, to the right at each depth, and out
   again. Pans also go through the whole trace from its beginning to its end. */
async function move() {
	const frames = [], pictures = [];
	const frame = () => new Promise((done) => requestAnimationFrame(done));
	const lanes = document.querySelector("#lanes .stage");
	let last = await frame();
	const press = async (key) => {
		const from = performance.now();
		document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
		const now = await frame();
		frames.push(now - last);
		last = now;
		return from;
	};
	const settle = async (from) => {
		while (lanes.dataset.drawn !== "true") await frame();
		pictures.push(performance.now() - from);
		last = await frame();
	};
	for (let depth = 0; depth < 28; depth++) {
		for (let i = 0; i < 4; i++) await press("d");
		await settle(await press("w"));
	}
	for (let depth = 0; depth < 24; depth++) await press("s");
	for (let i = 0; i < 40; i++) await press("a");
	for (let i = 0; i < 120; i++) await press("d");
	await settle(await press("f"));
	return { frame_ms: frames, picture_ms: pictures };
}

const server = await chromium.launchServer({
	executablePath: "/usr/bin/chromium",
	args: ["--no-sandbox", "--disable-gpu"],
});
try {
	const browser = await chromium.connect(server.wsEndpoint());
	const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
	page.setDefaultTimeout(PATIENCE);
	page.on("pageerror", (error) => {
		throw error;
	});
	await page.goto(process.argv[2]);
	await page.waitForFunction(
		() =>
			performance.getEntriesByName("loaded").length ||
			document.querySelector("#start:not([hidden]) h1")?.textContent.includes("can not"),
	);
	const marks = await page.evaluate(() =>
		Object.fromEntries(performance.getEntriesByType("mark").map((m) => [m.name, m.startTime])),
	);
	const loaded = tab(server.process().pid);
	if (!marks.loaded) throw new Error(await page.textContent("#start"));
	const moved = await page.evaluate(move);
	console.log(
		JSON.stringify({
			first_ms: marks.picture - marks.loading,
			loaded_ms: marks.loaded - marks.loading,
			loaded_cpu_ms: loaded.cpu_ms,
			peak_bytes: tab(server.process().pid).peak_bytes,
			...moved,
		}),
	);
} finally {
	await server.close();
}
