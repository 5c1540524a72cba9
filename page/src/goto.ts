/* Goes to a moment that a person types. */
import { el } from "./dom";
import { parseMoment, Window } from "./moment";
import { moment } from "./format";
import type { Shown } from "./shown";

export class GoTo {
	private readonly dialog = el("dialog", "goto");
	private readonly input = el("input", "");
	private readonly zone = el("select", "");
	private readonly says = el("p", "hint");
	private readonly window: Window;

	constructor(private readonly shown: Shown) {
		const real = shown.overview.processes.find((p) => p.real_ms)?.real_ms ?? 0;
		this.window = { ns: shown.overview.window, realMs: real };
		const form = el("form", "", el("label", "", "Go to ", this.input), this.zone, this.says);
		this.input.type = "text";
		this.input.placeholder = "1.25s or 03:12:08.3";
		this.zone.setAttribute("aria-label", "Zone of times of day");
		this.zone.append(el("option", "", "UTC"), el("option", "", "local"));
		this.zone.disabled = !real;
		this.says.setAttribute("role", "status");
		this.dialog.setAttribute("aria-label", "Go to a time");
		this.dialog.append(form);
		document.querySelector("dialog.goto")?.remove();
		document.body.append(this.dialog);
		this.input.addEventListener("input", () => this.say());
		this.zone.addEventListener("change", () => this.say());
		form.addEventListener("submit", (e) => {
			e.preventDefault();
			this.go();
		});
		shown.keys.add("g", "go to a time", () => this.open());
	}

	private open(): void {
		this.says.textContent = this.begin();
		this.dialog.showModal();
		this.input.select();
	}

	private begin(): string {
		const text = this.window.realMs ? ` It begins at ${this.wall(0)}.` : "";
		return `Since the beginning, from the end with a minus, or a time of day.${text}`;
	}

	private get utc(): boolean {
		return this.zone.value === "UTC";
	}

	private wall(ns: number): string {
		const at = new Date(this.window.realMs + ns / 1e6);
		const text = this.utc ? at.toISOString() : new Date(at.getTime() - at.getTimezoneOffset() * 6e4).toISOString();
		return `${text.slice(11, 23)} ${this.utc ? "UTC" : "local"}`;
	}

	private say(): void {
		if (!this.input.value) {
			this.says.textContent = this.begin();
			return;
		}
		const at = parseMoment(this.input.value, this.window, this.utc);
		this.says.textContent =
			typeof at === "string"
				? at
				: `${moment(at, 1e5)}${this.window.realMs ? `, ${this.wall(at)}` : ""}`;
	}

	private go(): void {
		const at = parseMoment(this.input.value, this.window, this.utc);
		if (typeof at === "string") return this.say();
		const { timeline } = this.shown;
		/* All of it is in view already: closer, so that one sees a difference. */
		const seen = timeline.view.to - timeline.view.from;
		const half = (seen > this.window.ns / 2 ? this.window.ns / 20 : seen) / 2;
		timeline.marks = [{ at, to: at, number: 0 }];
		timeline.show({ from: at - half, to: at + half });
		this.dialog.close();
	}
}
