/*
 * Events of the program, what dial9 says of itself and of the process: typed events, counters and
 * gauges.
 */
#include <inttypes.h>
#include <stdio.h>

#include "import/dial9_making.h"

/* Since 2020, in ns: a time of that size is no CLOCK_MONOTONIC. */
#define WALL_FROM_NS UINT64_C(1577836800000000000)

/* ------------------------------------------------------------------ numbers */

static uint32_t define_number(struct tacho__dial9 *d, enum tacho_definition_class class,
			      const char *name, const char *unit)
{
	return tacho__made_define(d->made, &(struct tacho_definition){.def_class = (uint8_t) class,
								      .value_type = TACHO_VALUE_I64,
								      .name = name,
								      .unit = unit});
}

static void put_number(struct tacho__dial9 *d, uint64_t ns, uint32_t id, uint64_t value)
{
	tacho__made_put(d->made, tacho__dial9_here(d), ns, TACHO_REC_COUNTER, id, &value, 1);
}

/* Of all runtimes together; before RuntimeMetricsEvent, of which one there is for each. */
static void put_queue_sample(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
			     struct tacho__dial9_known *k)
{
	if (d->look)
		return;
	if (!k->ids[0])
		k->ids[0] = define_number(d, TACHO_DEF_GAUGE, "global queue (modulo 256)", "tasks");
	if (!k->ids[1])
		k->ids[1] = define_number(d, TACHO_DEF_GAUGE, "tasks alive", "tasks");
	if (tacho__dial9_get(e, k, 0))
		put_number(d, e->ns, k->ids[0], tacho__dial9_number(e, k, 0, 0));
	if (tacho__dial9_get(e, k, 1))
		put_number(d, e->ns, k->ids[1], tacho__dial9_number(e, k, 1, 0));
}

static void put_runtime_metrics(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
				struct tacho__dial9_known *k)
{
	static const char *const what[] = {"global queue", "tasks alive"};
	const struct tacho__dial9_value *v = tacho__dial9_get(e, k, 2);
	char runtime[128] = "", name[192];

	if (d->look)
		return;
	if (v)
		tacho__dial9_text(&d->wire, v, runtime, sizeof(runtime));
	for (unsigned i = 0; i < 2; i++) {
		if (!tacho__dial9_get(e, k, i))
			continue;
		snprintf(name, sizeof(name), "%s%s%s", what[i], runtime[0] ? " of runtime " : "",
			 runtime);
		put_number(d, e->ns, define_number(d, TACHO_DEF_GAUGE, name, "tasks"),
			   tacho__dial9_number(e, k, i, 0));
	}
}

static void put_usage(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
		      struct tacho__dial9_known *k)
{
	static const struct {
		const char *name, *unit;
	} what[] = {{"user CPU time", "ns"},
		    {"system CPU time", "ns"},
		    {"largest resident memory", "bytes"},
		    {"minor faults", ""},
		    {"major faults", ""},
		    {"block input", "operations"},
		    {"block output", "operations"},
		    {"voluntary switches", ""},
		    {"involuntary switches", ""}};

	if (d->look)
		return;
	for (unsigned i = 0; i < 9; i++) {
		if (!tacho__dial9_get(e, k, i))
			continue;
		if (!k->ids[i])
			k->ids[i] = define_number(d, i == 2 ? TACHO_DEF_GAUGE : TACHO_DEF_COUNTER,
						  what[i].name, what[i].unit);
		put_number(d, e->ns, k->ids[i], tacho__dial9_number(e, k, i, 0));
	}
}

static void put_accept_queue(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
			     struct tacho__dial9_known *k)
{
	const struct tacho__dial9_value *v = tacho__dial9_get(e, k, 0);
	char address[64] = "", name[128];

	if (d->look)
		return;
	if (v)
		tacho__dial9_text(&d->wire, v, address, sizeof(address));
	for (unsigned i = 2; i < 4; i++) {
		if (!tacho__dial9_get(e, k, i))
			continue;
		snprintf(name, sizeof(name), "%s %s:%" PRIu64,
			 i == 2 ? "accept queue of" : "backlog of", address,
			 tacho__dial9_number(e, k, 1, 0));
		put_number(d, e->ns, define_number(d, TACHO_DEF_GAUGE, name, "connections"),
			   tacho__dial9_number(e, k, i, 0));
	}
}

static void put_memory_overflow(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
				struct tacho__dial9_known *k)
{
	if (d->look)
		return;
	d->dropped_allocs += tacho__dial9_number(e, k, 0, 0);
	d->dropped_frees += tacho__dial9_number(e, k, 1, 0);
}

