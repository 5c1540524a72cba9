#include "serve/site.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "serve/answer.h"
#include "serve/guests.h"

#define SECRET_BYTES 16u
#define CONNECTIONS 256u
#define IDLE_SECONDS 20u     /* of who has not named the secret */
#define PATIENT_SECONDS 120u /* of a page, which reads large traces piece by piece */

struct tacho__site {
	struct tacho__site_options options;
	struct MHD_Daemon *daemon;
	struct tacho__guests guests;
	char secret[2 * SECRET_BYTES + 1];
	char address[96];
	char hosts[2][32]; /* "127.0.0.1:4711", "localhost:4711" */
};

/* ------------------------------------------------------------------ requests */

/* Takes as long for a wrong secret as for the right one. */
static bool has_secret(const struct tacho__site *site, const char *url)
{
	size_t size = strlen(site->secret);
	unsigned differs = url[0] != '/' || strlen(url) < size + 2;

	if (differs)
		return false;
	for (size_t i = 0; i < size; i++)
		differs |= (unsigned char)url[i + 1] ^ (unsigned char)site->secret[i];
	return !differs && url[size + 1] == '/';
}

struct names {
	unsigned hosts, origins;
};

static enum MHD_Result count_names(void *arg, enum MHD_ValueKind kind, const char *name,
				   const char *value)
{
	struct names *n = arg;

	(void)kind;
	(void)value;
	n->hosts += strcasecmp(name, "Host") == 0;
	n->origins += strcasecmp(name, "Origin") == 0;
	return MHD_YES;
}

/* Of two headers of one name one would be believed, and who passed the request on may have meant the
   other. */
static bool is_ambiguous(struct MHD_Connection *connection)
{
	struct names n = {0};

	MHD_get_connection_values(connection, MHD_HEADER_KIND, count_names, &n);
	return n.hosts > 1 || n.origins > 1;
}

/* A page of somebody else's may make a browser ask here: by a name of its own for this address, or
   from its own origin. */
static bool is_ours(const struct tacho__site *site, struct MHD_Connection *connection)
{
	const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
	const char *origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin");

	if (!host || (strcmp(host, site->hosts[0]) != 0 && strcmp(host, site->hosts[1]) != 0))
		return false;
	return !origin || (strncmp(origin, "http://", 7) == 0 && strcmp(origin + 7, host) == 0);
}

static enum MHD_Result answer(const struct tacho__site *site, struct MHD_Connection *connection,
			      const char *path, bool post)
{
	struct tacho__answer a = {.status = MHD_HTTP_NOT_FOUND, .fd = -1};

	for (size_t i = 0; !post && i < tacho__asset_count; i++)
		if (strcmp(path[0] ? path : "index.html", tacho__assets[i].name) == 0)
			return tacho__send_asset(connection, &tacho__assets[i]);
	site->options.answer(site->options.arg, path, post, &a);
	return tacho__send(connection, &a);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *body_size, void **state)
{
	struct tacho__site *site = arg;
	bool post = strcmp(method, "POST") == 0;

	(void)version;
	(void)body;
	if (*state) {
		/* What is posted has no body that matters. */
		if (!*body_size)
			return answer(site, connection, url + strlen(site->secret) + 2, true);
		*body_size = 0;
		return MHD_YES;
	}
	if (is_ambiguous(connection))
		return tacho__send_text(connection, MHD_HTTP_BAD_REQUEST,
					"There is more than one Host or Origin in this request.\n");
	if (!is_ours(site, connection))
		return tacho__send_text(
			connection, MHD_HTTP_FORBIDDEN,
			"This is tacho's own page; other sites may not ask for it.\n");
	if (!has_secret(site, url))
		return tacho__send_text(
			connection, MHD_HTTP_FORBIDDEN,
			"The address is not complete: take it as tacho printed it.\n");
	if (!post && strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return tacho__send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
					"GET, HEAD and POST only.\n");
	tacho__guest_is_known(&site->guests, connection);
	MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, PATIENT_SECONDS);
	/* An answer before the end of the request also ends the connection: none stays idle. */
	if (!post)
		return answer(site, connection, url + strlen(site->secret) + 2, false);
	*state = site;
	return MHD_YES;
}

/* A zero would end the path before its end; with a slash there is nothing of that name. */
static size_t decode(void *arg, struct MHD_Connection *connection, char *text)
{
	size_t size = MHD_http_unescape(text);

	(void)arg;
	(void)connection;
	for (size_t i = 0; i < size; i++)
		if (!text[i])
			text[i] = '/';
	return size;
}

/* ---------------------------------------------------------------------- life */

static int make_secret(char secret[2 * SECRET_BYTES + 1])
{
	uint8_t bytes[SECRET_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -errno;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* A socket that listens; the names of the site are made of its port. */
static int listen_at(struct tacho__site *site)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons(site->options.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(at);
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&at, size) || listen(fd, SOMAXCONN) ||
	    getsockname(fd, (struct sockaddr *)&at, &size)) {
		int error = -errno;

		close(fd);
		return error;
	}
	snprintf(site->hosts[0], sizeof(site->hosts[0]), "127.0.0.1:%u", ntohs(at.sin_port));
	snprintf(site->hosts[1], sizeof(site->hosts[1]), "localhost:%u", ntohs(at.sin_port));
	snprintf(site->address, sizeof(site->address), "http://%s/%s/", site->hosts[0],
		 site->secret);
	return fd;
}

/* Requests are answered from here on. */
static int begin(struct tacho__site *site)
{
	int fd = listen_at(site);

	if (fd < 0)
		return fd;
	errno = 0;
	/* With epoll, libmicrohttpd 0.9.75 misses the end of who hangs up right after its last byte. */
	site->daemon = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL, NULL, on_request, site,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_NOTIFY_CONNECTION,
		tacho__guests_notice, &site->guests, MHD_OPTION_UNESCAPE_CALLBACK, decode, NULL,
		MHD_OPTION_END);
	if (site->daemon)
		return 0;
	close(fd);
	return errno ? -errno : -EIO;
}

struct tacho__site *tacho__site_start(const struct tacho__site_options *options, char *message,
				      size_t message_size)
{
	struct tacho__site *site = calloc(1, sizeof(*site));
	int error = -ENOMEM;

	if (site) {
		site->options = *options;
		error = make_secret(site->secret);
		if (!error)
			error = begin(site);
	}
	if (!error)
		return site;
	tacho__site_stop(site);
	snprintf(message, message_size, "cannot listen on 127.0.0.1, port %u: %s.%s", options->port,
		 strerror(-error), options->port ? " Try another --port, or none." : "");
	return NULL;
}

const char *tacho__site_address(const struct tacho__site *site)
{
	return site->address;
}

void tacho__site_stop(struct tacho__site *site)
{
	if (!site)
		return;
	if (site->daemon)
		MHD_stop_daemon(site->daemon);
	free(site);
}
