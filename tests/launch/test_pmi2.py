# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that a PMI-2 server starts: mpiexec of MPICH, from its package on PyPI. Slurm's is in
tests/cluster."""
import os
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.append(os.environ["WHEELS"])
import mpich  # noqa: E402

from common import RANK, LaunchTest  # noqa: E402

PROGRAM = os.environ["LAUNCH_PROGRAM"]
HYDRA = str(mpich.locate(None, pathlib.Path(os.environ["WORK"])) / "bin/mpiexec")


class Pmi2Test(LaunchTest):
    def setUp(self):
        super().setUp()
        for name in list(self.environment):
            if name.startswith(("PMI_", "HYDRA_")):
                del self.environment[name]

    def hydra(self, ranks, *command):
        return self.mpiexec("-n", ranks, *command, launcher=HYDRA)


class Jobs(Pmi2Test):
    def test_everybody_meets_everybody(self):
        for ranks in (1, 2, 5):
            self.assert_ran(self.hydra(ranks, RANK, "join", "0/sleep_ms=100", "meet", "who", "barrier",
                                       "barrier", "finalize"),
                            [f"rank {rank} of {ranks}, app 0, launched" for rank in range(ranks)])

    def test_several_programs(self):
        actions = ("join", "meet", "who", "barrier", "finalize")
        result = self.hydra(1, RANK, *actions, ":", "-n", 2, RANK, *actions)
        self.assert_ran(result, ["rank 0 of 3, app 0, launched", "rank 1 of 3, app 1, launched",
                                 "rank 2 of 3, app 1, launched"])

    def test_the_secret_is_one(self):
        secrets = self.hydra(3, RANK, "join", "secret", "barrier", "finalize").stdout.split()
        self.assertEqual((len(secrets), len(set(secrets))), (3, 1))
        self.assertNotEqual(secrets[0].strip("0"), "")

    def test_a_program_of_mpi(self):
        result = self.hydra(3, PROGRAM, "hello")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(len(result.stdout.splitlines()), 3)

    def test_sessions_alone(self):
        """The first rank, which waits for nobody in MPI, stays until the other one has the memory."""
        result = self.hydra(2, "sh", "-c", f'[ "$PMI_RANK" = 0 ] || sleep 0.5; exec {PROGRAM} sets')
        self.assert_ran(result, [])

    def test_what_a_rank_starts_is_no_rank(self):
        result = self.hydra(2, RANK, "join", "barrier", "finalize",
                            f"execute={RANK} join who finalize")
        self.assert_ran(result, ["rank 0 of 1, app 0, alone"] * 2)

    def test_report(self):
        result = self.hydra(3, RANK, "join", "meet", "report", "barrier", "finalize")
        self.assertEqual(result.stderr.count("macadam: what the job did: 3 ranks on host"), 1)

    def test_descriptor_that_is_not_here(self):
        with tempfile.TemporaryDirectory() as folder: # as Hydra may drop what a rank says last
            result = self.hydra(2, "sh", "-c",
                                f'eval "exec $PMI_FD>&-"; exec {RANK} join who 2>{folder}/$PMI_RANK')
            said = [path.read_text() for path in pathlib.Path(folder).iterdir()]
        self.assertNotEqual(result.returncode, 0)
        self.assertTrue(any("the descriptor of its server is not here (PMI_FD)" in text for text in said), said)


class Hangs(Pmi2Test):
    def test_the_tool_asks(self):
        job = self.start("-n", 2, PROGRAM, "late", 4, launcher=HYDRA)
        page = self.page_of_tool(PROGRAM, "rank 1 waits in MPI_Recv")
        self.assertIn("    rank 1 waits for rank 0: a message with tag 0\n", page)
        job.communicate(timeout=20)
        self.assertEqual(job.returncode, 0)


class Failures(Pmi2Test):
    """Of what ranks say last, Hydra may drop some."""

    def ends(self, *actions, program=RANK):
        begin = time.monotonic()
        result = self.hydra(3, program, *actions)
        self.assertLess(time.monotonic() - begin, 5)
        self.assert_nothing_left(2.0)
        return result

    def test_abort(self):
        result = self.ends("join", "meet", "barrier", "1/abort=3", "compute")
        self.assertEqual(result.returncode, 3)

    def test_killed(self):
        self.assertEqual(self.ends("join", "meet", "barrier", "1/raise=9", "compute").returncode, 9)

    def test_exit_before_finalize(self):
        result = self.ends("join", "meet", "barrier", "1/exit=0", "compute")
        self.assertNotEqual(result.returncode, 0)


if __name__ == "__main__":
    unittest.main()
