/* The page as a person meets it: `tacho view` of a trace, in Debian's Chromium.
 *
 *	import { suite } from "./libpage.mjs";
 *	await suite("open", async (t) => {
 *		await t.test("the verdict is there", async () => {
 *			const page = await t.view(await trace("guess"));
 *			equal(await page.textContent(".verdict h2"), "lock contention");
 *		});
 *	});
 *
 * A test fails by what it throws, and by any error on the page or in its console. What it has started
 * is ended with it. Conditions are waited for, never a time. TACHO_TEST_NAMED=text runs those alone whose
 * names have it. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import path from "node:path";

export const SOURCE = process.env.TACHO_SOURCE ?? path.resolve(import.meta.dirname ?? ".", "../..");
export const BUILD = process.env.TACHO_BUILD ?? path.join(SOURCE, "build");
export const TACHO = process.env.TACHO_BIN ?? path.join(BUILD, "src/cli/tacho");
const SHOTS = path.join(BUILD, "page-shots");
const PATIENCE = 60_000; // ms, for what takes none on an idle machine
export const modules = createRequire(path.join(SOURCE, "page/package.json"));

const { chromium } = modules("playwright-core");

/* ----------------------------------------------------------------- programs */

export class Program {
	constructor(argv, options = {}) {
		this.child = spawn(argv[0], argv.slice(1), { stdio: ["ignore", "pipe", "pipe"], ...options });
		this.out = "";
		this.err = "";
		this.child.stdout.on("data", (data) => (this.out += data));
		this.child.stderr.on("data", (data) => (this.err += data));
		this.ended = new Promise((done) => {
			this.child.on("error", (error) => done(String(error)));
			this.child.on("close", (status, signal) => done(signal ?? status));
		});
	}

	/* The first match in what it prints. */
	async says(pattern) {
		const end = this.ended.then((status) => `ended with ${status}`);
		const stop = Date.now() + PATIENCE;
		for (;;) {
			const match = pattern.exec(this.out);
			if (match) return match;
			const more = new Promise((done) => {
				const timer = setTimeout(done, stop - Date.now(), "is silent");
				this.child.stdout.once("data", () => {
					clearTimeout(timer);
					done(undefined);
				});
			});
			const why = await Promise.race([more, end]);
			if (why && !pattern.test(this.out)) throw new Error(`it ${why}: ${this.out} ${this.err}`);
		}
	}

	async stop(signal = "SIGTERM") {
		if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
		return this.ended;
	}
}

/* What a command prints; throws when it fails. */
export async function output(argv, options = {}) {
	const program = new Program(argv, options);
	const status = await program.ended;
	if (status !== 0) throw new Error(`${argv.join(" ")}: ${status}, ${program.err.trim()}`);
	return program.out;
}

/* The condition's first value that is true; throws when there is none in time. */
export async function until(what, condition) {
	const stop = Date.now() + PATIENCE;
	for (;;) {
		const value = await condition();
		if (value) return value;
		if (Date.now() > stop) throw new Error(`${what}: not within ${PATIENCE / 1000} s`);
		await new Promise((done) => setTimeout(done, 20));
	}
}

/* -------------------------------------------------------------------- tests */

class Suite {
	constructor(name) {
		this.name = name;
		this.failed = 0;
		this.toEnd = []; // with the test
		this.atEnd = [];
		this.errors = [];
	}

	async test(name, body) {
		if (process.env.TACHO_TEST_NAMED && !name.includes(process.env.TACHO_TEST_NAMED)) return;
		let why;
		try {
			await body();
			if (this.errors.length) why = `on the console: ${this.errors.join(" | ")}`;
		} catch (error) {
			why = error instanceof Error ? error.stack ?? error.message : String(error);
			if (this.errors.length) why += ` (on the console: ${this.errors.join(" | ")})`;
			await this.shotOfFailure(name);
		}
		for (const end of this.toEnd.splice(0).reverse()) await end();
		/* Also what a page says that is asking a server that ends. */
		this.errors = [];
		if (why !== undefined) this.failed++;
		console.log(why === undefined ? `ok ${name}` : `not ok ${name}: ${why.replace(/\s*\n\s*/g, " | ").slice(0, 1500)}`);
	}

	/* What is started in it lasts for all tests that follow. */
	async forAll(body) {
		const before = this.toEnd;
		this.toEnd = this.atEnd;
		try {
			return await body();
		} finally {
			this.toEnd = before;
		}
	}

