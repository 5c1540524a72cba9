/*
 * CPU samples from inside the process: each thread of interest has a timer on its own CPU
 * time, which sends it a signal; the handler takes the stack.
 *
 * This needs no privilege and no perf. A timer runs only while its thread does, so idle
 * threads cost nothing. Since Linux 5.11 a CPU timer that expires inside a system call
 * sends its signal on the way back to the program, so no call is interrupted; before, a
 * wait could be at its very beginning, and waits.c then goes on with it.
 *
 * The signal is the highest real-time signal that has its default action when the first
 * thread is sampled, and that the program has not named in a set of signals. signals.c sees
 * to it that the program neither sees it nor loses a signal that it wants later.
 *
 * The program may need what a sample takes. So threads with a small stack are not sampled, and half of
 * the signals that may be pending for the user, of which each timer takes one, stay free.
 *
 * Threads are sampled from their beginning (pthread_create) or from when they first wait in a
 * loop. A thread that blocks all signals and never waits in a loop is sampled until it
 * does. Timers belong to the process and are not inherited: a child makes its own.
 */
#include "core/watched.h"
#include "hooks/samples.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <ucontext.h>

#include "base/sys.h"
#include "base/text.h"
#include "core/define.h"
#include "core/record.h"
#include "hooks/hooks.h"
#include "hooks/unwind.h"

#if !defined(sigev_notify_thread_id) /* as timer_create(2) calls it; glibc has it since 2.41 */
#define sigev_notify_thread_id _sigev_un._tid
#endif
#define DEFAULT_HZ 99u
#define HZ_MAX 1000u
#define TIMERS_MAX 1024u    /* threads; each timer takes one of the user's pending signals */
#define SIGNALS_LEAST 1024u /* that may be pending: with fewer the program needs them all */
#define KEYS_WITHOUT_MALLOC 32u
#define PREPARING UINT32_MAX /* a process whose number is about to be given */
#define PREPARE_YIELDS 100
#define PREPARE_MS 1000

/* What one thread needs; mapped, as a signal's stack may be small. */
struct sampler {
	int32_t timer;
	uint32_t slot; /* in timers[] */
	uint64_t cpu_ns;
	uint64_t words[2 + TACHO_STACK_MAX]; /* of the record; frames from the third on */
	struct tacho__unwind unwind;
};

enum state { UNKNOWN, CHOOSING, ON, REFUSED, OFF };

static uint32_t hz;
static uint32_t state;
static int refused; /* errno */
static int signal_number;
static struct sigaction believed;
static pthread_key_t key;
static uint32_t key_ready;
static uint32_t processes; /* given out; not emptied by fork */
static int owner;	   /* pid of the process that the timers are of */
static uintptr_t preparer; /* thread that gives the number of the process, by its tacho__hook */

/* Timers of this process: id + 1; 0: free. Also what tells our signals from others. */
static int32_t timers[TIMERS_MAX];

static __thread struct sampler *sampler __attribute__((tls_model("initial-exec")));

int tacho__samples_signal(void)
{
	/* A child of vfork shares our memory and has no timers: nothing here is about it. */
	if (tacho__load(&state) != ON || tacho__load(&owner) != tacho__getpid())
		return 0;
	return tacho__load(&signal_number);
}

void tacho__samples_believed(const struct sigaction *set, struct sigaction *old)
{
	struct sigaction before = believed;

	if (set)
		believed = *set;
	if (old)
		*old = before;
}

/* ------------------------------------------------------------------ handler */

