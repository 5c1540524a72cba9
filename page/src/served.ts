/* What a page that tacho serves is to show: `what` says it. */
import type { Source } from "./client";
import { el, $ } from "./dom";
import { Folder } from "./folder";
import { Live } from "./live";

export interface Shower {
	/* Shows a trace, or says why it can not be shown; `quiet`: what is shown stays until then. */
	open(source: Source, quiet?: boolean): Promise<void>;
}

interface What {
	shows: "trace" | "folder" | "live";
	name?: string;
}

/* Throws the sentence that the server says. */
export async function get(path: string): Promise<Response> {
	let response: Response;
	try {
		response = await fetch(path);
	} catch {
		throw new Error("tacho does not answer any more: it was ended, or this machine slept. Start it again.");
	}
	if (!response.ok) throw new Error((await response.text()).trim());
	return response;
}

export async function getJson<T>(path: string): Promise<T> {
	return (await get(path)).json() as Promise<T>;
}

/* The name of a trace in the address, as the server encoded it: it may be any bytes. */
function named(): string | undefined {
	return /[?&]trace=([^&]+)/.exec(location.search)?.[1];
}

export async function showServed(page: Shower): Promise<void> {
	const what = await getJson<What>("what");
	const name = named();
	if (what.shows === "trace") {
		await page.open(await get("trace"));
	} else if (name) {
		const back = el("a", "back", what.shows === "folder" ? "← All traces" : "← Live");
		back.href = `./${sessionStorage.getItem("list") ?? ""}`;
		$("what").before(back);
		await page.open(await get(`traces/${name}`));
	} else if (what.shows === "folder") {
		new Folder($("start"), what.name ?? "");
	} else {
		await new Live(page).run();
	}
}
