/*
 * The words for numbers.
 */
#include <stdio.h>
#include <string.h>

#include "text/names.h"
#include "text/text.h"
#include "tacho_read.h"

/* As in ELF files. The page has neither <elf.h> nor the signals of the recorded machine. */
enum { EM_X86_64 = 62, EM_AARCH64 = 183 };

#define PICK(table, i) ((i) < sizeof(table) / sizeof((table)[0]) ? (table)[i] : NULL)

const char *name_type(unsigned type)
{
	const struct tacho_event_info *info = tacho_read_event_info(type);

	return info ? info->name : NULL;
}

const char *name_ready(unsigned bit)
{
	static const char *const names[] = {"in",   "pri",    "out",	"err",	  "hup",
					    "nval", "rdnorm", "rdband", "wrnorm", "wrband",
					    "msg",  NULL,     NULL,	"rdhup"};

	return PICK(names, bit);
}

const char *name_descriptor(unsigned kind)
{
	static const char *const names[] = {
		[TACHO_DESCRIPTOR_FILE] = "file",     [TACHO_DESCRIPTOR_FOLDER] = "folder",
		[TACHO_DESCRIPTOR_PIPE] = "pipe",     [TACHO_DESCRIPTOR_TERMINAL] = "terminal",
		[TACHO_DESCRIPTOR_TCP] = "TCP",	      [TACHO_DESCRIPTOR_UDP] = "UDP",
		[TACHO_DESCRIPTOR_UNIX] = "UNIX",     [TACHO_DESCRIPTOR_SOCKET] = "socket",
		[TACHO_DESCRIPTOR_EVENT] = "eventfd", [TACHO_DESCRIPTOR_DEVICE] = "device",
	};

	return PICK(names, kind);
}

const char *name_class(unsigned def_class)
{
	static const char *const names[] = {
		[TACHO_DEF_TEXT] = "text",
		[TACHO_DEF_KIND] = "kind",
		[TACHO_DEF_LOOP] = "loop",
		[TACHO_DEF_SPAN] = "span",
		[TACHO_DEF_COUNTER] = "counter",
		[TACHO_DEF_GAUGE] = "gauge",
		[TACHO_DEF_PLACE] = "place",
		[TACHO_DEF_SCHEMA] = "schema",
		[TACHO_DEF_STACK] = "stack",
		[TACHO_DEF_MODULE] = "module",
		[TACHO_DEF_DESCRIPTOR] = "descriptor",
	};

	return PICK(names, def_class);
}

const char *name_state(uint32_t state)
{
	static const char *const names[] = {
		[TACHO_STATE_OFF] = "off",
		[TACHO_STATE_RECORDING] = "recording",
		[TACHO_STATE_PAUSED] = "paused",
		[TACHO_STATE_STOPPED] = "stopped",
	};

	return PICK(names, state) ?: "unknown";
}

const char *name_source_state(uint32_t state)
{
	static const char *const names[] = {
		[TACHO_SOURCE_ABSENT] = "absent",
		[TACHO_SOURCE_OFF] = "off",
		[TACHO_SOURCE_ON] = "on",
		[TACHO_SOURCE_REFUSED] = "refused",
	};

	return PICK(names, state) ?: "unknown";
}

const char *name_taken_by(uint32_t taken_by)
{
	static const char *const names[] = {
		[TACHO_TAKEN_BOX] = "box",
		[TACHO_TAKEN_SNAPSHOT] = "snapshot",
		[TACHO_TAKEN_CRASH] = "crash handler",
		[TACHO_TAKEN_DUMP] = "dump",
		[TACHO_TAKEN_RECOVER] = "recover",
		[TACHO_TAKEN_SEGMENT] = "segment",
		[TACHO_TAKEN_IMPORT] = "import",
	};

	return PICK(names, taken_by) ?: "unknown";
}

const char *name_end(uint32_t how)
{
	static const char *const names[] = {
		[TACHO_END_EXITED] = "exited", [TACHO_END_KILLED] = "killed",
		[TACHO_END_GONE] = "gone",     [TACHO_END_RUNNING] = "running",
		[TACHO_END_EXEC] = "exec",
	};
	const char *name = PICK(names, how);

	return name ? name : "unknown";
}

const char *name_clock(uint32_t clock)
{
	static const char *const names[] = {
		[TACHO_CLOCK_MONOTONIC] = "CLOCK_MONOTONIC",
		[TACHO_CLOCK_TSC] = "TSC",
		[TACHO_CLOCK_CNTVCT] = "CNTVCT",
	};

	return PICK(names, clock) ?: "unknown";
}

const char *name_arch(uint32_t arch)
{
	switch (arch) {
	case EM_X86_64:
		return "x86-64";
	case EM_AARCH64:
		return "arm64";
	default:
		return NULL;
	}
}

const char *name_level(unsigned level)
{
	static const char *const names[] = {
		[TACHO_LEVEL_WAITS] = "waits",
		[TACHO_LEVEL_CALLBACKS] = "callbacks",
		[TACHO_LEVEL_API] = "api",
	};

	return PICK(names, level);
}

const char *name_subject(unsigned subject)
{
	static const char *const names[] = {
		[TACHO_SCHED_WAIT] = "wait",
		[TACHO_SCHED_CALL] = "call",
		[TACHO_SCHED_POLL] = "poll",
		[TACHO_SCHED_ITERATION] = "iteration",
	};

	return PICK(names, subject);
}

const char *name_result(unsigned result)
{
	return result == TACHO_PENDING ? "pending" : result == TACHO_DONE ? "done" : "";
}

/* The order of <sys/ucontext.h>, which has names for itself only on its own architecture. */
static const char *const x86_registers[] = {"r8",     "r9",  "r10",    "r11",	  "r12", "r13",
					    "r14",    "r15", "rdi",    "rsi",	  "rbp", "rbx",
					    "rdx",    "rax", "rcx",    "rsp",	  "rip", "eflags",
					    "csgsfs", "err", "trapno", "oldmask", "cr2"};

static const char *const arm_registers[] = {
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",	 "x7",	"x8",  "x9",	"x10", "x11",
	"x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",	"x22", "x23",
	"x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp",	"pc",  "pstate"};

const char *name_register(uint32_t arch, uint32_t index)
{
	if (arch == EM_X86_64)
		return PICK(x86_registers, index);
	if (arch == EM_AARCH64)
		return PICK(arm_registers, index);
	return NULL;
}

const char *name_signal(char *out, int number)
{
	static const char *const names[] = {
		NULL,	  "HUP",  "INT",    "QUIT", "ILL",   "TRAP", "ABRT", "BUS",
		"FPE",	  "KILL", "USR1",   "SEGV", "USR2",  "PIPE", "ALRM", "TERM",
		"STKFLT", "CHLD", "CONT",   "STOP", "TSTP",  "TTIN", "TTOU", "URG",
		"XCPU",	  "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR",  "SYS",
	};
	const char *name = PICK(names, (unsigned)number);

	if (name)
		snprintf(out, TEXT_SMALL, "SIG%s", name);
	else
		snprintf(out, TEXT_SMALL, "signal %d", number);
	return out;
}
