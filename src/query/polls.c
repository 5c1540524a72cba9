/* Tables of what runs and waits on loops. */
#include "query/fill.h"

/* -------------------------------------------------------------------- polls */

enum {
	P_CUT = F_NEXT,
	P_DEPTH,
	P_RESULT,
	P_FIRST,
	P_WAKE,
	P_WAKER,
	P_LATE,
	P_TURN,
	P_LOCK,
	P_CALL,
	P_SAMPLE,
	P_OFF,
	P_DELAY,
	P_INVOLUNTARY,
	P_MINOR,
	P_MAJOR,
	P_SCHED,
	P_INNER,
	P_SAMPLES,
	P_END
};
_Static_assert((int)P_END <= (int)SQL_FIELDS, "all fields of a poll fit");

/* clang-format off */
static const struct tacho__sql_column poll_columns[] = {
	AT_COLUMNS,
	KIND_COLUMNS,
	{"task", SQL_OPTIONAL, F_TASK, 0, "task or handle that it is a poll of"},
	TIME_COLUMNS,
	CUT_COLUMN(P_CUT),
	{"inner_ns", SQL_NUMBER, P_INNER, 0, "of ns: in polls inside of it"},
	{"depth", SQL_NUMBER, P_DEPTH, 0, "how many polls are around it"},
	{"in_poll_ns", SQL_OPTIONAL, F_IN_POLL, 0, "begin_ns of the poll around it"},
	{"result", SQL_RESULT, P_RESULT, 0, "pending or done; NULL: not said"},
	{"first", SQL_NUMBER, P_FIRST, 0, "1: first poll of its task"},
	{"wake_ns", SQL_OPTIONAL, P_WAKE, 0, "wake that led to it: wakes.ns; NULL: none seen"},
	{"waited_ns", SQL_DIFFERENCE, F_BEGIN, P_WAKE, "from that wake to begin_ns"},
	{"waker_tid", SQL_TID, P_WAKER, 0, "thread that woke it"},
	{"late_ns", SQL_OPTIONAL, P_LATE, 0, "its timer was so late"},
	{"turn_ns", SQL_OPTIONAL, P_TURN, 0, "begin of the turn that it is part of: turns.begin_ns"},
	{"lock_ns", SQL_NUMBER, P_LOCK, 0, "of ns: waiting for locks"},
	{"call_ns", SQL_NUMBER, P_CALL, 0, "of ns: in blocking calls"},
	{"samples", SQL_NUMBER, P_SAMPLES, 0, "CPU samples in it"},
	{"sampled_ns", SQL_NUMBER, P_SAMPLE, 0, "CPU time that these stand for"},
	{"off_cpu_ns", SQL_NUMBER, P_OFF, 0, "of ns: switched out, where switches were recorded"},
	{"delay_ns", SQL_IF, P_DELAY, P_SCHED, "of ns: runnable but not running; NULL: not asked"},
	{"involuntary", SQL_IF, P_INVOLUNTARY, P_SCHED, "involuntary switches; NULL: not asked"},
	{"minor_faults", SQL_IF, P_MINOR, P_SCHED, "page faults without disk; NULL: not asked"},
	{"major_faults", SQL_IF, P_MAJOR, P_SCHED, "page faults with disk; NULL: not asked"},
};
/* clang-format on */

static void on_poll(void *arg, const struct tacho__poll *p)
{
	uint64_t v[SQL_FIELDS] = {0};

	tacho__sql_put_at(v, &p->at, p->begin_ns, p->end_ns);
	v[F_KIND] = p->kind;
	v[F_TASK] = p->task;
	v[P_CUT] = p->cut;
	v[P_DEPTH] = p->depth;
	v[P_RESULT] = p->result;
	v[P_FIRST] = p->first;
	v[P_WAKE] = p->wake_ns;
	v[P_WAKER] = p->wake_ns ? p->waker : 0;
	v[P_LATE] = p->late_ns;
	v[P_TURN] = p->turn_ns;
	v[P_LOCK] = p->spent.lock_ns;
	v[P_CALL] = p->spent.call_ns;
	v[P_SAMPLE] = p->spent.sample_ns;
	v[P_OFF] = p->spent.off_cpu_ns;
	v[P_DELAY] = p->spent.delay_ns;
	v[P_INVOLUNTARY] = p->spent.involuntary;
	v[P_MINOR] = p->spent.minor_faults;
	v[P_MAJOR] = p->spent.major_faults;
	v[P_SCHED] = p->spent.sched;
	v[P_INNER] = p->inner_ns;
	v[P_SAMPLES] = p->spent.samples;
	tacho__sql_put(arg, v);
}

