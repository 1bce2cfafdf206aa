# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that Slurm starts on two machines, with its plugins for PMIx and PMI-2. Runs on the cluster."""
import os
import pathlib
import subprocess
import sys
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from common import RANK, LaunchTest  # noqa: E402

PROGRAM = os.environ["LAUNCH_PROGRAM"]
MEET = ("join", "meet", "barrier", "who")


class SlurmTest(LaunchTest):
    def srun(self, *arguments, ranks=4):
        """Ranks 0 and 1 on node0, 2 and 3 on node1, unless the arguments say otherwise."""
        return self.mpiexec("--quiet", "-N", 2, "-n", ranks, "--ntasks-per-node", 2, *arguments, launcher="srun")

    def assert_ended(self, result, began, within):
        self.assertLess(time.monotonic() - began, within, result.stderr)
        self.assertNotEqual(result.returncode, 0)
        for node in ("node0", "node1"):
            left = subprocess.run(["ssh", node, "pgrep", "-l", "launch_"], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(left.stdout, "", node)


class WithPlugin:
    """What holds by both."""

    def test_everybody_meets_everybody(self):
        for options in ([], ["--distribution=cyclic"], ["-N", 1, "--ntasks-per-node", 4]):
            result = self.srun(self.plugin, *options, RANK, "join", "who", "3/sleep_ms=200", "meet",
                               "0/sleep_ms=200", "barrier", "barrier", "finalize")
            self.assert_ran(result, [f"rank {rank} of 4, app 0, launched" for rank in range(4)])

    def test_the_secret_is_one(self):
        secrets = self.srun(self.plugin, RANK, "join", "secret", "barrier", "finalize").stdout.split()
        self.assertEqual((len(secrets), len(set(secrets))), (4, 1))
        self.assertNotEqual(secrets[0].strip("0"), "")

    def test_a_program_of_mpi(self):
        result = self.srun(self.plugin, PROGRAM, "work", 1)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_two_jobs_at_once(self):
        both = [self.start("--quiet", self.plugin, "-N", 2, "-n", 4, PROGRAM, "work", 1, launcher="srun") for _ in range(2)]
        for job in both:
            _, error = job.communicate(timeout=30)
            self.assertEqual((job.returncode, error), (0, ""))

    def test_abort(self):
        began = time.monotonic()
        result = self.srun(self.plugin, PROGRAM, "abort", 3)
        self.assert_ended(result, began, 3)
        self.assertIn("macadam: rank 1 on host node0 called MPI_Abort(MPI_COMM_WORLD, 3)\n", result.stderr)

    def test_exit_before_finalize(self):
        began = time.monotonic()
        self.assert_ended(self.srun(self.plugin, RANK, *MEET, "1/exit=0", "compute"), began, 4)

    def test_killed_while_others_compute(self):
        """Slurm ends the job by itself only where it is told to."""
        for options in ([], ["--ntasks-per-node=3", "-n", 4]):  # the second: it was alone on its machine
            began = time.monotonic()
            result = self.srun(self.plugin, "--kill-on-bad-exit", *options, RANK, *MEET, "3/raise=9", "compute")
            self.assert_ended(result, began, 4)

    def test_cancelled(self):
        job = self.start("-N", 2, "-n", 4, "--job-name", "mine", self.plugin, RANK, *MEET, "compute",
                         launcher="srun")
        self.wait_for_lines(job, 4)
        began = time.monotonic()
        subprocess.run(["scancel", "--name", "mine"], check=True)
        out, error = job.communicate(timeout=30)
        self.assert_ended(subprocess.CompletedProcess([], job.returncode, out, error), began, 4)


class Pmix(WithPlugin, SlurmTest):
    plugin = "--mpi=pmix"


class Pmi2(WithPlugin, SlurmTest):
    plugin = "--mpi=pmi2"

    def test_killed_while_others_wait_for_it(self):
        """The server tells nobody, so they look themselves."""
        program = f"""if [ $PMI_RANK = 1 ]; then {PROGRAM} ring 20 & sleep 1; kill -9 $!; sleep 20; fi
                      exec {PROGRAM} ring 20"""
        began = time.monotonic()
        result = self.srun(self.plugin, "sh", "-c", program)
        self.assert_ended(result, began, 5)
        self.assertIn("macadam: rank 1 on host node0 has ended without MPI_Finalize\n", result.stderr)


class WithoutPlugin(SlurmTest):
    def test_no_ranks_alone(self):
        result = self.srun("--mpi=none", PROGRAM, "hello")
        self.assertEqual(result.stdout, "")
        self.assertIn("this program was started as one of several by Slurm (srun) (SLURM_STEP_NUM_TASKS=4), and "
                      "cannot join that job", result.stderr)
        self.assertIn("start it with srun --mpi=pmix or --mpi=pmi2", result.stderr)


if __name__ == "__main__":
    unittest.main()
