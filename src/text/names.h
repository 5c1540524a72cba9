/*
 * The words for numbers: the same in text, in JSON and on the command line.
 */
#ifndef TACHO_TEXT_NAMES_H
#define TACHO_TEXT_NAMES_H

#include <stdint.h>

const char *name_type(unsigned type);	    /* enum tacho_event_type; NULL: not known */
const char *name_ready(unsigned bit);	    /* bit of an epoll or poll event; NULL: not known */
const char *name_descriptor(unsigned kind); /* enum tacho_descriptor_kind; NULL: not known */
const char *name_class(unsigned def_class); /* NULL: not known */
const char *name_state(uint32_t state);
const char *name_source_state(uint32_t state);
const char *name_taken_by(uint32_t taken_by);
const char *name_end(uint32_t how); /* enum tacho_end */
const char *name_clock(uint32_t clock);
const char *name_arch(uint32_t arch);			  /* NULL: not known */
const char *name_level(unsigned level);			  /* of a loop; NULL: not known */
const char *name_subject(unsigned subject);		  /* of SCHED_INTERVAL; NULL: not known */
const char *name_result(unsigned result);		  /* of a poll; "": not known */
const char *name_register(uint32_t arch, uint32_t index); /* NULL: not known */
/* "SIGSEGV"; fills `out` (TEXT_SMALL bytes) and returns it. */
const char *name_signal(char *out, int number);

#endif
