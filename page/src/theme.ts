/* Light or dark: as the system has it, or as the person said. Every colour has both in style.css. */
import { $ } from "./dom";

const NAMES: Record<string, string> = { "": "as the system", light: "light", dark: "dark" };

/* Pages that have no origin have no memory either. */
export function remembered(key: string): string {
	try {
		return localStorage.getItem(`tacho-${key}`) ?? "";
	} catch {
		return "";
	}
}

export function remember(key: string, value: string): void {
	try {
		localStorage.setItem(`tacho-${key}`, value);
	} catch {
		/* It holds until the page is closed. */
	}
}

export class Theme {
	onChange: () => void = () => undefined;

	constructor() {
		this.set(remembered("theme"));
		$("theme").addEventListener("click", () => this.step());
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.onChange());
	}

	step(): void {
		const all = Object.keys(NAMES);
		this.set(all[(all.indexOf(document.documentElement.dataset.theme ?? "") + 1) % all.length] ?? "");
	}

	private set(name: string): void {
		const known = name in NAMES ? name : "";
		if (known) document.documentElement.dataset.theme = known;
		else delete document.documentElement.dataset.theme;
		const text = `Colours: ${NAMES[known] ?? ""}`;
		$("theme").setAttribute("aria-label", text);
		$("theme").title = text;
		remember("theme", known);
		this.onChange();
	}
}
