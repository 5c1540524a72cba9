/* Bars of the ledger: the time of a thread in pieces that add up. */
import type { LedgerThread, OwnerSums } from "./answers";
import { el } from "./dom";
import { duration, share } from "./format";
import { ownerClass, placeText } from "./owners";

export interface BarPiece {
	kind: string; // a class of style.css: an owner's, or "absent"
	ns: number;
	title: string;
	go?: () => void;
}

/* The pieces are as wide as their share of all of them. What they do by a click the list below a bar
   does by keys, too. */
export function bar(pieces: BarPiece[], className = "owners"): HTMLElement {
	const box = el("div", className);
	for (const p of pieces) {
		const piece = el("i", p.kind);
		piece.style.flexGrow = String(Math.max(p.ns, 0));
		piece.title = p.title;
		if (p.go) {
			const go = p.go;
			piece.classList.add("go");
			piece.addEventListener("click", (e) => {
				e.preventDefault();
				go();
			});
		}
		box.append(piece);
	}
	return box;
}

export function ownerText(o: OwnerSums): string {
	/* A name, or a reason. */
	const named = ["code", "call", "lock"].includes(o.owner);
	return o.key ? `${o.owner}${named ? " " : ": "}${o.key}` : o.owner;
}

/* All of a span of time: what is before and after the thread's own is blank. */
export function threadBar(
	t: LedgerThread,
	from: number,
	to: number,
	span: { from: number; to: number },
	go?: (owner: number) => void,
): HTMLElement {
	const whole = Math.max(to - from, 1);
	const pieces: BarPiece[] = t.owners.map((o, i) => ({
		kind: ownerClass(o.owner),
		ns: o.ns,
		title: `${ownerText(o)}: ${duration(o.ns)}, ${share(o.ns / whole)} of its time`,
		...(go ? { go: () => go(i) } : {}),
	}));
	const absent = (ns: number, title: string): BarPiece[] =>
		ns > 0 ? [{ kind: "absent", ns, title: `${duration(ns)} ${title}` }] : [];
	return bar([
		...absent(from - span.from, "before it is seen first"),
		...pieces,
		...absent(span.to - to, "after it is seen last"),
	]);
}

/* Where there is no room for all of it, its number stays: it tells threads of one name apart. */
export function threadName(name: string): HTMLElement {
	const [, first = name, number = ""] = /^(.*\S)( \d+)$/.exec(name) ?? [];
	const box = el("span", "thread-name", el("span", "", first), number);
	box.title = name;
	return box;
}

/* A line for each piece: as a button, where it leads somewhere. */
export function ownerLines(
	t: LedgerThread,
	whole: number,
	go?: (owner: number) => void,
): HTMLElement {
	const list = el("ul", "pieces-list");
	t.owners.forEach((o, i) => {
		const parts = [
			el("i", `swatch ${ownerClass(o.owner)}`),
			el("span", "", ownerText(o), el("span", "place", ` ${placeText(o.place)}`)),
			el("span", "cost", `${duration(o.ns)} · ${share(o.ns / Math.max(whole, 1))}`),
		];
		if (!go) {
			list.append(el("li", "", ...parts));
			return;
		}
		const button = el("button", "line", ...parts);
		button.title = "Shows when";
		button.addEventListener("click", () => go(i));
		list.append(el("li", "", button));
	});
	return list;
}
