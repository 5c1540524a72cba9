/* What the tests of the reader have in common. Include after cmocka.h. */
#ifndef TESTS_READ_HELP_H
#define TESTS_READ_HELP_H

#include <stdint.h>
#include <string.h>

#include "tacho_read.h"

static inline int try_bytes(struct tacho_reader **r, const void *data, size_t size,
			    char message[256])
{
	int err;

	memset(message, 'x', 256);
	err = tacho_read_open_memory(r, data, size, NULL, message, 256);
	assert_true((err == 0) == (*r != NULL));
	if (err)
		assert_in_range(strlen(message), 10, 255);
	return err;
}

static inline struct tacho_reader *open_bytes(const void *data, size_t size,
					      const struct tacho_read_options *options)
{
	struct tacho_reader *r;
	char message[256] = "";
	int err = tacho_read_open_memory(&r, data, size, options, message, sizeof(message));

	if (err)
		print_message("%s\n", message);
	assert_int_equal(err, 0);
	return r;
}

/* The next event is of this type and thread at this time. */
#define expect(r, e, t, n, at)                              \
	do {                                                \
		assert_int_equal(tacho_read_next(r, e), 1); \
		assert_int_equal((*(e))->type, t);          \
		assert_int_equal((*(e))->thread, n);        \
		assert_int_equal((*(e))->ns, at);           \
	} while (0)

/* Events that were recorded; checks that time never runs back. */
static inline uint64_t count_events(struct tacho_reader *r)
{
	const struct tacho_event *e;
	uint64_t n = 0, last = 0, sum = 0;
	int result;

	while ((result = tacho_read_next(r, &e)) > 0) {
		assert_true(e->ns >= last);
		last = e->ns;
		for (uint32_t i = 0; i < e->words; i++)
			sum += e->word[i];
		if (e->type == TACHO_EV_RESUME)
			sum += e->resume->missing;
		else
			n++;
	}
	assert_int_equal(result, 0);
	/* Keeps the words from being left unread. */
	assert_true(sum + 1 || !sum);
	return n;
}

static inline uint64_t count_type(struct tacho_reader *r, uint8_t type)
{
	const struct tacho_event *e;
	uint64_t n = 0;

	while (tacho_read_next(r, &e) > 0)
		n += e->type == type;
	return n;
}

static inline uint32_t problems_named(struct tacho_reader *r, const char *name)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < tacho_read_problem_count(r); i++) {
		assert_in_range(strlen(tacho_read_problem(r, i)->text), 10, 511);
		n += !strcmp(tacho_read_problem(r, i)->name, name);
	}
	return n;
}

#endif
