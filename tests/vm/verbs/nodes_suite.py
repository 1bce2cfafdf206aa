#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The suite of MPI programs as jobs on two machines, by mpiexec. On the second of two guests of tests/vm
it runs what the first sends (remote.py), and ends with it.

    python3 tests/vm/verbs/nodes_suite.py BUILD

BUILD is a build tree that both see. Takes what `ctest -L programs` would run with more ranks than there
are machines, so that some share one, and gives each machine its part of them. Prints what each test that
failed has said, and a summary. With PROGRAMS_LIGHT set it takes each program on the largest of its numbers
of ranks alone."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "programs"))
import registered  # noqa: E402

# Programs under settings of shared memory say nothing about two networks; and on several machines MPI
# does not start again after MPI_Finalize, which these two do.
LEFT_OUT = re.compile(r"\.(cma|pipeline|pipeline_write|all_large|all_hybrid|narrow|ofi)\."
                      r"|\.sessions\.(sessions|again)\.")


REMOTE = pathlib.Path(__file__).resolve().parents[1] / "remote.py"
NODES = int(os.environ["VM_NODES"])
NODE = int(os.environ["VM_NODE"])
OVER = pathlib.Path(os.environ["VM_JOB"], "suite-is-over")


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--only", default="", help="tests whose names match this expression")
    parser.add_argument("--least", type=int, default=NODES + 1, help="ranks of a test at least")
    return parser.parse_args()


def select_tests(arguments):
    label = "widest" if "PROGRAMS_LIGHT" in os.environ else "programs"
    return [test for test in registered.list_tests(arguments.build, label)
            if test.ranks() >= arguments.least and not LEFT_OUT.search(test.name)
            and re.search(arguments.only, test.name)]


def command_on_nodes(test):
    """The test's command with its ranks on all machines, in parts as even as can be."""
    words = list(test.command)
    at = test.launcher()
    each, rest = divmod(test.ranks(), NODES)
    hosts = ",".join(f"node{node}:{each + (node < rest)}" for node in range(NODES))
    # An emulated processor may stand still for long.
    words[at + 1:at + 1] = ["-silence", "30", "-host", hosts]
    return words


def run(test):
    """What went wrong; empty if nothing."""
    try:
        result = subprocess.run(command_on_nodes(test), stdin=subprocess.DEVNULL,
                                env={**os.environ, **test.environment,
                                     "MACADAM_SSH": f"{sys.executable} -SE {REMOTE}"}, timeout=test.timeout,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                errors="replace")
    except subprocess.TimeoutExpired as expired:
        return f"no end within {test.timeout} s\n{(expired.stdout or b'').decode(errors='replace')}"
    return "" if result.returncode == 0 else f"exit status {result.returncode}\n{result.stdout}"


def main():
    arguments = parse()
    tests = select_tests(arguments)
    if not tests:
        sys.exit(f"no test of {arguments.least} ranks or more was found: is the build complete?")
    failed = []
    begin = time.monotonic()
    for test in tests:
        wrong = run(test)
        if wrong:
            failed.append(test.name)
            print(f"{test.name}: {wrong}", flush=True)
    print(f"{len(tests) - len(failed)} of {len(tests)} programs passed on {NODES} nodes in "
          f"{time.monotonic() - begin:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    if NODE != 0:
        sys.exit(subprocess.run([sys.executable, "-SE", REMOTE, "--serve", OVER], check=False).returncode)
    try:
        sys.exit(main())
    finally:
        OVER.touch()
