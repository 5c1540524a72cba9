/*
 * What rules share. A rule is a row of rules.def, and functions that look at the summary and at what
 * was gathered, and add findings.
 *
 *   rule.h           the table of rules
 *   causes.c         owners of the ledger that are one cause, and what matters
 *   rules_ledger.c   what is said of these
 *   considered.c     what is none, and why
 *   coverage.c       which rules could look
 *   rules_locks.c    locks that threads without loops wait for
 *   rules_runtime.c  what tasks wait for: locks, Go's collector, other services
 *   rules_wait.c     wakes, queues
 *   rules_tasks.c    tasks that wake themselves, do not end, or are not woken
 *   rules_pool.c     pools of threads
 *   rules_leak.c     what is begun and not ended
 *   rules_io.c       timers, descriptors, futile waits, load
 *   busy.c           how busy a loop is
 *   rules_stuck.c    what has not come back when the records end
 *   rules_rhythm.c   what came again and again, and comes no more
 *   rules_process.c  crashes, spans, outliers, quotas, and what was recorded at all
 *   rules_end.c      ends that are not ordinary, and what was open then
 *   measure.c        numbers of findings
 *   losses.c         what cannot be read, and findings that this could make by itself
 *   places.c         from definitions and samples to the places that a finding names
 *   at_end.c         what each thread was in at the end
 *   group.c          which findings are one cause, and its severity
 *   workers.c        how many workers a cause is in
 *   fold.c           which finding explains which, and the rank
 *   verdict.c        the verdict, and what it covers
 */
#ifndef TACHO_EXPLAIN_RULES_H
#define TACHO_EXPLAIN_RULES_H

#include "explain/explain.h"
#include "explain/gather.h"
#include "model/judgement.h"
#include "read/damage.h"

/* Where samples were taken. */
struct tacho__hottest {
	const struct tacho__sampled *stack; /* one that goes through it */
	struct tacho__place place;
	double share; /* of the CPU time of all samples, 0..1 */
};

struct tacho__explaining {
	const struct tacho_reader *reader;
	struct tacho_reader *reading; /* the same */
	const struct tacho__facts *watcher;
	struct tacho__summing *summing; /* while the events of the process are read */
	const double *thresholds;
	uint32_t process; /* that is looked at; `sum` and `gathered` are of its events alone */
	uint32_t room;	  /* for findings */
	struct tacho__damage damage; /* of the process */
	uint64_t seen_ns; /* of the process: it was still seen then, after its last record; 0 */
	struct tacho__summary *sum;
	struct tacho__gathered gathered;
	struct tacho__explanation *out;
	uint32_t capacity;
	uint64_t covered; /* set of the rules whose coverage of this process is said */
	uint8_t done;
	struct tacho__finding unkept; /* one that there is no room for */
	int error;
};

static inline double tacho__limit_of(const struct tacho__explaining *x, enum tacho__limit_id id)
{
	return x->thresholds ? x->thresholds[id] : tacho__thresholds[id].value;
}
#define TACHO__LIMIT(x, NAME) tacho__limit_of(x, TACHO__LIMIT_##NAME)
/* The same by its name, which must be there. */
double tacho__limit(const struct tacho__explaining *x, const char *name);
static inline double tacho__window_ns(const struct tacho__explaining *x)
{
	/* Not 0, which shares are not of. */
	return x->sum->last_ns > x->sum->first_ns ? (double)(x->sum->last_ns - x->sum->first_ns)
						  : 1;
}
/* Of an alarm, by what waited because of it. */
enum tacho__severity tacho__severity_of_waiting(const struct tacho__explaining *x,
						double waiting_ns);
/* What rates are of: what went on for less than is enough to tell is no rate. */
double tacho__seconds(const struct tacho__explaining *x);

/* A new finding; one that is not kept where there is no room for more. */
struct tacho__finding *tacho__find(struct tacho__explaining *x, enum tacho__rule_id rule,
				   enum tacho__severity severity, uint32_t process, double cost_ns);
