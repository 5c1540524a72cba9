#include "serve/guests.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

struct tacho__guest {
	struct tacho__guest *older, *newer;
	int socket;
	bool stranger; /* it is in the list */
};

static void take_out(struct tacho__guests *g, struct tacho__guest *guest)
{
	if (!guest->stranger)
		return;
	*(guest->older ? &guest->older->newer : &g->oldest) = guest->newer;
	*(guest->newer ? &guest->newer->older : &g->newest) = guest->older;
	guest->stranger = false;
	g->strangers--;
}

static void put_in(struct tacho__guests *g, struct tacho__guest *guest)
{
	guest->stranger = true;
	guest->older = g->newest;
	*(g->newest ? &g->newest->newer : &g->oldest) = guest;
	g->newest = guest;
	g->strangers++;
}

void tacho__guests_notice(void *arg, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct tacho__guests *g = arg;
	struct tacho__guest *guest = *context;
	const union MHD_ConnectionInfo *info;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (guest)
			take_out(g, guest);
		free(guest);
		*context = NULL;
		return;
	}
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	guest = info ? calloc(1, sizeof(*guest)) : NULL;
	*context = guest;
	if (!guest)
		return;
	guest->socket = info->connect_fd;
	put_in(g, guest);
	if (g->strangers > TACHO__STRANGERS) {
		guest = g->oldest;
		take_out(g, guest);
		/* The server sees the end of it, and closes it. */
		shutdown(guest->socket, SHUT_RDWR);
	}
}

void tacho__guest_is_known(struct tacho__guests *g, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	if (info && info->socket_context)
		take_out(g, info->socket_context);
}
