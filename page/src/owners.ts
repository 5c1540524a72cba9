/* The owners of the ledger: one colour each, everywhere. */
import type { Place } from "./answers";

const OWNERS: Record<string, string> = {
	idle: "idle",
	late: "late",
	code: "code",
	call: "call",
	lock: "lock",
	descheduled: "late",
	throttled: "late",
	stopped: "stopped",
	faulting: "stopped",
	recorder: "runtime",
	"not observed": "unseen",
	/* Of what is on no thread: tacho blame. */
	"queued in pool": "late",
	"work in pool": "code",
	"waiting for I/O": "idle",
};

export function ownerClass(owner: string): string {
	return OWNERS[owner] ?? "unseen";
}

export function placeText(p: Place | null | undefined): string {
	if (!p) return "";
	if (p.function && p.file) return `${p.function} (${p.file}:${p.line ?? "?"})`;
	return p.function ?? `${p.module ?? "?"}+${p.offset ?? "?"}`;
}
