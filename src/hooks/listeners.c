/*
 * Where loops listen: a socket is remembered with the address that it is bound to, and the first
 * connection that a loop takes from it tells which loop that is. A definition says so, once; it tells
 * apart loops that have one name. The kernel is not asked: a filter of the program may forbid it.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/text.h"
#include "core/control.h"
#include "core/define.h"
#include "hooks/calls.h"

#define BOUND 32u     /* sockets that are remembered: the last ones */
#define NAME_MAX 112u /* of an address: a path, mostly */

static struct bound {
	uint32_t socket; /* descriptor + 1; 0: the name is not valid */
	char name[NAME_MAX];
} bound[BOUND];
static uint32_t bound_count;

static void put_port(struct tacho__text *t, uint16_t port)
{
	tacho__text_put(t, ":");
	tacho__text_put_u64(t, ntohs(port));
}

/* "127.0.0.1:80", "[::1]:80", "/run/x.sock"; "" for what cannot be told: a port that the kernel
   chooses, other families. */
static void put_address(struct tacho__text *t, const void *address, socklen_t size)
{
	char name[INET6_ADDRSTRLEN];
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
	sa_family_t family;

	if (size < sizeof(family))
		return;
	memcpy(&family, address, sizeof(family));
	if (family == AF_INET && size >= sizeof(in)) {
		memcpy(&in, address, sizeof(in));
		if (in.sin_port && inet_ntop(AF_INET, &in.sin_addr, name, sizeof(name))) {
			tacho__text_put(t, name);
			put_port(t, in.sin_port);
		}
	} else if (family == AF_INET6 && size >= sizeof(in6)) {
		memcpy(&in6, address, sizeof(in6));
		if (in6.sin6_port && inet_ntop(AF_INET6, &in6.sin6_addr, name, sizeof(name))) {
			tacho__text_put(t, "[");
			tacho__text_put(t, name);
			tacho__text_put(t, "]");
			put_port(t, in6.sin6_port);
		}
	} else if (family == AF_UNIX && size > sizeof(family) && size <= sizeof(un)) {
		const char *path = (const char *)address + sizeof(family);
		int hidden = !path[0]; /* not in the file system */

		tacho__text_put(t, hidden ? "@" : "");
		tacho__text_put_n(t, path + hidden,
				  strnlen(path + hidden, size - sizeof(family) - (size_t)hidden));
	}
}

static struct bound *find(int fd)
{
	uint32_t i = 0;

	while (i < BOUND && __atomic_load_n(&bound[i].socket, __ATOMIC_ACQUIRE) != (uint32_t)fd + 1)
		i++;
	return i < BOUND ? &bound[i] : NULL;
}

static void remember(int fd, const void *address, socklen_t size)
{
	struct bound *b = find(fd);
	struct tacho__text t;

	if (!b)
		b = &bound[__atomic_fetch_add(&bound_count, 1, __ATOMIC_RELAXED) % BOUND];
	__atomic_store_n(&b->socket, 0, __ATOMIC_RELEASE);
	tacho__text_init(&t, b->name, sizeof(b->name));
	put_address(&t, address, size);
	if (t.size)
		__atomic_store_n(&b->socket, (uint32_t)fd + 1, __ATOMIC_RELEASE);
}

TACHO__HOOKED(int, bind, (int fd, const void *address, socklen_t size))
{
	int result = TACHO__NEXT(bind)(fd, address, size), saved = errno;

	if (result == 0 && fd >= 0 && address)
		remember(fd, address, size);
	errno = saved;
	return result;
}

void tacho__listens(int fd)
{
	struct tacho__hook_thread *h = &tacho__hook;
	const struct bound *b;
	char name[NAME_MAX];
	int saved = errno;

	if (h->loop_epoch != tacho__load(&tacho__rec->epoch))
		return;
	h->listener = fd;
	/* What other loops are called is not for hooks to say. */
	if (!h->loop)
		return;
	h->listener_loop = h->loop;
	b = find(fd);
	if (b) {
		memcpy(name, b->name, sizeof(name));
		name[sizeof(name) - 1] = 0;
		/* It may have been bound anew meanwhile. */
		if (__atomic_load_n(&b->socket, __ATOMIC_ACQUIRE) == (uint32_t)fd + 1)
			tacho__define_name(TACHO_DEF_TEXT, name, NULL, 0, h->loop, 0, NULL);
	}
	errno = saved;
}
