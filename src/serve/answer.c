#include "serve/answer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/asset.h"
#include "text/json.h"

/* No script but the page's own, no other origin, no frame around it. */
#define POLICY                                                                                 \
	"default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; "         \
	"img-src 'self' data:; connect-src 'self' data:; worker-src 'self'; base-uri 'none'; " \
	"form-action 'none'; frame-ancestors 'none'"

#define PLAIN "text/plain; charset=utf-8"

/* --------------------------------------------------------------------- make */

int tacho__answer_file(struct tacho__answer *a, int fd)
{
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	a->status = MHD_HTTP_OK;
	a->type = "application/octet-stream";
	a->fd = fd;
	a->size = (uint64_t)st.st_size;
	a->tag = (uint64_t)st.st_ino ^ (uint64_t)st.st_size << 20 ^
		 ((uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec);
	return 0;
}

void tacho__answer_text(struct tacho__answer *a, unsigned status, const char *text)
{
	a->data = strdup(text);
	a->size = a->data ? strlen(text) : 0;
	a->status = status;
	a->type = PLAIN;
}

void tacho__answer_json(struct tacho__answer *a, char *data, size_t size)
{
	a->data = data;
	a->size = size;
	a->status = data ? MHD_HTTP_OK : MHD_HTTP_INTERNAL_SERVER_ERROR;
	a->type = "application/json";
}

void tacho__answer_what(struct tacho__answer *a, const char *shows, const char *name)
{
	char *data = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&data, &size);
	struct json j;

	if (!out)
		return;
	json_begin(&j, out, false);
	json_object(&j);
	json_put_string(&j, "shows", shows);
	json_put_string(&j, "name", name);
	json_object_end(&j);
	fclose(out);
	tacho__answer_json(a, data, size);
}

/* --------------------------------------------------------------------- send */

static enum MHD_Result queue(struct MHD_Connection *connection, unsigned status, const char *type,
			     struct MHD_Response *response)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "Content-Type", type);
	MHD_add_response_header(response, "Content-Security-Policy", POLICY);
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
	MHD_add_response_header(response, "Cache-Control", "no-store");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

enum MHD_Result tacho__send_text(struct MHD_Connection *connection, unsigned status,
				 const char *text)
{
	return queue(connection, status, PLAIN,
		     MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
						     MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result take_encoding(void *arg, enum MHD_ValueKind kind, const char *name,
				     const char *value)
{
	(void)kind;
	if (value && strcasecmp(name, "Accept-Encoding") == 0)
		tacho__encodings_take(arg, value);
	return MHD_YES;
}

enum MHD_Result tacho__send_asset(struct MHD_Connection *connection, const struct tacho__asset *a)
{
	struct tacho__encodings accepted = {0};
	struct MHD_Response *response;
	char *plain = NULL;
	size_t size = 0;

	MHD_get_connection_values(connection, MHD_HEADER_KIND, take_encoding, &accepted);
	if (tacho__encodings_gzip(&accepted)) {
		response = MHD_create_response_from_buffer(a->size, (void *)(uintptr_t)a->data,
							   MHD_RESPMEM_PERSISTENT);
		if (response)
			MHD_add_response_header(response, "Content-Encoding", "gzip");
	} else {
		plain = tacho__asset_unpack(a, &size);
		response =
			plain ? MHD_create_response_from_buffer(size, plain, MHD_RESPMEM_MUST_FREE)
			      : NULL;
		if (!response)
			free(plain);
	}
	if (response)
		MHD_add_response_header(response, "Vary", "Accept-Encoding");
	return queue(connection, MHD_HTTP_OK, a->type, response);
}

/* ------------------------------------------------------------------- ranges */

/* Digits up to *text's first other character; false: there are none, or too many. */
static bool take_number(const char **text, uint64_t *out)
{
	const char *begin = *text;

	for (*out = 0; **text >= '0' && **text <= '9'; (*text)++)
		*out = *out * 10 + (uint64_t)(**text - '0');
	return *text > begin && *text - begin <= 18;
}

/* "bytes=10-", "bytes=10-19", "bytes=-10". What is none of these is as if it were not there. */
static unsigned take_range(const char *range, uint64_t whole, uint64_t *from, uint64_t *size)
{
	uint64_t first = 0, last = UINT64_MAX;
	bool has_first;

	if (!range || strncmp(range, "bytes=", 6) != 0)
		return MHD_HTTP_OK;
	range += 6;
	has_first = take_number(&range, &first);
	if (*range++ != '-')
		return MHD_HTTP_OK;
	if (*range && !take_number(&range, &last))
		return MHD_HTTP_OK;
	if (*range || (!has_first && last == UINT64_MAX) || (has_first && last < first))
		return MHD_HTTP_OK;
	if (!has_first) {
		first = last < whole ? whole - last : 0;
		last = last ? UINT64_MAX : 0;
	}
	if (first >= whole || last < first)
		return MHD_HTTP_RANGE_NOT_SATISFIABLE;
	*from = first;
	*size = (last < whole ? last + 1 : whole) - first;
	return MHD_HTTP_PARTIAL_CONTENT;
}

static enum MHD_Result send_file(struct MHD_Connection *connection, const struct tacho__answer *a)
{
	const char *range = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Range");
	const char *same = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "If-Range");
	uint64_t from = 0, size = a->size;
	struct MHD_Response *response;
	char tag[32], text[96];
	unsigned status;

	snprintf(tag, sizeof(tag), "\"%" PRIx64 "\"", a->tag);
	if (same && strcmp(same, tag) != 0)
		range = NULL;
	status = take_range(range, a->size, &from, &size);
	if (status == MHD_HTTP_RANGE_NOT_SATISFIABLE) {
		close(a->fd);
		return tacho__send_text(connection, status, "The file is not that long.\n");
	}
	response = MHD_create_response_from_fd_at_offset64(size, a->fd, from);
	if (!response) {
		close(a->fd);
		return MHD_NO;
	}
	if (status == MHD_HTTP_PARTIAL_CONTENT) {
		snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, from,
			 from + size - 1, a->size);
		MHD_add_response_header(response, "Content-Range", text);
	}
	MHD_add_response_header(response, "Accept-Ranges", "bytes");
	MHD_add_response_header(response, "ETag", tag);
	return queue(connection, status, a->type, response);
}

enum MHD_Result tacho__send(struct MHD_Connection *connection, struct tacho__answer *a)
{
	struct MHD_Response *response;

	if (a->fd >= 0)
		return send_file(connection, a);
	if (!a->data)
		return tacho__send_text(connection, a->status, "There is no such thing here.\n");
	response = MHD_create_response_from_buffer(a->size, a->data, MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(a->data);
	return queue(connection, a->status, a->type, response);
}