	skip(name, reason) {
		console.log(`skip ${name}: ${reason}`);
	}

	async shotOfFailure(name) {
		const page = this.page;
		if (page && !page.isClosed())
			await shot(page, `failed-${this.name}-${name.replace(/\W+/g, "-").slice(0, 60)}`).catch(() => undefined);
	}

	/* A page of its own, with nothing on it yet. `ignore`: what may be on its console. */
	async newPage(options = {}) {
		const { ignore, ...more } = options;
		const context = await this.browser.newContext({ viewport: { width: 1280, height: 800 }, ...more });
		this.toEnd.push(() => context.close());
		const page = await context.newPage();
		page.setDefaultTimeout(PATIENCE);
		page.on("console", (message) => {
			if (["error", "warning"].includes(message.type()) && !ignore?.test(message.text()))
				this.errors.push(`${message.text()} (${message.location().url})`);
		});
		page.on("pageerror", (error) => this.errors.push(String(error)));
		this.page = page;
		return page;
	}

	/* The address of what tacho serves until the test ends. */
	async serve(...arguments_) {
		const program = new Program([TACHO, ...arguments_, "--no-browser"]);
		this.toEnd.push(() => program.stop());
		return (await program.says(/http:\S+/))[0];
	}

	/* The page that shows a trace. `hash` as in a shared address. */
	async view(file, { hash = "", ...options } = {}) {
		const address = await this.serve("view", file);
		const page = await this.newPage(options);
		await page.goto(address + hash);
		await shown(page);
		return page;
	}

	/* The address of the page as plain files, behind any web server. */
	async serveFiles() {
		const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };
		const folders = [path.join(BUILD, "page"), path.join(SOURCE, "page")];
		const server = http.createServer((request, response) => {
			const name = path.basename(new URL(request.url, "http://x").pathname) || "index.html";
			const file = folders.map((folder) => path.join(folder, name)).find((f) => fs.existsSync(f));
			const type = types[path.extname(name)];
			response.writeHead(file && type ? 200 : 404, { "content-type": type ?? "text/plain" });
			response.end(file && type ? fs.readFileSync(file) : "");
		});
		await new Promise((done) => server.listen(0, "127.0.0.1", done));
		this.toEnd.push(async () => {
			server.closeAllConnections();
			await new Promise((done) => server.close(done));
		});
		return `http://127.0.0.1:${server.address().port}/`;
	}
}

export async function suite(name, body) {
	const s = new Suite(name);
	/* Without GPU and sandbox: so it runs as root, and in containers. */
	s.browser = await chromium.launch({
		executablePath: "/usr/bin/chromium",
		args: ["--no-sandbox", "--disable-gpu"],
		timeout: PATIENCE,
	});
	try {
		await body(s);
	} catch (error) {
		s.failed++;
		console.log(`not ok ${name}: ${String(error?.stack ?? error).replace(/\s*\n\s*/g, " | ")}`);
	} finally {
		for (const end of [...s.atEnd, ...s.toEnd].reverse()) await end();
		await s.browser.close();
	}
	process.exitCode = s.failed ? 1 : 0;
}

/* ---------------------------------------------------------------- on a page */

/* A trace is shown, with its boxes. */
export async function shown(page) {
	await page.waitForSelector("#page:not([hidden]) .verdict");
	await painted(page);
}

/* What was asked for is there and has been drawn. */
export async function painted(page) {
	await page.waitForSelector('#lanes .stage[data-drawn="true"]');
}

export async function shot(page, name, options = {}) {
	fs.mkdirSync(SHOTS, { recursive: true });
	await page.screenshot({ path: path.join(SHOTS, `${name}.png`), ...options });
}

/* A file is dropped on the page. */
export async function drop(page, name, bytes) {
	const files = await page.evaluateHandle(
		([name, base64]) => {
			const data = new DataTransfer();
			data.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name));
			return data;
		},
		[name, Buffer.from(bytes).toString("base64")],
	);
	await page.dispatchEvent("body", "drop", { dataTransfer: files });
}

/* ------------------------------------------------------------- expectations */

export function equal(is, wanted, what = "it") {
	const [a, b] = [is, wanted].map((value) => JSON.stringify(value));
	if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

export function ok(is, what) {
	if (!is) throw new Error(what);
}

export function matches(text, pattern, what = "it") {
	if (!pattern.test(text ?? "")) throw new Error(`${what} is ${JSON.stringify(text)}, not like ${pattern}`);
}
