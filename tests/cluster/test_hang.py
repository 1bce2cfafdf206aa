# SPDX-License-Identifier: BSD-3-Clause
"""The page about a job that hangs on two machines, by the launcher that the argument names: srun with its
plugin for PMIx (pmix) or PMI-2 (pmi2), or prterun (prrte). Runs on the cluster."""
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
import slurm  # noqa: E402
from common import RANK, LaunchTest  # noqa: E402

PROGRAM = os.environ["LAUNCH_PROGRAM"]
PRRTE = os.environ.get("PRRTE", "")
LAUNCHER = sys.argv.pop(1)
LIMIT = 2  # seconds until the page is wanted
# Until it is there: two looks, gdb's longest time, and the launcher's.
LONGEST = 25


class HangPage(LaunchTest):
    def setUp(self):
        super().setUp()
        slurm.wait_until_idle()

    def run_limited(self, limit, *command):
        """Ranks 0 and 1 on node0, 2 and 3 on node1."""
        if LAUNCHER == "prrte":
            return self.mpiexec("--allow-run-as-root", "--prefix", PRRTE, "--map-by", "ppr:2:node:OVERSUBSCRIBE",
                                "--bind-to", "none", "--host", "node0:2,node1:2", "-n", 4, "-x",
                                f"MPIEXEC_TIMEOUT={limit}", *command, launcher=f"{PRRTE}/bin/prterun")
        self.environment["MPIEXEC_TIMEOUT"] = str(limit)
        slurm.wait_until_idle()
        return self.mpiexec("--quiet", f"--mpi={LAUNCHER}", "-N", 2, "-n", 4, "--ntasks-per-node", 2, *command,
                            launcher="srun")

    def page(self, *command, limit=LIMIT):
        began = time.monotonic()
        result = self.run_limited(limit, *command)
        self.assertNotEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"macadam: the job has not ended within {limit} s (MPIEXEC_TIMEOUT)\n", result.stderr)
        self.assertEqual(result.stderr.count("ranks on 2 hosts are waiting for\n"), 1, result.stderr)
        self.assertNotIn("own page tells", result.stderr)
        return result.stderr, time.monotonic() - began

    def test_who_waits_for_whom_and_where(self):
        """One page for all machines, by rank 0: who waits for whom, and where they are."""
        page, took = self.page(PROGRAM, "circle")
        self.assertIn("macadam: what 4 ranks on 2 hosts are waiting for\n", page)
        for rank in range(4):
            self.assertIn(f"    rank {rank} waits for rank {(rank + 1) % 4}: a message with tag 3\n", page)
            node = "node0" if rank < 2 else "node1"
            self.assertRegex(page, rf"\n  rank {rank} waits in MPI_Recv \(process \d+ on host {node}\)\n +at +\S+")
        self.assertLess(took, LIMIT + LONGEST)

    def test_a_circle(self):
        page, _ = self.page(RANK, "join", "meet", "hang")
        self.assertIn("    rank 0 -> rank 1 -> rank 2 -> rank 3 -> rank 0: a circle", page)
        page, _ = self.page(RANK, "join", "meet", "hang-moving")
        self.assertIn("    rank 3 waits for rank 0: a message with tag 5\n", page)
        self.assertNotIn("a circle", page)

    def test_ranks_that_compute_or_have_finished(self):
        """Of rank 0 its machine's memory tells; ranks 2 and 3 wait for their launcher."""
        page, _ = self.page(PROGRAM, "late", 1000)
        self.assertIn("    rank 1 waits for rank 0: a message with tag 0\n", page)
        self.assertRegex(page, r"\n  rank 0 computes outside MPI \(no answer within 1 s\) \(process \d+ on host node0\)\n")
        self.assertRegex(page, r"\n  ranks 2, 3 wait in MPI_Finalize[^\n]* \(process \d+ on host node1 is rank 2\)\n")

    def test_a_machine_that_computes(self):
        page, _ = self.page(RANK, "join", "meet", "2/compute", "3/compute", "hang")
        self.assertIn("    rank 1 waits for rank 2: a message with tag 5\n", page)
        self.assertRegex(page, r"\n  ranks 2, 3 compute outside MPI \(no answer within 1 s\) \(process \d+ on host node1 "
                               r"is rank 2\)\n")

    @unittest.skipIf(LAUNCHER == "prrte", "launch.pmix has it")
    def test_the_tool_asks_on_each_machine(self):
        """Of the ranks of its own, while the job runs: here, and by a step beside the job's."""
        job = self.start("--quiet", f"--mpi={LAUNCHER}", "-N", 2, "-n", 4, "--ntasks-per-node", 2, PROGRAM, "late", 15,
                         launcher="srun")
        page = self.page_of_tool(PROGRAM, "    rank 1 waits for rank 0: a message with tag 0\n")
        self.assertIn("ranks 2, 3 are on host node1, whose own page tells what they wait for\n", page)
        number = subprocess.run(["squeue", "-h", "-o", "%A"], capture_output=True, text=True, timeout=20).stdout.split()[0]
        tool = pathlib.Path(os.environ["BUILD_FOLDER"], "bin/macadam")
        both = subprocess.run(["srun", "--quiet", "--overlap", f"--jobid={number}", "-N", "2", "-n", "2", tool, "hang"],
                              capture_output=True, text=True, timeout=60)
        for node in 0, 1:
            self.assertIn(f"macadam: what 2 ranks on host node{node} are waiting for\n", both.stdout)
        self.assertRegex(both.stdout, r"\n  ranks 2, 3 wait in MPI_Finalize")
        job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0)

    @unittest.skipUnless(LAUNCHER == "pmix", "takes half a minute, of what is the same for all")
    def test_a_machine_that_does_not_answer(self):
        """Its first rank is stopped, and cannot tell of the others there either."""
        page, took = self.page(RANK, "join", "meet", "2/raise=19", "hang")
        self.assertRegex(page, r"\n  ranks 2, 3 are on host node1, which has not answered\n")
        self.assertIn("    rank 1 waits for rank 2: a message with tag 5\n", page)
        self.assertLess(took, LIMIT + 45)

    def test_bad_time_limit(self):
        result = self.run_limited("1m", PROGRAM, "hello")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn('MPIEXEC_TIMEOUT: "1m" is no number of seconds above 0', result.stderr)

    def test_no_page_of_a_job_that_ends_in_time(self):
        began = time.monotonic()
        result = self.run_limited(50, PROGRAM, "work", 1)
        # PRRTE says now and then that a daemon of its own began before it was moved to another process group.
        said = [line for line in result.stderr.splitlines() if not re.match(r"\[node\d:\d+\] plm:ssh: Warning: ", line)]
        self.assertEqual((result.returncode, said), (0, []))
        self.assertLess(time.monotonic() - began, 40)


if __name__ == "__main__":
    if LAUNCHER == "prrte" and not pathlib.Path(PRRTE, "bin/prterun").exists():
        print("skipped: PRRTE names no folder with bin/prterun")
        sys.exit(77)
    unittest.main(failfast=True)
