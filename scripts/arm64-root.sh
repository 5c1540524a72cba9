#!/bin/sh
# Unpacks Debian's arm64 libraries that the cross-compiled tests link with into
# .arm64/, for whoever runs it, and leaves the system's own packages and
# architectures alone (docs/decisions/0001). Does nothing when they are there.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
dest=$root/.arm64
packages='libzstd1 libzstd-dev zlib1g-dev libcmocka0 libcmocka-dev'

# For cross/aarch64.ini, which meson reads after it. Written anew each time, because
# the tree may have moved.
say_root() {
	printf "[constants]\nroot = '%s'\n" "$dest" >"$dest/root.ini"
}

if [ "$(cat "$dest/ready" 2>/dev/null)" = "$packages" ]; then
	say_root
	exit 0
fi
rm -f "$dest/ready"

echo "setup: fetching for arm64, into .arm64/: $packages"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
mkdir -p "$work/lists/partial" "$work/archives/partial"

apt() {
	apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
		-o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=1 \
		-o Dir::State::Lists="$work/lists" -o Dir::State::status=/dev/null \
		-o Dir::Cache="$work" "$@"
}
(cd "$work" && apt update && apt download $packages)

rm -rf "$dest"
mkdir -p "$dest"
for package in "$work"/*.deb; do
	dpkg-deb -x "$package" "$dest"
done
# The .pc files of the packages point into a system's /usr. (So does libz.so, in whose place
# the linker takes libz.a.)
mkdir "$dest/pkgconfig"
for library in zstd z cmocka; do
	case $library in
	zstd) name=libzstd ;;
	z) name=zlib ;;
	*) name=$library ;;
	esac
	cat >"$dest/pkgconfig/$name.pc" <<-END
		Name: $library
		Description: $library for arm64, unpacked for the tests
		Version: 1
		Libs: -L\${pcfiledir}/../usr/lib/aarch64-linux-gnu -l$library
		Cflags: -I\${pcfiledir}/../usr/include
	END
done
say_root
echo "$packages" >"$dest/ready"
