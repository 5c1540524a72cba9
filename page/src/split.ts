/* An edge between two parts of the page that can be moved, by pointer and by keys. */
import { remember, remembered } from "./theme";

interface Edge {
	edge: HTMLElement; // role=separator
	page: HTMLElement; // has the size as a variable
	name: string; // of the variable, without --
	least: number;
	most: () => number;
	usual: () => number; // as long as nobody has moved it
	at: (e: PointerEvent) => number; // when the pointer is there
	bigger: string; // key
	smaller: string;
}

function split(s: Edge): void {
	let chosen = Number(remembered(s.name));
	let size = 0;
	const lay = (): void => {
		const most = Math.max(s.most(), s.least);
		size = Math.round(Math.min(Math.max(chosen || s.usual(), s.least), most));
		s.page.style.setProperty(`--${s.name}`, `${size}px`);
		s.edge.setAttribute("aria-valuenow", String(size));
		s.edge.setAttribute("aria-valuemax", String(Math.round(most)));
	};
	const choose = (wanted: number): void => {
		chosen = wanted;
		lay();
		remember(s.name, String(size));
	};
	s.edge.setAttribute("aria-valuemin", String(s.least));
	lay();
	window.addEventListener("resize", lay);
	s.edge.addEventListener("pointerdown", (e) => {
		s.edge.setPointerCapture(e.pointerId);
		e.preventDefault();
		s.edge.focus();
	});
	s.edge.addEventListener("pointermove", (e) => {
		if (s.edge.hasPointerCapture(e.pointerId)) choose(s.at(e));
	});
	s.edge.addEventListener("keydown", (e) => {
		const by = e.key === s.bigger ? 16 : e.key === s.smaller ? -16 : 0;
		if (!by) return;
		e.preventDefault();
		e.stopPropagation();
		choose(size + by);
	});
}

/* Both edges of the page. */
export function splitPage(page: HTMLElement, side: HTMLElement, panel: HTMLElement): void {
	split({
		edge: side,
		page,
		name: "side",
		least: 240,
		most: () => innerWidth / 2,
		usual: () => Math.min(Math.max(0.26 * innerWidth, 320), 480),
		at: (e) => e.clientX,
		bigger: "ArrowRight",
		smaller: "ArrowLeft",
	});
	split({
		edge: panel,
		page,
		name: "panel",
		least: 80,
		most: () => innerHeight - 260,
		usual: () => Math.min(Math.max(0.36 * innerHeight, 200), 480),
		at: (e) => innerHeight - e.clientY,
		bigger: "ArrowUp",
		smaller: "ArrowDown",
	});
}
