/* What axe-core says of a page. */
import fs from "node:fs";

import { modules } from "./libpage.mjs";

const AXE = fs.readFileSync(modules.resolve("axe-core/axe.min.js"), "utf8");

/* In all of the page, or in the parts that are given. Evaluated by the debugger, which no policy of the page stops. */
export async function noViolations(page, ...within) {
	await page.waitForFunction(() => !document.querySelector('[aria-busy="true"]'));
	await page.evaluate(AXE);
	const found = await page.evaluate(async (parts) => {
		const { violations } = await globalThis.axe.run(parts.length ? { include: parts } : document);
		return violations.filter((v) => ["serious", "critical"].includes(v.impact))
			.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target} ${n.any[0]?.message ?? ""}`).slice(0, 3).join("; ")}`);
	}, within);
	if (found.length) throw new Error(found.join(" | "));
}
