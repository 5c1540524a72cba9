/*
 * What runs between libuv and the program's callbacks, and the loop itself.
 *
 * Kinds are definitions, one for each type of callback and each function of the program. A
 * definition costs microseconds to look up, so their ids are kept in a list that only
 * grows. A program with more functions than fit (those made at run time) gets the kinds
 * of the types without the function.
 */
#include "hooks/uv.h"

#include "base/hash.h"
#include "base/text.h"
#include "core/control.h"
#include "core/define.h"
#include "core/record.h"
#include "core/sentinel.h"
#include "core/short_polls.h"
#include "core/wakes.h"

#define KINDS 4096u
#define KIND_PROBES 16u
#define ADDRESS_BITS 48u

static const char *const op_names[] = {[TACHO__UV_TIMER] = "uv_timer",
				       [TACHO__UV_ASYNC] = "uv_async",
				       [TACHO__UV_IDLE] = "uv_idle",
				       [TACHO__UV_PREPARE] = "uv_prepare",
				       [TACHO__UV_CHECK] = "uv_check",
				       [TACHO__UV_POLL] = "uv_poll",
				       [TACHO__UV_SIGNAL] = "uv_signal",
				       [TACHO__UV_FS_EVENT] = "uv_fs_event",
				       [TACHO__UV_FS_POLL] = "uv_fs_poll",
				       [TACHO__UV_PROCESS] = "uv_process",
				       [TACHO__UV_OP_READ] = "read",
				       [TACHO__UV_OP_ALLOC] = "alloc",
				       [TACHO__UV_LISTEN] = "connection",
				       [TACHO__UV_OP_CLOSE] = "close",
				       [TACHO__UV_OP_WALK] = "walk",
				       [TACHO__UV_WRITE] = "write",
				       [TACHO__UV_CONNECT] = "connect",
				       [TACHO__UV_SHUTDOWN] = "shutdown",
				       [TACHO__UV_UDP_SEND] = "uv_udp_send",
				       [TACHO__UV_GETADDRINFO] = "uv_getaddrinfo",
				       [TACHO__UV_GETNAMEINFO] = "uv_getnameinfo",
				       [TACHO__UV_RANDOM] = "uv_random",
				       [TACHO__UV_OP_WORK] = "uv_work",
				       [TACHO__UV_AFTER_WORK] = "uv_after_work",
#define UV_FS_NAME(name, params, args) #name,
				       UV_FS(UV_FS_NAME)
#undef UV_FS_NAME
};

/* uv_handle_type, part of libuv's ABI. */
static const char *const handle_names[] = {
	"uv_handle", "uv_async", "uv_check", "uv_fs_event", "uv_fs_poll", "uv_handle",
	"uv_idle",   "uv_pipe",	 "uv_poll",  "uv_prepare",  "uv_process", "uv_stream",
	"uv_tcp",    "uv_timer", "uv_tty",   "uv_udp",	    "uv_signal",
};
#define HANDLE_NAMES (sizeof(handle_names) / sizeof(handle_names[0]))

static struct {
	uint64_t key; /* function << 16 | type; never changes once it is not 0 */
	uint64_t id;  /* epoch of the box << 32 | definition */
} kinds[KINDS];

static uint64_t misses, misses_told;

/* The loop that this thread is in uv_run of. Its memory is not looked at: after a jump out of
   uv_run it may be gone. */
struct running {
	const void *loop; /* NULL: none */
	int fd;
};
static __thread struct running running __attribute__((tls_model("initial-exec")));

/* The loop that it ran last, as a definition. */
static __thread struct {
	const void *loop;
	uint32_t id, epoch;
} known __attribute__((tls_model("initial-exec")));

/* ------------------------------------------------------- kinds */

uint16_t tacho__uv_type(struct tacho__uv *uv, enum tacho__uv_op op, const void *handle)
{
	int type = tacho__uv_has(uv, TACHO__UV_uv_handle_get_type)
			   ? UV_REAL(uv, uv_handle_get_type)(handle)
			   : 0;

	return TACHO__UV_TYPE(op, type);
}

static uint32_t define_kind(uint16_t type, uint64_t address)
{
	unsigned op = type >> 8, handle = type & 0xff;
	char name[64];
	struct tacho__text t;

	tacho__text_init(&t, name, sizeof(name));
	if (op >= TACHO__UV_OP_READ && op <= TACHO__UV_SHUTDOWN) {
		tacho__text_put(&t, handle_names[handle < HANDLE_NAMES ? handle : 0]);
		tacho__text_put(&t, " ");
	}
	tacho__text_put(&t, op_names[op]);
	return tacho__define_name(TACHO_DEF_KIND, name, NULL, 0, address, 0, NULL);
}

static uint64_t kind_first(uint64_t key)
{
	return tacho__mix(key) >> 32;
}

