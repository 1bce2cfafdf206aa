#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own tests, on the library just built: none may fail, and none may be skipped that is run
under MPICH 5. `--mpich` runs them there too and compares. Exit code 77 (skipped): there is no registry
to be reached."""
import argparse
import os
import pathlib
import re
import sys

from mpi4py_environment import add_arguments, prepare_or_skip, run

# A test of threads alone, which send no message: it ends a pool and expects the last task to be cancelled,
# while the pool's thread may be taking just that one. So it fails once in some thousand runs.
LEFT_OUT = ["TestThreadPool.test_terminate"]

# Of the rest, on so many ranks: how many there are at least, and how many mpi4py skips at most. Those of 1
# and 2 ranks are what MPICH 5.0.2 gives. More ranks than processors it does not end in time, as its ranks
# poll: on 3 it was in test_p2p_buf_part after 200 s on 2 processors. There the number of 2 holds, as no
# test asks for more ranks.
EXPECTED = {1: (2126, 160), 2: (2126, 75), 3: (2126, 75), 4: (2126, 75)}


def suite(python, tests):
    """The command that runs what is not left out."""
    words = [python, "-B", tests / "main.py", "-v"]
    for test in LEFT_OUT:
        words += ["-x", test]
    return words


def by_rank(text, ranks):
    """What each rank printed, of output with labels (`mpiexec -l`; MPICH's labels parts of lines too)."""
    return ["".join(re.findall(rf"(?m)^\[{rank}\] (.*\n)", text)).replace(f"[{rank}] ", "")
            for rank in range(ranks)]


def counts(page):
    """(tests run, skipped) of one rank, or None if it did not come to the end without a failure."""
    end = re.search(r"Ran (\d+) tests? in .*\n\s*\nOK(?: \(skipped=(\d+)\))?\n", page)
    return end and (int(end[1]), int(end[2] or 0))


def skips(pages):
    """The tests that a rank skipped, of a class or module that was skipped whole its name."""
    return {name for page in pages for name in re.findall(r"(?m)^(\w+ \(\S+\)).*skipped '", page)}


def execute(launcher, ranks, words, seconds, environment=()):
    """How it ended, and what each rank printed."""
    done = run([*launcher, "-l", "-n", ranks, *words], env={**os.environ, **dict(environment)},
               timeout=seconds)
    both = zip(by_rank(done.stdout, ranks), by_rank(done.stderr, ranks))
    return done, [page + errors for page, errors in both]


def failures(pages):
    """What was printed of each test that failed, of the first rank where it did."""
    found = {}
    for rank, page in enumerate(pages):
        for block in re.split(r"={60,}\n", page)[1:]:
            found.setdefault(block.split("\n")[0], f"[{rank}] {block[:3000]}")
    return list(found.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--mpiexec", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", type=int, choices=EXPECTED, required=True)
    parser.add_argument("--limit", type=int, default=600, help="seconds")
    parser.add_argument("--mpich", type=pathlib.Path, help="environment with MPICH 5 to compare with")
    arguments = parser.parse_args()
    python, tests = prepare_or_skip(arguments)
    ranks, words = arguments.ranks, suite(python, tests)
    done, pages = execute([arguments.mpiexec, "-timeout", arguments.limit], ranks, words,
                          arguments.limit + 20)
    found = [counts(page) for page in pages]
    if done.returncode != 0 or None in found:
        print(*failures(pages) or [done.stdout[-4000:], done.stderr[-12000:]], sep="\n")
        print("mpiexec says:", *re.findall(r"(?m)^(?!\[\d+\] ).+", done.stderr), sep="\n")
        sys.exit(f"{ranks} ranks: exit code {done.returncode}, (tests, skipped) of each rank that passed "
                 f"all: {found}")
    print(f"{ranks} ranks: (tests, skipped) of each: {found}")
    if arguments.mpich:
        _, theirs = execute([arguments.mpich / "bin/mpiexec"], ranks, words, arguments.limit,
                            {"LD_LIBRARY_PATH": str(arguments.mpich / "lib")})
        print(f"MPICH: {[counts(page) for page in theirs]}; skipped with ours alone: "
              f"{sorted(skips(pages) - skips(theirs))}, with MPICH alone: "
              f"{sorted(skips(theirs) - skips(pages))}")
    tests_expected, skipped_allowed = EXPECTED[ranks]
    if any(tests < tests_expected or skipped > skipped_allowed for tests, skipped in found):
        sys.exit(f"needed at least {tests_expected} tests, of them at most {skipped_allowed} skipped as "
                 f"under MPICH 5; skipped were: {sorted(skips(pages))}")


if __name__ == "__main__":
    main()
