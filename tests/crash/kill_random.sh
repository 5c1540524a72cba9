#!/usr/bin/env bash
# Kills recorded processes at random times and reads what is left. A soak uses other times
# in every run; the seed is printed, to try the same again.
set -eu
build=${TACHO_BUILD:-$(dirname "$0")/../../build}
seed=0x2545f4914f6cdd1d
if [ "${TACHO_SOAK:-0}" = 1 ]; then
	seed=$(date +%s%N)
fi
echo "seed ${TACHO_SEED:-$seed}"
exec "$build/tests/crash/kill-random" "${TACHO_KILLS:-50}" "${TACHO_SEED:-$seed}"
