/*
 * Loading and unloading libraries: a blocking call that reads files and runs code, after
 * which addresses mean something else.
 *
 * What dlopen finds by a name without a slash depends on who calls it: on the search path
 * (DT_RUNPATH, DT_RPATH) of the library that the call returns to. For a program to get the
 * library that it gets without us, the call must return to it and not to us. So dlopen is
 * a few instructions that ask tacho__dlopen_way where to go on, and go there as if they
 * had never been: to the real dlopen where the caller matters, else to one that takes the
 * time.
 */
#include "hooks/calls.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

typedef void *open_function(const char *file, int mode);

TACHO__HOOKED(void *, dlopen, (const char *file, int mode));
open_function *tacho__dlopen_way(const char *file, int mode, const void *caller)
	__attribute__((visibility("hidden"), used));

static open_function *real_dlopen(void)
{
	return TACHO__NEXT(dlopen);
}

static void *timed_dlopen(const char *file, int mode)
{
	uint64_t since = TACHO__CALL_BEGINS(tacho__call_counts(), "dlopen", TACHO__ON_NOTHING);
	int outermost = tacho__outer_begins(__builtin_frame_address(0));
	void *result = real_dlopen()(file, mode);

	if (outermost)
		tacho__outer_ends();
	TACHO__CALL_ENDS(since, "dlopen", 0, TACHO__PATH(file));
	return result;
}

struct search {
	uintptr_t caller;
	int depends; /* on who calls */
};

/* DT_RUNPATH counts for calls of its own object, DT_RPATH also for calls of what that loaded:
   one anywhere is enough to say no. */
static int look_at(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *s = data;
	const ElfW(Dyn) *dynamic = NULL;
	int mine = 0;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = (uintptr_t)(info->dlpi_addr + p->p_vaddr);

		if (p->p_type == PT_LOAD && s->caller - start < p->p_memsz)
			mine = 1;
		if (p->p_type == PT_DYNAMIC)
			dynamic = (const ElfW(Dyn) *)start;
	}
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
		if (dynamic->d_tag == DT_RPATH || (mine && dynamic->d_tag == DT_RUNPATH))
			s->depends = 1;
	return s->depends;
}

open_function *tacho__dlopen_way(const char *file, int mode, const void *caller)
{
	struct search s = {(uintptr_t)caller, 0};

	(void)mode;
	tacho__look_up_all();
	if (!tacho__recording())
		return real_dlopen();
	if (file && strchr(file, '$'))
		s.depends = 1; /* $ORIGIN is the caller's */
	else if (file && !strchr(file, '/'))
		dl_iterate_phdr(look_at, &s);
	if (!s.depends)
		return timed_dlopen;
	tacho__modules_later();
	return real_dlopen();
}

#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	movq 24(%rsp), %rdx\n"
	"	call tacho__dlopen_way\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	jmp *%rax\n"
	"	.cfi_endproc\n"
	".size dlopen, . - dlopen\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, %function\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	hint #34\n" /* bti c */
	"	stp x29, x30, [sp, #-32]!\n"
	"	.cfi_def_cfa_offset 32\n"
	"	.cfi_offset 29, -32\n"
	"	.cfi_offset 30, -24\n"
	"	mov x29, sp\n"
	"	stp x0, x1, [sp, #16]\n"
	"	mov x2, x30\n"
	"	bl tacho__dlopen_way\n"
	"	mov x16, x0\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	.cfi_restore 29\n"
	"	.cfi_restore 30\n"
	"	.cfi_def_cfa_offset 0\n"
	"	br x16\n"
	"	.cfi_endproc\n"
	".size dlopen, . - dlopen\n");
#endif

TACHO__OUTER_CALL(int, dlclose, (void *library), (library), 0, TACHO__NOTHING)
