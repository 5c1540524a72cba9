#!/usr/bin/env bash
# All threads have the same window.
set -eu
build=${TACHO_BUILD:-$(dirname "$0")/../../build}
exec "$build/tests/crash/window"
