/*
 * The command of `tacho run` as a child process: its environment, its start, and which
 * signals are passed on to it.
 *
 * The child has the terminal, the process group, the descriptors, the signal mask and the
 * ignored signals that this process was started with.
 */
#ifndef TACHO_AGENT_RUN_CHILD_H
#define TACHO_AGENT_RUN_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct signalfd_siginfo;
struct tacho__program;

/* A variable; value NULL: it is not set. */
struct tacho__variable {
	const char *name, *value;
};

/*
 * A copy of `environment` in which `variables` have their values. One block of memory, for
 * free(3); NULL without memory.
 */
char **tacho__environment(char *const *environment, const struct tacho__variable *variables,
			  size_t count);

struct tacho__start {
	const struct tacho__program *program;
	char *const *argv;
	char *const *environment;
	sigset_t mask;	  /* that this process was started with */
	sigset_t ignored; /* of `changed`, those that were ignored at its start */
	sigset_t changed; /* signals whose disposition was changed since */
	bool own_group;	  /* the command leads a process group of its own */
};

/* The process id of the command, or what execve(2) said, negative. 0: no process can be made,
   errno says why. */
pid_t tacho__start(const struct tacho__start *start);

/* This process becomes the command. Returns what execve(2) said, negative, if that failed. */
int tacho__become(const struct tacho__start *start);

/*
 * Whether a signal that reached this process is meant for the command and has not
 * reached it in another way: those of the terminal go to the whole process group, and
 * what the command sends to its own group comes back here, unless it has one for itself.
 */
int tacho__is_for_child(const struct signalfd_siginfo *info, bool own_group);

/* Sends it as it came. 0 or a negative errno. */
int tacho__pass_on(const struct signalfd_siginfo *info, pid_t pid);

/* When it was `ago_ns` ago, in the ticks since boot that start times are told in. */
uint64_t tacho__ticks_of_boot(uint64_t ago_ns);
/* Whether a child of this process, but for one, was started then or later and runs. */
bool tacho__has_child_since(uint64_t start, pid_t but);

/* 1: the process is stopped (SIGSTOP and kin), or that cannot be known. */
int tacho__is_stopped(pid_t pid);

#endif
