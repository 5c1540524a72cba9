/* Where the lanes are and what they show: the address tells it, as it tells everybody. */
import { ok, painted, until } from "./libpage.mjs";

export const GUTTER = 190; // of page/src/layout.ts
export const RULER = 26;

/* [from, to] in ns since the beginning of the window; undefined: all of it, as in the beginning. */
export function viewOf(page) {
	const part = new URLSearchParams(new URL(page.url()).hash.slice(1)).get("view");
	const match = /^(-?\d+)-(-?\d+)$/.exec(part ?? "");
	return match ? [Number(match[1]), Number(match[2])] : undefined;
}

/* The view after something was done, when the address says so. */
export async function viewAfter(page, action) {
	const before = JSON.stringify(viewOf(page));
	await action();
	await until("another view in the address", () => JSON.stringify(viewOf(page)) !== before);
	let last;
	/* It says it once all is still. */
	await until("the same view twice", async () => {
		const now = JSON.stringify(viewOf(page)), same = now === last;
		last = now;
		await painted(page);
		await page.waitForTimeout(250); // the address waits 200 ms for more to come
		return same;
	});
	return viewOf(page);
}

export function near(is, wanted, slack, what) {
	ok(Math.abs(is - wanted) <= slack, `${what} is ${is}, not ${wanted} (by ${slack})`);
}

export function lanesBox(page) {
	return page.locator("#lanes canvas").boundingBox();
}
