"""A program whose names of code are an attack."""
import os
import subprocess

from libhostile import MALLORY, fresh

# Burns CPU in a function of the file, and in code that is in no file, which its map names.
SOURCE = r"""
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
static const unsigned char code[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};
#else
static const unsigned code[] = {0xf1000400, 0x54ffffe1, 0xd65f03c0};
#endif
static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
void burn(void (*made)(unsigned long), double end) __asm__(NAME);
__attribute__((noinline)) void burn(void (*made)(unsigned long), double end)
{
	for (volatile unsigned i = 0; cpu() < end; i++)
		if (made)
			made(1000000);
}
int main(int argc, char **argv)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct epoll_event event;
	int loop = epoll_create1(0);
	char path[64];
	FILE *map;

	memcpy(at, code, sizeof(code));
	__builtin___clear_cache(at, (char *)at + sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	fprintf(map, "%lx 1000 %s\n", (unsigned long)at, argv[1]);
	fclose(map);
	epoll_wait(loop, &event, 1, 1);
	burn(NULL, cpu() + 0.4);
	burn((void (*)(unsigned long))at, cpu() + 0.4);
	epoll_wait(loop, &event, 1, 1);
	fclose(fopen(argv[2], "w"));
	for (;;)
		epoll_wait(loop, &event, 1, 1000);
}
"""


def exploding(depth=50):
    """A mangled name of 747 bytes or less that is of length 34 * 2^depth when it is written out, also
    without the types of its parameters: f<A<int, int>, A<A<int, int>, A<int, int> >, ...>."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def number(n):
        return (number(n // 36 - 1) if n >= 36 else "") + digits[n % 36]
    name = "_Z1fI1AIiiE"
    for n in range(1, depth + 1):
        name += f"S0_IS{number(n)}_S{number(n)}_E"
    return name + "Evv"


def build(folder, name="burn_here", *options):
    source, program = os.path.join(folder, "evil.c"), os.path.join(folder, "evil")
    with open(source, "w") as f:
        f.write(SOURCE)
    subprocess.run(["gcc", "-O1", "-g", "-Wl,--build-id", f'-DNAME="{name}"', *options, "-o", program,
                    source], check=True)
    os.unlink(source)
    return program


def own(tmp, name):
    folder = fresh(tmp, name)
    os.chown(folder, MALLORY, MALLORY)
    os.chmod(folder, 0o755)
    return folder
