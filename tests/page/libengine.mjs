/* The page's engine without a page: what it answers, as text. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

import { BUILD, SOURCE, output } from "./libpage.mjs";

/* A module of page/src. */
export async function pageModule(name) {
	const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tacho-page-"));
	try {
		const file = path.join(folder, `${name}.mjs`);
		await output(["esbuild", path.join(SOURCE, "page/src", `${name}.ts`), "--bundle", "--format=esm",
			"--platform=node", "--log-level=warning", `--outfile=${file}`]);
		return await import(pathToFileURL(file));
	} finally {
		fs.rmSync(folder, { recursive: true });
	}
}

export async function startEngine() {
	const { Engine } = await pageModule("engine");
	const engine = await Engine.start(fs.readFileSync(path.join(BUILD, "page/engine.wasm")));
	/* In steps, as the page does. */
	engine.load = (bytes) => {
		engine.makeRoom(bytes.length);
		engine.fill(0, bytes);
		engine.begin();
		while (engine.some(20000));
	};
	/* What a function answers, before it is read as JSON. */
	engine.textOf = (name, ...args) => engine.string(engine.x[`page_${name}`](...args));
	return engine;
}

/* JSON without the spaces between its parts. */
export function squeezed(json) {
	return json.replace(/("(?:[^"\\]|\\.)*")|\s+/g, "$1");
}