void tacho__say_summary(struct tacho__finding *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same of several workers, which stand where the character TACHO__WHO is. */
void tacho__say_many(struct tacho__finding *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void tacho__say_advice(struct tacho__finding *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void tacho__say_evidence(struct tacho__finding *f, uint32_t thread, uint64_t from_ns,
			 uint64_t to_ns, double value, const char *unit, const char *format, ...)
	__attribute__((format(printf, 7, 8)));
/* What was said last is about this task. */
static inline void tacho__evidence_task(struct tacho__finding *f, uint64_t task)
{
	if (f->evidence_count)
		f->evidence[f->evidence_count - 1].task = task;
}
/* Adds the places of a definition (or frames): those of the program, innermost first, if there
   are any; else what there is. */
void tacho__where_id(const struct tacho__explaining *x, struct tacho__finding *f, uint32_t id,
		     uint64_t ns);
/* The same for an address in the code. */
void tacho__where_code(const struct tacho__explaining *x, struct tacho__finding *f, uint64_t code,
		       uint64_t ns);
/* The same for a function of the ledger, and what called it. */
void tacho__where_function(const struct tacho__explaining *x, struct tacho__finding *f,
			   const struct tacho__function *function);
/* The same for the place that was sampled most. */
void tacho__where_hottest(const struct tacho__explaining *x, struct tacho__finding *f,
			  const struct tacho__hottest *h, uint64_t ns);
/* The place of a definition of a place or stack that means most to a person: the program's own
   innermost. */
struct tacho__place tacho__own_place(const struct tacho__explaining *x, uint32_t process,
				     uint32_t id, uint64_t ns);
/*
 * The function of the program with most samples: the innermost one, if it took half of the time or
 * more, or if `common` is 0; else the innermost one that three quarters of the samples go through,
 * if there is one. Code without names is named by its addresses.
 * 0: there are no samples.
 */
int tacho__find_hottest(const struct tacho__explaining *x, uint32_t process,
			const struct tacho__samples *samples, uint64_t ns, int common,
			struct tacho__hottest *h);
/* Samples of a function; of more functions than there is room for, those with most of the time. */
void tacho__samples_add(struct tacho__samples *to, const struct tacho__function *f);
/* The innermost function of the program that most of the samples go through. 0: there is none. */
int tacho__where_common(const struct tacho__explaining *x, struct tacho__finding *f,
			const struct tacho__samples *samples, uint64_t ns);
/* What callbacks of the kind do on the loop: the place that was sampled most in them, else what is
   called. */
void tacho__where_kind(const struct tacho__explaining *x, struct tacho__finding *f,
		       const struct tacho__loop_sum *l, uint32_t kind);
/* What a loop is busy with: the callback that takes most of its time, else what was sampled. */
void tacho__where_busy(const struct tacho__explaining *x, struct tacho__finding *f,
		       const struct tacho__loop_sum *l);
/* The same for the descriptor that has most of its turns to itself. */
void tacho__where_sole(const struct tacho__explaining *x, struct tacho__finding *f,
		       const struct tacho__loop_sum *l, uint64_t what);
/* Says for each finding whose places are an interpreter's how to see the script's. */
void tacho__name_scripts(struct tacho__explaining *x);
/* What a kind, loop, call or text is called; for kinds the callback's function if it is known. */
const char *tacho__id_text(const struct tacho__explaining *x, char out[TACHO__TEXT],
			   uint32_t process, uint32_t id);
/* The same for a loop, told apart from others of its name. */
const char *tacho__loop_text(const struct tacho__explaining *x, char out[TACHO__TEXT],
			     const struct tacho__loop_sum *l);
/* The callback, or "a turn of the loop". */
const char *tacho__callback_text(const struct tacho__explaining *x, char out[TACHO__TEXT],
				 const struct tacho__poll *p);
/* The first place of a finding, which has one; "server+0x1f30 under parse" where only what called
   it has a name. */
const char *tacho__where_text(char out[2 * TACHO__TEXT], const struct tacho__finding *f);
const char *tacho__thread_text(const struct tacho__explaining *x, char out[TACHO__TEXT],
			       uint32_t process, uint32_t thread);
const char *tacho__signal_text(char out[TACHO__TEXT], uint32_t number);
int tacho__source_is_on(const struct tacho__explaining *x, uint32_t process, const char *name);

/* What the recorder counted under that name since it began. */
double tacho__counted(const struct tacho__explaining *x, uint32_t process, const char *name);
/* Whether the loops were seen, for long enough, to have had next to nothing to do. */
int tacho__is_idle(const struct tacho__explaining *x);

/* coverage.c: whether the rule could look in this process, and why not. What is said first holds. */
void tacho__cover(struct tacho__explaining *x, enum tacho__rule_id rule, int checked,
		  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* It could not after all. */
void tacho__uncover(struct tacho__explaining *x, enum tacho__rule_id rule, const char *why);
/* Of all rules of which nothing was said yet: by their inputs. */
void tacho__cover_rules(struct tacho__explaining *x);

/* considered.c: it is no finding, and why. */
void tacho__consider(const struct tacho__explaining *x, enum tacho__rule_id rule, const char *what,
		     double cost_ns, double waiting_ns, const char *format, ...)
	__attribute__((format(printf, 6, 7)));
/* Whether a value is below a threshold, and so no finding. */
int tacho__below(const struct tacho__explaining *x, enum tacho__rule_id rule, const char *what,
		 double cost_ns, double value, enum tacho__limit_id limit);
struct tacho__cause;
/* Whether a cause that is too small in its process is to be added to those of others (group.h). */
int tacho__may_add_up(const struct tacho__explaining *x, const struct tacho__cause *g);
/* It was, and is too small even so. */
void tacho__consider_small(const struct tacho__explaining *x, const struct tacho__finding *f,
			   double window_ns);
/* Owners of the ledger that are no cause. */
void tacho__consider_owners(const struct tacho__explaining *x);

void tacho__rules_ledger(struct tacho__explaining *x);
/* measure.c: what the finding counted; its numbers are in relation to each other then. */
void tacho__measured(const struct tacho__explaining *x, struct tacho__finding *f,
		     const struct tacho__measure *m);
/* After the rules: of what they found, from `first` on, evidence is inside of the window, and nothing that
   took no time is an alarm. */
void tacho__finish(struct tacho__explaining *x, uint32_t first);
/* losses.c: after the events, before the rules: how much of the process can be read. */
void tacho__know_losses(struct tacho__explaining *x);
/* After the rules: what they found, from `first` on, that losses could make by themselves is dropped. */
void tacho__withhold(struct tacho__explaining *x, uint32_t first);
/* After all processes. */
void tacho__sum_losses(struct tacho__explaining *x);
/* "a signal" */
const char *tacho__stopped_by(enum tacho__owns_reason reason);
/* causes.c: the part of its time in which a thread did not wait for work, 0..1. */
double tacho__busy_share(const struct tacho__explaining *x, uint32_t thread);
void tacho__rules_leak(struct tacho__explaining *x); /* before tacho__cover_rules */
void tacho__rules_stuck(struct tacho__explaining *x);
/* Whether the call waits for the end of a thread. */
int tacho__is_join(const struct tacho__explaining *x, uint32_t call);
void tacho__rules_locks(struct tacho__explaining *x); /* after rules_ledger */
void tacho__rules_runtime(struct tacho__explaining *x);
/* Whether the process was imported from a trace of Go. */
int tacho__is_go(const struct tacho__explaining *x);
/* Whether the span is one of Go's runtime, not of the program. */
int tacho__is_runtime_span(const struct tacho__explaining *x, uint32_t name);
/* The part of their time in which the loops of the process were parked, 0..1. */
double tacho__idle_share(const struct tacho__explaining *x, uint32_t process);
void tacho__rules_wait(struct tacho__explaining *x);
/* `queue`: one of them grows. */
void tacho__rules_tasks(struct tacho__explaining *x, int queue);
void tacho__rules_async(struct tacho__explaining *x);
void tacho__rules_pool(struct tacho__explaining *x);
void tacho__rules_io(struct tacho__explaining *x);
int tacho__is_timer(const struct tacho__explaining *x, const struct tacho__kind_sum *k);
/* What the program itself wakes its loops with, by what is ready. */
#define TACHO__OWN_WAKERS 64u
struct tacho__own_wakers {
	uint64_t what[TACHO__OWN_WAKERS];
	uint32_t count;
};
void tacho__find_own_wakers(const struct tacho__explaining *x, struct tacho__own_wakers *w);
int tacho__is_own_waker(const struct tacho__own_wakers *w, uint64_t what);
/* After tacho__rules_stuck and tacho__rules_tasks, which know of single tasks. */
void tacho__rules_rhythm(struct tacho__explaining *x);
void tacho__rules_process(struct tacho__explaining *x);
void tacho__rules_end(struct tacho__explaining *x); /* after rules_stuck */
int tacho__fold(struct tacho__explaining *x);	    /* 0 or -ENOMEM */
/* verdict.c: which threads of the process were judged. */
void tacho__cover_threads(struct tacho__explaining *x);
/* Once findings are ranked. */
void tacho__judge(struct tacho__explaining *x);

#endif
