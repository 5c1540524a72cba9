/* The panels below the lanes, one of them seen. */
import { el } from "./dom";

export interface Tab {
	readonly name: string;
	readonly host: HTMLElement;
	/* It is seen from now on. */
	opened?(): void;
}

export class Tabs {
	onOpen: (name: string) => void = () => undefined;
	private readonly tabs: { tab: Tab; button: HTMLButtonElement }[] = [];
	private readonly list = el("div", "tabs");
	private current: Tab | undefined;

	constructor(private readonly host: HTMLElement) {
		this.list.setAttribute("role", "tablist");
		this.list.addEventListener("keydown", (e) => this.step(e));
		host.replaceChildren(this.list);
	}

	add(tab: Tab): void {
		const button = el("button", "tab", tab.name);
		button.setAttribute("role", "tab");
		button.id = `tab-${tab.name.toLowerCase()}`;
		tab.host.setAttribute("role", "tabpanel");
		tab.host.setAttribute("aria-labelledby", button.id);
		tab.host.tabIndex = 0;
		tab.host.classList.add("tabpanel");
		button.addEventListener("click", () => this.open(tab.name));
		this.tabs.push({ tab, button });
		this.list.append(button);
		this.host.append(tab.host);
		this.open(this.current?.name ?? tab.name);
	}

	get seen(): string {
		return this.current?.name ?? "";
	}

	open(name: string): void {
		const found = this.tabs.find(({ tab }) => tab.name === name);
		if (!found) return;
		for (const { tab, button } of this.tabs) {
			const seen = tab === found.tab;
			button.setAttribute("aria-selected", String(seen));
			button.tabIndex = seen ? 0 : -1;
			tab.host.hidden = !seen;
		}
		if (this.current === found.tab) return;
		this.current = found.tab;
		found.tab.opened?.();
		this.onOpen(name);
	}

	private step(e: KeyboardEvent): void {
		const by = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
		const at = this.tabs.findIndex(({ tab }) => tab === this.current);
		const next = this.tabs[(at + by + this.tabs.length) % this.tabs.length];
		if (!by || !next) return;
		e.preventDefault();
		e.stopPropagation();
		this.open(next.tab.name);
		next.button.focus();
	}
}
