/*
 * Stacks by .eh_frame: numbers, tables and expressions, each against what DWARF says, and where what they
 * say cannot be. Which table belongs to a program counter, the tests say.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <cmocka.h>

#include "hooks/unwind.h"

#define PC 0x1000ull
#define CALLER 0x2000ull
#if defined(__x86_64__)
#define RETURN TACHO__UNWIND_PC
#else
#define RETURN 30u
#endif

int __wrap_tacho__tables_find(struct tacho__tables *t, uint64_t pc);
int __wrap_tacho__table_describe(struct tacho__frame_table *d, const struct tacho__tables *t,
				 uint64_t pc);
int __real_tacho__table_describe(struct tacho__frame_table *d, const struct tacho__tables *t,
				 uint64_t pc);

static struct tacho__frame_table table; /* of PC */

int __wrap_tacho__tables_find(struct tacho__tables *t, uint64_t pc)
{
	(void)t;
	return pc == PC;
}

int __wrap_tacho__table_describe(struct tacho__frame_table *d, const struct tacho__tables *t,
				 uint64_t pc)
{
	(void)t;
	assert_int_equal(pc, PC);
	*d = table;
	return 1;
}

/* ------------------------------------------------------------------- numbers */

static void numbers_have_any_length(void **state)
{
	static const uint8_t unsigned_ones[] = {0x02, 0x7f, 0x80, 0x01, 0xb9, 0x64, 0x80,
						0x80, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff,
						0xff, 0xff, 0xff, 0xff, 0x01, 0x83, 0x80};
	static const uint8_t signed_ones[] = {0x02, 0x7e, 0xff, 0x00, 0x81, 0x7f, 0x80, 0x80, 0x7f};
	static const uint64_t expected[] = {2, 127, 128, 12857, 16384, UINT64_MAX, 3, 0};
	static const int64_t expected_signed[] = {2, -2, 127, -127, -16384, 0};
	struct tacho__cursor c = {unsigned_ones, unsigned_ones + sizeof(unsigned_ones)};

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(tacho__table_uleb(&c), expected[i]);
	c = (struct tacho__cursor){signed_ones, signed_ones + sizeof(signed_ones)};
	for (size_t i = 0; i < sizeof(expected_signed) / sizeof(expected_signed[0]); i++)
		assert_int_equal(tacho__table_sleb(&c), expected_signed[i]);
	c = (struct tacho__cursor){unsigned_ones, unsigned_ones + 3};
	assert_int_equal(tacho__table_get(&c, 2), 0x7f02);
	assert_int_equal(tacho__table_get(&c, 2), 0);
	assert_ptr_equal(c.at, c.end);
}

/* -------------------------------------------------------------------- tables */

/* .eh_frame_hdr with two functions of 16 bytes, 0x100 and 0x200 behind it, and what describes the first. */
struct frames {
	uint8_t header[4];
	int32_t frame;
	uint32_t count;
	int32_t pairs[2][2];
	uint32_t cie_size, cie;
	uint8_t version;
	char augmentation[3];
	uint8_t code_align, data_align, return_register, bytes, encoding, common[3];
	uint32_t fde_size, back;
	int32_t begin;
	uint32_t length;
	uint8_t more[8]; /* length of the augmentation, it, and instructions */
} __attribute__((packed));

static struct frames make(uint8_t augmented)
{
	return (struct frames){
		.header = {1, 0x1b, 0x03, 0x3b},
		.count = 2,
		.pairs = {{0x100, offsetof(struct frames, fde_size)},
			  {0x200, offsetof(struct frames, fde_size)}},
		.cie_size = offsetof(struct frames, fde_size) - offsetof(struct frames, cie),
		.version = 1,
		.augmentation = "zR",
		.code_align = 1,
		.data_align = 0x78, /* -8 */
		.return_register = 16,
		.bytes = 1,
		.encoding = 0x1b,
		.fde_size = sizeof(struct frames) - offsetof(struct frames, back),
		.back = offsetof(struct frames, back) - offsetof(struct frames, cie_size),
		.begin = 0x100 - (int32_t)offsetof(struct frames, begin),
		.length = 16,
		.more = {augmented},
	};
}

