/* Bytes of a dial9 trace, put together frame by frame (src/import/dial9_wire.h). */
#ifndef TESTS_UNIT_DIAL9_BUILDER_H
#define TESTS_UNIT_DIAL9_BUILDER_H

#include <stdint.h>
#include <string.h>

struct wire {
	uint8_t bytes[65536];
	size_t size;
	uint16_t types;
	uint32_t strings, stacks;
	uint64_t ns;
};

/* What a schema is made of: "name:type", type as a letter. */
#define WIRE_VARINT 9
#define WIRE_U8 11
#define WIRE_U32 13
#define WIRE_OPTIONAL 0x80

static inline void wire_put(struct wire *w, const void *bytes, size_t size)
{
	if (size > sizeof(w->bytes) - w->size)
		__builtin_trap();
	memcpy(w->bytes + w->size, bytes, size);
	w->size += size;
}

static inline void wire_number(struct wire *w, uint64_t n, size_t size)
{
	wire_put(w, &n, size);
}

static inline void wire_varint(struct wire *w, uint64_t n)
{
	for (; n >= 0x80; n >>= 7)
		wire_number(w, (n & 0x7f) | 0x80, 1);
	wire_number(w, n, 1);
}

static inline void wire_text(struct wire *w, const char *text, size_t length)
{
	wire_number(w, strlen(text), length);
	wire_put(w, text, strlen(text));
}

static inline void wire_header(struct wire *w)
{
	wire_put(w, "TRC\0\1", 5);
	w->types = 0;
	w->strings = w->stacks = 0;
	w->ns = 0;
}

struct wire_field {
	const char *name;
	uint8_t type;
};

/* A schema with time; its number. The fields end with one without name. */
static inline uint16_t wire_schema(struct wire *w, const char *name,
				   const struct wire_field *fields)
{
	uint16_t count = 0;

	while (fields[count].name)
		count++;
	wire_number(w, 1, 1);
	wire_number(w, ++w->types, 2);
	wire_text(w, name, 2);
	wire_number(w, 1, 1);
	wire_number(w, count, 2);
	for (uint16_t i = 0; i < count; i++) {
		wire_text(w, fields[i].name, 2);
		wire_number(w, fields[i].type, 1);
	}
	return w->types;
}

static inline uint32_t wire_string(struct wire *w, const char *text)
{
	wire_number(w, 3, 1);
	wire_number(w, 1, 4);
	wire_number(w, ++w->strings, 4);
	wire_text(w, text, 4);
	return w->strings;
}

static inline uint32_t wire_stack(struct wire *w, const uint64_t *frames, uint32_t count)
{
	wire_number(w, 4, 1);
	wire_number(w, 1, 4);
	wire_number(w, ++w->stacks, 4);
	wire_number(w, count, 4);
	wire_put(w, frames, count * sizeof(*frames));
	return w->stacks;
}

/* The head of an event; its fields follow. */
static inline void wire_event(struct wire *w, uint16_t type, uint64_t ns)
{
	if (ns < w->ns || ns - w->ns > 0xffffff) {
		wire_number(w, 5, 1);
		wire_number(w, ns, 8);
		w->ns = ns;
	}
	wire_number(w, 2, 1);
	wire_number(w, type, 2);
	wire_number(w, ns - w->ns, 3);
	w->ns = ns;
}

static inline void wire_annotate(struct wire *w, uint16_t type, uint16_t field, const char *key,
				 const char *value)
{
	wire_number(w, 6, 1);
	wire_varint(w, type);
	wire_number(w, 1, 2);
	wire_number(w, field, 2);
	wire_text(w, key, 2);
	wire_text(w, value, 4);
}

/* ----------------------------------------------------------- dial9's own events */

static inline void wire_poll(struct wire *w, uint64_t ns, uint64_t worker, uint64_t task,
			     const char *at)
{
	static const struct wire_field fields[] = {
		{"worker_id", 9}, {"local_queue", 11}, {"task_id", 9}, {"spawn_loc", 7}, {NULL, 0}};
	uint16_t type = wire_schema(w, "PollStartEvent", fields);
	uint32_t string = wire_string(w, at);

	wire_event(w, type, ns);
	wire_varint(w, worker);
	wire_number(w, 0, 1);
	wire_varint(w, task);
	wire_number(w, string, 4);
}

static inline void wire_numbers(struct wire *w, const char *name, uint64_t ns,
				const char *const *fields, const uint64_t *values)
{
	struct wire_field all[16] = {{NULL, 0}};
	uint16_t type;

	for (unsigned i = 0; fields[i]; i++)
		all[i] = (struct wire_field){fields[i], WIRE_VARINT};
	type = wire_schema(w, name, all);
	wire_event(w, type, ns);
	for (unsigned i = 0; fields[i]; i++)
		wire_varint(w, values[i]);
}
#define WIRE_NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define WIRE_VALUES(...) ((const uint64_t[]){__VA_ARGS__})

static inline void wire_poll_end(struct wire *w, uint64_t ns, uint64_t worker)
{
	wire_numbers(w, "PollEndEvent", ns, WIRE_NAMES("worker_id"), WIRE_VALUES(worker));
}

static inline void wire_park(struct wire *w, uint64_t ns, uint64_t worker, uint64_t tid)
{
	wire_numbers(w, "WorkerParkEvent", ns, WIRE_NAMES("worker_id", "tid"),
		     WIRE_VALUES(worker, tid));
}

static inline void wire_unpark(struct wire *w, uint64_t ns, uint64_t worker, uint64_t tid)
{
	wire_numbers(w, "WorkerUnparkEvent", ns, WIRE_NAMES("worker_id", "tid"),
		     WIRE_VALUES(worker, tid));
}

static inline void wire_span(struct wire *w, const char *step, uint64_t ns, uint64_t id)
{
	static const struct wire_field fields[] = {{"span_id", 9}, {"span_name", 7}, {NULL, 0}};
	uint16_t type = wire_schema(w, step, fields);
	uint32_t string = wire_string(w, "request");

	wire_event(w, type, ns);
	wire_varint(w, id);
	wire_number(w, string, 4);
}

#endif
