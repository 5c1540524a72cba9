/* A process that runs: the last seconds of it, again and again; held, kept, and its end. */
import { $, el } from "./dom";
import { duration } from "./format";
import { get, getJson, type Shower } from "./served";

interface State {
	snapshot: number;
	window_ns: number;
	ended: boolean;
	end: string | null;
	error: string | null;
	kept: { number: number; error: string | null; name?: string; path?: string } | null;
}

const PAUSE_MS = 500;

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

export class Live {
	private held = false;
	private shown = 0;
	private readonly hold = el("button", "", "Hold");
	private readonly keep = el("button", "", "Keep");
	private readonly state = el("span", "live-state");
	private readonly kept = el("span", "live-kept");

	constructor(private readonly page: Shower) {
		this.state.setAttribute("role", "status");
		this.kept.setAttribute("role", "status");
		this.hold.title = "Stops what is shown, to look at it; the process runs on";
		this.keep.title = "Writes a trace file, as tacho dump does";
		this.hold.addEventListener("click", () => this.setHeld(!this.held));
		this.keep.addEventListener("click", () => void this.write());
		$("what").after(el("div", "live", this.state, this.hold, this.keep, this.kept));
		/* Who points at something, or goes somewhere, wants it to stay. */
		for (const event of ["pointerdown", "wheel"])
			$("page").addEventListener(event, () => this.setHeld(true), { capture: true, passive: true });
		document.addEventListener("keydown", (e) => {
			const moves = e.key.length === 1 || e.key.startsWith("Arrow");
			if (moves && e.key !== " " && !e.ctrlKey && !e.metaKey && !e.altKey) this.setHeld(true);
		});
	}

	private setHeld(held: boolean): void {
		if (this.hold.hidden) return;
		this.held = held;
		this.hold.textContent = held ? "Follow" : "Hold";
		if (held) this.tell("held", "Held: the process runs on");
	}

	private tell(kind: string, text: string): void {
		this.state.className = `live-state ${kind}`;
		if (this.state.textContent !== text) this.state.textContent = text;
	}

	/* Until the process has ended, and its end is shown. */
	async run(): Promise<void> {
		for (;;) {
			try {
				if (!this.held && (await this.step())) return;
			} catch (error) {
				/* What is shown stays. */
				this.hold.hidden = this.keep.hidden = true;
				this.tell("ended", error instanceof Error ? error.message : String(error));
				return;
			}
			await sleep(PAUSE_MS);
		}
	}

	private async step(): Promise<boolean> {
		const state = await getJson<State>("live");
		await this.show(state);
		return state.ended && this.shown === state.snapshot;
	}

	private async show(state: State): Promise<void> {
		if (state.snapshot !== this.shown) {
			const data = await (await get("snapshot")).arrayBuffer();
			if (this.held) return;
			/* What was looked at while it was held is not there any more. */
			history.replaceState(null, "", location.pathname + location.search);
			await this.page.open(data, this.shown > 0);
			this.shown = state.snapshot;
		}
		if (state.ended) {
			this.hold.hidden = true;
			this.held = false;
			this.tell("ended", `Ended: ${state.end ?? "how is not known"}`);
		} else if (state.error) {
			this.tell("held", state.error);
		} else if (!this.held) {
			this.tell("following", `Live: the last ${duration(state.window_ns)}`);
		}
	}

	/* What is held, or else all that the box holds now. */
	private async write(): Promise<void> {
		this.keep.disabled = true;
		this.kept.replaceChildren("Keeping …");
		try {
			const path = this.held ? `keep/${this.shown}` : "keep";
			const response = await fetch(path, { method: "POST" });
			if (!response.ok) throw new Error((await response.text()).trim());
			const { number } = (await response.json()) as { number: number };
			let kept: State["kept"] = null;
			while ((kept?.number ?? 0) < number) {
				await sleep(100);
				kept = (await getJson<State>("live")).kept;
			}
			if (!kept?.name) throw new Error(kept?.error ?? "It was not written.");
			const link = el("a", "", kept.path ?? kept.name);
			link.href = `?trace=${encodeURIComponent(kept.name)}`;
			link.target = "_blank";
			this.kept.replaceChildren("Kept as ", link);
		} catch (error) {
			this.kept.replaceChildren(error instanceof Error ? error.message : String(error));
		}
		this.keep.disabled = false;
	}
}
