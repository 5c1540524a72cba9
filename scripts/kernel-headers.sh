#!/bin/sh
# Links to the headers of the kernel, alone in a folder: for a compiler whose own headers are those of
# another C library, which must not see the ones of this system.
#
#   scripts/kernel-headers.sh FOLDER
set -eu

machine=$(gcc -dumpmachine 2>/dev/null || true)
mkdir -p "$1"
for name in linux asm-generic asm; do
	for folder in "/usr/include/$machine" /usr/include; do
		[ -d "$folder/$name" ] || continue
		ln -sfn "$folder/$name" "$1/$name"
		break
	done
	[ -d "$1/$name/" ] || {
		echo "kernel-headers: no <$name/...> in /usr/include: install the headers of the kernel" \
			"(Debian: linux-libc-dev)" >&2
		exit 1
	}
done