/* ----------------------------------------------------------------- metadata */

static void put_clock(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
		      struct tacho__dial9_known *k)
{
	uint64_t real_ns = tacho__dial9_number(e, k, 0, 0);

	if (d->look || !real_ns)
		return;
	d->anchored = 1;
	tacho__made_anchor(d->made, e->ns, real_ns);
}

/* "runtime.main" = "0,1,2": its workers. */
static void know_runtime(struct tacho__dial9 *d, const char *name, const char *list)
{
	char *end;

	for (const char *at = list; *at; at = *end ? end + 1 : end) {
		uint64_t number = strtoull(at, &end, 10);
		struct tacho__dial9_worker *w;

		if (end == at)
			return;
		w = tacho__dial9_worker(d, number);
		if (!w)
			return;
		w->listed = 1;
		if (!w->runtime[0])
			snprintf(w->runtime, sizeof(w->runtime), "%.63s", name);
	}
}

static void know_text(char *to, size_t size, const char *text)
{
	if (!*to)
		snprintf(to, size, "%s", text);
}

static void know_entry(struct tacho__dial9 *d, const char *key, const char *value)
{
	if (!strncmp(key, "runtime.", 8))
		know_runtime(d, key + 8, value);
	else if (!strcmp(key, "dial9.dial9-tokio-telemetry.version"))
		know_text(d->version, sizeof(d->version), value);
	else if (!strcmp(key, "service") || !strcmp(key, "service_name"))
		know_text(d->service, sizeof(d->service), value);
	else if (!strcmp(key, "cpu.profile.machine_hostname"))
		know_text(d->host, sizeof(d->host), value);
	else if (!strcmp(key, "cpu.profile.frequency_hz") && strtoull(value, NULL, 10))
		d->sample_ns = 1000000000u / strtoull(value, NULL, 10);
	else if (!strcmp(key, "tokio.poll_coverage") && !strcmp(value, "dial9-spawns-only"))
		d->spawns_only = 1;
	else if (!strcmp(key, "tokio.local_queue") && !strcmp(value, "false"))
		d->no_queue = 1;
}

/* What a segment says of itself; what it says again is not told again. */
static void tell_entry(struct tacho__dial9 *d, const struct tacho__dial9_event *e, const char *key,
		       const char *value)
{
	static const struct tacho_field fields[] = {{"key", TACHO_FIELD_STRING, 0},
						    {"value", TACHO_FIELD_STRING, 0}};
	uint64_t hash =
		tacho__hash_bytes(key, strlen(key), tacho__hash_bytes(value, strlen(value), 0));
	uint64_t words[TACHO_RECORD_MAX_WORDS] = {3 << 16};
	uint32_t n = 1, id;

	if (tacho__map_get(&d->texts, hash))
		return;
	if (tacho__map_put(&d->texts, hash, 1))
		d->error = -ENOMEM;
	id = tacho__made_define(d->made, &(struct tacho_definition){.def_class = TACHO_DEF_SCHEMA,
								    .name = "dial9 metadata",
								    .fields = fields,
								    .count = 2});
	n += tacho__made_pack(words + n, key, strlen(key));
	n += tacho__made_pack(words + n, value, strlen(value));
	tacho__made_put(d->made, tacho__dial9_here(d), e->ns, TACHO_REC_EVENT, id, words, n);
}

static void put_metadata(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
			 struct tacho__dial9_known *k)
{
	const struct tacho__dial9_value *v = tacho__dial9_get(e, k, 0);
	int wall = e->ns >= WALL_FROM_NS;
	char key[200], value[300];
	size_t at = 0;

	/* Before there was ClockSyncEvent its time was that of the wall clock. */
	if (wall && !d->legacy_real_ns)
		d->legacy_real_ns = e->ns;
	while (v && tacho__dial9_entry(v, &at, key, sizeof(key), value, sizeof(value))) {
		/* Names of runtimes are known before the first event of their workers. */
		if (d->look) {
			know_entry(d, key, value);
			continue;
		}
		if ((!strcmp(key, "segment.complete") || !strcmp(key, "segment.sealed_clean")) &&
		    !strcmp(value, "false"))
			d->incomplete++;
		if (!wall)
			tell_entry(d, e, key, value);
	}
}