static uint64_t cpu_ns(void)
{
	struct timespec t = {0, 0};

	(void)TACHO__SYS(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t, 0, 0, 0, 0);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void take(struct sampler *s, const ucontext_t *uc)
{
	uint64_t now = cpu_ns(), since = now - s->cpu_ns;
	int more = 0;
	uint32_t n = tacho__unwind(&s->unwind, uc, s->words + 2, TACHO_STACK_MAX, &more);
	uint32_t id = tacho__define_stack((more ? TACHO_DEF_CUT : 0) | TACHO_DEF_EXACT,
					  s->words + 2, n * (uint32_t)sizeof(s->words[0]));

	if (more)
		tacho__count(TACHO_LOSS_STACK_CUT, 1);
	s->cpu_ns = now;
	if (id) {
		tacho__record(tacho_record_head(TACHO_REC_SAMPLE, id), &since, 1);
		return;
	}
	s->words[0] = (2 + n) | (uint64_t)(more != 0) << 16;
	s->words[1] = since;
	tacho__record(tacho_record_head(TACHO_REC_SAMPLE_FRAMES, 0), s->words, 2 + n);
}

/* The signal, but not from one of our timers: what would have happened without us. */
static void not_ours(int sig)
{
	struct sigaction plain;

	if (believed.sa_handler == SIG_IGN)
		return;
	memset(&plain, 0, sizeof(plain));
	plain.sa_handler = SIG_DFL;
	tacho__real_sigaction(sig, &plain, NULL);
	(void)TACHO__SYS(SYS_tgkill, tacho__getpid(), tacho__gettid(), sig, 0, 0, 0);
}

static int call_interrupted(const ucontext_t *uc)
{
#if defined(__x86_64__)
	return uc->uc_mcontext.gregs[REG_RAX] == -EINTR;
#else
	return uc->uc_mcontext.regs[0] == (uint64_t)-EINTR;
#endif
}

/*
 * Signals of the program have lower numbers. Of those that come at the same time the kernel
 * enters the handler of the highest last, on top of the others: if one of the program's
 * ended the call as well, what we interrupt is the beginning of that handler, not the call.
 */
static void on_signal(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	if (info->si_code != SI_TIMER || info->si_value.sival_ptr != timers) {
		not_ours(sig);
		errno = saved;
		return;
	}
	if (call_interrupted(context))
		tacho__hook.interrupted = 1;
	if (sampler && tacho__recording() &&
	    __atomic_load_n(&tacho__rec->phase, __ATOMIC_ACQUIRE) == TACHO__PHASE_READY)
		take(sampler, context);
	errno = saved;
}

/* ------------------------------------------------------------ choosing a signal */

static int install(int sig)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = on_signal;
	sa.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
	sigfillset(&sa.sa_mask);
	/* Faults in the handler are as fatal as anywhere; blocked ones would be worse. */
	sigdelset(&sa.sa_mask, SIGSEGV);
	sigdelset(&sa.sa_mask, SIGBUS);
	return tacho__real_sigaction(sig, &sa, NULL) ? errno : 0;
}

/* 0, or an errno. Not `other` again: the program has it. */
static int choose(int other)
{
	for (int sig = SIGRTMAX; sig >= SIGRTMIN; sig--) {
		struct sigaction now;

		if (sig == other || tacho__signal_named(sig) ||
		    tacho__real_sigaction(sig, NULL, &now) || now.sa_flags & SA_SIGINFO ||
		    now.sa_handler != SIG_DFL)
			continue;
		memset(&believed, 0, sizeof(believed));
		refused = install(sig);
		if (!refused)
			__atomic_store_n(&signal_number, sig, __ATOMIC_RELEASE);
		return refused;
	}
	return EBUSY;
}

static void chosen(void)
{
	__atomic_store_n(&state, refused ? REFUSED : ON, __ATOMIC_RELEASE);
	tacho__samples_chosen();
}

/* ------------------------------------------------------------------- timers */

static int timer_make(int32_t *out)
{
	struct sigevent event;
	int32_t id = 0;
	long err;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = tacho__load(&signal_number);
	event.sigev_value.sival_ptr = timers;
	event.sigev_notify_thread_id = tacho__gettid();
	err = TACHO__SYS(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &id, 0, 0, 0);
	*out = id;
	return (int)-err;
}

static int timer_run(int32_t id)
{
	struct itimerspec every;

	memset(&every, 0, sizeof(every));
	every.it_interval.tv_sec = hz == 1;
	every.it_interval.tv_nsec = hz == 1 ? 0 : 1000000000 / (long)hz;
	every.it_value = every.it_interval;
	return (int)-TACHO__SYS(SYS_timer_settime, id, 0, &every, 0, 0, 0);
}

static void timer_end(int32_t id)
{
	(void)TACHO__SYS(SYS_timer_delete, id, 0, 0, 0, 0, 0);
}

/* Whether the user has signals to spare (RLIMIT_SIGPENDING), as far as can be told. `text` is for what
   the kernel says. */
static int signals_to_spare(char *text, size_t size)
{
	struct rlimit limit;
	const char *at;
	uint64_t used;

	if (TACHO__SYS(SYS_prlimit64, 0, RLIMIT_SIGPENDING, 0, &limit, 0, 0))
		return 1;
	if (limit.rlim_cur < SIGNALS_LEAST)
		return 0;
	if (tacho__read_small("/proc/self/status", text, size) <= 0)
		return 1;
	at = strstr(text, "SigQ:\t");
	if (!at)
		return 1;
	for (used = 0, at += 6; *at >= '0' && *at <= '9'; at++)
		used = used * 10 + (uint64_t)(*at - '0');
	return used < limit.rlim_cur / 2;
}

