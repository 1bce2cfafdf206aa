# SPDX-License-Identifier: BSD-3-Clause
"""Two of the experiments over soft-RoCE, as they are run for the page but all in one guest, and what the
page says of them."""
import os
import pathlib
import subprocess
import sys

import soft_roce
from soft_roce import in_guest, measure, runs

BUILD = pathlib.Path(os.environ["BUILD_FOLDER"])

script = ["set -e; export MACADAM_NETWORK=rdma"]
for name, settings in measure.ONE_SIDED.items():
    words = " ".join(f"{setting}={value}" for setting, value in settings.items())
    script.append(f"echo by {name}")
    script += [f"{words} {BUILD}/bin/mpiexec -n 2 {BUILD}/bench/one_sided/experiments {experiment} 20 "
               f"{soft_roce.LARGEST}" for experiment in ("synchronization", "skew")]
done = subprocess.run(in_guest(["sh", "-c", "\n".join(script)], 500, "--icount"), text=True,
                      stdout=subprocess.PIPE, env=runs.environment_with(), check=False)
print(done.stdout, end="")
if done.returncode != 0:
    sys.exit(done.returncode)

by = {}
for part in done.stdout.split("by ")[1:]:
    name, _, lines = part.partition("\n")
    by[name] = runs.lines_of(lines)
rdma, messages = by["RDMA"], by["messages"]
assert rdma["epoch_us"]["0"] < messages["epoch_us"]["0"], by
assert rdma["skew_us"]["800"] < 1.2 * rdma["skew_us"]["0"], by  # flat
assert messages["skew_us"]["800"] > 800 + rdma["skew_us"]["0"] / 2, by
