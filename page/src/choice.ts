/* What a person has chosen to see of the lanes: folded, hidden, in which order, filtered. */
export class Choice {
	private readonly folds = new Map<string, boolean>();
	private readonly hidden = new Set<string>();
	private order: string[] = [];
	filter = "";
	byDuration = false;

	folded(key: string, otherwise: boolean): boolean {
		return this.folds.get(key) ?? otherwise;
	}
	fold(key: string, folded: boolean): void {
		this.folds.set(key, folded);
	}
	isHidden(key: string): boolean {
		return this.hidden.has(key);
	}
	hide(key: string): void {
		this.hidden.add(key);
	}
	get hiddenCount(): number {
		return this.hidden.size;
	}
	showAll(): void {
		this.hidden.clear();
	}

	/* Those that were never moved stay as they are, behind those that were. */
	sort<T extends { key: string }>(all: T[]): T[] {
		const at = (x: T): number => {
			const i = this.order.indexOf(x.key);
			return i < 0 ? this.order.length : i;
		};
		return all.sort((a, b) => at(a) - at(b));
	}
	/* `keys`: all of one process as they are to be; `other` ones keep their place. */
	reorder(keys: string[]): void {
		this.order = [...this.order.filter((k) => !keys.includes(k)), ...keys];
	}

	/* For the address. */
	get text(): string {
		const folds = [...this.folds].map(([key, folded]) => `${folded ? "-" : "+"}${key}`);
		const parts = [folds, [...this.hidden], this.order].map((list) => list.join(","));
		const all = [...parts, this.byDuration ? "d" : "", this.filter].join(";");
		return all === ";;;;" ? "" : all;
	}
	set text(value: string) {
		const [folds, hidden, order, by, ...filter] = value.split(";");
		const list = (text: string | undefined): string[] => (text ? text.split(",") : []);
		this.folds.clear();
		this.hidden.clear();
		for (const f of list(folds)) this.folds.set(f.slice(1), f.startsWith("-"));
		for (const key of list(hidden)) this.hidden.add(key);
		this.order = list(order);
		this.byDuration = by === "d";
		this.filter = filter.join(";");
	}
}
