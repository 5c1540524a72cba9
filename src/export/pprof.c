/*
 * A profile for pprof: profile.proto, gzipped.
 *
 * The fields of a Profile may come in any order and samples that are alike are added up by
 * readers. So names, functions and locations are written when they first occur, samples when the
 * table that adds them up is full, and mappings at the end, when it is known what of them has
 * names. Numbers of fields: github.com/google/pprof/proto/profile.proto.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "export/code.h"
#include "export/export.h"
#include "export/gzip.h"
#include "export/text.h"
#include "model/place.h"

#define SAMPLES_MAX (1u << 17)
#define BODIES_MAX (64u << 20) /* bytes */
#define NAMES_MAX (1u << 20)
#define MAPPINGS_MAX (1u << 16)
#define OUTPUT_PART (1u << 16)

enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE = 14,
};
enum { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STRING = 2, LABEL_NUMBER = 3 };
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };
enum {
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_OFFSET = 4,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILES = 8,
	MAPPING_HAS_LINES = 9,
	MAPPING_HAS_INLINED = 10,
};

struct numbered {
	struct tacho__entry entry; /* key: two hashes of a text, or of a function */
	uint64_t id;
};

struct mapping {
	struct tacho__entry entry; /* key: process, id of the module or of what stands for one */
	uint64_t id;
	const struct tacho_definition *module; /* NULL: the kernel */
	uint8_t functions, files, lines, inlined;
};

struct summed {
	struct tacho__entry entry; /* key: two hashes of stack and labels */
	uint64_t count, cpu_ns;
	size_t body, body_size; /* locations and labels in `bodies` */
};

struct pprof {
	struct tacho_reader *reader;
	const struct tacho__export_options *options;
	struct tacho__gzip *gzip;
	struct tacho__proto out, bodies;
	struct tacho__codes codes;
	struct tacho__samplers samplers;
	struct tacho__table texts, functions, mappings, samples;
	uint64_t no_location; /* stands for code that found no room; 0: not needed yet */
	uint64_t key_loop, key_kind, key_task, key_thread, key_pid;
	int several, error;
	struct tacho__exported *exported;
};

static void push_out(struct pprof *p, size_t least)
{
	if (p->out.bad)
		p->error = -ENOMEM;
	if (p->out.size < least)
		return;
	tacho__gzip_write(p->gzip, p->out.data, p->out.size);
	p->out.size = 0;
	if (p->gzip->error)
		p->error = p->gzip->error;
}

/* -------------------------------------------------------------------- names */

static uint64_t text_id(struct pprof *p, const char *text)
{
	size_t size = strlen(text);
	struct numbered *n;

	if (!size)
		return 0;
	n = tacho__table_get(&p->texts, tacho__hash_bytes(text, size, 1),
			     tacho__hash_bytes(text, size, 2), &p->error);
	if (!n)
		return 0;
	if (!n->id) {
		n->id = p->texts.count; /* the empty text, which is 0, is not in the table */
		tacho__proto_text(&p->out, PROFILE_STRING, text);
	}
	return n->id;
}

static uint64_t function_id(struct pprof *p, const struct tacho__code_line *line)
{
	uint64_t name = text_id(p, line->function), file = text_id(p, line->file);
	struct numbered *n = tacho__table_get(&p->functions, name, file, &p->error);
	size_t begin;

	if (!n)
		return 0;
	if (!n->id) {
		n->id = p->functions.count;
		begin = tacho__proto_begin(&p->out, PROFILE_FUNCTION);
		tacho__proto_u64(&p->out, FUNCTION_ID, n->id);
		tacho__proto_u64(&p->out, FUNCTION_NAME, name);
		tacho__proto_u64(&p->out, FUNCTION_SYSTEM_NAME, name);
		tacho__proto_u64(&p->out, FUNCTION_FILE, file);
		tacho__proto_end(&p->out, begin);
	}
	return n->id;
}

static struct mapping *mapping_of(struct pprof *p, uint32_t process,
				  const struct tacho_definition *module)
{
	struct mapping *m =
		tacho__table_get(&p->mappings, process, module ? module->id : 0, &p->error);

	if (m && !m->id) {
		m->id = p->mappings.count;
		m->module = module;
	}
	return m;
}

/* ---------------------------------------------------------------- locations */

