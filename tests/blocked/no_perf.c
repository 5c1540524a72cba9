/*
 * Runs a command for which perf_event_open fails, as it does in containers.
 *
 *   blocked-no_perf ERRNO COMMAND ...
 *
 * ERRNO is a number, such as that of EPERM or ENOSYS.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned error = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error & SECCOMP_RET_DATA)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};

	if (!error) {
		fprintf(stderr, "usage: %s ERRNO COMMAND ...\n", argv[0]);
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		fprintf(stderr, "%s: seccomp: %s\n", argv[0], strerror(errno));
		return 125;
	}
	/* A check that can't fail would prove nothing. */
	if (syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0) != -1 || errno != (int)error) {
		fprintf(stderr, "%s: perf_event_open is not refused\n", argv[0]);
		return 125;
	}
	execvp(argv[2], argv + 2);
	fprintf(stderr, "%s: %s: %s\n", argv[0], argv[2], strerror(errno));
	return 127;
}
