/*
 * Calls on sockets, and looking up names, which is done over sockets as a rule.
 */
#include "hooks/calls.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/types.h>

/* --------------------------------------------------------------- sockets */

TACHO__RECEIVE(recv, (int fd, void *buf, size_t size, int flags), (fd, buf, size, flags),
	       !(flags & MSG_DONTWAIT))
TACHO__RECEIVE(recvfrom,
	       (int fd, void *buf, size_t size, int flags, void *from, socklen_t *from_size),
	       (fd, buf, size, flags, from, from_size), !(flags & MSG_DONTWAIT))
TACHO__RECEIVE(recvmsg, (int fd, void *message, int flags), (fd, message, flags),
	       !(flags & MSG_DONTWAIT))
TACHO__TRANSFER(int, recvmmsg, (int fd, void *messages, unsigned count, int flags, void *timeout),
		(fd, messages, count, flags, timeout))
TACHO__RECEIVE(__recv_chk, (int fd, void *buf, size_t size, size_t room, int flags),
	       (fd, buf, size, room, flags), !(flags & MSG_DONTWAIT))
TACHO__RECEIVE(__recvfrom_chk,
	       (int fd, void *buf, size_t size, size_t room, int flags, void *from,
		socklen_t *from_size),
	       (fd, buf, size, room, flags, from, from_size), !(flags & MSG_DONTWAIT))

TACHO__TRANSFER(ssize_t, send, (int fd, const void *buf, size_t size, int flags),
		(fd, buf, size, flags))
TACHO__TRANSFER(ssize_t, sendto,
		(int fd, const void *buf, size_t size, int flags, const void *to,
		 socklen_t to_size),
		(fd, buf, size, flags, to, to_size))
TACHO__TRANSFER(ssize_t, sendmsg, (int fd, const void *message, int flags), (fd, message, flags))
TACHO__TRANSFER(int, sendmmsg, (int fd, void *messages, unsigned count, int flags),
		(fd, messages, count, flags))

TACHO__CALL_ON(int, connect, (int fd, const void *to, socklen_t size), (fd, to, size), fd,
	       result < 0 ? errno : 0, TACHO__TRANSFERS(fd))

static inline int is_known_listener(int fd)
{
	return tacho__hook.listener == fd && tacho__hook.listener_loop == tacho__hook.loop;
}

