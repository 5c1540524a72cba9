/* No script but the page's own runs on it, whoever puts it there. */
import http from "node:http";

import { equal, matches, suite } from "./libpage.mjs";
import { trace } from "./librecord.mjs";

await suite("policy", async (t) => {
	const guess = await trace("guess");
	const ignore = /Content.Security.Policy|404/i;

	await t.test("it forbids what is inline and what is foreign", async () => {
		const address = await t.serve("view", guess);
		const response = await fetch(address);
		const policy = response.headers.get("content-security-policy") ?? "";
		matches(policy, /default-src 'none'/, "the policy");
		equal(/unsafe-inline|'unsafe-eval'|https?:|\*/.test(policy), false, `whether "${policy}" lets others in`);
	});

	await t.test("a script inside of the page does not run", async () => {
		const page = await t.view(guess, { ignore });
		const ran = await page.evaluate(async () => {
			const script = document.createElement("script");
			script.textContent = "window.ran = 'inline'";
			document.body.append(script);
			const image = document.createElement("div");
			image.innerHTML = "<img src=x onerror=\"window.ran = 'handler'\"><button onclick=\"window.ran = 'click'\">x</button>";
			document.body.append(image);
			image.querySelector("button").click();
			await new Promise((done) => image.querySelector("img").addEventListener("error", () => done(), { once: true }));
			return window.ran ?? "nothing";
		});
		equal(ran, "nothing", "what ran");
	});

	await t.test("nothing is asked of another server", async () => {
		const asked = [];
		const server = http.createServer((request, response) => {
			asked.push(request.url);
			response.writeHead(200, { "content-type": "text/javascript", "access-control-allow-origin": "*" });
			response.end("window.ran = 'foreign'");
		});
		await new Promise((done) => server.listen(0, "127.0.0.1", done));
		t.toEnd.push(() => new Promise((done) => {
			server.closeAllConnections();
			server.close(done);
		}));
		const other = `http://127.0.0.1:${server.address().port}`;
		const page = await t.view(guess, { ignore: /Content.Security.Policy|Failed to (fetch|load)/i });
		const ran = await page.evaluate(async (other) => {
			const tried = (element) => new Promise((done) => {
				element.onload = element.onerror = () => done();
				document.body.append(element);
			});
			const script = document.createElement("script");
			script.src = `${other}/script.js`;
			await tried(script);
			const image = new Image();
			image.src = `${other}/image.png`;
			await tried(image);
			await fetch(`${other}/fetch`).catch(() => undefined);
			return window.ran ?? "nothing";
		}, other);
		equal(ran, "nothing", "what ran");
		equal(asked, [], "what was asked");
	});
});
