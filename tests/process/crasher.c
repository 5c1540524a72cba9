/* Asks for a crash file, in the way that it is told, and crashes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tacho.h"

/* crasher [option PATH | call PATH]; without arguments the environment may ask. */
int main(int argc, char **argv)
{
	struct tacho_options o = TACHO_OPTIONS_INIT;
	int err;

	if (argc == 3 && !strcmp(argv[1], "option"))
		o.crash_file = argv[2];
	if (tacho_start(&o))
		return 1;
	if (argc == 3 && !strcmp(argv[1], "call")) {
		err = tacho_crash_handler(argv[2]);
		if (err)
			return err == -EPERM ? 2 : 3;
	}
	abort();
}
