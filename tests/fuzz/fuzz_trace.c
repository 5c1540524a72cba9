/* Trace files: as they are, and with the input as the payload of one block. */
#include <stddef.h>
#include <stdint.h>

#include "fuzz_read.h"
#include "../unit/box_builder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tacho_box_thread thread = {.state = TACHO_THREAD_LIVE, .number = 1};
	struct tb t;

	if (size >= 8 && !memcmp(data, TACHO_TRACE_MAGIC, 8)) {
		fuzz_read(data, size);
		return 0;
	}
	if (size < 2)
		return 0;
	tb_init(&t);
	t.sized = data[1] & 8;
	tb_meta(&t, 1, 2);
	tb_array(&t, TACHO_BLOCK_THREADS, &thread, sizeof(thread), 1);
	tb_plain(&t, data[0] % 16, data + 2, size - 2);
	tb_end(&t, data[1] & 1);
	if (data[1] & 2) {
		/* A recording of two parts, the first of which may be cut. */
		struct tb both = {0};

		tb_put(&both, t.data, data[1] & 4 ? t.size - data[1] : t.size);
		tb_put(&both, t.data, t.size);
		fuzz_read(both.data, both.size);
		tb_free(&both);
	} else {
		fuzz_read(t.data, t.size);
	}
	tb_free(&t);
	return 0;
}
