#!/usr/bin/env bash
# The windows of processes that are stopped or hang are taken.
set -eu
build=${TACHO_BUILD:-$(dirname "$0")/../../build}
exec "$build/tests/crash/stopped" "${TACHO_BIN:-$build/src/cli/tacho}"
