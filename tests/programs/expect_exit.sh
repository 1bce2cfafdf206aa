#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# expect_exit.sh CODE command...: succeeds if the command ends with exit code CODE.
expected=$1
shift
"$@"
code=$?
test $code = "$expected" || { echo "exit code $code, expected $expected"; exit 1; }
