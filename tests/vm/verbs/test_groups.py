#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the virtual machine, which has control groups of version 2: the launcher's tests of limits that
such groups set. None may be skipped there."""
import os
import pathlib
import sys
import unittest

BUILD = pathlib.Path(sys.argv[1])
LAUNCH = pathlib.Path(__file__).parents[2] / "launch"
TESTS = ["test_failures.Limits.test_processes_of_a_control_group",
         "test_failures.Limits.test_memory_of_a_control_group",
         "test_spawning.Spawning.test_a_control_group_that_is_full",
         "test_kills.KillsTest.test_children_for_whom_there_is_no_memory"]

os.environ.update(MPIEXEC=str(BUILD / "bin/mpiexec"), LAUNCH_RANK=str(BUILD / "tests/launch/launch_rank"),
                  LAUNCH_UNIVERSE=str(BUILD / "tests/launch/launch_universe"),
                  LAUNCH_DYNAMIC=str(BUILD / "tests/launch/launch_dynamic"))
sys.path.insert(0, str(LAUNCH))
result = unittest.TextTestRunner(verbosity=2).run(unittest.defaultTestLoader.loadTestsFromNames(TESTS))
sys.exit(1 if result.skipped or not result.wasSuccessful() else 0)
