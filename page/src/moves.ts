/* Keys that move through the lanes, also while they are loaded. */
import type { Keys } from "./keys";
import type { Timeline } from "./timeline";

export function addMoves(keys: Keys, timeline: Timeline): void {
	keys.add("w", "zoom in", () => timeline.zoom(0.7));
	keys.add("s", "zoom out", () => timeline.zoom(1 / 0.7));
	keys.add("a ArrowLeft", "earlier", () => timeline.move(-0.2));
	keys.add("d ArrowRight", "later", () => timeline.move(0.2));
	keys.add("ArrowUp", "lanes above", () => timeline.scrollBy(-40));
	keys.add("ArrowDown", "lanes below", () => timeline.scrollBy(40));
	keys.add("q", "box before, or the longest in view", () => timeline.step(-1));
	keys.add("e", "box after", () => timeline.step(1));
	keys.add("r", "select what is in view as the range", () => timeline.setRange({ ...timeline.view }));
	keys.add("f", "fit the range, or all", () => timeline.fit());
}
