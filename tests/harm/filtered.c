/*
 * Starts a program under a filter for system calls (seccomp), as container runtimes and service managers
 * do: filtered docker|enosys|allow:LIST|deny:LIST PROGRAM ARGUMENT...
 *
 * docker: EPERM for what Docker's default profile forbids. enosys: the same with ENOSYS, as for calls
 * that a filter does not know. deny:LIST and allow:LIST end the program: numbers, separated by commas.
 */
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

static struct sock_filter code[4096];
static unsigned short used;

static void add(unsigned short what, unsigned char yes, unsigned char no, unsigned k)
{
	code[used++] = (struct sock_filter){what, yes, no, k};
}

static void answer(long number, unsigned with)
{
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (unsigned)number);
	add(BPF_RET | BPF_K, 0, 0, with);
}

static void answer_list(const char *list, unsigned with)
{
	for (char *end; *list; list = *end ? end + 1 : end)
		answer(strtol(list, &end, 10), with);
}

/* Not in Docker's default list without capabilities. */
static const long refused[] = {
	SYS_acct,
	SYS_add_key,
	SYS_bpf,
	SYS_delete_module,
	SYS_init_module,
	SYS_kexec_load,
	SYS_keyctl,
	SYS_mount,
	SYS_move_pages,
	SYS_pivot_root,
	SYS_perf_event_open,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_ptrace,
	SYS_reboot,
	SYS_request_key,
	SYS_setns,
	SYS_settimeofday,
	SYS_swapon,
	SYS_syslog,
	SYS_umount2,
	SYS_unshare,
	SYS_userfaultfd,
	SYS_kcmp,
	SYS_lookup_dcookie,
	SYS_open_by_handle_at,
	SYS_name_to_handle_at,
	SYS_quotactl,
};

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[1] : "";
	struct sock_fprog filter = {.filter = code};
	unsigned fails = SECCOMP_RET_ERRNO | (!strcmp(how, "enosys") ? ENOSYS : EPERM);

	add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
	if (!strncmp(how, "allow:", 6))
		answer_list(how + 6, SECCOMP_RET_ALLOW);
	else if (!strncmp(how, "deny:", 5))
		answer_list(how + 5, SECCOMP_RET_KILL_PROCESS);
	else
		for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
			answer(refused[i], fails);
	add(BPF_RET | BPF_K, 0, 0,
	    strncmp(how, "allow:", 6) ? SECCOMP_RET_ALLOW : SECCOMP_RET_KILL_PROCESS);
	filter.len = used;
	/* By system call: hooks that look at filters are not the subject here. */
	if (argc < 3 || syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0)) {
		perror("filtered");
		return 98;
	}
	execvp(argv[2], argv + 2);
	return 127;
}
