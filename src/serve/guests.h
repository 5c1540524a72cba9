/*
 * Who is connected. Anybody on the machine may connect, and then say nothing, or a letter a minute:
 * of those who have not named the secret only some are kept, the newest, so that they never take
 * the places of the page. For one thread.
 */
#ifndef TACHO_SERVE_GUESTS_H
#define TACHO_SERVE_GUESTS_H

#include <microhttpd.h>
#include <stdint.h>

#define TACHO__STRANGERS 64u

struct tacho__guest;
struct tacho__guests {
	struct tacho__guest *oldest, *newest; /* strangers */
	uint32_t strangers;
};

/* For MHD_OPTION_NOTIFY_CONNECTION; `arg`: struct tacho__guests. */
void tacho__guests_notice(void *arg, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code);
/* This one has named the secret. */
void tacho__guest_is_known(struct tacho__guests *g, struct MHD_Connection *connection);

#endif
