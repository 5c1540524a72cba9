/*
 * Names for others: made safe, and of things that have several.
 */
#ifndef TACHO_EXPORT_TEXT_H
#define TACHO_EXPORT_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "tacho_read.h"

#define TACHO__CLEAN_MAX 1024u /* longer names are cut */

/*
 * Copies text as valid UTF-8: controls, marks that change the direction of what is around them,
 * and bytes that are no UTF-8 become \xNN. What does not fit is replaced by "...".
 */
void tacho__clean(char *out, size_t size, const char *text);
void tacho__clean_n(char *out, size_t size, const char *text, size_t text_size);

/* Of a thread; its process' name where it has none. */
const char *tacho__thread_name(const struct tacho_reader *reader, uint32_t process,
			       uint32_t thread);

#endif
