# SPDX-License-Identifier: BSD-3-Clause
"""Two of the experiments over soft-RoCE, as they are run for the page but all in one guest, and what the
page says of them."""
import os
import pathlib
import shlex
import subprocess
import sys

from soft_roce import in_guest, measure, runs, words_of

BUILD = pathlib.Path(os.environ["BUILD_FOLDER"])

script = ["set -e"]
for name, settings in measure.ONE_SIDED.items():
    script.append(f"echo by {name}")
    script += [shlex.join(words_of(BUILD, experiment, 2, settings))
               for experiment in ("synchronization", "skew")]
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
