/* The faults of tasks_subject.c that are written in C++, where there is a compiler for it. */
#ifndef TACHO_TASKS_SUBJECT_H
#define TACHO_TASKS_SUBJECT_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__cplusplus) || defined(HAVE_CPP)
void fault_holds_cpp(void);
void fault_wants_cpp(void);
#else
static void fault_holds_cpp(void)
{
}
static void fault_wants_cpp(void)
{
}
#endif

#ifdef __cplusplus
}
#endif

#endif
