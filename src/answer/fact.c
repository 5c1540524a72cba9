#include "answer/fact.h"

#include <inttypes.h>

#include "answer/describe.h"
#include "answer/event.h"
#include "model/place.h"
#include "text/names.h"

/* Where its members are written, and what their names are looked up in. */
struct members {
	struct json *j;
	const struct tacho_reader *r;
	uint32_t process;
	uint64_t ns;
};

/* -------------------------------------------------------------------- members */

static void put_number(const struct members *f, const char *key, uint64_t value)
{
	json_put_u64(f->j, key, value);
}

static void put_number_if(const struct members *f, const char *key, uint64_t value, uint64_t given)
{
	if (given)
		json_put_u64(f->j, key, value);
}

static void put_not_zero(const struct members *f, const char *key, uint64_t value)
{
	json_put_not_zero(f->j, key, value);
}

static void put_not_negative(const struct members *f, const char *key, int64_t value)
{
	json_put_u64_if(f->j, key, value >= 0, (uint64_t)value);
}

static void put_flag(const struct members *f, const char *key, int value)
{
	json_put_bool(f->j, key, value != 0);
}

static void put_tid(const struct members *f, const char *key, uint32_t thread)
{
	describe_thread_json(f->j, key, tacho_read_thread_by_number(f->r, f->process, thread));
}

static void put_thread_name(const struct members *f, const char *key, uint32_t thread)
{
	const struct tacho_thread *t = tacho_read_thread_by_number(f->r, f->process, thread);

	json_put_known(f->j, key, t ? t->name : "");
}

static void put_id(const struct members *f, const char *key, uint32_t id)
{
	json_key(f->j, key);
	describe_id_json(f->j, f->r, f->process, id, f->ns);
}

static void put_id_if(const struct members *f, const char *key, uint32_t id)
{
	if (id)
		put_id(f, key, id);
}

/* What is said with every fact is said in short. */
static void put_name(const struct members *f, const char *key, uint32_t id)
{
	char name[1024];

	tacho__name_of(name, sizeof(name), f->r, f->process, id, f->ns);
	json_put_known(f->j, key, name);
}

static void put_result(const struct members *f, const char *key, unsigned result)
{
	json_put_known(f->j, key, name_result(result));
}

static void put_fd_kind(const struct members *f, const char *key, unsigned kind)
{
	const char *name = name_descriptor(kind);

	json_put_known(f->j, key, name ? name : "");
}

static void put_cut(const struct members *f, const char *key, unsigned cut)
{
	json_put_array(f->j, key);
	if (cut & TACHO__CUT_BEGIN)
		json_string(f->j, "begin");
	if (cut & TACHO__CUT_END)
		json_string(f->j, "end");
	if (cut & TACHO__CUT_HOLE)
		json_string(f->j, "hole");
	json_array_end(f->j);
}

static void put_trace_id(const struct members *f, const char *key, uint64_t high, uint64_t low)
{
	char text[33] = "";

	if (high || low)
		snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64, high, low);
	json_put_known(f->j, key, text);
}

static void put_value(const struct members *f, const char *key, uint64_t bits, uint32_t counter)
{
	const struct tacho_definition *d = tacho_read_definition(f->r, f->process, counter);
	union {
		uint64_t u;
		int64_t i;
		double d;
	} value = {.u = bits};

	json_key(f->j, key);
	if (!d)
		json_u64(f->j, value.u);
	else if (d->value_type == TACHO_VALUE_F64)
		json_f64(f->j, value.d);
	else
		json_i64(f->j, value.i);
}

/* Of a sample whose stack has no definition. */
static void put_frames_if(const struct members *f, const char *key, const struct tacho__sample *s)
{
	struct describe_stack stack = {s->frames, s->count, true, false};

	(void)key; /* which is "frames" */
	if (!s->stack)
		describe_stack_json(f->j, f->r, f->process, &stack, f->ns);
}

/* The roles of members. */
#define PUT_NUMBER put_number
#define PUT_NUMBER_OR_NONE put_not_zero
#define PUT_NUMBER_IF put_number_if
#define PUT_NS put_number
#define PUT_NS_OR_NONE put_not_zero
#define PUT_FLAG put_flag
#define PUT_TIME put_number
#define PUT_TIME_OR_NONE put_not_zero
#define PUT_KEY put_number
#define PUT_KEY_OR_NONE put_not_zero
#define PUT_NOT_NEGATIVE put_not_negative
#define PUT_TID put_tid
#define PUT_THREAD_NAME put_thread_name
#define PUT_NAME put_name
#define PUT_ID put_id
#define PUT_ID_IF put_id_if
#define PUT_CUT put_cut
#define PUT_RESULT put_result
#define PUT_FD_KIND put_fd_kind
#define PUT_TRACE_ID put_trace_id
#define PUT_VALUE put_value
#define PUT_FRAMES_IF put_frames_if

/* ---------------------------------------------------------------------- facts */

static void begin(const struct members *f, const char *fact)
{
	const struct tacho_process *p = tacho_read_process(f->r, f->process);

	json_object(f->j);
	json_put_string(f->j, "fact", fact);
	json_put_u64(f->j, "pid", p ? p->pid : 0);
}

/* clang-format off */
#define FACT_BEGIN(fact, name, type, where, when) \
	void fact_put_##fact(struct json *j, const struct tacho_reader *r, const struct type *x) \
	{ \
		struct members f = {j, r, where, when}; \
		begin(&f, name);
#define MEMBER(fact, role, member, get) PUT_##role(&f, #member, get);
#define MEMBER2(fact, role, member, get, other) PUT_##role(&f, #member, get, other);
#define FIELD(fact, role, column, member, get, what) PUT_##role(&f, #member, get);
#define FIELD_IF(fact, role, column, member, given, get, what) \
		if (given) \
			PUT_##role(&f, #member, get);
#define VALUE(fact, value, get) \
		const uint64_t value = (uint64_t)(get); \
		(void)value;
#define OPEN(fact, member, given) \
		json_key(j, #member); \
		if (!(given)) { \
			json_null(j); \
		} else { \
			json_object(j);
#define CLOSE(fact) \
			json_object_end(j); \
		}
#define LOOK_AT(fact, when) f.ns = when;
#define END(fact) \
		json_object_end(j); \
	}
#define FACT(fact, name, type, table, where, when, what) FACT_BEGIN(fact, name, type, where, when)
#define MEMBERS(fact, name, type, where, when, what) FACT_BEGIN(fact, name, type, where, when)
#define END_MEMBERS END
#include "model/rows.def"
#define TACHO__ROWS_STAY
#include "model/facts.def"
#undef TACHO__ROWS_STAY

void fact_put_other(struct json *j, const struct tacho_reader *r, const struct tacho__at *at,
		    const struct tacho_event *e)
{
	struct members f = {j, r, e->process, e->ns};
	const char *type = name_type(e->type);

	begin(&f, type ? type : "unknown");
	AT_MEMBERS(other, at)
	MEMBER(other, TIME, ns, e->ns)
	event_put_json(j, r, e);
	json_object_end(j);
}
/* clang-format on */
#include "model/rows.def"