static uint64_t put_location(struct pprof *p, struct tacho__code *code)
{
	struct mapping *m = NULL;
	uint64_t functions[32];
	uint32_t lines = code->count < 32 ? code->count : 32;
	size_t begin, line;

	if (code->module || code->kernel)
		m = mapping_of(p, code->process, code->module);
	/* These are fields of the profile themselves: before the location begins. */
	for (uint32_t i = 0; i < lines; i++)
		functions[i] = function_id(p, tacho__code_line(&p->codes, code, i));
	begin = tacho__proto_begin(&p->out, PROFILE_LOCATION);
	tacho__proto_u64(&p->out, LOCATION_ID, code->id);
	if (m)
		tacho__proto_u64(&p->out, LOCATION_MAPPING, m->id);
	tacho__proto_u64(&p->out, LOCATION_ADDRESS, code->address);
	for (uint32_t i = 0; i < lines; i++) {
		const struct tacho__code_line *l = tacho__code_line(&p->codes, code, i);

		if (!functions[i])
			continue;
		line = tacho__proto_begin(&p->out, LOCATION_LINE);
		tacho__proto_u64(&p->out, LINE_FUNCTION, functions[i]);
		if (l->line)
			tacho__proto_u64(&p->out, LINE_NUMBER, l->line);
		tacho__proto_end(&p->out, line);
		if (m) {
			m->functions = 1;
			m->files |= l->file[0] != 0;
			m->lines |= l->line != 0;
			m->inlined |= i > 0;
		}
	}
	tacho__proto_end(&p->out, begin);
	code->mark = 1;
	return code->id;
}

static uint64_t no_location(struct pprof *p)
{
	static const struct tacho__code_line line = {"(code that found no room)", "", 0};
	uint64_t function;
	size_t begin, inner;

	p->exported->left_out++;
	if (p->no_location)
		return p->no_location;
	p->no_location = (uint64_t)TACHO__CODES_MAX + 1;
	function = function_id(p, &line);
	begin = tacho__proto_begin(&p->out, PROFILE_LOCATION);
	tacho__proto_u64(&p->out, LOCATION_ID, p->no_location);
	inner = tacho__proto_begin(&p->out, LOCATION_LINE);
	tacho__proto_u64(&p->out, LINE_FUNCTION, function);
	tacho__proto_end(&p->out, inner);
	tacho__proto_end(&p->out, begin);
	return p->no_location;
}

/* 0: a frame that is left out. */
static uint64_t location_id(struct pprof *p, const struct tacho__stack *stack, uint32_t index)
{
	struct tacho__code *code = tacho__code_of(&p->codes, stack, index, &p->error);

	if (!code)
		return no_location(p);
	if (code->tachos)
		return 0;
	return code->mark ? code->id : put_location(p, code);
}

/* ------------------------------------------------------------------ samples */

static void put_label(struct tacho__proto *b, uint64_t key, uint64_t text, uint64_t number)
{
	size_t begin = tacho__proto_begin(b, SAMPLE_LABEL);

	tacho__proto_u64(b, LABEL_KEY, key);
	if (text)
		tacho__proto_u64(b, LABEL_STRING, text);
	else
		tacho__proto_u64(b, LABEL_NUMBER, number);
	tacho__proto_end(b, begin);
}

static void put_named_label(struct pprof *p, uint64_t key, const struct tacho__at *at, uint32_t id,
			    uint64_t ns)
{
	char name[TACHO__CLEAN_MAX];
	uint64_t text;

	tacho__name_of(name, sizeof(name), p->reader, at->process, id, ns);
	text = text_id(p, name);
	if (text)
		put_label(&p->bodies, key, text, 0);
}

static void put_body(struct pprof *p, const struct tacho__sample *s,
		     const struct tacho__stack *stack)
{
	const struct tacho_process *process = tacho_read_process(p->reader, s->at.process);
	uint64_t thread = text_id(p, tacho__thread_name(p->reader, s->at.process, s->at.thread));

	for (uint32_t i = 0; i < stack->count; i++) {
		uint64_t location = location_id(p, stack, i);

		if (location)
			tacho__proto_u64(&p->bodies, SAMPLE_LOCATION, location);
	}
	put_named_label(p, p->key_loop, &s->at, s->at.loop, s->ns);
	put_named_label(p, p->key_kind, &s->at, s->at.kind, s->ns);
	if (s->at.task)
		put_label(&p->bodies, p->key_task, 0, s->at.task);
	if (thread)
		put_label(&p->bodies, p->key_thread, thread, 0);
	if (p->several && process)
		put_label(&p->bodies, p->key_pid, 0, process->pid);
}

