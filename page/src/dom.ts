/* Elements in one call. Text from a trace is always text, never markup. */
export function $(id: string): HTMLElement {
	const element = document.getElementById(id);
	if (!element) throw new Error(`the page has no #${id}`);
	return element;
}

/* Characters that are not seen, or turn the text around them, as what they are; as the terminal does. */
export function visible(text: string): string {
	return text.replace(
		/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
		(c) => {
			const code = c.charCodeAt(0).toString(16);
			return c < "\u0100" ? `\\x${code.padStart(2, "0")}` : `\\u${code}`;
		},
	);
}

export function el<K extends keyof HTMLElementTagNameMap>(
	tag: K,
	className: string,
	...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
	const e = document.createElement(tag);
	if (className) e.className = className;
	e.append(...children.map((child) => (typeof child === "string" ? visible(child) : child)));
	return e;
}

/* The element anew and empty, in its place: nobody listens to it any more. */
export function renew(id: string): void {
	const old = $(id);
	old.replaceWith(old.cloneNode(false));
}
