/* Numbers as a person would say them. */

/* "122 ms": three digits, and no parts of a nanosecond; as in the terminal's sentences. */
export function duration(ns: number): string {
	const sign = ns < 0 ? "−" : "";
	const size = Math.abs(ns);
	for (const [unit, one] of [
		["s", 1e9],
		["ms", 1e6],
		["µs", 1e3],
	] as const)
		if (size >= 0.9995 * one) {
			const value = size / one;
			const decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
			return `${sign}${value.toFixed(decimals)} ${unit}`;
		}
	return `${sign}${size.toFixed(0)} ns`;
}

/* Where in the window: "+1 300.985 ms", with as many digits as `step` ns need. */
export function moment(ns: number, step: number): string {
	const unit: [string, number] =
		step >= 1e8 ? ["s", 1e9] : step >= 1e5 ? ["ms", 1e6] : step >= 100 ? ["µs", 1e3] : ["ns", 1];
	const digits = Math.max(0, Math.ceil(Math.log10(unit[1] / step)));
	const sign = ns < 0 ? "−" : "+";
	const [whole = "", rest] = (Math.abs(ns) / unit[1]).toFixed(Math.min(digits, 3)).split(".");
	return `${sign}${whole.replace(/\B(?=(\d{3})+$)/g, " ")}${rest ? `.${rest}` : ""} ${unit[0]}`;
}

export function count(n: number): string {
	return n.toLocaleString("en-US").replace(/,/g, " ");
}

export function share(part: number): string {
	return part >= 0.0995 ? `${(100 * part).toFixed(0)} %` : `${(100 * part).toFixed(1)} %`;
}

/* "3.2 MiB", as in the terminal. */
export function bytes(n: number): string {
	let unit = 0;
	for (; n >= 1023.95 && unit < 4; unit++) n /= 1024;
	return `${unit ? n.toFixed(1) : n} ${["B", "KiB", "MiB", "GiB", "TiB"][unit] ?? ""}`;
}

/* The class of a text that begins with a word and not with a name: its first letter is a capital. The
   text itself stays that of the terminal. */
export function sentence(text: string): string {
	return WORDS.test(text) ? "sentence" : "";
}
const WORDS = /^(an?|the|this|what|work|tasks|threads?|goroutines|nothing|no|one|loop|it|both) /;

export function verdictText(category: string): string {
	return category === "none" ? "no trouble found" : category.replace(/-/g, " ");
}

/* "1 sample", "1 204 samples" */
export function some(n: number, what: string): string {
	return `${count(n)} ${what}${n === 1 ? "" : "s"}`;
}
