#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures Macadam over soft-RoCE in a virtual machine, next to plain verbs and to Debian's Open MPI
and MPICH over UCX in the same guest, and prints tables with ratios.

Times come from a guest whose clock counts instructions: they repeat to the digit, and compare
libraries, not machines. It has one processor; in the progress benchmark each role computes on
another of its own. Start-up and memory are measured in a guest that does not count: a start waits
for files of the host, which is no number of instructions, and memory is the same in both."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import peers
from harness import FIGURES, SKIPPED, Results, in_guest, table

HERE = pathlib.Path(__file__).resolve().parent
# What runs in which guest, and the seconds for one run of one program, by the guest's clock. Where that
# counts instructions a wait for the host's disk may take hours: the limit for the guest must do.
GUESTS = [(["latency", "progress"], ["--icount"], 100000), (["startup", "memory"], ["--cpus", "2"], 120)]


def plain_verbs(results, figure, parameter):
    """What sends and writes over plain verbs need."""
    units = {"half_round_trip_us": "us", "bandwidth_gb": "gb"}
    if figure not in units:
        return []
    plain = [(how, f"plain_{how}_{units[figure]}") for how in ("send", "write")]
    return [(f"verbs {how}", results.median(name, parameter, "plain verbs"),
             results.ratio(figure, parameter, "Macadam", name, parameter, "plain verbs"))
            for how, name in plain]


def measure(arguments, parts, options, limit, layer, programs):
    """The results of one guest, None if this machine cannot run it."""
    command = [sys.executable, "-B", HERE / "guest.py", "--build", arguments.build]
    if programs:
        command += ["--peers", programs]
        options = [*options, "--layer", layer]
    with tempfile.TemporaryDirectory() as folder:
        script = ["env", f"BENCH_TIME_LIMIT={limit}",
                  "sh", "-c", 'exec "$0" "$@" --results "$VM_JOB/results/values"']
        guest = in_guest([*script, *command, *parts], arguments.timeout, "--memory", "4096",
                         "--results", folder, *options)
        status = subprocess.run(guest, check=False).returncode
        if status == SKIPPED:
            return None
        if status != 0:
            sys.exit(f"bench: the guest's measurements failed, status {status}")
        return Results.load(pathlib.Path(folder, "values"))


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    known = [part for parts, *_ in GUESTS for part in parts]
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build tree")
    parser.add_argument("--no-peers", action="store_true", help="Macadam and plain verbs alone")
    parser.add_argument("--only", action="append", choices=known, help="a part; may be repeated")
    parser.add_argument("--timeout", type=float, default=3600, metavar="SECONDS",
                        help="for one guest (3600)")
    parser.add_argument("--markdown", type=pathlib.Path, help="write the tables")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    arguments.only = arguments.only or known
    return arguments


def main():
    arguments = parse()
    layer = arguments.build / "bench" / "debian"
    programs = arguments.build / "bench" / "debian-programs"
    if arguments.no_peers:
        programs = None
    else:
        try:
            peers.fetch(layer)
            peers.compile_programs(layer, programs)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"bench: the peers are left out: {error}", file=sys.stderr)
            programs = None
    text, failed = [], False
    for parts, options, limit in GUESTS:
        parts = [part for part in parts if part in arguments.only]
        if not parts:
            continue
        results = measure(arguments, parts, options, limit, layer, programs)
        if results is None:
            return  # the virtual machine said why
        text += [f"- {name}: {version}" for name, version in results.about["versions"].items()
                 if not text]
        text += [""] + [table(results, figure, plain_verbs, 4) for figure in FIGURES]
        text += results.failure_lines()
        failed = failed or any(name == "Macadam" for name, _, _ in results.failures)
    text = "\n".join(filter(None, text)) + "\n"
    print(text, end="")
    if arguments.markdown:
        arguments.markdown.write_text(text, encoding="utf8")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
