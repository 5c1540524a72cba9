#!/bin/sh
# Formats the C and C++ files of the tree, or with --check names those that differ.
set -eu
cd "$(dirname "$0")/.."
files=$(find include src tests examples bench crates/tacho/c -name '*.[ch]' -o -name '*.cpp' | sort)
[ -n "$files" ] || exit 0
if [ "${1-}" = --check ]; then
	exec clang-format --dry-run -Werror $files
fi
exec clang-format -i $files
