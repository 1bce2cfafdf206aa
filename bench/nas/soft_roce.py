# SPDX-License-Identifier: BSD-3-Clause
"""The kernels over soft-RoCE in the virtual machine, whose clock counts instructions: what the papers
compare, and the library's counters with it. Its processor is shared by all ranks; so that computation
and communication can overlap, each rank sleeps after its computations ten times as long as they took,
as if it had a slower processor of its own."""
import itertools
import json
import pathlib
import re
import shlex
import statistics
import subprocess
import sys

import jobs

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from harness import SKIPPED, in_guest  # noqa: E402

SECONDS = 1500  # for one guest
ROUNDS = 3  # of which the median counts
ASLEEP = "asleep=10"
SIZES = {"bt": ("W", "iterations=10"), "sp": ("W", "iterations=10"), "cg": ("W", "iterations=2"),
         "lu": ("W", "iterations=4"), "mg": ("W", "iterations=2"), "ft": ("S", "iterations=3"),
         "is": ("W", "iterations=5")}
CUSTOMIZED = {
    "customized": {},
    "sender, read": {"PROTOCOLS": "sender", "RENDEZVOUS": "read"},
    "sender, write": {"PROTOCOLS": "sender", "RENDEZVOUS": "write"},
}
RECEIVE = {
    "shared": {},
    "credit, 10": {"RDMA_RECEIVE": "credit", "RDMA_WINDOW": 10},
    "credit, 32": {"RDMA_RECEIVE": "credit", "RDMA_WINDOW": 32},
    "ring, 32": {"RDMA_RECEIVE": "ring", "RDMA_WINDOW": 32},
}
CONNECTIONS = {"on demand": {}, "all": {"RDMA_CONNECTIONS": "all"}}
SMALL = {kernel: ("S",) for kernel in ("cg", "mg", "is", "sp", "bt")}
# experiment: (kernels with their arguments, settings, ranks)
EXPERIMENTS = {
    "protocols": (SIZES, CUSTOMIZED, 4),
    "protocols, together": (SIZES, CUSTOMIZED, 4),
    "receives": ({"lu": ("S",), "sp": ("S",)}, RECEIVE, 4),
    "receives, larger": ({"lu": SIZES["lu"], "sp": SIZES["sp"]}, RECEIVE, 4),
    "connections": (SMALL, CONNECTIONS, 16),
}
TOGETHER = ("protocols, together",)  # one processor for all, and nothing slept


class Unavailable(Exception):
    """Why the virtual machine cannot run."""


def measure(build, experiment, kernels, rounds=1):
    """{kernel: {setting: {name: number}}}, of the kernel's line and of the report: medians of `rounds`, each of
    which has all settings of a kernel in turn."""
    sizes, settings, ranks = EXPERIMENTS[experiment]
    names, script = [], []
    for kernel, _ in itertools.product(filter(sizes.__contains__, kernels), range(rounds)):
        arguments = [*sizes[kernel], *([] if experiment in TOGETHER else [ASLEEP])]
        for setting, values in settings.items():
            names.append((kernel, setting))
            job = jobs.command(build, kernel, ranks, *arguments, settings={"NETWORK": "rdma", **values})
            script.append(f"echo '== job'; {shlex.join(job)} 2>&1")
    if not names:
        return {}
    done = subprocess.run(in_guest(["sh", "-c", "; ".join(script)], SECONDS, "--icount", "--memory", "3072"),
                          capture_output=True, text=True, timeout=SECONDS + 60)
    if done.returncode == SKIPPED:
        raise Unavailable(done.stdout.strip())
    found = {}
    for (kernel, setting), output in zip(names, done.stdout.split("== job\n")[1:]):
        line = jobs.line_in(output)
        if not line or line["verified"] != "yes":
            sys.exit(f"nas: {kernel}, {setting}: it did not come to a verified end\n{output[-3000:]}")
        numbers = {name: float(line[name]) for name in ("seconds", "mpi_seconds", "messages", "bytes")}
        found.setdefault((kernel, setting), []).append({**numbers, **jobs.counters_in(output)})
    if len(names) != sum(map(len, found.values())):
        sys.exit(f"nas: the guest ended before all was run\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    results = {}
    for (kernel, setting), of_rounds in found.items():
        results.setdefault(kernel, {})[setting] = {
            name: statistics.median(one.get(name, 0) for one in of_rounds) for name in of_rounds[0]}
    return results


def protocols_table(results):
    """As Table 3 of Small & Yuan: what sender-initiated takes more, and who was early."""
    lines = ["| kernel | total, ms | in MPI, ms | sender, read: total | in MPI | sender, write: total | in MPI | "
             "EAGER | HYBRID | RECV_RNDV | SEND_RNDV | sender early | receiver early | both |", "|---" + "|---:" * 13 + "|"]
    for kernel, by_setting in results.items():
        ours = by_setting["customized"]
        cells = [kernel.upper(), jobs.number(1e3 * ours["seconds"]), jobs.number(1e3 * ours["mpi_seconds"])]
        for other in ("sender, read", "sender, write"):
            cells += [f"{(by_setting[other][what] / ours[what] - 1) * 100:+.1f} %" for what in ("seconds", "mpi_seconds")]
        rndv = ours.get("send_rndv_read", 0) + ours.get("send_rndv_write", 0)
        cells += [str(ours.get(name, 0)) for name in ("eager_sent", "hybrid_sent", "recv_rndv")] + [str(rndv)]
        cells += [str(ours.get(name, 0)) for name in ("sender_early", "receiver_early", "both")]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def ratio_table(results, settings):
    """Each setting over the first: total time, and that in MPI."""
    first, *others = settings
    lines = [f"| kernel | {first}: total, ms | in MPI, ms | "
             + " | ".join(f"{other}: total | in MPI" for other in others) + " |",
             "|---" + "|---:" * (2 + 2 * len(others)) + "|"]
    for kernel, by_setting in results.items():
        ours = by_setting[first]
        cells = [kernel.upper(), jobs.number(1e3 * ours["seconds"]), jobs.number(1e3 * ours["mpi_seconds"])]
        for other in others:
            cells += [f"{by_setting[other][what] / ours[what]:.3f}" for what in ("seconds", "mpi_seconds")]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def connections_table(results):
    lines = ["| kernel | partners of a rank, on demand | all | total, on demand : all |", "|---|---:|---:|---:|"]
    for kernel, by_setting in results.items():
        ours, other = by_setting["on demand"], by_setting["all"]
        partners = [f"{numbers['connections'] / EXPERIMENTS['connections'][2]:.2f}" for numbers in (ours, other)]
        lines.append(f"| {kernel.upper()} | {' | '.join(partners)} | {ours['seconds'] / other['seconds']:.3f} |")
    return lines


def table(experiment, results):
    if experiment.startswith("protocols"):
        lines = protocols_table(results)
    elif experiment == "connections":
        lines = connections_table(results)
    else:
        lines = ratio_table(results, RECEIVE)
    return "\n".join([f"{experiment[0].upper()}{re.sub('_', ' ', experiment[1:])}:", "", *lines, ""])


def run(build, experiments, kernels, file):
    """Measures, prints, and writes every number to `file`; keeps what is there of other experiments."""
    data = json.loads(file.read_text(encoding="utf8")) if file and file.exists() else {}
    for experiment in experiments:
        try:
            data[experiment] = measure(build, experiment, kernels)
        except Unavailable as why:
            print(why)
            return SKIPPED
        print(table(experiment, data[experiment]), flush=True)
        if file:
            file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf8")
    return 0
