/*
 * Calls on streams of stdio, and on the system's log: what programs write their logs with.
 *
 * libc reads and writes for these on its own, past the hooks of read and write. A log that goes
 * into a pipe whose reader sleeps blocks a loop as well as any socket. Single characters
 * (getc, putc and kin) are left alone: they would cost twice what they cost.
 */
#define TACHO__TIMED 0
#include "hooks/calls.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/types.h>

static int stream_fd(FILE *stream)
{
	int saved = errno;
	int fd = stream ? fileno(stream) : -1;

	errno = saved;
	return fd;
}

#define ON(stream) TACHO__FD(stream_fd(stream))

/* --------------------------------------------------- opening and closing */

#define OPEN_CALL(name)                                                                     \
	TACHO__HOOKED(FILE *, name, (const char *path, const char *mode))                   \
	{                                                                                   \
		uint64_t since =                                                            \
			TACHO__CALL_BEGINS(tacho__call_counts(), #name, TACHO__ON_NOTHING); \
		FILE *result = TACHO__NEXT(name)(path, mode);                               \
                                                                                            \
		tacho__descriptor_made(stream_fd(result), __builtin_return_address(0));     \
		TACHO__CALL_ENDS(since, #name, result ? 0 : errno,                          \
				 TACHO__FD_PATH(stream_fd(result), path));                  \
		return result;                                                              \
	}
OPEN_CALL(fopen)
TACHO__LARGE(OPEN_CALL(fopen64))
TACHO__HOOKED(int, fclose, (FILE * stream))
{
	uint64_t since = TACHO__CALL_BEGINS(tacho__call_counts(), "fclose", TACHO__ON_NOTHING);
	int fd = stream_fd(stream), result;

	/* Some have none: those in memory. */
	if (fd >= 0)
		tacho__descriptor_closed(fd);
	result = TACHO__NEXT(fclose)(stream);
	TACHO__CALL_ENDS(since, "fclose", result < 0 ? errno : 0, TACHO__NOTHING);
	return result;
}
TACHO__CALL(int, fflush, (FILE * stream), (stream), ON(stream))

/* --------------------------------------------------------------- reading */

/* NULL, 0 and -1 are the end as a rule. */
#define READ_CALL(type, name, params, args) \
	TACHO__CALL_ERROR(type, name, params, args, 0, ON(stream))
#define READ_ITEMS(name)                                                          \
	READ_CALL(size_t, name, (void *buf, size_t size, size_t n, FILE *stream), \
		  (buf, size, n, stream))
#define READ_ITEMS_CHECKED(name)                                                               \
	READ_CALL(size_t, name, (void *buf, size_t room, size_t size, size_t n, FILE *stream), \
		  (buf, room, size, n, stream))
#define READ_LINE(name) \
	READ_CALL(char *, name, (char *buf, int size, FILE *stream), (buf, size, stream))
#define READ_LINE_CHECKED(name)                                                   \
	READ_CALL(char *, name, (char *buf, size_t room, int size, FILE *stream), \
		  (buf, room, size, stream))
#define READ_UNTIL(name)                                                             \
	READ_CALL(ssize_t, name, (char **line, size_t *room, int end, FILE *stream), \
		  (line, room, end, stream))

READ_ITEMS(fread)
READ_ITEMS(fread_unlocked)
READ_ITEMS_CHECKED(__fread_chk)
READ_ITEMS_CHECKED(__fread_unlocked_chk)
READ_LINE(fgets)
READ_LINE(fgets_unlocked)
READ_LINE_CHECKED(__fgets_chk)
READ_LINE_CHECKED(__fgets_unlocked_chk)
READ_UNTIL(getdelim)
READ_UNTIL(__getdelim)
READ_CALL(ssize_t, getline, (char **line, size_t *room, FILE *stream), (line, room, stream))

/* --------------------------------------------------------------- writing */

#define WRITE_ITEMS(name)                                                                       \
	TACHO__CALL_ERROR(size_t, name, (const void *buf, size_t size, size_t n, FILE *stream), \
			  (buf, size, n, stream), result < n && size ? errno : 0, ON(stream))
#define WRITE_TEXT(name) \
	TACHO__CALL(int, name, (const char *text, FILE *stream), (text, stream), ON(stream))

WRITE_ITEMS(fwrite)
WRITE_ITEMS(fwrite_unlocked)
WRITE_TEXT(fputs)
WRITE_TEXT(fputs_unlocked)
TACHO__CALL(int, puts, (const char *text), (text), ON(stdout))

/*
 * `with`: the one of the same effect that takes a va_list. Its parameters but the last, its
 * arguments but the last, and what the call is about.
 */
#define PRINT_CALL(name, with, params, args, ...)                                            \
	TACHO__CALL(int, with, (TACHO__EACH params, va_list list), (TACHO__EACH args, list), \
		    __VA_ARGS__)                                                             \
	TACHO__HOOKED(int, name, (TACHO__EACH params, ...))                                  \
	{                                                                                    \
		uint64_t since =                                                             \
			TACHO__CALL_BEGINS(tacho__call_counts(), #name, TACHO__ON_NOTHING);  \
		va_list list;                                                                \
		int result;                                                                  \
                                                                                             \
		va_start(list, format);                                                      \
		result = TACHO__NEXT(with)(TACHO__EACH args, list);                          \
		va_end(list);                                                                \
		TACHO__CALL_ENDS(since, #name, result < 0 ? errno : 0, __VA_ARGS__);         \
		return result;                                                               \
	}
#define TACHO__EACH(...) __VA_ARGS__

PRINT_CALL(printf, vprintf, (const char *format), (format), ON(stdout))
PRINT_CALL(fprintf, vfprintf, (FILE * stream, const char *format), (stream, format), ON(stream))
PRINT_CALL(dprintf, vdprintf, (int fd, const char *format), (fd, format), TACHO__FD(fd))
PRINT_CALL(__printf_chk, __vprintf_chk, (int checks, const char *format), (checks, format),
	   ON(stdout))
PRINT_CALL(__fprintf_chk, __vfprintf_chk, (FILE * stream, int checks, const char *format),
	   (stream, checks, format), ON(stream))
PRINT_CALL(__dprintf_chk, __vdprintf_chk, (int fd, int checks, const char *format),
	   (fd, checks, format), TACHO__FD(fd))

/* -------------------------------------------------------- the system's log */

#define LOG_CALL(name, with, params, args)                                                  \
	TACHO__HOOKED(void, with, (TACHO__EACH params, va_list list))                       \
	{                                                                                   \
		uint64_t since =                                                            \
			TACHO__CALL_BEGINS(tacho__call_counts(), #with, TACHO__ON_NOTHING); \
                                                                                            \
		TACHO__NEXT(with)(TACHO__EACH args, list);                                  \
		TACHO__CALL_ENDS(since, #with, 0, TACHO__NOTHING);                          \
	}                                                                                   \
	TACHO__HOOKED(void, name, (TACHO__EACH params, ...))                                \
	{                                                                                   \
		uint64_t since =                                                            \
			TACHO__CALL_BEGINS(tacho__call_counts(), #name, TACHO__ON_NOTHING); \
		va_list list;                                                               \
                                                                                            \
		va_start(list, format);                                                     \
		TACHO__NEXT(with)(TACHO__EACH args, list);                                  \
		va_end(list);                                                               \
		TACHO__CALL_ENDS(since, #name, 0, TACHO__NOTHING);                          \
	}

LOG_CALL(syslog, vsyslog, (int priority, const char *format), (priority, format))
LOG_CALL(__syslog_chk, __vsyslog_chk, (int priority, int checks, const char *format),
	 (priority, checks, format))