static int slot_take(int32_t id, uint32_t *slot)
{
	for (uint32_t i = 0; i < TIMERS_MAX; i++) {
		int32_t none = 0;

		if (__atomic_compare_exchange_n(&timers[i], &none, id + 1, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			*slot = i;
			return 0;
		}
	}
	return EAGAIN;
}

static struct sampler *sampler_make(void)
{
	intptr_t at = tacho__mmap(NULL, sizeof(struct sampler), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at < 0 && at > -4096 ? NULL : (struct sampler *)at;
}

/* A timer for this thread; 0 or an errno. The thread holds its signals. */
static int arm(void)
{
	struct sampler *s = sampler ? sampler : sampler_make();
	int err;

	if (!s)
		return ENOMEM;
	sampler = s;
	s->cpu_ns = cpu_ns();
	/* The unwinder's memory is not in use yet. */
	if (!signals_to_spare((char *)&s->unwind, sizeof(s->unwind)))
		return EAGAIN;
	memset(&s->unwind, 0, sizeof(s->unwind));
	err = timer_make(&s->timer);
	if (err)
		return err;
	err = slot_take(s->timer, &s->slot);
	if (!err)
		err = timer_run(s->timer);
	if (err) {
		timer_end(s->timer);
		s->timer = -1;
		return err;
	}
	return pthread_setspecific(key, s);
}

static void thread_ends(void *mine)
{
	struct sampler *s = mine;
	int32_t expected = s->timer + 1;

	sampler = NULL;
	tacho__hook.sampled = 0;
	tacho__signal_fence();
	/* Not when it was deleted by yield, and the number may be another's by now. */
	if (__atomic_compare_exchange_n(&timers[s->slot], &expected, 0, 0, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		timer_end(s->timer);
	tacho__munmap(s, sizeof(*s));
}

/* 1: the timers are gone, and the state is CHOOSING. 0: `sig` is not that of samples. */
static int timers_end(int sig)
{
	uint32_t on = ON;

	if (!sig || tacho__samples_signal() != sig ||
	    !__atomic_compare_exchange_n(&state, &on, CHOOSING, 0, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return 0;
	for (uint32_t i = 0; i < TIMERS_MAX; i++) {
		int32_t id = __atomic_exchange_n(&timers[i], 0, __ATOMIC_RELAXED);

		if (id)
			timer_end(id - 1);
	}
	return 1;
}

/* The action of the signal is what the program believes it to be. What a timer has sent before it
   ended, to a thread that blocks the signal, is forgotten: ignoring does that. */
static void give_back(int sig)
{
	struct sigaction plain;

	memset(&plain, 0, sizeof(plain));
	plain.sa_handler = SIG_IGN;
	tacho__real_sigaction(sig, &plain, NULL);
	plain.sa_handler = believed.sa_handler;
	tacho__real_sigaction(sig, &plain, NULL);
}

void tacho__samples_end(void)
{
	int sig = tacho__samples_signal();

	if (timers_end(sig))
		give_back(sig);
	tacho__store(&state, OFF);
}

void tacho__samples_yield(int sig)
{
	if (!timers_end(sig))
		return;
	give_back(sig);
	refused = choose(sig);
	/* Threads see that their timers are gone when they next park. */
	tacho__store(&tacho__rec->process, __atomic_add_fetch(&processes, 1, __ATOMIC_RELAXED));
	chosen();
}

/* ------------------------------------------------------------------ threads */

static void describe(void)
{
	struct tacho_box_source *s;

	if (__atomic_load_n(&tacho__rec->phase, __ATOMIC_ACQUIRE) != TACHO__PHASE_READY)
		return;
	s = &tacho__rec->super->sources[TACHO_SOURCE_CPU_SAMPLES];
	switch (tacho__load(&state)) {
	case ON:
		s->state = TACHO_SOURCE_ON;
		s->error = 0;
		break;
	case REFUSED:
		s->state = TACHO_SOURCE_REFUSED;
		s->error = refused;
		break;
	case OFF:
		s->state = TACHO_SOURCE_OFF;
		break;
	default:
		break;
	}
}

/* Between a fork and its first park a child may have set our signal as it liked. */
static int still_installed(void)
{
	struct sigaction now;

	return !tacho__real_sigaction(tacho__load(&signal_number), NULL, &now) &&
	       now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_signal;
}

/*
 * Once in each process, before any of its threads is sampled. A child finds the timers of its
 * parent in the list, and its parent's choice: handlers of crashes that it has set since then
 * know nothing of that, and a thread that was about to choose is not in the child.
 */
static void prepare(void)
{
	uint32_t now = tacho__load(&state);
	int choice = now == UNKNOWN || now == CHOOSING || (now == ON && !still_installed());

	memset(timers, 0, sizeof(timers));
	if (choice)
		tacho__store(&state, CHOOSING);
	tacho__store(&owner, tacho__getpid());
	if (choice) {
		refused = key_ready ? choose(0) : EAGAIN;
		chosen();
	} else if (now == ON) {
		tacho__samples_chosen();
	}
}

static int become_preparer(void)
{
	uint32_t none = 0;

	if (!__atomic_compare_exchange_n(&tacho__rec->process, &none, PREPARING, 0,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	tacho__store(&preparer, (uintptr_t)&tacho__hook);
	return 1;
}

/* Fails where samples have moved to another signal meanwhile: then there is a newer number. */
static void prepared(void)
{
	uint32_t preparing = PREPARING;
	uint32_t fresh = __atomic_add_fetch(&processes, 1, __ATOMIC_RELAXED);

	tacho__store(&preparer, 0);
	(void)__atomic_compare_exchange_n(&tacho__rec->process, &preparing, fresh, 0,
					  __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/*
 * The number of this process; 0: it is long in coming. While one thread prepares, the others
 * wait: the timer that one of them made would not be in the list, and its signal not blocked in
 * handlers of crashes. The one waits for nobody, and a handler that interrupts it, of a
 * crash, does not wait either.
 */
static uint32_t process_number(void)
{
	static const struct timespec ms = {0, 1000000};

	for (int tries = 0; tries < PREPARE_YIELDS + PREPARE_MS; tries++) {
		uint32_t number = __atomic_load_n(&tacho__rec->process, __ATOMIC_ACQUIRE);

		if (number && number != PREPARING)
			return number;
		if (!number && become_preparer()) {
			prepare();
			prepared();
		} else if (tacho__load(&preparer) == (uintptr_t)&tacho__hook) {
			return 0;
		} else if (tries < PREPARE_YIELDS) {
			tacho__yield();
		} else {
			(void)TACHO__SYS(SYS_nanosleep, &ms, 0, 0, 0, 0, 0);
		}
	}
	return 0;
}

void tacho__samples_thread(void)
{
	int saved = errno;
	uint64_t mask;
	uint32_t number;
	int err;

	if (!tacho__rec)
		return;
	mask = tacho__signals_hold();
	number = process_number();
	if (!number) {
		tacho__count(TACHO_LOSS_NOT_SAMPLED, 1);
		tacho__signals_release(mask);
		errno = saved;
		return;
	}
	if (tacho__hook.sampled != number)
		tacho__hook.looked = tacho__look_due = 0;
	if (tacho__hook.little_stack) {
		if (tacho__hook.sampled != number)
			tacho__count(TACHO_LOSS_NOT_SAMPLED, 1);
	} else if (tacho__load(&state) == ON) {
		err = tacho__hook.sampled != number ? arm() : 0;
		/* One thread of many without a timer is a loss; the first one a refusal. */
		if (err && !timers[0]) {
			refused = err;
			tacho__store(&state, REFUSED);
		} else if (err) {
			tacho__count(TACHO_LOSS_NOT_SAMPLED, 1);
		}
		mask &= ~(1ull << (tacho__load(&signal_number) - 1));
	}
	if (tacho__load(&state) != CHOOSING)
		tacho__hook.sampled = number;
	describe();
	tacho__signals_release(mask);
	errno = saved;
}

static uint32_t read_hz(void)
{
	const char *text = getenv("TACHO_SAMPLE_HZ");
	uint64_t n;

	if (!text || !*text)
		return DEFAULT_HZ;
	if (tacho__parse_u64(text, &n) || n > HZ_MAX) {
		refused = EINVAL;
		state = REFUSED;
		return 0;
	}
	return (uint32_t)n;
}

/* valgrind's time is not the program's, and it calls what the unwinder does an error of the
   program's. It is known by the library that it preloads. */
int tacho__under_valgrind(void)
{
	const char *preloaded = getenv("LD_PRELOAD");

	return preloaded && strstr(preloaded, "/vgpreload_");
}

void tacho__samples_begin(void)
{
	hz = tacho__under_valgrind() ? 0 : read_hz();
	if (!hz && state != REFUSED)
		state = OFF;
	/* The keys of a process that come first need no memory in any thread. */
	if (hz && !pthread_key_create(&key, thread_ends))
		key_ready = key < KEYS_WITHOUT_MALLOC;
}
