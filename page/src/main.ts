import type { Overview } from "./answers";
import { Client, Source } from "./client";
import { forgetColours } from "./colours";
import { $, renew } from "./dom";
import { share } from "./format";
import { Loading } from "./loading";
import { showServed } from "./served";
import { Shown } from "./shown";
import { engineCode, startWorker, traceInside } from "./source";
import { splitPage } from "./split";
import { showFailed, showStart, takeDrops, whyForeign } from "./states";
import { Theme } from "./theme";
import type { Span } from "./timeline";

let shown: Shown | undefined;

async function showTrace(client: Client, overview: Overview, view?: Span): Promise<void> {
	const report = await client.report();
	if (client.cut) overview.problems.unshift(client.cut);
	if (overview.stopped)
		report.verdict.summary =
			`Reading was stopped at ${share(overview.stopped)} of the trace, which is not enough to ` +
			"judge it. What was read is shown; reload to read all of it.";
	$("start").hidden = true;
	$("page").hidden = false;
	shown?.end();
	for (const id of ["side", "map", "lanes", "panel"]) renew(id);
	shown = new Shown(client, overview, report);
	if (view) shown.timeline.show(view);
}

/* `quiet`: what is shown stays until the other is there. */
async function open(source: Source, quiet = false): Promise<void> {
	const client = new Client(await startWorker());
	try {
		await client.start(await engineCode());
		if (quiet) return await showTrace(client, await client.load(source));
		const loading = new Loading(client);
		await showTrace(client, await loading.load(source), loading.view);
		performance.mark("loaded");
	} catch (error) {
		client.end();
		if (source instanceof File) failed(await whyForeign(source) ?? error, source.name);
		else failed(error);
	}
}

function failed(error: unknown, name = ""): void {
	showFailed(error, name, open);
}

function begin(): void {
	const theme = new Theme();
	theme.onChange = () => {
		forgetColours();
		shown?.recolour();
	};
	splitPage($("page"), $("split-side"), $("split-panel"));
	showStart(open);
	takeDrops(open);
	const inside = traceInside();
	if (inside) void open(inside);
	else if (document.body.dataset["served"] !== undefined) showServed({ open }).catch(failed);
}

begin();
