/* The faults of tasks_subject.c that are written in C++. */
#ifndef TACHO_TASKS_SUBJECT_H
#define TACHO_TASKS_SUBJECT_H

#ifdef __cplusplus
extern "C" {
#endif

void fault_holds_cpp(void);
void fault_wants_cpp(void);
void fault_holds_plain(void);
void fault_wants_plain(void);

#ifdef __cplusplus
}
#endif

#endif
