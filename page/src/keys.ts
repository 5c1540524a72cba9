/* Keys: each is said once, with what it does, for the page and for its help. */
export interface Key {
	keys: string[]; // as KeyboardEvent.key has them
	text: string;
	action: () => unknown; // false: there is nothing to do for it; another one of this key may
}

export class Keys {
	readonly all: Key[] = [];
	private readonly listener = (e: KeyboardEvent): void => this.pressed(e);

	constructor() {
		document.addEventListener("keydown", this.listener);
	}

	/* Alternatives with spaces between them: "d ArrowRight". */
	add(keys: string, text: string, action: () => unknown): void {
		this.all.push({ keys: keys.split(" "), text, action });
	}

	end(): void {
		document.removeEventListener("keydown", this.listener);
	}

	private pressed(e: KeyboardEvent): void {
		if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || taken(e)) return;
		for (const key of this.all) {
			if (!key.keys.includes(e.key)) continue;
			e.preventDefault();
			if (key.action() !== false) return;
		}
	}
}

/* The one that has the focus needs the key itself: to type, to scroll, or because it is a dialog. */
function taken(e: KeyboardEvent): boolean {
	const at = e.target instanceof Element ? e.target : null;
	if (document.querySelector("dialog[open]")) return true;
	if (at?.matches("input, textarea, select, [contenteditable]")) return true;
	return e.key.startsWith("Arrow") && Boolean(at?.closest("#side, #panel"));
}
