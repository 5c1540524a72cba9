/* What the superblock says of the process. */
#include <string.h>

#include "base/redact.h"
#include "base/sys.h"
#include "core/box.h"
#include "core/box_dir.h"

static void read_boot_id(uint8_t id[16])
{
	char text[64];
	unsigned n = 0;

	if (tacho__read_small("/proc/sys/kernel/random/boot_id", text, sizeof(text)) <= 0)
		return;
	for (const char *p = text; *p && n < 32; p++) {
		unsigned digit;

		if (*p >= '0' && *p <= '9')
			digit = (unsigned)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			digit = (unsigned)(*p - 'a' + 10);
		else
			continue;
		id[n / 2] = (uint8_t)((unsigned)id[n / 2] << 4 | digit);
		n++;
	}
}

/* The name of the process is that of its first thread; whichever thread records first is here. */
static void read_comm(char comm[16])
{
	char text[32];
	long n = tacho__read_small("/proc/self/comm", text, sizeof(text));

	if (n <= 1 || n > 16) {
		TACHO__SYS(SYS_prctl, 16 /* PR_GET_NAME */, comm, 0, 0, 0, 0);
		return;
	}
	memcpy(comm, text, (size_t)n - 1); /* it ends with a newline */
	comm[n - 1] = 0;
}

/* Now, as whoever looks later may find nothing any more. What is secret never reaches the box. */
static void describe_arguments(struct tacho_box_super *s, int keep)
{
	/* More than there is room for, so that credentials are recognised by what follows them. */
	static char arguments[4 * TACHO_BOX_LINE_MAX];
	long n = tacho__read_small("/proc/self/cmdline", arguments, sizeof(arguments));
	size_t size = n > 0 ? (size_t)n : 0;

	tacho__command_line(s->command_line, sizeof(s->command_line), arguments, size,
			    size == sizeof(arguments) - 1, keep);
	s->whole_arguments = keep != 0;
}

void tacho__box_describe(struct tacho_box_super *s, const struct tacho__options *o, uint32_t before)
{
	long n;

	s->version = TACHO_BOX_VERSION;
	s->super_size = TACHO_BOX_SUPER_SIZE;
	s->pid = tacho__known_pid(&s->start_time);
	s->uid = tacho__geteuid();
	read_boot_id(s->boot_id);
	s->clock = tacho__clock_kind;
	s->region_count = TACHO_REGION_COUNT;
	tacho__clock_pair(tacho__clock_kind != TACHO_CLOCK_MONOTONIC, &s->created.ticks,
			  &s->created.mono_ns);
	s->created.real_ns = tacho__clock_ns(CLOCK_REALTIME);
	s->min_age_ns = o->min_age_ns;
	s->poll_threshold_ns = o->poll_threshold_ns;
	s->recording = o->recording;
	s->keep = o->keep_box;
	s->slot_size = TACHO_SLOT_SIZE;
	s->small_size = TACHO_SMALL_SIZE;
	s->next_def = 1;
	s->parent_pid = before != s->pid ? before : 0;
	n = TACHO__SYS(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", s->exe, sizeof(s->exe) - 1, 0,
		       0);
	s->exe[n > 0 ? n : 0] = 0;
	read_comm(s->comm);
	describe_arguments(s, (int)o->no_redact);
	memcpy(s->service, o->service, sizeof(s->service));
}
