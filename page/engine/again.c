/* Questions that need a part of the trace to be read again. */
#include <errno.h>

#include "engine.h"
#include "read/records.h"

struct tacho_reader *page_again(uint64_t from_ns, uint64_t to_ns)
{
	if (!page.again &&
	    tacho_read_open_memory(&page.again, page.data, page.size, NULL, NULL, 0) < 0)
		return NULL;
	tacho__read_only(page.again, UINT32_MAX);
	if (tacho__read_limit(page.again, from_ns, to_ns) < 0) {
		tacho_read_close(page.again);
		page.again = NULL;
	}
	return page.again;
}

const char *answer_failed(int error)
{
	struct json j;

	answer_begin(&j);
	json_object(&j);
	json_put_string(&j, "failed",
			error == -ENOMEM ? "This needs more memory than the browser gives a page."
					 : "This part of the trace can not be read.");
	json_object_end(&j);
	return answer_end(&j);
}
