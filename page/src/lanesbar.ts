/* Above the lanes: which of them are seen, and what their colours mean. */
import { el } from "./dom";
import { duration } from "./format";
import type { Timeline } from "./timeline";

export class LanesBar {
	private readonly filter = el("input", "filter");
	private readonly hidden = el("button", "", "");
	private readonly colour = el("button", "", "Colour by duration");
	private readonly seen = el("span", "hint", "");
	readonly host = el("div", "lanesbar", this.filter, this.colour, this.hidden, el("span", "space"), this.seen);

	constructor(private readonly timeline: Timeline) {
		const { choice } = timeline;
		this.filter.type = "search";
		this.filter.placeholder = "Filter lanes";
		this.filter.setAttribute("aria-label", "Filter lanes by their name");
		this.filter.addEventListener("input", () => timeline.change(() => (choice.filter = this.filter.value)));
		this.colour.title = "Callbacks by their length: below 1 ms, 10 ms, 50 ms, and longer";
		this.colour.addEventListener("click", () => timeline.change(() => (choice.byDuration = !choice.byDuration)));
		this.hidden.addEventListener("click", () => timeline.change(() => choice.showAll()));
		this.update();
	}

	update(): void {
		const { choice, view } = this.timeline;
		if (this.filter.value !== choice.filter) this.filter.value = choice.filter;
		this.colour.setAttribute("aria-pressed", String(choice.byDuration));
		this.hidden.hidden = !choice.hiddenCount;
		this.hidden.textContent = `Show ${choice.hiddenCount} hidden`;
		this.seen.textContent = `${duration(view.to - view.from)} in view`;
	}
}
