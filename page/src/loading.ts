/* A trace that is on its way: how far it is, a picture of what is there, and a way to stop. */
import type { Overview } from "./answers";
import type { Client, Source } from "./client";
import { $, el } from "./dom";
import { count, share } from "./format";
import { Keys } from "./keys";
import { Minimap } from "./map";
import { addMoves } from "./moves";
import type { Progress } from "./protocol";
import { Span, Timeline } from "./timeline";

const AGAIN = 500; // ms between two pictures, at least
const SHARE = 20; // a picture may take this part of the time

export class Loading {
	private readonly bar = el("i", "");
	private readonly text = el("p", "hint", "");
	private readonly stop = el("button", "", "Stop here");
	private readonly box: HTMLElement;
	private timeline: Timeline | undefined;
	private map: Minimap | undefined;
	private keys: Keys | undefined;
	private drawing = false;
	private again = 0; // when to draw again
	private ended = false;

	constructor(private readonly client: Client) {
		const bar = el("div", "bar", this.bar);
		bar.setAttribute("role", "progressbar");
		bar.setAttribute("aria-label", "Reading the trace");
		this.stop.hidden = true;
		this.stop.addEventListener("click", () => {
			this.stop.disabled = true;
			void client.stop();
		});
		this.box = el("div", "drop", el("h1", "", "Reading the trace"), bar, this.text, this.stop);
		client.onProgress = (p) => this.tell(p);
	}

	/* What is shown until then is replaced by the first picture. */
	async load(source: Source): Promise<Overview> {
		performance.mark("loading");
		$("page").hidden = true;
		$("start").hidden = false;
		$("start").replaceChildren(this.box);
		try {
			return await this.client.load(source);
		} finally {
			this.ended = true;
			this.timeline?.end();
			this.keys?.end();
		}
	}

	/* Where the user went meanwhile. */
	get view(): Span | undefined {
		return this.timeline?.moved ? this.timeline.view : undefined;
	}

	private tell(p: Progress): void {
		const percent = `${Math.floor(100 * p.share)}`;
		this.bar.style.width = `${percent}%`;
		this.bar.parentElement?.setAttribute("aria-valuenow", percent);
		this.text.textContent =
			p.events === undefined
				? `Fetching it: ${share(p.share)}`
				: `${count(p.events)} events, ${share(p.share)}. Findings come when all of it has been read.`;
		if (p.events === undefined) this.stop.hidden = false;
		const from = performance.now();
		if (p.events === undefined || this.drawing || from < this.again) return;
		this.drawing = true;
		void this.draw().finally(() => {
			const now = performance.now();
			this.drawing = false;
			this.again = now + Math.max(AGAIN, SHARE * (now - from));
		});
	}

	private async draw(): Promise<void> {
		const overview = await this.client.overview();
		if (this.ended) return;
		if (this.timeline) {
			this.timeline.update(overview);
			return this.map?.refresh();
		}
		$("start").hidden = true;
		$("page").hidden = false;
		this.stop.hidden = false;
		this.stop.disabled = false;
		$("side").replaceChildren(this.box);
		$("panel").replaceChildren();
		this.timeline = new Timeline($("lanes"), this.client, overview);
		const map = new Minimap($("map"), this.client, this.timeline, Math.max(overview.window, 1));
		this.keys = new Keys();
		addMoves(this.keys, this.timeline);
		this.timeline.onView = () => map.paint();
		this.map = map;
		this.client.onNames = () => this.timeline?.frame();
	}
}