/* The place of `key` in the list; NULL: it has none. */
static uint64_t *kind_place(uint64_t key)
{
	uint64_t at = kind_first(key);

	for (uint32_t i = 0; i < KIND_PROBES; i++, at++) {
		uint64_t *place = &kinds[at % KINDS].key;
		uint64_t found = tacho__load(place);

		if (tacho__likely(found == key))
			return &kinds[at % KINDS].id;
		if (found)
			continue;
		if (__atomic_compare_exchange_n(place, &found, key, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED) ||
		    found == key)
			return &kinds[at % KINDS].id;
	}
	return NULL;
}

static __attribute__((noinline)) uint32_t kind_search(uint16_t type, uint64_t address)
{
	/* With 1 for no function: a key is never 0. */
	uint64_t *place = address >> ADDRESS_BITS ? NULL : kind_place(address << 16 | type);
	uint64_t id;

	if (tacho__unlikely(!place)) {
		address = 0;
		place = kind_place(1ull << 16 | type);
		if (!place)
			return 0;
	}
	id = tacho__load(place);
	if (tacho__likely(id && id >> 32 == tacho__load(&tacho__rec->epoch)))
		return (uint32_t)id;
	if (!tacho__recorder_ready())
		return 0;
	id = define_kind(type, address);
	tacho__store(place, (uint64_t)tacho__load(&tacho__rec->epoch) << 32 | id);
	return (uint32_t)id;
}

uint32_t tacho__uv_kind(uint16_t type, uv_any_cb fn)
{
	uint64_t address = (uint64_t)(uintptr_t)fn, key = address << 16 | type;
	uint64_t at = kind_first(key) % KINDS, id = tacho__load(&kinds[at].id);

	/* What most are: known, and at their first place. */
	if (tacho__likely(tacho__load(&kinds[at].key) == key && id &&
			  id >> 32 == tacho__load(&tacho__rec->epoch) &&
			  !(address >> ADDRESS_BITS)))
		return (uint32_t)id;
	return kind_search(type, address);
}

/* ------------------------------------------------------- polls */

void tacho__uv_poll_begin(struct tacho__uv_poll *poll, const struct tacho__uv_entry *entry,
			  const void *task)
{
	uint64_t word = (uint64_t)(uintptr_t)task, shared = tacho__shared_last();
	uint32_t kind;

	tacho__hook.callbacks++;
	poll->since = 0;
	if (!tacho__recording())
		return;
	kind = tacho__uv_kind(entry->type, entry->fn);
	if (!kind)
		return;
	poll->kind = kind;
	if (tacho__unlikely(tacho__load(&tacho__threshold_ticks)) && !poll->whole) {
		tacho__poll_begin(kind, word);
		poll->since = tacho__ticks();
	} else {
		poll->since = tacho__record_poll_begin(kind, word, shared, tacho__frame());
		if (tacho__unlikely(tacho__load(&tacho__watching) & TACHO__WATCH(WAKE)))
			tacho__wake_polled(word, poll->since, kind);
	}
}

void tacho__uv_poll_end(struct tacho__uv_poll *poll, uint32_t result)
{
	uint64_t now;

	tacho__hook.callbacks--;
	if (!poll->since || !tacho__recording())
		return;
	if (tacho__unlikely(tacho__load(&tacho__threshold_ticks))) {
		tacho__poll_end(result);
		now = tacho__ticks();
	} else {
		now = tacho__record(tacho_record_head(TACHO_REC_POLL_END, result), NULL, 0);
		tacho__edge(now, running.loop && !tacho__hook.callbacks);
		if (now)
			tacho__took(TACHO_SENTINEL_POLL, now - poll->since, poll->kind);
	}
	if (now)
		tacho__slow_poll(now - poll->since, poll->kind);
}

/* ------------------------------------------------------ misses */

/* What was not seen stands in the trace, as a counter. */
static void tell_misses(uint64_t count)
{
	uint32_t id;

	if (!tacho__recording() || !tacho__recorder_ready())
		return;
	id = tacho__define_name(TACHO_DEF_COUNTER, "uv misses", NULL, 0, 0, TACHO_VALUE_I64,
				"callbacks");
	tacho__put1(TACHO_REC_COUNTER, id, count);
	tacho__store(&misses_told, count);
}

void tacho__uv_missed(void)
{
	tacho__store(&tacho__unseen, 1);
	tell_misses(__atomic_add_fetch(&misses, 1, __ATOMIC_RELAXED));
}

/* ---------------------------------------------------- starting */

/* Whether this process records, or may yet. */
static int is_wanted(void)
{
	return tacho__rec &&
	       __atomic_load_n(&tacho__rec->phase, __ATOMIC_RELAXED) != TACHO__PHASE_FAILED;
}

