/* An answer on its way: headers that all have, ranges of files. */
#ifndef TACHO_SERVE_ANSWER_H
#define TACHO_SERVE_ANSWER_H

#include <microhttpd.h>

#include "serve/site.h"

enum MHD_Result tacho__send_asset(struct MHD_Connection *connection, const struct tacho__asset *a);
/* Frees or closes what it holds. */
enum MHD_Result tacho__send(struct MHD_Connection *connection, struct tacho__answer *a);
/* `text` is a constant. */
enum MHD_Result tacho__send_text(struct MHD_Connection *connection, unsigned status,
				 const char *text);

#endif
