/*
 * Who wakes whom: all wakes of a trace added up by waker and woken task, and the part of it around one
 * task, two steps far. Read once, when it is first asked for.
 */
#include <stdlib.h>
#include <string.h>

#include "text/text.h"
#include "things.h"

#define NODES (1u << 20)
#define EDGES (1u << 20)
#define NEAR 6u /* of those around the task */
#define FAR 3u	/* of those around these */

/* A task; or what wakes outside of tasks, a kind of callback or plain code on a thread. */
struct node {
	struct tacho__entry entry; /* key: process << 1 | is a task, task or thread << 32 | kind */
	uint32_t kind;
};

struct edge {
	struct tacho__entry entry; /* key: from, to, as indices of nodes */
	uint64_t count, polls;	   /* polls: that they led to */
	uint64_t again;		   /* wakes by anyone between one of these and its poll */
	uint64_t waited_ns, longest_ns;
};

static struct {
	struct tacho__table nodes, edges;
	bool is_read;
	int error;
} wakes;

/* --------------------------------------------------------------------- read */

static struct node *node_of(uint32_t process, bool is_task, uint64_t id, uint32_t kind)
{
	struct node *n =
		tacho__table_get(&wakes.nodes, (uint64_t)process << 1 | is_task, id, &wakes.error);

	if (n && kind)
		n->kind = kind;
	return n;
}

static void on_wake(void *arg, const struct tacho__wake *w)
{
	const struct node *from, *to;
	uint32_t source, target;
	struct edge *e;
	uint64_t ns;

	(void)arg;
	from = w->at.task ? node_of(w->at.process, true, w->at.task, w->at.kind)
			  : node_of(w->at.process, false, (uint64_t)w->at.thread << 32 | w->at.kind,
				    w->at.kind);
	/* The table may move when it grows. */
	source = from ? from->entry.index : UINT32_MAX;
	to = node_of(w->at.process, true, w->task, w->kind);
	target = to ? to->entry.index : UINT32_MAX;
	if (!from || !to)
		return;
	e = tacho__table_get(&wakes.edges, source, target, &wakes.error);
	if (!e)
		return;
	e->count++;
	e->again += w->again;
	if (!w->begin_ns)
		return;
	ns = w->begin_ns - w->ns;
	e->polls++;
	e->waited_ns += ns;
	e->longest_ns = ns > e->longest_ns ? ns : e->longest_ns;
}

static void read_wakes(void)
{
	struct tacho__facts facts = {.error = &wakes.error, .wake = on_wake};

	if (wakes.is_read)
		return;
	tacho__table_init(&wakes.nodes, sizeof(struct node), NODES);
	tacho__table_init(&wakes.edges, sizeof(struct edge), EDGES);
	if (tacho_read_seek(page.reader, 0) >= 0)
		tacho__model_run(page.reader, &facts, NULL, NULL, NULL);
	wakes.is_read = true;
}

/* ------------------------------------------------------------------- answer */

struct around {
	const struct edge *best[NEAR];
	uint32_t count;	 /* of best */
	uint64_t others; /* edges that are not among them */
};

/* The edges with most wakes that go to a node, or come from it. */
static struct around around(uint32_t node, bool into, uint32_t most)
{
	struct around a = {.count = 0};

	for (const struct edge *e = NULL; (e = tacho__table_next(&wakes.edges, e));) {
		uint32_t i;

		if (e->entry.key[into ? 1 : 0] != node)
			continue;
		if (a.count == most) {
			a.others++;
			if (a.best[most - 1]->count >= e->count)
				continue;
		} else {
			a.count++;
		}
		for (i = a.count - 1; i && a.best[i - 1]->count < e->count; i--)
			a.best[i] = a.best[i - 1];
		a.best[i] = e;
	}
	return a;
}

static void put_node(struct json *j, const struct node *n)
{
	uint32_t process = (uint32_t)(n->entry.key[0] >> 1);
	bool is_task = n->entry.key[0] & 1;
	const struct tacho_thread *t =
		is_task ? NULL
			: tacho_read_thread_by_number(page.reader, process,
						      (uint32_t)(n->entry.key[1] >> 32));
	char text[NAME_BYTES];

	json_put_known(j, "task", is_task ? text_id(text, n->entry.key[1]) : "");
	json_put_known(j, "kind", name_of(text, process, n->kind));
	json_put_known(j, "thread", t ? t->name : "");
	json_put_u64_if(j, "tid", t != NULL, t ? t->tid : 0);
}

static void put_around(struct json *j, uint32_t node, bool into, bool near, uint32_t centre)
{
	struct around a = around(node, into, near ? NEAR : FAR);

	json_put_array(j, into ? "woken_by" : "wakes");
	for (uint32_t i = 0; i < a.count; i++) {
		const struct edge *e = a.best[i];
		uint32_t at = (uint32_t)e->entry.key[into ? 0 : 1];

		/* The way back to where one came from says nothing new. */
		if (!near && at == centre)
			continue;
		json_object(j);
		put_node(j, tacho__table_at(&wakes.nodes, at));
		json_put_bool(j, "self", at == node);
		json_put_u64(j, "count", e->count);
		json_put_u64(j, "polls", e->polls);
		json_put_u64(j, "again", e->again);
		json_put_u64(j, "waited", e->waited_ns);
		json_put_u64(j, "longest", e->longest_ns);
		if (near && at != node)
			put_around(j, at, into, false, centre);
		json_object_end(j);
	}
	json_array_end(j);
	json_put_u64(j, into ? "more_woken_by" : "more_wakes", a.others);
}

/* Who wakes a task and whom it wakes, two steps far; null: nobody, and it nobody. */
EXPORT(page_wakes) const char *page_wakes(uint32_t process, const char *task)
{
	const struct node *n;
	struct json j;

	read_wakes();
	n = tacho__table_find(&wakes.nodes, (uint64_t)process << 1 | 1, strtoull(task, NULL, 0));
	answer_begin(&j);
	if (n) {
		json_object(&j);
		put_node(&j, n);
		put_around(&j, n->entry.index, true, true, n->entry.index);
		put_around(&j, n->entry.index, false, true, n->entry.index);
		json_put_u64(&j, "missed", wakes.nodes.missed + wakes.edges.missed);
		json_object_end(&j);
	} else {
		json_null(&j);
	}
	return answer_end(&j);
}
