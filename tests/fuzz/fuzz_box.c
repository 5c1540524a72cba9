/* Boxes. The input is put into the places of a box that is otherwise right, so that what
   is behind the superblock is reached as well. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_read.h"
#include "../unit/box_builder.h"

/* Input: entries { u16 place, u8 size, bytes }; a place is a multiple of 8 in the order
   below. Input that begins like a box is taken for one as it is. */
static void put(struct bb *b, const struct tacho_box_region *regions, const uint8_t *data,
		size_t size)
{
	static const struct {
		int region; /* -1: superblock */
		uint32_t bytes;
	} places[] = {
		{-1, 1024},
		{TACHO_REGION_TRIGGERS, 512},
		{TACHO_REGION_CRASHES, 1024},
		{TACHO_REGION_THREADS, 512},
		{TACHO_REGION_HISTOGRAMS, 512},
		{TACHO_REGION_DEF_DIR, 512},
		{TACHO_REGION_DEF_DATA, 2048},
		{TACHO_REGION_SLOTS, 128},
		{TACHO_REGION_POOL, 16384},
	};

	while (size >= 3) {
		uint32_t at = (data[0] | (uint32_t)data[1] << 8) * 8u;
		size_t n = data[2];
		uint64_t offset = 0;

		data += 3;
		size -= 3;
		if (n > size)
			n = size;
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			if (at < places[i].bytes) {
				offset = at;
				if (places[i].region >= 0)
					offset += regions[places[i].region].offset;
				break;
			}
			at -= places[i].bytes;
		}
		if (offset >= 8 && offset + n <= b->size)
			memcpy(b->data + offset, data, n);
		data += n;
		size -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tacho_box_region regions[16];
	struct bb b;

	if (size >= 8 && !memcmp(data, TACHO_BOX_MAGIC, 8)) {
		fuzz_read(data, size);
		return 0;
	}
	bb_init(&b);
	memcpy(regions, b.super->regions, sizeof(regions));
	bb_define_name(&b, TACHO_DEF_TEXT, TACHO_ID_FULL_TEXT, "", 0);
	bb_thread(&b, 1);
	bb_record1(bb_chunk(&b, 1, 0, 30000000), 30000003, TACHO_REC_WAKE, 0, 1);
	bb_record1(bb_chunk(&b, 1, 1, 30000000), 30000009, TACHO_REC_WAKE, 0, 1);
	bb_record1(bb_chunk(&b, 2, 0, 30000000), 30000006, TACHO_REC_WAKE, 0, 1);
	b.super->hists_used = 2;
	put(&b, regions, data, size);
	/* Most boxes have their regions in place; every eighth input may move them. */
	if (size % 8)
		memcpy(b.super->regions, regions, sizeof(regions));
	fuzz_read(b.data, b.size);
	bb_free(&b);
	return 0;
}
