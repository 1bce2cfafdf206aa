#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures in the guest what bench/verbs/run.py asked for and writes every value to a file."""
import argparse
import os
import pathlib
import subprocess
import sys

import peers
from harness import Library, Results, measure_startup, versions

# Half round trips up to 4 KiB, messages a second up to 1 KiB, bandwidth beyond.
SHORT, RATES, LONG = ["8", "1024", "4096"], ["8", "1024"], ["65536", "1048576"]
PROGRESS_UNIT = "100"  # us; some ten of them for 100 KB here, so that computation can hide it


def macadam(build, name="Macadam", **settings):
    variables = {f"MACADAM_{key}": value for key, value in {"NETWORK": "rdma", **settings}.items()}
    return Library(name, [build / "bin" / "mpiexec"], build / "bench", variables)


def say(*words):
    print("bench:", *words, file=sys.stderr, flush=True)


def latency(results, build, everyone):
    done = subprocess.run([build / "bench" / "plain_verbs", *SHORT, *LONG], check=True,
                          capture_output=True, text=True)
    results.add_lines("plain verbs", done.stdout)
    for library in everyone:
        say("round trips and bandwidth,", library.name)
        results.measure(library, 2, "pingpong", *SHORT)
        results.measure(library, 2, "rate", *RATES, *LONG)


def memory(results, build, everyone):
    modes = [macadam(build, mode, RDMA_RECEIVE=mode) for mode in ("credit", "ring")]
    for ranks in (2, 4, 8, 16):
        for library in [everyone[0], *modes, *everyone[1:]]:
            say("memory,", library.name, "on", ranks, "ranks")
            results.measure(library, ranks, "startup", "talked")


def startup(results, build, everyone):
    modes = [macadam(build, mode, RDMA_CONNECTIONS=mode) for mode in ("all", "serial")]
    for ranks in (2, 8, 16):
        for library in [everyone[0], *modes, *everyone[1:]]:
            say("start-up,", library.name, "on", ranks, "ranks")
            measure_startup(results, [library], ranks, 3)


def progress(results, build, everyone):
    sender = macadam(build, "sender-initiated", PROTOCOLS="sender")
    for library in [everyone[0], sender, *everyone[1:]]:
        say("progress,", library.name)
        results.measure(library, 2, "progress", PROGRESS_UNIT, "apart")


PARTS = {"latency": latency, "memory": memory, "startup": startup, "progress": progress}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--peers", type=pathlib.Path, help="the peers' programs")
    parser.add_argument("--results", type=pathlib.Path, required=True)
    parser.add_argument("part", nargs="+", choices=PARTS)
    arguments = parser.parse_args()
    os.environ["BENCH_BATCHES"] = "3"  # times that count instructions do not vary
    everyone = [macadam(arguments.build)]
    if arguments.peers:
        everyone += peers.libraries(arguments.peers)
    results = Results()
    # Libraries are read from the host once, before anything is measured.
    about = {"versions": versions(results, everyone)}
    for part in arguments.part:
        PARTS[part](results, arguments.build, everyone)
    results.save(arguments.results, about)


if __name__ == "__main__":
    main()
