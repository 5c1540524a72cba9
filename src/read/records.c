#include "read/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The array stays as it was when there is no memory for a larger one. */
static int grow(void **array, size_t count, size_t size)
{
	void *p;

	if (count > SIZE_MAX / size)
		return -ENOMEM;
	p = realloc(*array, count * size);
	if (!p)
		return -ENOMEM;
	*array = p;
	return 0;
}

int tacho__records_reserve(struct tacho__records *r, uint32_t count, uint32_t words)
{
	if (!r->word_at || count > r->capacity) {
		if (grow((void **)&r->ns, (size_t)count + 1, sizeof(*r->ns)) ||
		    grow((void **)&r->type_arg, (size_t)count + 1, sizeof(*r->type_arg)))
			return -ENOMEM;
		/* word_at is what says that the arrays are there: it comes last. */
		int fresh = !r->word_at;

		if (grow((void **)&r->word_at, (size_t)count + 1, sizeof(*r->word_at)))
			return -ENOMEM;
		if (fresh)
			r->word_at[0] = 0;
		r->capacity = count;
	}
	if (!r->words || words > r->words_capacity) {
		if (grow((void **)&r->words, (size_t)words + 1, sizeof(*r->words)))
			return -ENOMEM;
		r->words_capacity = words;
	}
	return 0;
}

void tacho__records_append(struct tacho__records *r, const struct tacho__records *more)
{
	uint32_t at = r->head.count, count = more->head.count;
	uint32_t words = r->word_at[at];

	memcpy(r->ns + at, more->ns, count * sizeof(*r->ns));
	memcpy(r->type_arg + at, more->type_arg, count * sizeof(*r->type_arg));
	memcpy(r->words + words, more->words, more->word_at[count] * sizeof(*r->words));
	for (uint32_t i = 1; i <= count; i++)
		r->word_at[at + i] = words + more->word_at[i];
	r->head.count += count;
	r->head.last_ns = more->head.last_ns;
	/* Whether more will be stored, only the last can tell. */
	r->head.flags &= ~(uint32_t)TACHO_CHUNK_SEALED;
	r->head.flags |= more->head.flags & TACHO_CHUNK_SEALED;
}

void tacho__records_free(struct tacho__records *r)
{
	free(r->ns);
	free(r->type_arg);
	free(r->word_at);
	free(r->words);
	*r = (struct tacho__records){0};
}
