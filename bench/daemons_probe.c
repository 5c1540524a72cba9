/*
 * Preloaded into servers that are measured, with hooks and without. On PROBE_SIGNAL it
 * pauses or resumes recording, or reads the CPU time of the process and the client's count of
 * requests; without hooks there is nothing to pause, and it does the rest all the same.
 *
 * It reads inside because only there the CPU time is exact: that of another process is
 * as old as its last context switch or clock tick, up to 4 ms. It is a signal because a thread
 * of ours would make a program with one thread one with two.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tacho.h>
#include <time.h>
#include <unistd.h>

#include "daemons_probe.h"

/* Absent in a server without hooks. */
#pragma weak tacho__on
#pragma weak tacho__log
#pragma weak tacho_pause
#pragma weak tacho_resume
#pragma weak tacho_status

#define FILL_STEP 10000
#define FILL_STEPS 10000 /* a limit; the default box is full after 100 or so */

#define READS_MAX 10
#define READ_ANSWERS_MAX 16 /* under way when the server stopped to read */

static struct probe *probe;

static void status_out(void)
{
	struct tacho_status_info status = {.size = sizeof(status)};

	if (!tacho_status || tacho_status(&status))
		return;
	probe->state = status.state;
	probe->overwritten = status.overwritten_records;
}

static void fill(void)
{
	if (!tacho_resume)
		return;
	tacho_resume();
	status_out();
	for (int i = 0; i < FILL_STEPS && !probe->overwritten; i++) {
		for (int n = 0; n < FILL_STEP; n++)
			tacho_log_n(0, "12345678", 8);
		status_out();
	}
}

/* Both at one moment: other threads may answer between two readings, if this one has to wait
   for the CPU there. */
static void read_out(void)
{
	for (int i = 0; i < READS_MAX; i++) {
		uint64_t before = __atomic_load_n(&probe->answered, __ATOMIC_ACQUIRE);
		struct timespec cpu;

		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
		probe->cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
		probe->at_answered = __atomic_load_n(&probe->answered, __ATOMIC_ACQUIRE);
		if (probe->at_answered - before <= READ_ANSWERS_MAX)
			break;
	}
}

static void obey(int number)
{
	int before = errno;

	(void)number;
	switch (__atomic_load_n(&probe->order, __ATOMIC_ACQUIRE)) {
	case PROBE_FILL:
		fill();
		break;
	case PROBE_PAUSE:
		if (tacho_pause)
			tacho_pause();
		break;
	case PROBE_RESUME:
		if (tacho_resume)
			tacho_resume();
		break;
	default:
		read_out();
	}
	status_out();
	__atomic_store_n(&probe->obeyed, probe->obeyed + 1, __ATOMIC_RELEASE);
	errno = before;
}

__attribute__((constructor)) static void begin(void)
{
	struct sigaction action = {.sa_handler = obey, .sa_flags = SA_RESTART};
	const char *path = getenv(PROBE_FILE);
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	probe = mmap(NULL, sizeof(*probe), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (probe != MAP_FAILED)
		sigaction(PROBE_SIGNAL, &action, NULL);
}