/* -------------------------------------------------------------------- turns */

enum { U_READY = F_NEXT, U_PARKED, U_POLLS, U_POLLS_NS, U_CUT };

/* clang-format off */
static const struct tacho__sql_column turn_columns[] = {
	AT_COLUMNS,
	TIME_COLUMNS,
	CUT_COLUMN(U_CUT),
	{"ready", SQL_NUMBER, U_READY, 0, "how much was ready, as the wait before said"},
	{"parked_ns", SQL_NUMBER, U_PARKED, 0, "how long that wait was; 0 also when not known"},
	{"polls", SQL_NUMBER, U_POLLS, 0, "polls in it, without those inside of others"},
	{"polls_ns", SQL_NUMBER, U_POLLS_NS, 0, "how long these took"},
};
/* clang-format on */

static void on_turn(void *arg, const struct tacho__turn *u)
{
	uint64_t v[SQL_FIELDS] = {0};

	v[F_PROCESS] = u->process;
	v[F_THREAD] = u->thread;
	v[F_LOOP] = u->loop;
	v[F_BEGIN] = u->begin_ns;
	v[F_END] = u->end_ns;
	v[U_READY] = u->ready;
	v[U_PARKED] = u->parked_ns;
	v[U_POLLS] = u->polls;
	v[U_POLLS_NS] = u->polls_ns;
	v[U_CUT] = u->cut;
	tacho__sql_put(arg, v);
}

/* -------------------------------------------------------------------- wakes */

enum { W_POLL = F_NEXT, W_THREAD, W_KIND, W_AGAIN, W_SELF, W_TASK, W_LOST };

/* clang-format off */
static const struct tacho__sql_column wake_columns[] = {
	AT_COLUMNS,
	{"ns", SQL_KEY, F_BEGIN, 0, "when"},
	{"task", SQL_KEY, W_TASK, 0, "task that was woken"},
	{"poll_ns", SQL_OPTIONAL, W_POLL, 0, "poll that it led to: polls.begin_ns; NULL: none"},
	{"latency_ns", SQL_DIFFERENCE, W_POLL, F_BEGIN, "from the wake to that poll"},
	{"poll_tid", SQL_TID, W_THREAD, 0, "thread of that poll"},
	{"kind", SQL_ID_NAME, W_KIND, 0, "kind of that poll"},
	{"function", SQL_ID_FUNCTION, W_KIND, 0, "function of that kind"},
	{"waker_kind", SQL_ID_NAME, F_KIND, 0, "kind of the poll that woke it; NULL: none"},
	{"waker_function", SQL_ID_FUNCTION, F_KIND, 0, "function of that kind"},
	{"waker_task", SQL_OPTIONAL, F_TASK, 0, "task that woke it"},
	{"waker_poll_ns", SQL_OPTIONAL, F_IN_POLL, 0, "when the poll that woke it began"},
	{"again", SQL_NUMBER, W_AGAIN, 0, "further wakes of the task before that poll"},
	{"self", SQL_NUMBER, W_SELF, 0, "1: by the task's own poll"},
	{"lost", SQL_NUMBER, W_LOST, 0, "1: records where its poll would be may be missing"},
};
/* clang-format on */

static void on_wake(void *arg, const struct tacho__wake *w)
{
	uint64_t v[SQL_FIELDS] = {0};

	tacho__sql_put_at(v, &w->at, w->ns, 0);
	v[W_TASK] = w->task;
	v[W_POLL] = w->begin_ns;
	v[W_THREAD] = w->begin_ns ? w->thread : 0;
	v[W_KIND] = w->kind;
	v[W_AGAIN] = w->again;
	v[W_SELF] = w->self;
	v[W_LOST] = w->lost;
	tacho__sql_put(arg, v);
}

