/* What is no trace, or not a whole one, or one that wants to be more than text. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

import { TACHO, Program, drop, equal, matches, ok, painted, shot, shown, suite } from "./libpage.mjs";
import { trace } from "./librecord.mjs";

function crc32c(bytes) {
	let crc = 0xffffffff;
	for (const byte of bytes) {
		crc ^= byte;
		for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
	}
	return (crc ^ 0xffffffff) >>> 0;
}

await suite("bad-input", async (t) => {
	const guess = fs.readFileSync(await trace("guess"));
	const golden = (name) => fs.readFileSync(`${process.env.TACHO_SOURCE}/tests/golden/${name}.tacho`);

	/* docs/format.md: the version is behind the magic, and the checksum at the end of the header. */
	const otherVersion = Buffer.from(guess);
	otherVersion.writeUInt16LE(99, 8);
	otherVersion.writeUInt32LE(crc32c(otherVersion.subarray(0, 60)), 60);
	const refused = {
		"a text": [Buffer.from("This is no trace.\n"), /neither a box nor a trace/],
		"nothing at all": [Buffer.alloc(0), /neither a box nor a trace/],
		"a picture": [Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"), /neither a box nor a trace/],
		"zeros": [Buffer.alloc(100000), /neither a box nor a trace/],
		"its first bytes": [guess.subarray(0, 20), /neither a box nor a trace/],
		"a trace of Go": [fs.readFileSync(`${process.env.TACHO_SOURCE}/tests/golden-import/go1.25.trace`),
			/it is an execution trace of Go.*tacho view x\.tacho.*tacho import/],
		"a trace of dial9": [fs.readFileSync(`${process.env.TACHO_SOURCE}/tests/golden-import/dial9/0.5.7.bin.gz`),
			/packed with gzip, as traces of Go and of dial9.*tacho view/],
		"another version": [otherVersion, /version 99 of the trace format/],
	};
	for (const [name, [bytes, why]] of Object.entries(refused))
		await t.test(`${name}: the page says why it can not be shown`, async () => {
			const page = await t.newPage({ ignore: /404/ });
			await page.goto(await t.serveFiles());
			await page.waitForSelector("#start .card");
			await drop(page, "x.tacho", bytes);
			await page.waitForSelector("#start.failed");
			matches(await page.textContent(".why"), why, "what it says");
			matches(await page.textContent(".why"), /^x\.tacho can not be read: .*\.$/, "what it says");
			equal(await page.isVisible("#page"), false, "whether something is shown");
			if (name === "a text") await shot(page, "failed");
			/* It is still of use. */
			await drop(page, "guess.tacho", guess);
			await shown(page);
		});

	const partly = {
		"a trace that is cut": guess.subarray(0, Math.floor(0.6 * guess.length)),
		"a golden one that is cut": golden("v1-cut"),
		"damaged in the middle": Buffer.concat([guess.subarray(0, guess.length >> 1), Buffer.alloc(64, 0x55),
			guess.subarray((guess.length >> 1) + 64)]),
	};
	for (const [name, bytes] of Object.entries(partly))
		await t.test(`${name}: what can be read is shown, and that it is not all`, async () => {
			const page = await t.newPage({ ignore: /404/ });
			await page.goto(await t.serveFiles());
			await page.waitForSelector("#start .card");
			await drop(page, "x.tacho", bytes);
			await page.waitForSelector("#page:not([hidden]) .verdict");
			matches(await page.textContent(".notice summary"), /not whole/, "the notice");
			matches(await page.textContent(".verdict"), /the file is (cut: its end is missing|damaged)/, "the verdict");
			await page.click(".notice summary");
			ok((await page.locator(".notice li").allTextContents()).every((text) => text.length > 10), "each is a sentence");
			if (name === "a trace that is cut") await shot(page, "cut");
		});

	await t.test("a trace of which no record is left: the page says that it is cut", async () => {
		const page = await t.newPage({ ignore: /404/ });
		await page.goto(await t.serveFiles());
		await page.waitForSelector("#start .card");
		await drop(page, "x.tacho", fs.readFileSync(`${process.env.TACHO_SOURCE}/tests/golden-answers/names.tacho`).subarray(0, 1000));
		await page.waitForSelector("#page:not([hidden]) .verdict.doubt");
		matches(await page.textContent(".verdict"), /the file is cut: its end is missing/, "the verdict");
		matches(await page.textContent(".nothing"), /the file is cut.*no record is left/, "what stands over the lanes");
		ok(!/event loop/.test(await page.textContent(".nothing")), "no advice on how to record");
	});

	await t.test("more than 2 GB: what there is room for is shown, and that it is not all", async () => {
		const folder = fs.mkdtempSync(path.join(process.env.TMPDIR ?? os.tmpdir(), "large-"));
		const file = path.join(folder, "large.tacho");
		fs.writeFileSync(file, guess.subarray(0, guess.length - 200));
		fs.truncateSync(file, 2.2e9);
		try {
			const page = await t.newPage({ ignore: /404/ });
			await page.goto(await t.serveFiles());
			await page.setInputFiles("#file", file);
			await page.waitForSelector("#page:not([hidden]) .verdict", { timeout: 180_000 });
			await page.click(".notice summary");
			matches(await page.textContent(".notice li"), /of its 2\.0 GiB the first 1\.5 GiB were read.*tacho report/, "what is missing");
			ok(await page.locator("#lanes .lane").count(), "there are lanes");
		} finally {
			fs.rmSync(folder, { recursive: true });
		}
	});

	await t.test("a trace without events: the page says so and stays of use", async () => {
		const file = await trace("nothing");
		const page = await t.view(file);
		ok(await page.isVisible(".verdict"), "there is a verdict");
		await page.keyboard.press("w");
		await page.keyboard.press("n");
		await page.keyboard.press("f");
		await shot(page, "nothing");
	});

	await t.test("names with markup and control characters are text", async () => {
		const page = await t.view(await trace("names"));
		await page.waitForSelector(".finding");
		/* A finding may be of all that is in view already. */
		for (const key of ["n", "n", "n"]) {
			await page.keyboard.press(key);
			await painted(page);
		}
		for (const summary of await page.locator("#side summary:visible").all()) await summary.click();
		await shot(page, "names");
		const seen = await page.textContent("body");
		ok(seen.includes("<script>document.title='executed'</script>"), "the name is there as it is");
		ok(seen.includes("\\u202ebackwards") && seen.includes("\\x1b[31mred"), "what is not seen is not told");
		ok(!/[\u0001-\u0008\u001b\u202e]/.test(seen), "a character that turns text around is there");
		equal(await page.$$eval("img, #side b b, script:not([src])", (all) => all.length), 0, "elements from names");
		ok(!(await page.title()).startsWith("executed"), `the title is ${await page.title()}`);
	});

	await t.test("tacho view says in the terminal what it can not show", async () => {
		const file = `${process.env.TMPDIR ?? "/tmp"}/no-trace.tacho`;
		fs.writeFileSync(file, "This is no trace.\n");
		const program = new Program([TACHO, "view", file, "--no-browser"]);
		equal(await program.ended, 1, "its status");
		matches(program.err, /no-trace\.tacho/, "what it says");
	});
});
