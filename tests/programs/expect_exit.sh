#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# expect_exit.sh CODE command...: succeeds if the command ends with exit code CODE, or, where CODE
# is `failure`, with any but 0.
expected=$1
shift
"$@"
code=$?
if [ "$expected" = failure ]; then
  test $code != 0 && exit 0
else
  test $code = "$expected" && exit 0
fi
echo "exit code $code, expected $expected"
exit 1
