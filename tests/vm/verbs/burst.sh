#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# burst.sh MPIEXEC PROGRAM: the burst with the watermark and without it.
set -eu
export MACADAM_NETWORK=rdma
"$1" -timeout 30 -n 2 "$2" with_watermark
MACADAM_RDMA_WATERMARK=0 "$1" -timeout 30 -n 2 "$2" without_watermark
