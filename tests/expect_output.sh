#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# expect_output.sh PATTERN command...: succeeds if the command ends with exit code 0 and a line of
# its output matches PATTERN (of grep -E).
pattern=$1
shift
output=$("$@" 2>&1)
code=$?
printf '%s\n' "$output"
if [ $code != 0 ]; then
  echo "exit code $code, expected 0"
  exit 1
fi
if ! printf '%s\n' "$output" | grep -Eq -- "$pattern"; then
  echo "no line matches: $pattern"
  exit 1
fi
