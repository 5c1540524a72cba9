/* What is seen when no trace is: nothing yet, or one that can not be read. Each says
   why, and what to do. */
import { $, el } from "./dom";

function show(className: string, ...children: Node[]): void {
	$("page").hidden = true;
	$("notices").replaceChildren();
	$("what").replaceChildren();
	$("help").hidden = true;
	document.title = "tacho";
	const start = $("start");
	start.hidden = false;
	start.className = className;
	start.replaceChildren(el("div", "card", ...children));
}

function chooser(open: (file: File) => unknown): HTMLElement {
	const input = el("input", "file");
	input.type = "file";
	input.id = "file";
	input.addEventListener("change", () => {
		const file = input.files?.[0];
		if (file) open(file);
	});
	const label = el("label", "button", "Choose a file");
	label.htmlFor = input.id;
	return el("p", "actions", input, label);
}

export function showStart(open: (file: File) => unknown): void {
	show(
		"empty",
		el("h1", "", "Drop a trace here"),
		el("p", "", "A file that tacho run, tacho dump or tacho recover has written. It is read in this page and does not leave this machine."),
		chooser(open),
		el("p", "hint", "No trace yet? ", el("code", "", "tacho run -- COMMAND"), " makes one of any program with an event loop."),
	);
}

/* What others have recorded is imported by the program, not by the page. */
const FOREIGN: [begins: string, what: string][] = [
	["go 1.", "it is an execution trace of Go"],
	["TRC\0", "it is a trace of dial9"],
	["\x1f\x8b", "it is packed with gzip, as traces of Go and of dial9 are"],
];

/* undefined: it is none of these. */
export async function whyForeign(file: File): Promise<string | undefined> {
	const head = [...new Uint8Array(await file.slice(0, 16).arrayBuffer())].map((c) => String.fromCharCode(c)).join("");
	const what = FOREIGN.find(([begins]) => head.startsWith(begins))?.[1];
	return what && `cannot read : ${what}, and the page reads traces of tacho alone. 'tacho view ${file.name}' shows it, and ` +
		`'tacho import ${file.name} -o OUT.tacho' makes a trace that can be dropped here.`;
}

export function showFailed(error: unknown, name: string, open: (file: File) => unknown): void {
	const said = error instanceof Error ? error.message : String(error);
	/* The reader knows no name of what is in memory. */
	const text = said.replace(/^cannot read ?: /, `${name || "It"} can not be read: `);
	const why = el("p", "why", /[.!?]$/.test(text) ? text : `${text}.`);
	why.setAttribute("role", "alert");
	show(
		"failed",
		el("h1", "", "This trace can not be shown"),
		why,
		el("p", "hint", "What can be said of it, ", el("code", "", "tacho info FILE"), " says. Another one can be dropped here."),
		chooser(open),
	);
}

/* A file that is dropped anywhere on the page, whatever it shows. */
export function takeDrops(open: (file: File) => unknown): void {
	const dragged = (on: boolean): void => void document.body.classList.toggle("dragged", on);
	document.addEventListener("dragover", (e) => {
		e.preventDefault();
		dragged(true);
	});
	document.addEventListener("dragleave", (e) => {
		if (!e.relatedTarget) dragged(false);
	});
	document.addEventListener("drop", (e) => {
		e.preventDefault();
		dragged(false);
		const file = e.dataTransfer?.files[0];
		if (file) open(file);
	});
}
