/* What keys and pointer do, and what the colours mean. */
import { el } from "./dom";
import type { Key, Keys } from "./keys";
import { ownerClass } from "./owners";

const SIGNS: Record<string, string> = {
	ArrowLeft: "←",
	ArrowRight: "→",
	ArrowUp: "↑",
	ArrowDown: "↓",
	Escape: "Esc",
	" ": "Space",
};

const POINTER: [string, string][] = [
	["click", "what a box is, where its time went, and its like"],
	["double click", "zoom to a box"],
	["drag", "select a range of time"],
	["Shift and drag", "move"],
	["wheel", "lanes above and below"],
	["Ctrl and wheel", "zoom at the pointer"],
	["Shift and wheel", "earlier and later"],
];

const OWNERS: [string, string][] = [
	["code", "the program's own code ran"],
	["call", "a call blocked the thread"],
	["lock", "it waited for a lock"],
	["late", "it could run, and did not: woken late, descheduled, throttled"],
	["stopped", "it was stopped, or waited for its memory"],
	["recorder", "tacho itself, and what the runtime does"],
	["idle", "it had nothing to do"],
	["not observed", "nobody knows: records are missing"],
];

function row(head: Node, text: string): HTMLElement {
	const th = el("th", "", head);
	th.scope = "row";
	return el("tr", "", th, el("td", "", text));
}

function table(title: string, rows: HTMLElement[]): HTMLElement {
	return el("section", "", el("h3", "", title), el("table", "", el("tbody", "", ...rows)));
}

function keyRow(keys: string[], text: string): HTMLElement {
	const all = el("span", "keys");
	for (const key of keys) all.append(el("kbd", "", SIGNS[key] ?? key), " ");
	return row(all, text);
}

/* What is used most comes first, and what belongs together is together. */
const FIRST = ["w", "s", "a", "d", "ArrowUp", "ArrowDown", "q", "e", "r", "f", "n", "p", "[", "]", "/", "j", "k", "g"];

function inOrder(keys: readonly Key[]): Key[] {
	const rank = (k: Key): number => {
		const at = FIRST.findIndex((key) => k.keys.includes(key));
		return at < 0 ? FIRST.length : at;
	};
	return [...keys].sort((a, b) => rank(a) - rank(b));
}

export class Help {
	private readonly dialog = el("dialog", "help");

	constructor(private readonly keys: Keys, button: HTMLElement) {
		this.dialog.setAttribute("aria-labelledby", "help-title");
		document.body.append(this.dialog);
		button.hidden = false;
		button.onclick = () => this.open();
		keys.add("?", "this help", () => this.open());
	}

	open(): void {
		if (this.dialog.open) return;
		const close = el("button", "", "Close");
		close.addEventListener("click", () => this.dialog.close());
		const title = el("h2", "", "Keys, pointer, colours");
		title.id = "help-title";
		this.dialog.replaceChildren(
			el("header", "", title, close),
			el(
				"div",
				"columns",
				table("Keys", inOrder(this.keys.all).map((k) => keyRow(k.keys, k.text))),
				el(
					"div",
					"",
					table("Pointer", POINTER.map(([what, text]) => row(el("span", "", what), text))),
					table("Who has a thread's time", OWNERS.map(([owner, text]) =>
						row(el("span", "", el("i", `swatch ${ownerClass(owner)}`), ` ${owner}`), text))),
				),
			),
			el("p", "hint", "The address holds what is in view: copy it to show somebody the same. Nothing of the trace leaves this machine."),
		);
		this.dialog.showModal();
	}

	end(): void {
		this.dialog.remove();
	}
}