#define ACCEPT(name, params, args)                                                                 \
	TACHO__HOOKED(int, name, params)                                                           \
	{                                                                                          \
		uint32_t client = tacho__waits_for_client(fd, TACHO__ACCEPTS);                     \
		uint64_t parked = client ? tacho__self->stream[0].last : 0;                        \
		uint64_t since = client ? 0 : TACHO__CALL_BEGINS(tacho__call_counts(), #name, fd); \
		int result = TACHO__NEXT(name) args;                                               \
                                                                                                   \
		if (client)                                                                        \
			tacho__client_accepted(fd, client, parked, result);                        \
		else if (result >= 0 && tacho__accepts_in_turn())                                  \
			tacho__turn_accepted(fd);                                                  \
		tacho__descriptor_made(result, __builtin_return_address(0));                       \
		TACHO__CALL_ENDS(since, #name, result < 0 ? errno : 0, TACHO__TRANSFERS(fd));      \
		if (result >= 0)                                                                   \
			tacho__alive_begin(TACHO__ALIVE_CONNECTION,                                \
					   tacho__alive_connection(result),                        \
					   __builtin_return_address(0));                           \
		if (since > TACHO__NOTED && result >= 0 &&                                         \
		    tacho__unlikely(!is_known_listener(fd)))                                       \
			tacho__listens(fd);                                                        \
		return result;                                                                     \
	}
ACCEPT(accept, (int fd, void *from, socklen_t *size), (fd, from, size))
ACCEPT(accept4, (int fd, void *from, socklen_t *size, int flags), (fd, from, size, flags))

/* ----------------------------------------------------------------- names */

/* The errno that comes closest to what getaddrinfo and getnameinfo return. */
static int lookup_error(int code)
{
	switch (code) {
	case 0:
		return 0;
	case EAI_SYSTEM:
		return errno;
	case EAI_AGAIN:
		return EAGAIN;
	case EAI_NONAME:
		return ENOENT;
	case EAI_MEMORY:
		return ENOMEM;
	case EAI_OVERFLOW:
		return EOVERFLOW;
	default:
		return EIO;
	}
}

TACHO__OUTER_CALL(int, getaddrinfo,
		  (const char *host, const char *service, const void *hints, void *list),
		  (host, service, hints, list), lookup_error(result), TACHO__PATH(host))
TACHO__OUTER_CALL(int, getnameinfo,
		  (const void *address, socklen_t size, char *host, socklen_t host_size,
		   char *service, socklen_t service_size, int flags),
		  (address, size, host, host_size, service, service_size, flags),
		  lookup_error(result), TACHO__NOTHING)

/* These say what went wrong in h_errno, of which only "not there" has an errno. */
TACHO__OUTER_CALL(void *, gethostbyname, (const char *host), (host), result ? 0 : ENOENT,
		  TACHO__PATH(host))
TACHO__OUTER_CALL(void *, gethostbyname2, (const char *host, int family), (host, family),
		  result ? 0 : ENOENT, TACHO__PATH(host))
TACHO__OUTER_CALL(void *, gethostbyaddr, (const void *address, socklen_t size, int family),
		  (address, size, family), result ? 0 : ENOENT, TACHO__NOTHING)
TACHO__OUTER_CALL(int, gethostbyname_r,
		  (const char *host, void *entry, char *buf, size_t size, void **found, int *code),
		  (host, entry, buf, size, found, code),
		  result   ? result
		  : *found ? 0
			   : ENOENT,
		  TACHO__PATH(host))
TACHO__OUTER_CALL(int, gethostbyname2_r,
		  (const char *host, int family, void *entry, char *buf, size_t size, void **found,
		   int *code),
		  (host, family, entry, buf, size, found, code),
		  result   ? result
		  : *found ? 0
			   : ENOENT,
		  TACHO__PATH(host))
TACHO__OUTER_CALL(int, gethostbyaddr_r,
		  (const void *address, socklen_t size, int family, void *entry, char *buf,
		   size_t room, void **found, int *code),
		  (address, size, family, entry, buf, room, found, code),
		  result   ? result
		  : *found ? 0
			   : ENOENT,
		  TACHO__NOTHING)

/* -1 with h_errno, as above. */
#define ASK_CALL(name, params, args) \
	TACHO__OUTER_CALL(int, name, params, args, result < 0 ? ENOENT : 0, TACHO__PATH(host))
#define ASK(name)                                                                                 \
	ASK_CALL(name, (const char *host, int domain, int type, unsigned char *answer, int size), \
		 (host, domain, type, answer, size))
#define ASK_WITH(name)                                                                        \
	ASK_CALL(name,                                                                        \
		 (void *state, const char *host, int domain, int type, unsigned char *answer, \
		  int size),                                                                  \
		 (state, host, domain, type, answer, size))
ASK(res_query)
ASK(res_search)
ASK_WITH(res_nquery)
ASK_WITH(res_nsearch)

/* ------------------------------------------------------- users and groups */

/*
 * Looked up over sockets as well, where a directory has them: by a library that libc loads and
 * that waits with poll, which makes no loop of the thread. NULL and 0 without an answer: not there.
 */
#define BY_NAME(name)                                                                 \
	TACHO__OUTER_CALL(void *, name, (const char *who), (who), result ? 0 : errno, \
			  TACHO__PATH(who))
#define BY_NUMBER(name) \
	TACHO__OUTER_CALL(void *, name, (unsigned who), (who), result ? 0 : errno, TACHO__NOTHING)
#define BY_NAME_INTO(name)                                                                      \
	TACHO__OUTER_CALL(int, name,                                                            \
			  (const char *who, void *entry, char *buf, size_t size, void **found), \
			  (who, entry, buf, size, found), result, TACHO__PATH(who))
#define BY_NUMBER_INTO(name)                                                                 \
	TACHO__OUTER_CALL(int, name,                                                         \
			  (unsigned who, void *entry, char *buf, size_t size, void **found), \
			  (who, entry, buf, size, found), result, TACHO__NOTHING)
BY_NAME(getpwnam)
BY_NAME(getgrnam)
BY_NUMBER(getpwuid)
BY_NUMBER(getgrgid)
BY_NAME_INTO(getpwnam_r)
BY_NAME_INTO(getgrnam_r)
BY_NUMBER_INTO(getpwuid_r)
BY_NUMBER_INTO(getgrgid_r)
TACHO__OUTER_CALL(int, getgrouplist, (const char *who, gid_t group, gid_t *groups, int *count),
		  (who, group, groups, count), 0, TACHO__PATH(who))
TACHO__OUTER_CALL(int, initgroups, (const char *who, gid_t group), (who, group),
		  result < 0 ? errno : 0, TACHO__PATH(who))
