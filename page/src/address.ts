/* What is seen is in the address behind the #, so that it can be shared and survives a reload. */
/* "1200-3400", as a part has it; also before the beginning: "-100-3400". */
export function spanOf(text: string): { from: number; to: number } | undefined {
	const [, from, to] = /^(-?\d+)-(-?\d+)$/.exec(text) ?? [];
	return Number(from) < Number(to) ? { from: Number(from), to: Number(to) } : undefined;
}

interface Part {
	name: string;
	get: () => string; // "": as it is without it
	set: (value: string) => void;
}

export class Address {
	private readonly parts: Part[] = [];
	private waiting = 0;
	private readonly listener = (): void => this.read();

	constructor() {
		window.addEventListener("hashchange", this.listener);
	}

	part(name: string, get: () => string, set: (value: string) => void): void {
		this.parts.push({ name, get, set });
	}

	/* Something of it has changed. */
	changed(): void {
		if (this.waiting) return;
		this.waiting = window.setTimeout(() => {
			this.waiting = 0;
			const all = new URLSearchParams();
			for (const p of this.parts) if (p.get()) all.set(p.name, p.get());
			const text = all.toString();
			history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
		}, 200);
	}

	read(): void {
		const all = new URLSearchParams(location.hash.slice(1));
		for (const p of this.parts) {
			const value = all.get(p.name);
			if (value !== null) p.set(value);
		}
	}

	end(): void {
		window.clearTimeout(this.waiting);
		window.removeEventListener("hashchange", this.listener);
	}
}
