# SPDX-License-Identifier: BSD-3-Clause
"""Two of the experiments over soft-RoCE, as they are run for the page, and what the page says of them."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

with tempfile.TemporaryDirectory() as folder:
    for experiment in ("synchronization", "skew"):
        done = subprocess.run([sys.executable, "-B", HERE / "soft_roce.py", experiment, "--no-plots",
                               "--build", os.environ["BUILD_FOLDER"], "--out", folder,
                               "--seconds", "250"], check=False)
        if done.returncode != 0:
            sys.exit(done.returncode)
    by = json.loads(pathlib.Path(folder, "one_sided_soft_roce.json").read_text())["by"]

rdma, messages = by["RDMA"], by["messages"]
assert rdma["epoch_us"]["0"] < messages["epoch_us"]["0"], by
assert rdma["skew_us"]["800"] < 1.2 * rdma["skew_us"]["0"], by  # flat
assert messages["skew_us"]["800"] > 800 + rdma["skew_us"]["0"] / 2, by