static void flush_samples(struct pprof *p)
{
	for (const struct summed *s = NULL; (s = tacho__table_next(&p->samples, s));) {
		size_t begin, values;

		begin = tacho__proto_begin(&p->out, PROFILE_SAMPLE);
		tacho__proto_raw(&p->out, p->bodies.data + s->body, s->body_size);
		values = tacho__proto_begin(&p->out, SAMPLE_VALUE);
		tacho__proto_varint(&p->out, s->count);
		tacho__proto_varint(&p->out, s->cpu_ns);
		tacho__proto_end(&p->out, values);
		tacho__proto_end(&p->out, begin);
		p->exported->packets++;
		push_out(p, OUTPUT_PART);
	}
	tacho__table_free(&p->samples);
	p->bodies.size = 0;
}

static void take_sample(void *arg, const struct tacho__sample *s)
{
	struct pprof *p = arg;
	struct tacho__stack stack;
	struct summed *sum;
	uint64_t hash[2], thread = (uint64_t)s->at.process << 32 | s->at.thread;

	if (p->error || !tacho__sample_counts(&p->samplers, s, &p->error))
		return;
	p->exported->samples++;
	tacho__stack_of_sample(p->reader, s, &stack);
	tacho__stack_hash(&stack, hash);
	for (unsigned i = 0; i < 2; i++)
		hash[i] = tacho__hash_words(
			tacho__hash_words(hash[i], (uint64_t)s->at.loop << 32 | s->at.kind,
					  s->at.task),
			thread, i);
	if (p->samples.count == SAMPLES_MAX || p->bodies.size > BODIES_MAX)
		flush_samples(p);
	sum = tacho__table_get(&p->samples, hash[0], hash[1], &p->error);
	if (!sum)
		return;
	if (!sum->count++) {
		sum->body = p->bodies.size;
		put_body(p, s, &stack);
		sum->body_size = p->bodies.size - sum->body;
		if (p->bodies.bad)
			p->error = -ENOMEM;
		push_out(p, OUTPUT_PART);
	}
	sum->cpu_ns += s->cpu_ns;
}

/* ------------------------------------------------------------- begin and end */

static void put_type(struct pprof *p, uint32_t field, const char *type, const char *unit)
{
	uint64_t t = text_id(p, type), u = text_id(p, unit);
	size_t begin = tacho__proto_begin(&p->out, field);

	tacho__proto_u64(&p->out, VALUE_TYPE, t);
	tacho__proto_u64(&p->out, VALUE_UNIT, u);
	tacho__proto_end(&p->out, begin);
}

/* pprof takes the first mapping for the program. */
static void map_programs(struct pprof *p)
{
	uint32_t limit = tacho_read_definition_limit(p->reader, 0);
	const struct tacho_process *process = tacho_read_process(p->reader, 0);

	for (uint32_t id = 1; process && id < limit; id++) {
		const struct tacho_definition *d = tacho_read_definition(p->reader, 0, id);

		if (d && d->def_class == TACHO_DEF_MODULE && d->name[0] &&
		    strcmp(d->name, process->exe) == 0) {
			mapping_of(p, 0, d);
			break;
		}
	}
}

