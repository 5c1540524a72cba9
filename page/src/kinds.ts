/* What the things of a row are called, one of them and several. */
import { Track } from "./answers";
import { count } from "./format";
import type { Hit } from "./timeline";

const KINDS: Partial<Record<Track, [one: string, several: string]>> = {
	[Track.Polls]: ["callback", "callbacks"],
	[Track.Calls]: ["blocking call", "blocking calls"],
	[Track.Locks]: ["wait for a lock", "waits for locks"],
	[Track.Signals]: ["wait for a condition or semaphore", "waits for conditions or semaphores"],
	[Track.Runnable]: ["runnable, and others ran", "times runnable, and others ran"],
	[Track.Off]: ["off the CPU", "times off the CPU"],
	[Track.Late]: ["late wake", "late wakes"],
	[Track.Work]: ["work of a pool", "pieces of work of a pool"],
	[Track.Spans]: ["span", "spans"],
	[Track.Samples]: ["CPU sample", "CPU samples"],
	[Track.Holes]: ["loss", "losses"],
	[Track.Parks]: ["wait for work", "waits for work"],
	[Track.Tasks]: ["task", "tasks"],
	[Track.Held]: ["lock held while others waited for it", "times that locks were held while others waited"],
	[Track.Stopped]: ["the process was stopped", "times that the process was stopped"],
};

/* "callback" */
export function kindOf(hit: Hit): string {
	return hit.type === Track.Polls && !hit.what ? "turn" : (KINDS[hit.type]?.[0] ?? "");
}

/* "578 callbacks": all things of a box. Turns of a loop whose callbacks are not seen lie in the same row. */
export function many(hit: Hit): string {
	const row = hit.lane.rows[hit.row];
	let things = KINDS[hit.type]?.[1] ?? "things";
	if (hit.type === Track.Polls && row?.unnamed) things = row.unnamed === row.count ? "turns" : "callbacks or turns";
	return `${count(hit.things)} ${things}`;
}
