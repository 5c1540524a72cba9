/* What lanes are called, left of them, as buttons: they fold, move and hide, by mouse and by key. */
import { el } from "./dom";
import { GUTTER, HEAD, Place, RULER } from "./layout";
import type { Timeline } from "./timeline";

export class Gutter {
	private readonly list = el("div", "labels");
	readonly host = el("div", "gutter", this.list);
	private drag: { key: string; y: number; moved: boolean } | undefined;

	constructor(private readonly timeline: Timeline) {
		this.host.style.width = `${GUTTER}px`;
		this.host.setAttribute("role", "group");
		this.host.setAttribute("aria-label", "Lanes. Enter folds, Alt with arrows moves, Delete hides.");
		this.host.addEventListener("wheel", (e) => {
			e.preventDefault();
			timeline.scrollBy(e.deltaY * (e.deltaMode === 1 ? 16 : 1));
		}, { passive: false });
		/* A focus must not scroll it: the timeline does. */
		this.host.addEventListener("scroll", () => (this.host.scrollTop = 0));
	}

	scrolled(): void {
		const { scroll, layout } = this.timeline;
		this.list.style.transform = `translateY(${-scroll}px)`;
		/* The name of a tall one is seen as long as it is. */
		for (const p of layout.places) {
			const button = p.height > 80 ? this.button(p.key) : undefined;
			if (button) button.style.paddingTop = `${Math.min(Math.max(scroll + RULER - p.y, 0), p.height - 40) + 3}px`;
		}
	}

	lay(): void {
		const { heads, places } = this.timeline.layout;
		const key = (document.activeElement as HTMLElement | null)?.dataset?.lane;
		this.list.replaceChildren(
			...heads.map((h) => this.label(h.key, h.text, "", h.folded, h.y, HEAD - 2, "process")),
			...places.map((p) => this.label(p.key, p.name, p.note, p.folded, p.y, p.height, "lane")),
		);
		if (key) this.button(key)?.focus();
		this.scrolled();
	}

	private button(key: string): HTMLElement | undefined {
		return [...this.list.querySelectorAll<HTMLElement>("button.fold")].find((b) => b.dataset["lane"] === key);
	}

	private label(
		key: string, name: string, note: string, folded: boolean, y: number, height: number, kind: string,
	): HTMLElement {
		const fold = el("button", "fold", el("span", "arrow", folded ? "▸" : "▾"), el("span", "name", name));
		const label = el("div", `label ${kind}`, fold);
		if (note && height > 34) fold.append(el("span", "note", note));
		fold.dataset["lane"] = key;
		fold.title = note ? `${name}, ${note}` : name;
		fold.setAttribute("aria-expanded", String(!folded));
		fold.addEventListener("click", () => this.drag?.moved || this.timeline.change(() => this.timeline.choice.fold(key, !folded)));
		fold.addEventListener("focus", () => this.timeline.reveal(y, height));
		label.style.top = `${y}px`;
		label.style.height = `${height}px`;
		if (kind === "lane") {
			const hide = el("button", "hide", "×");
			hide.setAttribute("aria-label", `Hide ${name}`);
			hide.title = `Hide ${name}`;
			hide.tabIndex = -1;
			hide.addEventListener("click", () => this.hide(key));
			label.append(hide);
			fold.addEventListener("keydown", (e) => this.pressed(e, key));
			this.dragged(fold, key);
		}
		return label;
	}

	private hide(key: string): void {
		this.timeline.change(() => this.timeline.choice.hide(key));
	}

	private pressed(e: KeyboardEvent, key: string): void {
		const by = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
		if (e.key === "Delete") this.hide(key);
		else if (e.altKey && by) this.move(key, (at) => at + by);
		else return;
		e.preventDefault();
	}

	/* To another place among the lanes of its process. */
	private move(key: string, to: (at: number, of: Place[]) => number): void {
		const { places } = this.timeline.layout;
		const process = key.split("/")[0];
		const of = places.filter((p) => p.key.split("/")[0] === process);
		const at = of.findIndex((p) => p.key === key);
		const keys = of.map((p) => p.key);
		const target = Math.min(Math.max(to(at, of), 0), keys.length - 1);
		if (at < 0 || target === at) return;
		keys.splice(at, 1);
		keys.splice(target, 0, key);
		this.timeline.change(() => this.timeline.choice.reorder(keys));
	}

	private dragged(button: HTMLElement, key: string): void {
		button.addEventListener("pointerdown", (e) => {
			this.drag = { key, y: e.clientY, moved: false };
			button.setPointerCapture(e.pointerId);
		});
		button.addEventListener("pointermove", (e) => {
			const d = this.drag, label = button.parentElement;
			if (!d || !label || (!d.moved && Math.abs(e.clientY - d.y) < 5)) return;
			d.moved = true;
			label.classList.add("dragged");
			label.style.transform = `translateY(${e.clientY - d.y}px)`;
		});
		button.addEventListener("pointerup", (e) => {
			const d = this.drag;
			if (!d?.moved) return;
			const y = e.clientY - this.list.getBoundingClientRect().top;
			button.parentElement?.classList.remove("dragged");
			this.move(key, (_, of) => of.filter((p) => p.key !== key && p.y + p.height / 2 < y).length);
			this.timeline.change(() => undefined);
			/* The click that follows folds nothing. */
			window.setTimeout(() => (this.drag = undefined));
		});
	}
}
