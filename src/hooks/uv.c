/*
 * What runs between libuv and the program's callbacks, and the loop itself.
 */
#include "hooks/uv.h"

#include "base/text.h"
#include "core/control.h"
#include "core/define.h"

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
				       [TACHO__UV_OP_WALK] = "walk",
				       [TACHO__UV_OP_CLOSE] = "close",
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

#define RECENT 32u

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

static unsigned op_of(const struct tacho__thunk *t)
{
	return t->use >> 8 & 0xff;
}

static __attribute__((cold, noinline)) uint32_t define_kind(struct tacho__thunk *t)
{
	unsigned op = op_of(t), handle = t->use & 0xff;
	char name[64];
	struct tacho__text text;

	tacho__text_init(&text, name, sizeof(name));
	if (op >= TACHO__UV_OP_READ && op <= TACHO__UV_SHUTDOWN) {
		tacho__text_put(&text, handle_names[handle < HANDLE_NAMES ? handle : 0]);
		tacho__text_put(&text, " ");
	}
	tacho__text_put(&text, op_names[op]);
	return tacho__thunk_define(t, name, t->kinds);
}

uint32_t tacho__uv_kind(struct tacho__thunk *t)
{
	uint32_t kind = tacho__known_kind(t->kinds);

	return tacho__likely(kind) ? kind : define_kind(t);
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

/* ------------------------------------------------------ thunks */

typedef void (*five_words)(tacho__word, tacho__word, tacho__word, tacho__word, tacho__word);

static __attribute__((noinline)) void run_recorded(tacho__word a, tacho__word b, tacho__word c,
						   tacho__word d, tacho__word e,
						   struct tacho__thunk *t)
{
	unsigned op = op_of(t);
	uint32_t kind = tacho__uv_kind(t);
	int late = op == TACHO__UV_TIMER && tacho__uv_late((const void *)a, kind);
	uint64_t begin = tacho__original_begins(kind, a, late);
	struct tacho__writer *writer = tacho__self;

	((five_words)t->function)(a, b, c, d, e);
	tacho__hook.callbacks--;
	/* Not in a child that was forked in the middle: its box has no begin of it. */
	if (begin && tacho__recording() && tacho__likely(tacho__self == writer))
		tacho__original_ended(kind, begin,
				      op < TACHO__UV_OP_CLOSE ? TACHO_PENDING : TACHO_DONE,
				      tacho__hook.uv_runs && !tacho__hook.callbacks);
}

static inline void run_original(tacho__word a, tacho__word b, tacho__word c, tacho__word d,
				tacho__word e, struct tacho__thunk *t)
{
	if (tacho__recording()) {
		run_recorded(a, b, c, d, e, t);
	} else {
		tacho__hook.edge = 0;
		((five_words)t->function)(a, b, c, d, e);
	}
}

static __attribute__((noinline)) void run_pooled(tacho__word a, tacho__word b, tacho__word c,
						 tacho__word d, tacho__word e,
						 struct tacho__thunk *t)
{
	if (tacho__uv_pooled(t, op_of(t), (void *)a, (int)b))
		run_original(a, b, c, d, e, t);
}

/* No callback of libuv has more than five arguments. */
static __attribute__((noinline)) void run(tacho__word a, tacho__word b, tacho__word c,
					  tacho__word d, tacho__word e, uint32_t number)
{
	struct tacho__thunk *t = &tacho__thunks[number];

	if (tacho__likely(op_of(t) < TACHO__UV_GETADDRINFO))
		run_original(a, b, c, d, e, t);
	else
		run_pooled(a, b, c, d, e, t);
}

#define THUNK(n)                                                                                \
	TACHO__THUNK void thunk_##n(tacho__word a, tacho__word b, tacho__word c, tacho__word d, \
				    tacho__word e)                                              \
	{                                                                                       \
		run(a, b, c, d, e, 0x##n);                                                      \
	}
#define ADDRESS(n) (const void *)thunk_##n,
TACHO__EACH_THUNK(THUNK)
static const void *const thunks[] = {TACHO__EACH_THUNK(ADDRESS)};
_Static_assert(sizeof(thunks) / sizeof(thunks[0]) == TACHO__THUNKS, "one of each number");

/* Whether this process records, or may yet. */
static int is_wanted(void)
{
	return tacho__rec &&
	       __atomic_load_n(&tacho__rec->phase, __ATOMIC_RELAXED) != TACHO__PHASE_FAILED;
}

static inline uint32_t take(uint32_t use, uv_any_cb fn)
{
	uint32_t link = is_wanted() ? tacho__thunk_take((uintptr_t)fn, use) : 0;

	/* Before the constructor ran: told as soon as there is recording. */
	if (tacho__unlikely(!link) && fn && (!tacho__rec || is_wanted()))
		tacho__uv_missed();
	return link;
}

struct tacho__thunk *tacho__uv_thunk(uint32_t use, uv_any_cb fn)
{
	int number = tacho__thunk_number((uintptr_t)fn, thunks);
	uint32_t link = number < 0 ? take(use, fn) : (uint32_t)number + 1;

	return link ? &tacho__thunks[link - 1] : NULL;
}

uv_any_cb tacho__uv_function(const struct tacho__thunk *t)
{
	return (uv_any_cb)thunks[t - tacho__thunks];
}

/* libuv calls its own functions, and a program may hand back what it found in a handle: a thunk
   stays one. */
uv_any_cb tacho__uv_wrap(uint32_t use, uv_any_cb fn)
{
	static uint32_t recent[RECENT]; /* links, by operation */
	uint32_t *last = &recent[(use >> 8) % RECENT], link = tacho__load(last);

	if (tacho__likely(link && tacho__thunks[link - 1].function == (uintptr_t)fn &&
			  tacho__thunks[link - 1].use == use))
		return (uv_any_cb)thunks[link - 1];
	if (!fn || tacho__is_thunk((uintptr_t)fn))
		return fn;
	link = take(use, fn);
	if (!link)
		return fn;
	tacho__store(last, link);
	return (uv_any_cb)thunks[link - 1];
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
	struct tacho__hook_thread *h = &tacho__hook;
	uint32_t runs = h->uv_runs, callbacks = h->callbacks, outer = h->loop, level = h->level;
	int fd = h->loop_fd;
	struct running outer_loop = running;
	struct tacho__uv *uv = UV_CALLER();
	int result;

	h->uv_runs = 1;
	running.loop = loop;
	running.fd = UV_REAL(uv, uv_backend_fd)(loop);
	h->edge = 0;
	if (tacho__recording())
		enter_loop();
	result = UV_REAL(uv, uv_run)(loop, mode);
	running = outer_loop;
	h->uv_runs = runs;
	h->edge = 0;
	/* Callbacks that a jump left are over. */
	h->callbacks = callbacks;
	/* A loop that ran inside another one's callback gives way to it. One that ran in none
	   stays what the thread does: many programs call uv_run again and again. */
	if (outer && outer != h->loop)
		tacho__loop_known(fd, outer, level);
	return result;
}

/* The handles that a loop has for itself lie in it, and are not closed one by one. */
TACHO_HOOK int uv_loop_close(void *loop)
{
	struct tacho__uv *uv = UV_CALLER();
	int result = UV_REAL(uv, uv_loop_close)(loop);

	if (result)
		return result;
	if (known.loop == loop)
		known.loop = NULL;
	if (tacho__uv_has(uv, TACHO__UV_uv_loop_size)) {
		size_t size = UV_REAL(uv, uv_loop_size)();

		for (size_t at = 0; at < size; at += 8)
			tacho__uv_remove((char *)loop + at);
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

	UV_WRAP(tacho__uv_use(w->uv, TACHO__UV_OP_WALK, handle), w->cb)(handle, w->arg);
}

TACHO_HOOK void uv_walk(void *loop, uv_walk_cb cb, void *arg)
{
	struct walk w = {.cb = cb, .arg = arg};

	w.uv = UV_CALLER();
	UV_REAL(w.uv, uv_walk)(loop, cb ? on_walk : cb, cb ? &w : arg);
}
