# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that no network connects (launch_unreached.c), in a network namespace whose loopback is down: the
error comes, and says who is not reached and why, also where ranks wait in a ring."""
import os
import subprocess
import sys
import unittest

from common import HOST, MPIEXEC, LaunchTest

PROGRAM = os.environ["LAUNCH_UNREACHED"]
APART = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--net"]
MPI_ERR_IN_STATUS, MPI_ERR_PROC_ABORTED = 19, 58


class Unreached(LaunchTest):
    def setUp(self):
        super().setUp()
        self.environment["MACADAM_NETWORK"] = "ofi"
        if os.environ["SANITIZED"]:  # libfabric's own memory, which it keeps
            self.environment["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

    def run_apart(self, ranks, action):
        return self.mpiexec(*APART[1:], MPIEXEC, "-timeout", 20, "-n", ranks, PROGRAM, action,
                            launcher=APART[0])

    def test_the_error_comes_and_says_why(self):
        functions = {"send": "Send", "sendrecv": "Sendrecv", "waitall": "Waitall", "barrier": "Barrier",
                     "alltoall": "Alltoall"}
        for action, function in functions.items():
            for ranks in (2, 3, 4):
                with self.subTest(f"{action} {ranks}"):
                    result = self.run_apart(ranks, action)
                    status = MPI_ERR_IN_STATUS if action == "waitall" else MPI_ERR_PROC_ABORTED
                    self.assertEqual(result.returncode, status, result.stderr)
                    self.assertIn(f"failed in MPI_{function}: ", result.stderr)
                    self.assertRegex(result.stderr, rf": rank \d on host {HOST} cannot be reached: .")

    def test_what_could_hang_is_pending(self):
        for action in ("pending", "pending-tests"):
            for ranks in (3, 4):  # of two, the other one is who is not reached
                with self.subTest(f"{action} {ranks}"):
                    result = self.run_apart(ranks, action)
                    self.assertEqual(result.returncode, 3, result.stderr)


if __name__ == "__main__":
    if subprocess.run([*APART, "true"], capture_output=True, check=False).returncode != 0:
        print("skipped: no network namespace can be made")
        sys.exit(77)
    unittest.main()
