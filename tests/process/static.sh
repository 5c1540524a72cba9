#!/usr/bin/env bash
# A program that is linked statically, libc and all, records as any other.
set -u
name="a program linked statically with libtacho.a"
build=${TACHO_BUILD:-build}
source=${TACHO_SOURCE:-.}
work=$(mktemp -d "${TMPDIR:-/tmp}/tacho-static-XXXXXX")
boxes=$(mktemp -d "${TACHO_BOX_DIR:-/dev/shm}/static-XXXXXX")
trap 'rm -rf "$work" "$boxes"' EXIT

if [ ! -x "$build/src/cli/tacho" ]; then
	echo "skip $name: there is no $build/src/cli/tacho"
	exit 0
fi
cat >"$work/program.c" <<'C'
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tacho.h"

static struct tacho_name kind = TACHO_KIND("linked statically");

static void *record(void *arg)
{
	tacho_poll_begin(&kind, 2);
	tacho_poll_end(TACHO_DONE);
	return arg;
}

int main(void)
{
	pthread_t t;
	pid_t pid;

	if (tacho_start(NULL))
		return 3;
	tacho_poll_begin(&kind, 1);
	tacho_poll_end(TACHO_DONE);
	if (pthread_create(&t, NULL, record, NULL) || pthread_join(t, NULL))
		return 4;
	pid = fork();
	if (!pid) {
		tacho_poll_begin(&kind, 3);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	_exit(0);
}
C
if ! echo 'int main(void) { return 0; }' | cc -static -x c -o "$work/empty" - 2>/dev/null; then
	echo "skip $name: this compiler links nothing statically"
	exit 0
fi
if ! cc -std=gnu11 -O1 -static -pthread -I "$source/include" -o "$work/program" "$work/program.c" \
	"$build/src/core/libtacho.a" 2>"$work/errors"; then
	echo "not ok $name: it does not link: $(grep -m1 -i 'undefined\|error' "$work/errors")"
	exit 1
fi
if ! TACHO_BOX_DIR=$boxes "$work/program"; then
	echo "not ok $name: it ended with status $?"
	exit 1
fi
polls=0
for box in "$boxes"/*.box; do
	found=$("$build/src/cli/tacho" cat "$box" | grep -c 'linked statically')
	polls=$((polls + found))
done
if [ "$(ls "$boxes" | wc -l)" = 2 ] && [ "$polls" -ge 3 ]; then
	echo "ok $name"
else
	echo "not ok $name: $(ls "$boxes" | wc -l) boxes with $polls polls in all"
	exit 1
fi