int tacho__uv_wrap(struct tacho__uv_start *s, enum tacho__uv_slot slot, uint16_t type, uv_any_cb fn,
		   uv_any_cb ours)
{
	s->wrapped = 0;
	s->slot = slot;
	/* libuv calls its own functions, and a program may hand back what it found in a handle:
	   then the entry is there and good. */
	if (fn == ours) {
		s->entry = tacho__uv_find(s->object, slot);
		return 1;
	}
	if (!is_wanted()) {
		/* Before the constructor ran: told as soon as there is recording. */
		if (!tacho__rec && fn)
			tacho__uv_missed();
		return 0;
	}
	s->entry = tacho__uv_put(s->object, slot, &s->made);
	if (!s->entry) {
		tacho__uv_missed();
		return 0;
	}
	s->before = *s->entry;
	s->entry->fn = fn;
	s->entry->type = type;
	s->entry->uv = (uint16_t)tacho__uv_number(s->uv);
	s->entry->due = s->entry->due_before = UINT64_MAX;
	s->wrapped = 1;
	return 1;
}

int tacho__uv_started(struct tacho__uv_start *s, int result)
{
	struct tacho__uv_entry gone;

	if (result >= 0 || !s->wrapped)
		return result;
	if (s->made)
		tacho__uv_take(s->object, s->slot, &gone);
	else
		*s->entry = s->before;
	return result;
}

/* ---------------------------------------------------- the loop */

uint32_t tacho__uv_loop(int fd)
{
	if (!running.loop || running.fd != fd)
		return 0;
	if (known.loop == running.loop && known.epoch == tacho__load(&tacho__rec->epoch))
		return known.id;
	if (!tacho__recorder_ready())
		return 0;
	known.id =
		tacho__define_name(TACHO_DEF_LOOP, "uv loop", NULL, 0,
				   (uint64_t)(uintptr_t)running.loop, TACHO_LEVEL_CALLBACKS, NULL);
	known.epoch = tacho__load(&tacho__rec->epoch);
	known.loop = running.loop;
	tacho__source_on(TACHO_SOURCE_LIBUV);
	return known.id;
}

int tacho__uv_runs(void)
{
	return running.loop != NULL;
}

static void enter_loop(void)
{
	struct tacho__hook_thread *h = &tacho__hook;
	uint32_t id = tacho__uv_loop(running.fd);

	if (id && (h->loop != id || h->loop_fd != running.fd))
		tacho__loop_known(running.fd, id, TACHO_LEVEL_CALLBACKS);
	/* Callbacks may come before the first wait, and never let it come. */
	if (id && tacho__self->now.loop != id)
		tacho__loop(id);
	if (tacho__load(&misses) != tacho__load(&misses_told))
		tell_misses(tacho__load(&misses));
}

TACHO_HOOK int uv_run(void *loop, int mode)
{
	struct tacho__hook_thread *h = &tacho__hook, outer = *h;
	struct running outer_loop = running;
	struct tacho__uv *uv = UV_CALLER();
	int result;

	running.loop = loop;
	running.fd = UV_REAL(uv, uv_backend_fd)(loop);
	h->edge = 0;
	if (tacho__recording())
		enter_loop();
	result = UV_REAL(uv, uv_run)(loop, mode);
	running = outer_loop;
	h->edge = 0;
	/* Callbacks that a jump left are over. */
	h->callbacks = outer.callbacks;
	/* A loop that ran inside another one's callback gives way to it. One that ran in none
	   stays what the thread does: many programs call uv_run again and again. */
	if (outer.loop && outer.loop != h->loop)
		tacho__loop_known(outer.loop_fd, outer.loop, outer.level);
	return result;
}

/* The handles that a loop has for itself lie in it, and are not closed one by one. */
TACHO_HOOK int uv_loop_close(void *loop)
{
	struct tacho__uv *uv = UV_CALLER();
	int result = UV_REAL(uv, uv_loop_close)(loop);
	struct tacho__uv_entry gone;

	if (result)
		return result;
	if (known.loop == loop)
		known.loop = NULL;
	if (tacho__uv_has(uv, TACHO__UV_uv_loop_size)) {
		size_t size = UV_REAL(uv, uv_loop_size)();

		for (size_t at = 0; at < size; at += 8)
			tacho__uv_take((char *)loop + at, TACHO__UV_MAIN, &gone);
	}
	return result;
}

struct walk {
	struct tacho__uv *uv;
	uv_walk_cb cb;
	void *arg;
};

static void on_walk(void *handle, void *arg)
{
	const struct walk *w = arg;
	struct tacho__uv_entry e = {.fn = (uv_any_cb)w->cb,
				    .type = tacho__uv_type(w->uv, TACHO__UV_OP_WALK, handle)};
	struct tacho__uv_poll poll = {0};

	tacho__uv_poll_begin(&poll, &e, handle);
	w->cb(handle, w->arg);
	tacho__uv_poll_end(&poll, TACHO_PENDING);
}

TACHO_HOOK void uv_walk(void *loop, uv_walk_cb cb, void *arg)
{
	struct walk w = {UV_CALLER(), cb, arg};

	UV_REAL(w.uv, uv_walk)(loop, cb ? on_walk : cb, cb ? &w : arg);
}
