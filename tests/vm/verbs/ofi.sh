#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The programs that run over libfabric, over its `verbs` provider: ofi.sh BUILD. Why it needs the two
# settings is in docs/ofi.md; a waiting rank takes more of a core than progress.waiting allows.
export FI_PROVIDER="verbs;ofi_rxm" FI_UNIVERSE_SIZE=16 FI_MR_CACHE_MONITOR=disabled
exec ctest --test-dir "$1" -R '\.ofi\.' -E 'progress\.waiting' --output-on-failure
