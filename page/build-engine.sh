#!/bin/sh
# The engine: the reader, the model and the ledger with the page's own part, as WASM.
#
#	build-engine.sh CLANG OUT DEPFILE SOURCE...
set -eu
clang=$1 out=$2 deps=$3
shift 3
root=$(dirname "$0")/..
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
: >"$deps"
for source; do
	object=$objects/of_$(echo "$source" | tr / _).o
	"$clang" --target=wasm32-wasi -std=gnu11 -O2 -msimd128 -mbulk-memory \
		-Wall -Wextra -Wshadow -Werror \
		-I "$root/page/engine" -I "$root/src" -I "$root/include" -D_GNU_SOURCE \
		-MD -MF "$object.d" -MT "$out" -c "$source" -o "$object"
	cat "$object.d" >>"$deps"
done
"$clang" --target=wasm32-wasi -mexec-model=reactor -Wl,--strip-all -Wl,-z,stack-size=1048576 \
	-o "$out" "$objects"/*.o