/* -------------------------------------------------------------------- locks */

enum {
	L_LOCK = F_NEXT,
	L_GOT,
	L_PLACE,
	L_RELEASE,
	L_HOLDER,
	L_HOLDER_KIND,
	L_RELEASED_AT,
	L_SIGNAL,
	L_STACK,
	L_CUT
};

/* clang-format off */
static const struct tacho__sql_column lock_columns[] = {
	AT_COLUMNS,
	IN_COLUMNS,
	TIME_COLUMNS,
	CUT_COLUMN(L_CUT),
	{"lock", SQL_KEY, L_LOCK, 0, "address of the lock"},
	{"got", SQL_NUMBER, L_GOT, 0, "1: the thread got it"},
	{"signal", SQL_NUMBER, L_SIGNAL, 0, "1: a condition variable or semaphore, no lock"},
	{"wait_function", SQL_ID_FUNCTION, L_PLACE, 0, "where it waited"},
	{"wait_file", SQL_ID_FILE, L_PLACE, 0, "file of that"},
	{"wait_line", SQL_ID_LINE, L_PLACE, 0, "line of that"},
	{"stack", SQL_OPTIONAL, L_STACK, 0, "stack of a long wait: frames.stack"},
	{"release_ns", SQL_OPTIONAL, L_RELEASE, 0, "when it was released last before; NULL: not seen"},
	{"holder_tid", SQL_TID, L_HOLDER, 0, "thread that released it"},
	{"holder_kind", SQL_ID_NAME, L_HOLDER_KIND, 0, "kind of the poll that released it"},
	{"holder_function", SQL_ID_FUNCTION, L_HOLDER_KIND, 0, "function of that kind"},
	{"release_function", SQL_ID_FUNCTION, L_RELEASED_AT, 0, "where it was released"},
	{"release_file", SQL_ID_FILE, L_RELEASED_AT, 0, "file of that"},
	{"release_line", SQL_ID_LINE, L_RELEASED_AT, 0, "line of that"},
};
/* clang-format on */

static void on_lock(void *arg, const struct tacho__lock *l)
{
	uint64_t v[SQL_FIELDS] = {0};

	tacho__sql_put_at(v, &l->at, l->begin_ns, l->end_ns);
	v[L_LOCK] = l->lock;
	v[L_GOT] = l->got;
	v[L_SIGNAL] = l->is_signal;
	/* A stack says more than the call itself, which may be in a library. */
	v[L_PLACE] = l->stack ? l->stack : l->place;
	v[L_STACK] = l->stack;
	v[L_CUT] = l->cut;
	v[L_RELEASE] = l->release_ns;
	if (l->release_ns) {
		v[L_HOLDER] = l->releaser.thread;
		v[L_HOLDER_KIND] = l->releaser.kind;
		v[L_RELEASED_AT] = l->release_place;
	}
	tacho__sql_put(arg, v);
}

/* -------------------------------------------------------------------- calls */

enum { C_NAME = F_NEXT, C_STACK, C_PATH, C_ERROR, C_FD, C_FD_KIND };

/* clang-format off */
static const struct tacho__sql_column call_columns[] = {
	AT_COLUMNS,
	IN_COLUMNS,
	TIME_COLUMNS,
	{"name", SQL_ID_NAME, C_NAME, 0, "the call"},
	{"caller", SQL_ID_FUNCTION, C_STACK, 0, "innermost function of the program that called it"},
	{"caller_file", SQL_ID_FILE, C_STACK, 0, "its file"},
	{"caller_line", SQL_ID_LINE, C_STACK, 0, "its line"},
	{"stack", SQL_OPTIONAL, C_STACK, 0, "frames.stack"},
	{"path", SQL_ID_NAME, C_PATH, 0, "file that it was about"},
	{"errno", SQL_OPTIONAL, C_ERROR, 0, "how it failed; NULL: it did not"},
	{"fd", SQL_NOT_NEGATIVE, C_FD, 0, "descriptor; of calls that wait for one, the process"},
	{"fd_kind", SQL_DESCRIPTOR, C_FD_KIND, 0, "file, folder, pipe, terminal, TCP, UDP, UNIX, socket, eventfd or device"},
};
/* clang-format on */

