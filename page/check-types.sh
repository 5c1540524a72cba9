#!/bin/sh
# Types of the page are right: says what is not, else makes the file OUT.
#
#	check-types.sh TSC TSCONFIG OUT
set -eu
"$1" -p "$2"
: >"$3"
