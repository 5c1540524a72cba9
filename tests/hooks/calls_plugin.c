/* A library that takes its time to load: what it calls is part of dlopen. */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int plugin_number = 17;
int plugin_function(void);

int plugin_function(void)
{
	return plugin_number;
}

__attribute__((constructor)) static void load(void)
{
	struct timespec t = {0, 30000000};
	struct stat st;

	nanosleep(&t, NULL);
	stat("/", &st);
	close(open("/dev/null", O_RDONLY));
}
