/* Moments as people write them: "1.25s", "-300ms", "03:12:08.3", "2026-11-16 03:12 local". */
const UNITS: Record<string, number> = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9 };

const DAY = 86400e9;

export interface Window {
	ns: number;
	realMs: number; // of its beginning, since 1970; 0: not known
}

/* ns since the beginning of the window, or a sentence that says what is wrong. */
export function parseMoment(text: string, window: Window, utc: boolean): number | string {
	const t = text.trim();
	const relative = /^([+-]?)\s*(\d+(?:\.\d+)?)\s*([a-zµ]+)$/i.exec(t);
	if (relative) {
		const unit = UNITS[(relative[3] as string).toLowerCase()];
		if (!unit) return `"${relative[3] as string}" is no unit: ns, us, ms, s, min or h.`;
		const ns = Number(relative[2]) * unit;
		return within(relative[1] === "-" ? window.ns - ns : ns, window);
	}
	const wall = /^(?:(\d{4})-(\d\d)-(\d\d)[T ])?(\d{1,2}):(\d\d)(?::(\d\d)(\.\d+)?)?\s*(z|utc|local)?$/i.exec(t);
	if (!wall) return "Give a time since the beginning, such as 1.25s, or a time of day, such as 03:12:08.3.";
	if (!window.realMs) return "This trace does not say what time of day it was.";
	const zone = wall[8]?.toLowerCase();
	return wallMoment(wall, window, zone === "local" ? false : zone ? true : utc);
}

function wallMoment(m: RegExpExecArray, window: Window, utc: boolean): number | string {
	const begin = new Date(window.realMs);
	const day = m[1]
		? [Number(m[1]), Number(m[2]) - 1, Number(m[3])]
		: utc
			? [begin.getUTCFullYear(), begin.getUTCMonth(), begin.getUTCDate()]
			: [begin.getFullYear(), begin.getMonth(), begin.getDate()];
	const [year, month, date] = day as [number, number, number];
	const [h, min, s] = [Number(m[4]), Number(m[5]), Number(m[6] ?? 0)];
	if (h > 23 || min > 59 || s > 59) return "There is no such time of day.";
	const ms = utc ? Date.UTC(year, month, date, h, min, s) : new Date(year, month, date, h, min, s).getTime();
	let ns = (ms - window.realMs) * 1e6 + Number(m[7] ?? 0) * 1e9;
	/* Without a date it is the first one in the window or after its beginning. */
	if (!m[1] && ns < 0 && ns + DAY <= window.ns) ns += DAY;
	return within(ns, window);
}

function within(ns: number, window: Window): number | string {
	if (ns < 0) return "That is before the beginning of this trace.";
	if (ns > window.ns) return "That is after the end of this trace.";
	return ns;
}
