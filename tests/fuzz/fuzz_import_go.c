/*
 * Execution traces of Go. Input that begins like one is taken as it is; else its first byte says which
 * version the rest is of.
 */
#include <stdlib.h>

#include "fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const heads[] = {"go 1.22 trace\0\0", "go 1.23 trace\0\0",
					    "go 1.25 trace\0\0", "go 1.26 trace\0\0"};
	uint8_t *made;

	if (size > 2 && (!memcmp(data, "go", 2) || !memcmp(data, "\x1f\x8b", 2))) {
		fuzz_import(&tacho__import_go, data, size);
		return 0;
	}
	made = malloc(size + 16);
	if (!made || !size) {
		free(made);
		return 0;
	}
	memcpy(made, heads[data[0] % 4], 16);
	memcpy(made + 16, data + 1, size - 1);
	fuzz_import(&tacho__import_go, made, size + 15);
	free(made);
	return 0;
}
