/* The picture of stacks: what fits into a frame, what is too narrow or too deep to be drawn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "export/flame_svg.h"

#define ROWS 1024u /* that are drawn at most, with that of all */

struct picture {
	struct tacho__stacks stacks;
	char *svg;
	size_t size;
};

static int take(void *arg, const void *data, size_t size)
{
	return fwrite(data, 1, size, arg) == size ? 0 : -1;
}

static uint32_t child(struct picture *p, uint32_t parent, const char *name, uint64_t value)
{
	int error = 0;
	uint32_t node = tacho__stacks_child(&p->stacks, parent, name, &error);

	assert_int_equal(error, 0);
	assert_int_not_equal(node, parent);
	if (value)
		tacho__stacks_add(&p->stacks, node, value);
	return node;
}

static void draw(struct picture *p)
{
	const struct tacho__flame flame = {.title = "a <title>", .subtitle = ""};
	FILE *out = open_memstream(&p->svg, &p->size);
	const struct tacho__sink sink = {.write = take, .arg = out};

	assert_non_null(out);
	assert_int_equal(tacho__flame_svg(&p->stacks, &flame, &sink), 0);
	fclose(out);
	assert_non_null(strstr(p->svg, "a &#60;title&#62;</text>"));
}

static void picture_end(struct picture *p)
{
	free(p->svg);
	tacho__stacks_free(&p->stacks);
}

/* What is written into the frame of this name; "": nothing, or there is no such frame. */
static const char *label(const struct picture *p, const char *name)
{
	static char out[2000];
	char title[1100];
	const char *at, *end;

	out[0] = 0;
	snprintf(title, sizeof(title), "<title>%s (", name);
	at = strstr(p->svg, title);
	at = at ? strstr(at, "<text ") : NULL;
	at = at ? strchr(at, '>') : NULL;
	end = at ? strstr(at, "</text>") : NULL;
	if (end)
		snprintf(out, sizeof(out), "%.*s", (int)(end - at - 1), at + 1);
	return out;
}

static uint32_t frames(const struct picture *p)
{
	uint32_t count = 0;

	for (const char *at = p->svg; (at = strstr(at, "<g class=\"f\">")); at++)
		count++;
	return count;
}

/* A frame has (width - 4) / 6.6 letters, its width being its share of 1180. */
static void names_that_fit_are_written(void **state)
{
	struct picture p = {0};
	char name[200];

	(void)state;
	assert_int_equal(tacho__stacks_init(&p.stacks), 0);
	memset(name, 'x', sizeof(name));
	name[178] = 0; /* 1180 have 178 letters */
	child(&p, child(&p, 0, "outer<&>", 0), name, 100);
	draw(&p);
	assert_string_equal(label(&p, "all"), "all");
	assert_string_equal(label(&p, "outer&#60;&#38;&#62;"), "outer&#60;&#38;&#62;");
	assert_string_equal(label(&p, name), name);
	assert_int_equal(frames(&p), 3);
	picture_end(&p);
}

static void names_that_do_not_fit_are_cut(void **state)
{
	struct picture p = {0};
	char name[200], cut[200];

	(void)state;
	assert_int_equal(tacho__stacks_init(&p.stacks), 0);
	memset(name, 'x', sizeof(name));
	name[179] = 0;
	child(&p, 0, name, 98);
	child(&p, 0, "short", 2); /* 23.6: two letters, which are for the dots */
	draw(&p);
	memcpy(cut, label(&p, name), sizeof(cut));
	assert_in_range(strlen(cut), 170, 178);
	assert_string_equal(cut + strlen(cut) - 3, "x..");
	assert_string_equal(label(&p, "short"), "");
	assert_int_equal(frames(&p), 3);
	picture_end(&p);
}

/* 0.05 of 1180 is one of 23600. */
static void what_is_too_narrow_is_not_drawn(void **state)
{
	struct picture p = {0};

	(void)state;
	assert_int_equal(tacho__stacks_init(&p.stacks), 0);
	child(&p, 0, "wide", 25000 - 3);
	child(&p, 0, "seen", 2);
	child(&p, 0, "unseen", 1);
	draw(&p);
	assert_non_null(strstr(p.svg, "<title>seen ("));
	assert_null(strstr(p.svg, "<title>unseen ("));
	picture_end(&p);
}

static void deep_stacks_are_drawn_as_far_as_there_are_rows(void **state)
{
	(void)state;
	for (uint32_t deep = ROWS - 1; deep <= ROWS + 1; deep++) {
		struct picture p = {0};
		uint32_t node = 0;
		char name[20];

		assert_int_equal(tacho__stacks_init(&p.stacks), 0);
		for (uint32_t i = 1; i <= deep; i++) {
			snprintf(name, sizeof(name), "f%u", i);
			node = child(&p, node, name, i == deep);
		}
		draw(&p);
		assert_int_equal(frames(&p), ROWS);
		assert_non_null(strstr(p.svg, "<title>f1023 ("));
		assert_null(strstr(p.svg, "<title>f1024 ("));
		picture_end(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_that_fit_are_written),
		cmocka_unit_test(names_that_do_not_fit_are_cut),
		cmocka_unit_test(what_is_too_narrow_is_not_drawn),
		cmocka_unit_test(deep_stacks_are_drawn_as_far_as_there_are_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
