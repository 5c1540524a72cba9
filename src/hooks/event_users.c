/*
 * What programs register with the parts of libevent that are built on events:
 * bufferevents, listeners, HTTP and DNS. Each is a poll of its own name inside that of
 * the event, or alone where libevent defers it.
 *
 * Functions of libevent itself stay as they are: it compares some of them with what is
 * registered (bufferevent_filter.c, bufferevent_openssl.c).
 */
#include "hooks/event.h"

#define USER(argument, use) ((argument) = tacho__event_wrap_user(argument, use))

/* ---------------------------------------------------------- bufferevents */

TACHO__EVENT_HOOK(bufferevent_setcb, USER(b, TACHO__BUFFEREVENT_READ);
		  USER(c, TACHO__BUFFEREVENT_WRITE); USER(d, TACHO__BUFFEREVENT_EVENT))
/* (fd, read, write, event, arg) */
TACHO__EVENT_HOOK(bufferevent_new, USER(b, TACHO__BUFFEREVENT_READ);
		  USER(c, TACHO__BUFFEREVENT_WRITE); USER(d, TACHO__BUFFEREVENT_EVENT))

static void give_original(tacho__word out)
{
	uintptr_t *function = (uintptr_t *)out;

	if (function)
		*function = tacho__event_original(*function);
}

tacho__word bufferevent_getcb(tacho__word bufferevent, tacho__word read, tacho__word write,
			      tacho__word event, tacho__word arg);
TACHO_HOOK tacho__word bufferevent_getcb(tacho__word bufferevent, tacho__word read,
					 tacho__word write, tacho__word event, tacho__word arg)
{
	static struct tacho__event_real real = {"bufferevent_getcb", 0, 0};
	int ours = tacho__event_find(&real);
	tacho__word result = real.function(bufferevent, read, write, event, arg, 0);

	if (ours) {
		give_original(read);
		give_original(write);
		give_original(event);
	}
	return result;
}

/* ------------------------------------------------------------- listeners */

TACHO__EVENT_HOOK(evconnlistener_new, USER(b, TACHO__LISTENER))
TACHO__EVENT_HOOK(evconnlistener_set_cb, USER(b, TACHO__LISTENER))
TACHO__EVENT_HOOK(evconnlistener_set_error_cb, USER(b, TACHO__LISTENER_ERROR))

typedef tacho__word (*seven_words)(tacho__word, tacho__word, tacho__word, tacho__word, tacho__word,
				   tacho__word, tacho__word);

tacho__word evconnlistener_new_bind(tacho__word base, tacho__word function, tacho__word arg,
				    tacho__word flags, tacho__word backlog, tacho__word address,
				    tacho__word size);
TACHO_HOOK tacho__word evconnlistener_new_bind(tacho__word base, tacho__word function,
					       tacho__word arg, tacho__word flags,
					       tacho__word backlog, tacho__word address,
					       tacho__word size)
{
	static struct tacho__event_real real = {"evconnlistener_new_bind", 0, 0};

	if (tacho__event_find(&real))
		USER(function, TACHO__LISTENER);
	return ((seven_words)(void (*)(void))real.function)(base, function, arg, flags, backlog,
							    address, size);
}

/* ------------------------------------------------------------------ HTTP */

TACHO__EVENT_HOOK(evhttp_set_cb, USER(c, TACHO__HTTP_REQUEST))
TACHO__EVENT_HOOK(evhttp_set_gencb, USER(b, TACHO__HTTP_REQUEST))
TACHO__EVENT_HOOK(evhttp_request_new, USER(a, TACHO__HTTP_RESPONSE))
TACHO__EVENT_HOOK(evhttp_request_set_header_cb, USER(b, TACHO__HTTP_HEADERS))
TACHO__EVENT_HOOK(evhttp_request_set_chunked_cb, USER(b, TACHO__HTTP_CHUNK))
TACHO__EVENT_HOOK(evhttp_request_set_error_cb, USER(b, TACHO__HTTP_ERROR))
TACHO__EVENT_HOOK(evhttp_request_set_on_complete_cb, USER(b, TACHO__HTTP_SENT))
TACHO__EVENT_HOOK(evhttp_send_reply_chunk_with_cb, USER(c, TACHO__HTTP_SENT))
TACHO__EVENT_HOOK(evhttp_connection_set_closecb, USER(b, TACHO__HTTP_CLOSE))

/* ------------------------------------------------------------------- DNS */

TACHO__EVENT_HOOK(evdns_base_resolve_ipv4, USER(d, TACHO__DNS))
TACHO__EVENT_HOOK(evdns_base_resolve_ipv6, USER(d, TACHO__DNS))
TACHO__EVENT_HOOK(evdns_base_resolve_reverse, USER(d, TACHO__DNS))
TACHO__EVENT_HOOK(evdns_base_resolve_reverse_ipv6, USER(d, TACHO__DNS))
TACHO__EVENT_HOOK(evdns_resolve_ipv4, USER(c, TACHO__DNS))
TACHO__EVENT_HOOK(evdns_resolve_ipv6, USER(c, TACHO__DNS))
TACHO__EVENT_HOOK(evdns_resolve_reverse, USER(c, TACHO__DNS))
TACHO__EVENT_HOOK(evdns_resolve_reverse_ipv6, USER(c, TACHO__DNS))
TACHO__EVENT_HOOK(evdns_getaddrinfo, USER(e, TACHO__DNS_ADDRINFO))
/* (base, socket, flags, function, arg) and (socket, flags, function, arg) */
TACHO__EVENT_HOOK(evdns_add_server_port_with_base, USER(d, TACHO__DNS_SERVER))
TACHO__EVENT_HOOK(evdns_add_server_port, USER(c, TACHO__DNS_SERVER))