const struct tacho__dial9_kind tacho__dial9_events[] = {
	{"ClockSyncEvent", put_clock, {"realtime_ns"}},
	{"SegmentMetadataEvent", put_metadata, {"entries"}},
	{"QueueSampleEvent", put_queue_sample, {"global_queue", "active_tasks"}},
	{"RuntimeMetricsEvent",
	 put_runtime_metrics,
	 {"global_queue_depth", "alive_tasks", "runtime_name"}},
	{"ProcessResourceUsageEvent",
	 put_usage,
	 {"user_cpu_ns", "system_cpu_ns", "max_rss_bytes", "minor_faults", "major_faults",
	  "block_input_ops", "block_output_ops", "voluntary_context_switches",
	  "involuntary_context_switches"}},
	{"TcpAcceptQueueEvent",
	 put_accept_queue,
	 {"local_addr", "local_port", "pending_connections", "backlog_limit"}},
	{"MemoryProfileOverflowEvent", put_memory_overflow, {"dropped_allocs", "dropped_frees"}},
	{NULL, NULL, {NULL}},
};

/* ------------------------------------------------------------- typed events */

static int is_one_of(const char *name, const char *const *names)
{
	for (; names && *names; names++)
		if (!strcmp(name, *names))
			return 1;
	return 0;
}

static uint8_t type_of(uint8_t type)
{
	switch (type & 0x7f) {
	case TACHO__DIAL9_I64:
		return TACHO_FIELD_I64;
	case TACHO__DIAL9_F64:
		return TACHO_FIELD_F64;
	case TACHO__DIAL9_BOOL:
		return TACHO_FIELD_BOOL;
	case TACHO__DIAL9_VARINT:
	case TACHO__DIAL9_U8:
	case TACHO__DIAL9_U16:
	case TACHO__DIAL9_U32:
		return TACHO_FIELD_U64;
	default:
		return TACHO_FIELD_STRING;
	}
}

uint32_t tacho__dial9_event_schema(struct tacho__dial9 *d, const struct tacho__dial9_schema *s,
				   const char *name, const char *const *skip)
{
	struct tacho_field fields[TACHO_SCHEMA_FIELDS];
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->field_count && i < TACHO__DIAL9_VALUES; i++) {
		if (is_one_of(s->fields[i].name, skip))
			continue;
		if (count == TACHO_SCHEMA_FIELDS) {
			tacho__made_say(
				d->made,
				"of events with more than %u fields (%.40s) the rest is left out",
				TACHO_SCHEMA_FIELDS, name);
			break;
		}
		/* Also those that are not optional there: their text may be in no pool. */
		fields[count++] =
			(struct tacho_field){s->fields[i].name, type_of(s->fields[i].type), 1};
	}
	return tacho__made_define(d->made, &(struct tacho_definition){.def_class = TACHO_DEF_SCHEMA,
								      .name = name,
								      .fields = fields,
								      .count = count});
}

uint32_t tacho__dial9_event_words(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
				  const char *const *skip, uint64_t *words)
{
	uint32_t n = 1, field = 0;
	uint64_t mask = 0;
	char text[TACHO_TEXT_MAX + 2];

	for (uint32_t i = 0; i < e->count && field < TACHO_SCHEMA_FIELDS; i++) {
		const struct tacho__dial9_value *v = &e->values[i];
		uint32_t left = TACHO_RECORD_MAX_WORDS - n;
		size_t size;

		if (is_one_of(e->schema->fields[i].name, skip))
			continue;
		field++;
		if (!v->there || !left)
			continue;
		if (type_of(v->type) != TACHO_FIELD_STRING) {
			mask |= UINT64_C(1) << (field - 1);
			words[n++] = v->type == TACHO__DIAL9_BOOL ? v->number != 0 : v->number;
			continue;
		}
		/* A word is kept for each field that may still come. */
		if (left < TACHO_SCHEMA_FIELDS + 2)
			continue;
		mask |= UINT64_C(1) << (field - 1);
		size = (left - TACHO_SCHEMA_FIELDS - 1) * 8 + 1;
		tacho__dial9_text(&d->wire, v, text, size < sizeof(text) ? size : sizeof(text));
		n += tacho__made_pack(words + n, text, strlen(text));
	}
	words[0] = mask << 16;
	return n;
}

void tacho__dial9_event_put(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
			    struct tacho__dial9_known *k)
{
	uint64_t words[TACHO_RECORD_MAX_WORDS];
	uint32_t n;

	if (!k->id)
		k->id = tacho__dial9_event_schema(d, e->schema, e->schema->name, NULL);
	n = tacho__dial9_event_words(d, e, NULL, words);
	tacho__made_put(d->made, tacho__dial9_here(d), e->ns, TACHO_REC_EVENT, k->id, words, n);
}