static void put_head(struct pprof *p)
{
	uint64_t first = 0, last = 0, real = 0, comment;

	tacho__proto_bytes(&p->out, PROFILE_STRING, "", 0);
	put_type(p, PROFILE_SAMPLE_TYPE, "samples", "count");
	put_type(p, PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds");
	put_type(p, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
	tacho__proto_u64(&p->out, PROFILE_DEFAULT_TYPE, text_id(p, "cpu"));
	p->key_loop = text_id(p, "loop");
	p->key_kind = text_id(p, "kind");
	p->key_task = text_id(p, "task");
	p->key_thread = text_id(p, "thread");
	p->key_pid = text_id(p, "pid");
	comment = text_id(p, "CPU samples of a recording by tacho");
	tacho__proto_u64(&p->out, PROFILE_COMMENT, comment);
	if (tacho_read_window(p->reader, &first, &last) < 0)
		return;
	real = tacho_read_real_ns(p->reader, 0, first);
	if (real)
		tacho__proto_u64(&p->out, PROFILE_TIME, real);
	tacho__proto_u64(&p->out, PROFILE_DURATION, last - first);
	map_programs(p);
}

static void put_hex(char *out, const uint8_t *bytes, uint32_t count)
{
	static const char digits[] = "0123456789abcdef";

	for (uint32_t i = 0; i < count; i++) {
		*out++ = digits[bytes[i] >> 4];
		*out++ = digits[bytes[i] & 15];
	}
	*out = 0;
}

static void put_mapping(struct pprof *p, const struct mapping *m)
{
	const struct tacho_definition *d = m->module;
	uint64_t file = text_id(p, d ? d->name : "[kernel]"), build_id = 0;
	char hex[2 * 64 + 1];
	size_t begin;

	if (d && d->build_id_size && d->build_id_size <= 64) {
		put_hex(hex, d->build_id, d->build_id_size);
		build_id = text_id(p, hex);
	}
	begin = tacho__proto_begin(&p->out, PROFILE_MAPPING);
	tacho__proto_u64(&p->out, MAPPING_ID, m->id);
	if (d) {
		tacho__proto_u64(&p->out, MAPPING_START, d->start);
		tacho__proto_u64(&p->out, MAPPING_LIMIT, d->end);
		tacho__proto_u64(&p->out, MAPPING_OFFSET, d->offset);
	}
	tacho__proto_u64(&p->out, MAPPING_FILE, file);
	if (build_id)
		tacho__proto_u64(&p->out, MAPPING_BUILD_ID, build_id);
	tacho__proto_u64(&p->out, MAPPING_HAS_FUNCTIONS, m->functions);
	tacho__proto_u64(&p->out, MAPPING_HAS_FILES, m->files);
	tacho__proto_u64(&p->out, MAPPING_HAS_LINES, m->lines);
	tacho__proto_u64(&p->out, MAPPING_HAS_INLINED, m->inlined);
	tacho__proto_end(&p->out, begin);
}

static void put_mappings(struct pprof *p)
{
	/* Entries are never removed, so their order is that of their numbers. */
	for (const struct mapping *m = NULL; (m = tacho__table_next(&p->mappings, m));)
		put_mapping(p, m);
}

static int export(struct pprof *p)
{
	struct tacho__facts facts = {.arg = p, .error = &p->error, .sample = take_sample};

	tacho__gzip_begin(p->gzip, &p->options->sink);
	put_head(p);
	p->error = tacho__model_run(p->reader, &facts, p->options->stop, p->options->stop_arg,
				    &p->exported->missed);
	if (!p->error) {
		flush_samples(p);
		put_mappings(p);
		push_out(p, 0);
	}
	if (!p->gzip->error)
		p->gzip->error = p->error;
	return tacho__gzip_end(p->gzip);
}

int tacho__export_pprof(struct tacho_reader *reader, const struct tacho__export_options *options,
			struct tacho__exported *exported)
{
	struct pprof p = {.reader = reader, .options = options, .exported = exported};
	int error = -ENOMEM;

	memset(exported, 0, sizeof(*exported));
	p.several = tacho_read_process_count(reader) > 1;
	tacho__codes_init(&p.codes, reader);
	tacho__samplers_init(&p.samplers);
	tacho__table_init(&p.texts, sizeof(struct numbered), NAMES_MAX);
	tacho__table_init(&p.functions, sizeof(struct numbered), NAMES_MAX);
	tacho__table_init(&p.mappings, sizeof(struct mapping), MAPPINGS_MAX);
	tacho__table_init(&p.samples, sizeof(struct summed), SAMPLES_MAX);
	p.gzip = malloc(sizeof(*p.gzip));
	if (p.gzip)
		error = export(&p);
	free(p.gzip);
	tacho__proto_free(&p.out);
	tacho__proto_free(&p.bodies);
	tacho__codes_free(&p.codes);
	tacho__samplers_free(&p.samplers);
	tacho__table_free(&p.texts);
	tacho__table_free(&p.functions);
	tacho__table_free(&p.mappings);
	tacho__table_free(&p.samples);
	return error;
}