static int describe(struct tacho__frame_table *d, const struct frames *f, uint64_t at)
{
	const struct tacho__tables t = {.header = f};

	return __real_tacho__table_describe(d, &t, (uint64_t)(uintptr_t)f + at);
}

static void a_table_is_that_of_its_function(void **state)
{
	struct frames f = make(0);
	struct tacho__frame_table d;

	(void)state;
	assert_int_equal(describe(&d, &f, 0xff), 0);
	assert_int_equal(describe(&d, &f, 0x100), 1);
	assert_int_equal(d.begin, (uint64_t)(uintptr_t)&f + 0x100);
	assert_int_equal(d.code_align, 1);
	assert_int_equal(d.data_align, -8);
	assert_int_equal(d.return_register, 16);
	assert_false(d.is_signal);
	assert_ptr_equal(d.common.at, f.common);
	assert_ptr_equal(d.own.at, f.more + 1);
	assert_ptr_equal(d.own.end, f.more + sizeof(f.more));
	assert_int_equal(describe(&d, &f, 0x10f), 1);
	assert_int_equal(describe(&d, &f, 0x110), 0);
	/* The second leads to the description of the first. */
	assert_int_equal(describe(&d, &f, 0x200), 0);
	f.header[3] = 0x1b;
	assert_int_equal(describe(&d, &f, 0x100), 0);
}

static void what_is_added_to_a_table_may_fill_it(void **state)
{
	struct frames f = make(sizeof(f.more) - 1);
	struct tacho__frame_table d;

	(void)state;
	assert_int_equal(describe(&d, &f, 0x100), 1);
	assert_ptr_equal(d.own.at, d.own.end);
	f.more[0]++;
	assert_int_equal(describe(&d, &f, 0x100), 0);
}

/* -------------------------------------------------------------------- frames */

static struct tacho__unwind u;

/* The stack of a thread at PC; its caller, 0 if there is none. */
static uint64_t caller_of(uint64_t sp, uint64_t fp, uint64_t pc)
{
	uint64_t frames[4];
	ucontext_t uc;
	uint32_t n;
	int more;

	memset(&uc, 0, sizeof(uc));
#if defined(__x86_64__)
	uc.uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
	uc.uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
	uc.uc_mcontext.gregs[REG_RBP] = (greg_t)fp;
#else
	uc.uc_mcontext.pc = pc;
	uc.uc_mcontext.sp = sp;
	uc.uc_mcontext.regs[29] = fp;
#endif
	tacho__unwind_forget();
	n = tacho__unwind(&u, &uc, frames, 4, &more);
	assert_in_range(n, 1, 2);
	assert_int_equal(frames[0], pc);
	assert_false(more);
	return n > 1 ? frames[1] : 0;
}

/* The return address is what the expression makes of the frame's address, which is SP + 16. */
static uint64_t value_of(const uint8_t *ops, uint8_t size)
{
	uint64_t stack[4] = {0x4711, 0, 0, 0};
	uint8_t code[64] = {0x0c, TACHO__UNWIND_SP, 16, 0x16, RETURN, size};

	memcpy(code + 6, ops, size);
	table = (struct tacho__frame_table){.begin = PC,
					    .code_align = 1,
					    .data_align = -8,
					    .return_register = RETURN,
					    .own = {code, code + 6 + size}};
	return caller_of((uint64_t)(uintptr_t)stack, 0, PC);
}

#define VALUE(...)                                   \
	({                                           \
		const uint8_t ops[] = {__VA_ARGS__}; \
		value_of(ops, (uint8_t)sizeof(ops)); \
	})
