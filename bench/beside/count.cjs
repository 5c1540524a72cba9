// node count.cjs TOOLKIT FILE...: counts the events of dial9's segments with dial9's own decoder, one
// after the other, as {"events": N, "by_name": {NAME: N}, "last_task_ns": "N"}: when a task did
// something for the last time.
const fs = require('fs');
const [toolkit, ...files] = process.argv.slice(2);
const { TraceDecoder } = require(`${toolkit}/decode.js`);

const found = { events: 0, by_name: {}, last_task_ns: 0n };
for (const file of files) {
	const decoder = new TraceDecoder(fs.readFileSync(file));
	if (!decoder.decodeHeader())
		continue;
	for (let frame; (frame = decoder.nextFrame());) {
		if (frame.type !== 'event')
			continue;
		found.events++;
		found.by_name[frame.name] = (found.by_name[frame.name] || 0) + 1;
		if (/^(Poll|Wake|Task)/.test(frame.name) && BigInt(frame.timestamp_ns) > found.last_task_ns)
			found.last_task_ns = BigInt(frame.timestamp_ns);
	}
}
found.last_task_ns = String(found.last_task_ns);
console.log(JSON.stringify(found));
