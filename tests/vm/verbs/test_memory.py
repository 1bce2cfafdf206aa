#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the virtual machine: what processes hold and pin, and the connections that they open, against
what `macadam model` and `macadam simulate` say beforehand."""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

import memory

BUILD = pathlib.Path(sys.argv[1])
HELD = "tests/vm/verbs.held"
# Of `macadam model`: what soft-RoCE has, as `macadam info` tells.
DEVICE = ["--inline", 256, "--completion-depth", 32767]
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("MACADAM_")}
CLEAN["PROGRAMS_LIGHT"] = "1"


def output(*command, **settings):
    variables = {f"MACADAM_{name}": value for name, value in settings.items()}
    done = subprocess.run([str(word) for word in command], env={**CLEAN, **variables}, text=True,
                          capture_output=True, timeout=120, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def real(ranks, program, **settings):
    """The report of a program over soft-RoCE."""
    return output(BUILD / "bin/mpiexec", "-timeout", 100, "-n", ranks, BUILD / program, NETWORK="rdma",
                  REPORT="1", **settings)


def row(report, name):
    """(job, least rank, most rank) of one line of a report."""
    found = re.search(rf"^    {name} +(\d\S*)( \w+)? +(\d\S*)( \w+)? +(\d\S*)( \w+)?$|"
                      rf"^    {name} +(\d+) +(\d+) +(\d+)   ", report, re.MULTILINE)
    if not found:
        raise AssertionError(f"no row {name} in the report:\n{report}")
    if found[7]:
        return tuple(int(found[i]) for i in (7, 8, 9))
    return tuple(float(found[i]) * UNITS[found[i + 1].strip()] for i in (1, 3, 5))


class Memory(unittest.TestCase):
    def test_what_a_process_holds_and_pins_is_what_the_model_says(self):
        model = json.loads(output(BUILD / "bin/macadam", "model", "--json", "--ranks", "2,4,8,16",
                                  *DEVICE))
        for i, ranks in enumerate(model["ranks"]):
            for receive in ("shared", "credit", "ring"):
                with self.subTest(receive=receive, ranks=ranks):
                    report = real(ranks, HELD, RDMA_RECEIVE=receive)
                    for name, key in (("rdma", "bytes"), ("pinned", "pinned")):
                        expected = model[key][receive][i]
                        _, least, most = row(report, name)
                        self.assertAlmostEqual(least / expected, 1, delta=0.01, msg=name)
                        self.assertAlmostEqual(most / expected, 1, delta=0.01, msg=name)


class Kernel(unittest.TestCase):
    """The same by the kernel's accounts, and what a burst took and gave back."""

    def test_the_kernel_says_what_the_model_says(self):
        found = memory.measure(BUILD, (2,), ("ring", "shared"))
        rows = {(row["receive"], row["stage"]): row for row in found["rows"]}
        after = rows.pop(("shared", "after"))
        self.assertGreater(rows["shared", "burst"]["buffers"], rows["shared", "alltoall"]["buffers"])
        for key, row in rows.items():
            self.assertLess(abs(row["percent"]), 2, (key, row))
        # Of some 6 MiB that the burst took (less where the sender is slow), an arena may be in use still.
        self.assertLess(after["held"], 1.02 * after["expected"] + (2 << 20), after)


class Connections(unittest.TestCase):
    def test_as_many_are_opened_as_the_simulator_says(self):
        for program, ranks in (("coll.barrier_bcast", 5), ("coll.gathers", 3), ("pt2pt.matching", 2),
                               ("objects.communicators", 5), ("env.hello", 16)):
            with self.subTest(program=program):
                simulated = output(BUILD / "bin/macadam", "simulate", "-n", ranks,
                                   BUILD / f"tests/simulated/simulated.{program}.so", REPORT="1")
                report = real(ranks, f"tests/programs/programs.{program}")
                self.assertEqual(row(report, "connections"), row(simulated, "connections"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
