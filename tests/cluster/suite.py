#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The suite of MPI programs as jobs on all machines of the cluster, through a door: a way to start them.

    python3 tests/cluster/run.py -- python3 tests/cluster/suite.py pmix build/release --only pt2pt

Takes what CTest runs of the programs on more ranks than there are machines, each on the largest of its
numbers of ranks. Prints what each test that failed has said, and a summary."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "programs"))
import registered  # noqa: E402
import settings  # noqa: E402
import slurm  # noqa: E402

NODES = int(os.environ["CLUSTER_NODES"])
# Programs under settings of one machine's memory say nothing about two networks, and libfabric is taken
# in any case; on several machines MPI does not start again after MPI_Finalize, which two do; one stops
# its launcher, which has to be mpiexec.
LEFT_OUT = re.compile(r"\.(cma|pipeline|pipeline_write|split|no_attach|all_large|all_hybrid|narrow|ofi)\."
                      r"|\.sessions\.(sessions|again)\.|\.rma\.killed\.")
# Other launchers start no jobs for ranks, and bring none together.
DYNAMIC = r"programs\.(dynamic|errors\.dynamic)\."
# With PMI-2, srun's exit status is the largest of its tasks', so 137 where it kills some for another's
# MPI_Abort.
NOT_BY = {"pmix": re.compile(DYNAMIC), "prrte": re.compile(DYNAMIC), "pmi2": re.compile(DYNAMIC + r"|\.env\.abort\.")}


def split(ranks):
    """The ranks of each machine, as even as can be."""
    each, rest = divmod(ranks, NODES)
    return [each + (node < rest) for node in range(NODES)]


def hosts(ranks):
    return ",".join(f"{settings.name(node)}:{count}" for node, count in enumerate(split(ranks)))


def by_srun(plugin):
    return lambda test: ["srun", f"--mpi={plugin}", "-N", str(NODES), "-n", str(test.ranks())]


def mpiexec(test):
    return test.command[test.launcher()]


def by_ssh(test):
    return [mpiexec(test), "-host", hosts(test.ranks())]


def by_allocation(test):
    return ["salloc", "--quiet", "-N", str(NODES), "-n", str(test.ranks()), mpiexec(test)]


def by_prterun(test):
    """PRRTE from Open MPI's package, which was built for another folder; its daemons start by ssh and know
    nothing of this environment. The machines share the cores of this one, so there may be too few."""
    names = [name for name in os.environ | test.environment if name.startswith(("MACADAM_", "PROGRAMS_"))]
    return [f"{PRRTE}/bin/prterun", "--allow-run-as-root", "--prefix", PRRTE, "--map-by",
            ":OVERSUBSCRIBE", "--bind-to", "none", "--host", hosts(test.ranks()),
            "-n", str(test.ranks()), *(word for name in names for word in ("-x", name))]


PRRTE = os.environ.get("PRRTE", "")
DOORS = {"pmix": by_srun("pmix"), "pmi2": by_srun("pmi2"), "ssh": by_ssh, "salloc": by_allocation,
         "prrte": by_prterun}


def command(test, door):
    """The test's command with what the door has instead of mpiexec."""
    program = test.command.index("-n") + 2  # behind -timeout SECONDS -n RANKS
    return [*test.command[:test.launcher()], *DOORS[door](test), *test.command[program:]]


def run(test, door):
    """What went wrong; empty if nothing."""
    slurm.wait_until_idle()
    try:
        result = subprocess.run(command(test, door), stdin=subprocess.DEVNULL, timeout=test.timeout,
                                env={**os.environ, **test.environment}, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    except subprocess.TimeoutExpired as expired:
        return f"no end within {test.timeout} s\n{(expired.stdout or b'').decode(errors='replace')}"
    return "" if result.returncode == 0 else f"exit status {result.returncode}\n{result.stdout}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("door", choices=DOORS)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--only", default="", help="tests whose names match this expression")
    arguments = parser.parse_args()
    if arguments.door == "prrte" and not pathlib.Path(PRRTE, "bin/prterun").exists():
        print("skipped: PRRTE names no folder with bin/prterun")
        sys.exit(77)
    tests = [test for test in registered.list_tests(arguments.build, "widest")
             if test.ranks() > NODES and re.search(arguments.only, test.name)
             and not any(pattern.search(test.name) for pattern in (LEFT_OUT, NOT_BY.get(arguments.door)) if pattern)]
    if not tests:
        sys.exit("no test was found: is the build complete?")
    failed = 0
    begin = time.monotonic()
    shared = tempfile.TemporaryDirectory(dir=arguments.build)  # each machine has a /tmp of its own
    os.environ["PROGRAMS_FOLDER"] = shared.name
    for test in tests:
        before = time.monotonic()
        if wrong := run(test, arguments.door):
            failed += 1
            print(f"{test.name}: {wrong}", flush=True)
        if "SUITE_TIMES" in os.environ:
            print(f"{test.name} {time.monotonic() - before:.1f} s", flush=True)
    print(f"{arguments.door}: {len(tests) - failed} of {len(tests)} programs passed on {NODES} machines in "
          f"{time.monotonic() - begin:.0f} s", flush=True)
    shared.cleanup()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
