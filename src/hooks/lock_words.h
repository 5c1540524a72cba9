/*
 * What the words of a mutex or rwlock say, in each C library. They are no part of the API, but of the
 * ABI: programs have them inside, initialized by macros.
 */
#ifndef TACHO_HOOKS_LOCK_WORDS_H
#define TACHO_HOOKS_LOCK_WORDS_H

#include <pthread.h>

#include "core/recorder.h"

/* Of a robust mutex: its lock word holds the owner's tid, and a bit when that thread has died. */
#define TACHO__LOCK_OWNER 0x3fffffff
#define TACHO__LOCK_OWNER_DIED 0x40000000

#if defined(__GLIBC__)

#define TACHO__KIND_ROBUST 16
#define TACHO__KIND_INHERITS 32
#define TACHO__COUNT_OF_ONE 1u /* of a recursive mutex that was locked once */

static inline int tacho__mutex_word(const pthread_mutex_t *m)
{
	return tacho__load(&m->__data.__lock);
}

static inline int tacho__mutex_kind(const pthread_mutex_t *m)
{
	return m->__data.__kind;
}

static inline unsigned tacho__mutex_count(const pthread_mutex_t *m)
{
	return m->__data.__count;
}

/* The tid of the thread that has it, or 0. */
static inline int tacho__mutex_owner(const pthread_mutex_t *m)
{
	return tacho__load(&m->__data.__owner);
}

static inline int tacho__rwlock_writer(const pthread_rwlock_t *l)
{
	return tacho__load(&l->__data.__cur_writer);
}

#else /* musl: pthread_impl.h names these words */

#define TACHO__KIND_ROBUST 4
#define TACHO__KIND_INHERITS 8
#define TACHO__COUNT_OF_ONE 0u

static inline int tacho__mutex_word(const pthread_mutex_t *m)
{
	return tacho__load(&m->__u.__i[1]);
}

static inline int tacho__mutex_kind(const pthread_mutex_t *m)
{
	return m->__u.__i[0];
}

static inline unsigned tacho__mutex_count(const pthread_mutex_t *m)
{
	return (unsigned)m->__u.__i[5];
}

/* One that is neither recursive, checked, robust nor inheriting does not know its owner. */
static inline int tacho__mutex_owner(const pthread_mutex_t *m)
{
	int word = tacho__mutex_word(m) & TACHO__LOCK_OWNER;

	return tacho__mutex_kind(m) & 15 && word != TACHO__LOCK_OWNER ? word : 0;
}

static inline int tacho__rwlock_writer(const pthread_rwlock_t *l)
{
	(void)l;
	return 0; /* it only knows that there is one */
}

#endif
#endif