static void on_call(void *arg, const struct tacho__call *c)
{
	uint64_t v[SQL_FIELDS] = {0};

	tacho__sql_put_at(v, &c->at, c->begin_ns, c->end_ns);
	v[C_NAME] = c->name;
	v[C_STACK] = c->stack;
	v[C_PATH] = c->path;
	v[C_ERROR] = (uint64_t)c->error;
	v[C_FD] = (uint64_t)c->fd;
	v[C_FD_KIND] = c->fd_kind;
	tacho__sql_put(arg, v);
}

/* --------------------------------------------------------------------- pool */

enum { K_SUBMIT = F_NEXT, K_SUBMITTER, K_SUBMIT_KIND, K_WAITING };

/* clang-format off */
static const struct tacho__sql_column pool_columns[] = {
	PROCESS_COLUMNS,
	KIND_COLUMNS,
	{"work", SQL_KEY, F_TASK, 0, "number of the work"},
	{"submit_ns", SQL_OPTIONAL, K_SUBMIT, 0, "when it was handed in; NULL: not seen"},
	{"begin_ns", SQL_OPTIONAL, F_BEGIN, 0, "when a thread of the pool began with it"},
	{"end_ns", SQL_OPTIONAL, F_END, 0, "when it was done"},
	{"wait_ns", SQL_DIFFERENCE, F_BEGIN, K_SUBMIT, "from submit_ns to begin_ns"},
	{"ns", SQL_DIFFERENCE, F_END, F_BEGIN, "from begin_ns to end_ns"},
	{"submitter_tid", SQL_TID, K_SUBMITTER, 0, "thread that handed it in"},
	{"submit_kind", SQL_ID_NAME, K_SUBMIT_KIND, 0, "kind of the poll that did"},
	{"submit_function", SQL_ID_FUNCTION, K_SUBMIT_KIND, 0, "function of that kind"},
	{"worker_tid", SQL_TID, F_THREAD, 0, "thread of the pool"},
	{"waiting", SQL_NUMBER, K_WAITING, 0, "others that waited for the pool when it was handed in"},
};
/* clang-format on */

static void on_work(void *arg, const struct tacho__work *w)
{
	uint64_t v[SQL_FIELDS] = {0};

	v[F_PROCESS] = w->process;
	v[F_THREAD] = w->worker;
	v[F_KIND] = w->kind;
	v[F_TASK] = w->work;
	v[F_BEGIN] = w->begin_ns;
	v[F_END] = w->end_ns;
	v[K_SUBMIT] = w->submit_ns;
	v[K_SUBMITTER] = w->submitter;
	v[K_SUBMIT_KIND] = w->submit_kind;
	v[K_WAITING] = w->waiting;
	tacho__sql_put(arg, v);
}

const struct tacho__sql_table tacho__sql_turns =
	SQL_TABLE("turns", "a turn of a loop, from the end of one wait to the next", turn_columns,
		  .facts = {.turn = on_turn});
const struct tacho__sql_table tacho__sql_polls =
	SQL_TABLE("polls", "a poll or callback", poll_columns, .facts = {.poll = on_poll});
const struct tacho__sql_table tacho__sql_wakes = SQL_TABLE(
	"wakes", "a wake, with the poll that it led to", wake_columns, .facts = {.wake = on_wake});
const struct tacho__sql_table tacho__sql_locks =
	SQL_TABLE("locks", "a wait for a lock, with who released it", lock_columns,
		  .facts = {.lock = on_lock});
const struct tacho__sql_table tacho__sql_calls =
	SQL_TABLE("calls", "a blocking call", call_columns, .facts = {.call = on_call});
const struct tacho__sql_table tacho__sql_pool = SQL_TABLE("pool", "work given to a pool of threads",
							  pool_columns, .facts = {.work = on_work});
