/*
 * Traces of dial9. Input that begins like one is taken as it is; else it follows a header and most of
 * what dial9 itself writes, described and once used, so that few bytes are events.
 */
#include "../unit/dial9_builder.h"
#include "fuzz_import.h"

static void describe(struct wire *w)
{
	wire_header(w);
	wire_unpark(w, 1000, 0, 7);
	wire_poll(w, 1001, 0, 1, "src/main.rs:1:2");
	wire_numbers(w, "TaskSpawnEvent", 1002, WIRE_NAMES("task_id", "spawn_loc"),
		     WIRE_VALUES(2, 1));
	wire_numbers(w, "WakeEventEvent", 1003, WIRE_NAMES("woken_task_id"), WIRE_VALUES(2));
	wire_numbers(w, "TaskTerminateEvent", 1004, WIRE_NAMES("task_id"), WIRE_VALUES(1));
	wire_poll_end(w, 1005, 0);
	wire_park(w, 1006, 0, 7);
	wire_span(w, "SpanEnter:a::b:c.rs:1", 1007, 1);
	wire_span(w, "SpanExit:a::b:c.rs:1", 1008, 1);
	wire_span(w, "SpanCloseEvent", 1009, 1);
	wire_schema(w, "CpuSampleEvent",
		    (const struct wire_field[]){
			    {"tid", WIRE_U8}, {"source", WIRE_U8}, {"callchain", 8}, {NULL, 0}});
	wire_schema(w, "TaskDumpEvent",
		    (const struct wire_field[]){{"task_id", 9}, {"callchain", 6}, {NULL, 0}});
	wire_schema(w, "SymbolTableEntry",
		    (const struct wire_field[]){
			    {"addr", 9}, {"symbol_name", 4}, {"inline_depth", 9}, {NULL, 0}});
	wire_schema(w, "SegmentMetadataEvent",
		    (const struct wire_field[]){{"entries", 10}, {NULL, 0}});
	wire_schema(w, "Own",
		    (const struct wire_field[]){{"a", 14}, {"b", 15}, {"c", 0x84}, {NULL, 0}});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct wire w;

	if (size > 2 && (!memcmp(data, "TR", 2) || !memcmp(data, "\x1f\x8b", 2))) {
		fuzz_import(&tacho__import_dial9, data, size);
		return 0;
	}
	w.size = 0;
	describe(&w);
	if (size > sizeof(w.bytes) - w.size)
		size = sizeof(w.bytes) - w.size;
	wire_put(&w, data, size);
	fuzz_import(&tacho__import_dial9, w.bytes, w.size);
	return 0;
}
