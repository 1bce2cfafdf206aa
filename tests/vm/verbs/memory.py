#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the virtual machine: what the kernel says that ranks hold, against `macadam model` with the
bytes that it measures of the driver. Prints a table; with --json FILE the rows too.

The kernel's figure is what is anonymous or mapped by the driver, more than before MPI_Init. The model
knows of the transport alone. What the library has beside it at the start is one constant, the median of
all jobs' (where addresses lie makes a difference of a page or two); what its engine takes for messages is
what the rank itself counts in a job that ends after that stage, more than in a job without messages. All
else are predictions. The model is told who talks to how many, how many messages are sent at once, and the
message buffers that a burst took, as the library counts them."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

RECEIVE = ("ring", "credit", "shared")
RANKS = (2, 4, 8, 16)
PAYLOAD = 4096
BURST = 1000
KEPT = 7  # message buffers whose completion nobody has asked for (model.h)
STAGES = ("start", "halo", "alltoall", "burst", "after")
FIELDS = ("anonymous", "heap", "libraries", "mapped", "driver", "pinned", "resident")


def output(*command, **settings):
    words = ["env", *(f"MACADAM_{name}={value}" for name, value in settings.items()), *map(str, command)]
    done = subprocess.run(words, text=True, capture_output=True, timeout=300, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def run(build, receive, ranks, payload=PAYLOAD, burst=BURST, last="after"):
    """One job as far as a stage: {(stage, rank): row}, and the bytes of rank 1's engine at the end."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        lines = output(build / "bin/mpiexec", "-timeout", 200, "-n", ranks,
                       build / "tests/vm/verbs.resident", ranks, f"{folder}/meeting", payload,
                       burst, last, NETWORK="rdma", RDMA_RECEIVE=receive, REPORT=f"{folder}/report.json")
        report = json.loads(pathlib.Path(folder, "report.json").read_text())
    rows = {}
    for line in lines.splitlines():
        stage, rank, peers, *numbers, buffers = line.split()
        rows[stage, int(rank)] = {"receive": receive, "ranks": ranks, "stage": stage, "rank": int(rank),
                                  "peers": int(peers), "buffers": int(buffers),
                                  **dict(zip(FIELDS, (int(number) << 10 for number in numbers)))}
    return rows, report["ranks"][1]["memory"]["engine"]


class Model:
    """`macadam model`, with the driver measured once."""

    def __init__(self, build):
        self._build = build
        told = json.loads(self._ask("--measure", "--ranks", 2))
        self.driver = told["driver"]
        self._adapter = ("--inline", told["adapter"]["inline"], "--completion-depth",
                         told["adapter"]["completion_depth"])

    def _ask(self, *arguments, **settings):
        return output(self._build / "bin/macadam", "model", "--json", *arguments, **settings)

    def predict(self, row):
        """Adds what the model says of a row."""
        halo, all_to_all = min(2, row["ranks"] - 1), row["ranks"] - 1
        sends = {"start": 0, "halo": halo, "after": all_to_all + KEPT}.get(
            row["stage"], all_to_all + min(halo, KEPT))
        told = json.loads(self._ask("--ranks", row["peers"] + 1, "--receive", row["receive"],
                                    "--sends", sends, "--buffers",
                                    row["buffers"] if row["stage"] == "burst" else 0,
                                    *self._adapter, "--driver", self.driver))
        row["model"] = told["bytes"][row["receive"]][0]
        row["model_pinned"] = told["pinned"][row["receive"]][0]


def measure(build, ranks=RANKS, receive=RECEIVE):
    """All rows, one for each job and stage: the rank with most to hold (rank 1: the burst's)."""
    model = Model(build)
    _, idle = run(build, receive[0], 2, 0, 0)
    rows = []
    for mode in receive:
        for size in ranks:
            job, busy = run(build, mode, size)
            engines = {"start": idle, "burst": busy, "after": busy}
            for stage in ("halo", "alltoall"):
                _, engines[stage] = run(build, mode, size, last=stage)
            for stage in STAGES:
                row = job[stage, 1]
                model.predict(row)
                row["engine"] = engines[stage] - idle
                row["held"] = row["anonymous"] + row["driver"]
                rows.append(row)
    constant = statistics.median(row["held"] - row["model"] for row in rows if row["stage"] == "start")
    for row in rows:
        row["expected"] = row["model"] + row["engine"] + constant
        row["percent"] = 100 * (row["expected"] / row["held"] - 1)
        row["percent_pinned"] = 100 * (row["model_pinned"] / row["pinned"] - 1)
    return {"payload": PAYLOAD, "burst": BURST, "driver": model.driver, "constant": constant, "rows": rows}


def table(found):
    kib = 1024
    lines = [f"bytes of the driver, for an entry of each queue: {found['driver']}",
             f"constant, the median of the starts: {found['constant'] / kib:.0f} KiB", "",
             "| receive | ranks | stage | connections | kernel: heap, KiB | libraries | mapped | driver's queues "
             "| all | engine | model | difference | kernel: pinned | model | difference |", "|" + "---|" * 15]
    for row in found["rows"]:
        lines.append(f"| {row['receive']} | {row['ranks']} | {row['stage']} | {row['peers']} "
                     f"| {row['heap'] / kib:.0f} | {row['libraries'] / kib:.0f} | {row['mapped'] / kib:.0f} "
                     f"| {row['driver'] / kib:.0f} | {row['held'] / kib:.0f} "
                     f"| {row['engine'] / kib:.0f} | {row['expected'] / kib:.0f} | {row['percent']:+.2f} % "
                     f"| {row['pinned'] / kib:.0f} | {row['model_pinned'] / kib:.0f} "
                     f"| {row['percent_pinned']:+.2f} % |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--ranks", type=lambda text: [int(word) for word in text.split(",")], default=RANKS)
    parser.add_argument("--receive", type=lambda text: text.split(","), default=RECEIVE)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    found = measure(options.build, options.ranks, options.receive)
    print(table(found))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