#define LIT(n) (0x30 + (n))
#define BREG(n) (0x70 + (n))
#define AND 0x1a
#define MINUS 0x1c
#define PLUS 0x22
#define PLUS_CONST 0x23
#define SHIFT 0x24
#define AT_LEAST 0x2a

static void expressions_are_those_of_dwarf(void **state)
{
	(void)state;
	assert_int_equal(VALUE(LIT(12), LIT(10), AND), 8);
	assert_int_equal(VALUE(LIT(12), LIT(10), MINUS), 2);
	assert_int_equal(VALUE(LIT(12), LIT(10), PLUS), 22);
	assert_int_equal(VALUE(LIT(3), LIT(4), SHIFT), 48);
	assert_int_equal(VALUE(LIT(3), 0x08, 63, SHIFT, LIT(5), PLUS) & 7, 5);
	assert_int_equal(VALUE(LIT(3), 0x08, 64, SHIFT, LIT(5), PLUS), 5);
	assert_int_equal(VALUE(LIT(5), LIT(5), AT_LEAST), 1);
	assert_int_equal(VALUE(LIT(4), LIT(5), AT_LEAST, LIT(7), PLUS), 7);
	assert_int_equal(VALUE(0x11, 0x7f, LIT(0), AT_LEAST, LIT(7), PLUS), 7);
	assert_int_equal(VALUE(LIT(5), PLUS_CONST, 0x80, 0x01), 133);
	assert_int_equal(VALUE(0x08, 200), 200);
	assert_int_equal(VALUE(0x0a, 0x34, 0x12), 0x1234);
	assert_int_equal(VALUE(0x10, 0x80, 0x80, 0x01), 16384);
	assert_int_equal(VALUE(0x11, 0x7f, LIT(9), PLUS), 8);
	/* What is at SP; and the frame's address is there to begin with. */
	assert_int_equal(VALUE(BREG(TACHO__UNWIND_SP), 0, 0x06), 0x4711);
	assert_int_equal(VALUE(0x11, 0x70, PLUS, 0x06), 0x4711);
}

static void expressions_that_cannot_be_end_the_stack(void **state)
{
	const uint8_t many[] = {LIT(1), LIT(1), LIT(1), LIT(1), LIT(1), LIT(1), LIT(1), LIT(1),
				LIT(1), LIT(1), LIT(1), LIT(1), LIT(1), LIT(1), LIT(1), LIT(1)};

	(void)state;
	assert_int_equal(VALUE(0xff), 0);
	assert_int_equal(VALUE(LIT(8), 0x06), 0); /* nothing is at 8 */
	/* Sixteen are on the stack, and not one more. */
	assert_int_equal(value_of(many, 15), 1);
	assert_int_equal(value_of(many, 16), 0);
#if defined(__x86_64__)
	assert_int_equal(VALUE(BREG(TACHO__UNWIND_PC), 5), PC + 5);
	assert_int_equal(VALUE(BREG(TACHO__UNWIND_REGS), 1), 0);
	assert_int_equal(VALUE(BREG(31), 1), 0);
#endif
}

static void frame_pointers_lead_upwards(void **state)
{
	uint64_t stack[8] = {0};
	uint64_t sp = (uint64_t)(uintptr_t)(stack + 3);

	(void)state;
	stack[1] = stack[3] = stack[5] = CALLER;
	assert_int_equal(caller_of(sp, sp + 8, CALLER + 1), CALLER);
	assert_int_equal(caller_of(sp, sp - 24, CALLER + 1), 0);
	assert_int_equal(caller_of(sp, sp + 9, CALLER + 1), 0);
	assert_int_equal(caller_of(sp, sp + (1ull << 30) + 8, CALLER + 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_any_length),
		cmocka_unit_test(a_table_is_that_of_its_function),
		cmocka_unit_test(what_is_added_to_a_table_may_fill_it),
		cmocka_unit_test(expressions_are_those_of_dwarf),
		cmocka_unit_test(expressions_that_cannot_be_end_the_stack),
		cmocka_unit_test(frame_pointers_lead_upwards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
