#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# crowded.sh COMMAND...: four jobs at once, one after the other, so that ranks lose their cores
# anywhere: some begin a life of the library while others are late to end the one before.
jobs=
for job in 1 2 3 4; do
  (for time in 1 2 3 4 5 6; do "$@" >/dev/null || exit 1; done) &
  jobs="$jobs $!"
done
for job in $jobs; do wait "$job" || failed=1; done
exit ${failed:-0}
