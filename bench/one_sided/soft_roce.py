#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The experiments of Jiang et al. over soft-RoCE, in the virtual machine whose time is a count of
instructions: one-sided by RDMA, the same calls by messages, and two-sided.

    python3 bench/one_sided/soft_roce.py latency        # one of them
    python3 bench/one_sided/soft_roce.py all

Prints a table of each, keeps the numbers in docs/figures/one_sided_soft_roce.json and draws them."""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "sim" / "figures")]
import figures  # noqa: E402
import measure  # noqa: E402
import runs  # noqa: E402
from harness import SKIPPED, in_guest  # noqa: E402

NAME = "one_sided_soft_roce"
ROUNDS = {"origins": 5}  # others: 20; time that is counted hardly varies
LARGEST = 65536
# Ranks that share the only processor soon sleep; of those that do nothing but wait for each other, in
# some runs one sleeps in each epoch and in others none ever does.
SETTINGS = {"synchronization": measure.POLLING}


def words_of(build, experiment, ranks, settings):
    """The command, in the guest, that runs an experiment with these settings."""
    settings = {**settings, **SETTINGS.get(experiment, {})}
    return ["env", "MACADAM_NETWORK=rdma", *(f"{name}={value}" for name, value in settings.items()),
            str(build / "bin" / "mpiexec"), "-n", str(ranks),
            str(build / "bench" / "one_sided" / "experiments"), experiment,
            str(ROUNDS.get(experiment, 20)), str(LARGEST)]


class Guest:
    """Runs experiments over soft-RoCE, each in a guest of its own."""

    def __init__(self, build, seconds):
        self.build, self.seconds = build.resolve(), seconds

    def run(self, experiment, ranks, settings):
        command = in_guest(words_of(self.build, experiment, ranks, settings), self.seconds,
                           "--icount")
        done = subprocess.run(command, capture_output=True, text=True,
                              env=runs.environment_with(), check=False)
        if done.returncode == SKIPPED:
            print(done.stdout, end="")
            sys.exit(SKIPPED)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: ended with {done.returncode}\n{done.stdout}"
                     f"{done.stderr}")
        return runs.lines_of(done.stdout)


def table(by, names):
    """Markdown: a row a parameter, for each figure a column by RDMA, one by messages and their ratio."""
    for figure in names:
        print(f"\n| {figure} | RDMA | messages | RDMA : messages |\n|---:|---:|---:|---:|")
        for parameter, fast in by["RDMA"][figure].items():
            slow = by["messages"][figure][parameter]
            print(f"| {parameter} | {fast:.2f} | {slow:.2f} | {fast / slow:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", choices=[*measure.ONE_SIDED_EXPERIMENTS, "atomics", "strided", "columns",
                                               "accumulates", "all"])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--out", type=pathlib.Path, default=figures.DOCS)
    parser.add_argument("--seconds", type=int, default=900, help="for one guest (%(default)s)")
    parser.add_argument("--no-plots", action="store_true", help="write data only")
    options = parser.parse_args()
    guest = Guest(options.build, options.seconds)
    file = options.out / f"{NAME}.json"
    options.out.mkdir(parents=True, exist_ok=True)
    by = json.loads(file.read_text())["by"] if file.exists() else {}
    chosen = measure.ONE_SIDED_EXPERIMENTS if options.experiment == "all" else [options.experiment]
    for experiment in chosen:
        for name, settings in measure.ONE_SIDED.items():
            found = measure.one_sided_by(
                lambda what, ranks, settings=settings: guest.run(what, ranks, settings), experiment)
            by.setdefault(name, {}).update(found)
        runs.save(file, {"by": by})
        table(by, found)
    drawn = {"pingpong_us", "put_mb_per_s", "epoch_us", "overlap_us", "skew_us", "origins_mb_per_s"}
    if not options.no_plots and all(drawn <= each.keys() for each in by.values()):
        subprocess.run([figures.python_with_plots(options.build), ROOT / "sim/figures/plots.py",
                        options.out, NAME], check=True)


if __name__ == "__main__":
    main()
