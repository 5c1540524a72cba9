/* Definitions: the input is cut into payloads of all classes, and is a block of its own. */
#include <stddef.h>
#include <stdint.h>

#include "fuzz_read.h"
#include "../unit/box_builder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tb t, payload = {0};
	uint64_t event[8] = {8 | 0x7full << 16, 3, 2, 1, 40, 5, 6, 7};
	struct bb b;
	uint32_t id = 1;

	bb_init(&b);
	tb_init(&t);
	tb_meta(&t, 1, 2);
	tb_plain(&t, TACHO_BLOCK_DEFINITIONS, data, size);
	/* { u8 class, u8 size, bytes } */
	while (size >= 2 && id < BB_DEFS - 1) {
		uint8_t class = data[0] % 12;
		uint16_t n = data[1];

		data += 2;
		size -= 2;
		if (n > size)
			n = (uint16_t)size;
		tb_definition(&payload, id++, class, data, n);
		if (b.super->def_bytes + n + 8 < BB_DEF_DATA)
			bb_define(&b, class, 0, data, n);
		data += n;
		size -= n;
	}
	tb_plain(&t, TACHO_BLOCK_DEFINITIONS, payload.data, payload.size);
	struct tacho_chunk *c = bb_chunk(&b, 1, 0, 30000000);

	for (uint32_t i = 1; i < id; i++)
		bb_record(c, 30000000 + i, TACHO_REC_EVENT, i, event, 8);
	tb_plain(&t, TACHO_BLOCK_CHUNK, c, (size_t)c->commit);
	tb_end(&t, 0);
	fuzz_read(t.data, t.size);
	fuzz_read(b.data, b.size);
	tb_free(&payload);
	tb_free(&t);
	bb_free(&b);
	return 0;
}
