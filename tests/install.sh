#!/bin/bash
# Installs into a scratch folder and uses what is there as a user would: through pkg-config.
#
#   tests/install.sh BUILD
set -u
build=$1
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

check() {
	local name=$1
	shift
	if "$@" >"$stage/output" 2>&1; then
		echo "ok $name"
	else
		echo "not ok $name: $(tail -n 1 "$stage/output")"
		sed 's/^/# /' "$stage/output"
	fi
}
flags() {
	PKG_CONFIG_LIBDIR=$pkgconfig PKG_CONFIG_SYSROOT_DIR=$stage \
		PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 pkg-config "$@"
}

check 'installs into DESTDIR' env DESTDIR="$stage" meson install -C "$build" --no-rebuild
pc=$(find "$stage" -name tacho.pc)
pkgconfig=$(dirname "$pc")
libdir=$(dirname "$pkgconfig")
program=$(find "$stage" -path '*/bin/tacho')
check 'the tacho program runs' "$program" --version
check 'the recording library is installed' test -s "$libdir/tacho/libtacho-preload.so"
if [ -e "$build/src/hooks/libtacho-preload-musl.so" ]; then
	check 'the one for musl lies beside it' test -s "$libdir/tacho/libtacho-preload-musl.so"
fi
check 'man pages are installed' test -n "$(find "$stage" -path '*/man1/tacho.1*')"
if "$program" view --html - >"$stage/page.html" 2>&1; then
	check 'the page is installed as files' test -s "$(find "$stage" -path '*/tacho/page/engine.wasm')"
	check 'the page in one file is installed' cmp "$stage/page.html" \
		"$(find "$stage" -path '*/tacho/page/tacho.html')"
fi

cat >"$stage/record.c" <<'END'
#include <stdio.h>
#include <tacho.h>
int main(void)
{
	return puts(tacho_version()) < 0;
}
END
cat >"$stage/read.c" <<'END'
#include <tacho_read.h>
int main(void)
{
	struct tacho_reader *reader;
	char message[256];

	return tacho_read_open(&reader, "/nonexistent", NULL, message, sizeof(message)) == 0;
}
END
zstd_pc=$(pkg-config --variable=pcfiledir libzstd)
cp "$zstd_pc/libzstd.pc" "$pkgconfig/"
compile() {
	${CC:-gcc} "$@" -L"$(pkg-config --variable=libdir libzstd)"
}
for pair in tacho:record tacho-read:read; do
	library=${pair%:*}
	source=${pair#*:}
	check "$library links shared" compile -o "$stage/shared" "$stage/$source.c" \
		$(flags --cflags --libs "$library")
	check "$library runs shared" env LD_LIBRARY_PATH="$libdir" "$stage/shared"
	check "$library links static" compile -o "$stage/static" "$stage/$source.c" \
		$(flags --cflags "$library") "$libdir/lib$library.a" \
		$([ "$library" = tacho ] || pkg-config --libs libzstd)
	check "$library runs static" "$stage/static"
done
exit 0
