#!/usr/bin/env bash
# A box is read over and over while it is written at full speed.
set -eu
build=${TACHO_BUILD:-$(dirname "$0")/../../build}
seconds=30
if [ "${TACHO_SOAK:-0}" = 1 ]; then
	seconds=300
fi
exec "$build/tests/crash/hammer" "${TACHO_HAMMER_SECONDS:-$seconds}"
