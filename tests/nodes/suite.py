#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The suite of MPI programs as jobs on several machines, run on each of them at the same time:

    python3 tests/nodes/suite.py BUILD --nodes 2 --node 0 --boards FOLDER

BUILD is a build tree that all see, FOLDER an empty folder that all see; in the guests of tests/vm the
last three need not be given. Takes what `ctest -L programs` would run with more ranks than there are
machines, so that some share one, and gives each machine its part of them: the nodes of a job meet on
a board named after the test. Prints what each test that failed has said, and a summary. With
PROGRAMS_LIGHT set it takes each program on the largest of its numbers of ranks alone."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

# Programs under settings of shared memory say nothing about two networks; and on several machines MPI
# does not start again after MPI_Finalize, which these two do.
LEFT_OUT = re.compile(r"\.(cma|pipeline|pipeline_write|all_large|all_hybrid|narrow)\."
                      r"|\.sessions\.(sessions|again)\.")


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    guest = os.environ
    parser.add_argument("--nodes", type=int, default=int(guest.get("VM_NODES", 0)))
    parser.add_argument("--node", type=int, default=int(guest.get("VM_NODE", -1)))
    parser.add_argument("--boards", type=pathlib.Path,
                        default=pathlib.Path(guest.get("VM_JOB", "."), "boards"))
    parser.add_argument("--only", default="", help="tests whose names match this expression")
    parser.add_argument("--least", type=int, help="ranks of a test at least (nodes + 1)")
    arguments = parser.parse_args()
    if not 0 <= arguments.node < arguments.nodes:
        parser.error(f"needed --nodes and --node, found {arguments.nodes} and {arguments.node}")
    arguments.least = arguments.least or arguments.nodes + 1
    return arguments


class Test:
    def __init__(self, entry):
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        self.name = entry["name"]
        self.command = entry.get("command", [])
        self.labels = properties.get("LABELS", [])
        self.timeout = properties.get("TIMEOUT", 60)
        self.environment = dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", []))

    def ranks(self):
        """Of a test that is one job of one program; 0 for others."""
        if not any(word.endswith("/mpiexec") for word in self.command) or ":" in self.command:
            return 0
        return int(self.command[self.command.index("-n") + 1])


def list_tests(arguments):
    label = "widest" if "PROGRAMS_LIGHT" in os.environ else "programs"
    listing = subprocess.run(["ctest", "--show-only=json-v1", "-L", label], check=True,
                             cwd=arguments.build, stdout=subprocess.PIPE)
    tests = [Test(entry) for entry in json.loads(listing.stdout)["tests"]]
    return [test for test in tests if "programs" in test.labels and test.ranks() >= arguments.least
            and not LEFT_OUT.search(test.name) and re.search(arguments.only, test.name)]


def own_command(test, arguments):
    """The test's command for this machine's ranks."""
    words = list(test.command)
    at = next(i for i, word in enumerate(words) if word.endswith("/mpiexec"))
    launcher = arguments.build / "tests" / "nodes" / "mpiexec_node"
    words[at:at + 1] = [str(launcher), "--nodes", str(arguments.nodes), "--node",
                        str(arguments.node), "--board", str(arguments.boards / test.name)]
    ranks = words.index("-n", at) + 1
    each, rest = divmod(test.ranks(), arguments.nodes)
    words[ranks] = str(each + (arguments.node < rest))
    return words


def run(test, arguments):
    """What went wrong; empty if nothing."""
    try:
        result = subprocess.run(own_command(test, arguments), stdin=subprocess.DEVNULL,
                                env={**os.environ, **test.environment}, timeout=test.timeout,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                errors="replace")
    except subprocess.TimeoutExpired as expired:
        return f"no end within {test.timeout} s\n{(expired.stdout or b'').decode(errors='replace')}"
    return "" if result.returncode == 0 else f"exit status {result.returncode}\n{result.stdout}"


def main():
    arguments = parse()
    tests = list_tests(arguments)
    if not tests:
        sys.exit(f"no test of {arguments.least} ranks or more was found: is the build complete?")
    arguments.boards.mkdir(exist_ok=True)
    failed = []
    begin = time.monotonic()
    for test in tests:
        wrong = run(test, arguments)
        if wrong:
            failed.append(test.name)
            print(f"node {arguments.node}: {test.name}: {wrong}", flush=True)
    print(f"node {arguments.node}: {len(tests) - len(failed)} of {len(tests)} programs passed on "
          f"{arguments.nodes} nodes in {time.monotonic() - begin:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
