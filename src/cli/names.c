/*
 * The words for numbers.
 */
#define _GNU_SOURCE 1 /* sigabbrev_np */
#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/names.h"
#include "cli/text.h"
#include "tacho_read.h"

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
	static const char *const names[] = {NULL,  "file", "folder", "pipe",	"terminal", "TCP",
					    "UDP", "UNIX", "socket", "eventfd", "device"};

	return PICK(names, kind);
}

const char *name_class(unsigned def_class)
{
	static const char *const names[] = {NULL,    "text",  "kind",	"loop",	 "span",  "counter",
					    "gauge", "place", "schema", "stack", "module"};

	return PICK(names, def_class);
}

const char *name_state(uint32_t state)
{
	static const char *const names[] = {NULL, "off", "recording", "paused", "stopped"};
	const char *name = PICK(names, state);

	return name ? name : "unknown";
}

const char *name_source_state(uint32_t state)
{
	static const char *const names[] = {"absent", "off", "on", "refused"};
	const char *name = PICK(names, state);

	return name ? name : "unknown";
}

const char *name_taken_by(uint32_t taken_by)
{
	static const char *const names[] = {"box",  "snapshot", "crash handler",
					    "dump", "recover",	"segment"};
	const char *name = PICK(names, taken_by);

	return name ? name : "unknown";
}

const char *name_clock(uint32_t clock)
{
	static const char *const names[] = {NULL, "CLOCK_MONOTONIC", "TSC", "CNTVCT"};
	const char *name = PICK(names, clock);

	return name ? name : "unknown";
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
	static const char *const names[] = {NULL, "waits", "callbacks", "api"};

	return PICK(names, level);
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
	const char *name = sigabbrev_np(number);

	if (name)
		snprintf(out, TEXT_SMALL, "SIG%s", name);
	else
		snprintf(out, TEXT_SMALL, "signal %d", number);
	return out;
}
