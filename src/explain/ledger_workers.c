/* The threads that a ledger is about: when each begins, when it is gone, what is known of it. */
#include <errno.h>
#include <string.h>

#include "explain/ledger_book.h"
#include "read/memory.h"
#include "read/records.h"

static void know_process(struct tacho__ledger_book *b, uint32_t process)
{
	struct tacho__book_process *p = tacho__book_process(b, process);
	struct tacho_source_info source = {.size = sizeof(source)};
	struct tacho_loss_info loss = {.size = sizeof(loss)};
	const struct tacho_reader *reader = b->l->reader;

	p->known = 1;
	for (uint32_t i = 0; i < tacho_read_source_count(reader); i++) {
		if (tacho_read_source(reader, process, i, &source) < 0)
			continue;
		if (strcmp(source.name, "cpu_samples") == 0)
			p->is_sampled = source.state == TACHO_SOURCE_ON;
		else if (strcmp(source.name, "calls") == 0)
			p->sees_calls = source.state == TACHO_SOURCE_ON;
	}
	for (uint32_t i = 0; i < tacho_read_loss_count(reader); i++)
		if (tacho_read_loss(reader, process, i, &loss) >= 0 &&
		    strcmp(loss.name, "not_sampled") == 0 && loss.count)
			p->is_sampled = 0;
	for (uint32_t i = 0; i < tacho_read_thread_count(reader); i++) {
		const struct tacho_thread *t = tacho_read_thread(reader, i);

		p->living |= t->live && t->process == process;
	}
}

static int new_thread(struct tacho__ledger_book *b, struct tacho__worker *w)
{
	struct tacho__ledger *l = b->l;
	struct tacho__ledger_thread *t;

	if (TACHO__GROW(l->threads, l->thread_capacity, l->thread_count + 1)) {
		b->error = -ENOMEM;
		return 0;
	}
	t = &l->threads[l->thread_count];
	memset(t, 0, sizeof(*t));
	t->process = w->process;
	t->thread = w->number;
	t->rest.owns = TACHO__OWNS_NOT_OBSERVED;
	t->rest.reason = TACHO__UNSEEN_ROOM;
	t->rest.process = w->process;
	t->rest.thread = w->thread = l->thread_count++;
	return 1;
}

struct tacho__worker *tacho__book_worker(struct tacho__ledger_book *b, uint32_t process,
					 uint32_t thread)
{
	uint32_t *recent = &b->recent[thread % TACHO__BOOK_KNOWN];
	struct tacho__worker *w = *recent ? tacho__worker_at(b, *recent - 1) : NULL;
	const struct tacho_thread *d;

	if (w && w->entry.key[0] == process && w->entry.key[1] == thread)
		return w;
	w = tacho__table_get(&b->workers, process, thread, &b->error);
	if (!w)
		return NULL;
	*recent = w->entry.index + 1;
	if (w->number)
		return w;
	w->process = process;
	w->number = thread;
	w->of = tacho__book_process(b, process);
	w->queue = w->idle_owned = w->left.owned = TACHO__NONE;
	w->ended.kind = TACHO__NONE;
	w->open[0].owned = w->open[0].block.owned = w->last_block.owned = TACHO__NONE;
	w->why = TACHO__UNSEEN_GAP;
	if (!tacho__book_process(b, process)->known)
		know_process(b, process);
	d = tacho_read_thread_by_number(b->l->reader, process, thread);
	w->is_dead = d && !d->live && tacho__book_process(b, process)->living &&
		     !tacho__read_goes_on(b->l->reader, process, thread);
	return new_thread(b, w) ? w : NULL;
}

struct tacho__worker *tacho__book_worker_of(struct tacho__ledger_book *b,
					    const struct tacho__step *s)
{
	struct tacho__worker *w;

	w = tacho__book_worker(b, s->process, s->thread);
	if (!w)
		return NULL;
	while (b->by_index_count <= s->index) {
		if (TACHO__GROW(b->by_index, b->by_index_capacity, b->by_index_count + 1)) {
			b->error = -ENOMEM;
			return NULL;
		}
		b->by_index[b->by_index_count++] = 0;
	}
	b->by_index[s->index] = w->entry.index + 1;
	return w;
}

/* Its time begins, unless it has begun. */
static void be_born(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns)
{
	const struct tacho_thread *d =
		tacho_read_thread_by_number(b->l->reader, w->process, w->number);
	struct tacho__ledger_thread *t = &b->l->threads[w->thread];

	if (ns < b->first_ns)
		ns = b->first_ns;
	w->doing = TACHO__RUNNING;
	w->at = t->first_ns = ns;
	if (d && d->start_ns && d->start_ns < b->first_ns && ns > b->first_ns) {
		w->at = t->first_ns = b->first_ns;
		w->doing = TACHO__UNSEEN;
		w->why = TACHO__UNSEEN_EDGE;
		tacho__book_settle(b, w, ns);
		w->doing = TACHO__RUNNING;
		w->why = TACHO__UNSEEN_GAP;
	}
}

/* A thread that has ended records nothing; that it has is known, but not when. */
void tacho__book_look_gone(struct tacho__ledger_book *b, uint32_t process, uint64_t ns)
{
	tacho__book_process(b, process)->looked_ns = ns;
	for (struct tacho__worker *w = NULL; (w = tacho__table_next(&b->workers, w));)
		if (w->process == process && w->is_dead && !w->gone &&
		    w->touched + TACHO__GONE_NS < ns) {
			w->gone = 1;
			tacho__queue_stand(b, w, NULL, TACHO__OUT, ns);
		}
}

/* Something of the process is seen, and nothing of it was for long. */
void tacho__book_quiet(struct tacho__ledger_book *b, uint32_t process, uint64_t ns)
{
	struct tacho__book_process *p = tacho__book_process(b, process);

	if (p->last_ns) {
		p->gaps[p->gap_count % TACHO__BOOK_GAPS].from = p->last_ns;
		p->gaps[p->gap_count++ % TACHO__BOOK_GAPS].to = ns;
	}
}

void tacho__book_begins(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns)
{
	if (w->doing == TACHO__UNBORN)
		be_born(b, w, ns);
	if (w->doing == TACHO__UNSEEN) {
		tacho__book_settle(b, w, ns);
		w->doing = TACHO__RUNNING;
		w->why = TACHO__UNSEEN_GAP;
	}
}
