# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that Slurm starts on two machines, with its plugins for PMIx and PMI-2. Runs on the cluster."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
import slurm  # noqa: E402
from common import MPIEXEC, RANK, LaunchTest  # noqa: E402

PROGRAM = os.environ["LAUNCH_PROGRAM"]
MEET = ("join", "meet", "barrier", "who")
# Seconds from the start of a job that is to be ended early, Slurm's own and a busy machine's time among
# them; nothing in it ends by itself before twice as long.
SOON = 10


class SlurmTest(LaunchTest):
    def setUp(self):
        super().setUp()
        slurm.wait_until_idle()

    def mpiexec(self, *arguments, **options):
        slurm.wait_until_idle()
        self.began = time.monotonic()
        return super().mpiexec(*arguments, **options)

    def srun(self, *arguments, ranks=4):
        """Ranks 0 and 1 on node0, 2 and 3 on node1, unless the arguments say otherwise."""
        return self.mpiexec("--quiet", "-N", 2, "-n", ranks, "--ntasks-per-node", 2, *arguments, launcher="srun")

    def assert_ended(self, result):
        self.assertLess(time.monotonic() - self.began, SOON, result.stderr)
        self.assertNotEqual(result.returncode, 0)
        self.assert_nothing_runs()

    def assert_nothing_runs(self):
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

    def test_all_leave_together(self):
        """In MPI_Finalize, those of other machines too."""
        result = self.srun(self.plugin, "sh", "-c",
                           f"{RANK} join meet 0/sleep_ms=3000 barrier finalize && date +%s.%N")
        times = sorted(float(line) for line in result.stdout.split())
        self.assertEqual(len(times), 4, result.stderr)
        self.assertLess(times[-1] - times[0], 2)

    def test_the_secret_is_one(self):
        secrets = self.srun(self.plugin, RANK, "join", "secret", "barrier", "finalize").stdout.split()
        self.assertEqual((len(secrets), len(set(secrets))), (4, 1))
        self.assertNotEqual(secrets[0].strip("0"), "")

    def test_a_program_of_mpi(self):
        result = self.srun(self.plugin, PROGRAM, "work", 1)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_one_report(self):
        """Rank 0 prints it or writes its file; the others leave when that has theirs, and it is longer than
        what a server takes at once."""
        self.environment["MACADAM_REPORT"] = "1"
        result = self.srun(self.plugin, PROGRAM, "work", 0.2)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("macadam: what the job did"), 1, result.stderr)
        self.assertIn("what the job did: 4 ranks, 2 on host node0, 2 on host node1\n", result.stderr)
        with tempfile.TemporaryDirectory(dir="/mnt") as folder:
            file = pathlib.Path(folder, "all.json")
            self.environment["MACADAM_REPORT"] = str(file)
            result = self.srun(self.plugin, "--distribution=cyclic", PROGRAM, "work", 0.2)
            self.assertEqual(os.listdir(folder), ["all.json"], result.stderr)
            report = json.loads(file.read_text(encoding="utf8"))
        self.assertEqual([(rank["rank"], rank["host"]) for rank in report["ranks"]],
                         [(0, "node0"), (1, "node1"), (2, "node0"), (3, "node1")])

    def test_reports_where_not_all_ranks_have_one(self):
        self.environment["MACADAM_REPORT"] = "1"
        result = self.srun(self.plugin, RANK, "join", "meet", "2/report", "3/report", "barrier", "finalize")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("what the job did: 2 ranks on host node1\n", result.stderr)

    def test_two_jobs_at_once(self):
        both = [self.start("--quiet", self.plugin, "-N", 2, "-n", 4, PROGRAM, "work", 1, launcher="srun") for _ in range(2)]
        for job in both:
            _, error = job.communicate(timeout=30)
            self.assertEqual((job.returncode, error), (0, ""))

    def test_abort(self):
        result = self.srun(self.plugin, PROGRAM, "abort", 3)
        self.assert_ended(result)
        self.assertIn("macadam: rank 1 on host node0 called MPI_Abort(MPI_COMM_WORLD, 3)\n", result.stderr)

    def test_exit_before_finalize(self):
        self.assert_ended(self.srun(self.plugin, RANK, *MEET, "1/exit=0", "compute"))

    def test_exit_alone_on_its_machine(self):
        """Before anybody has asked for its address."""
        result = self.srun(self.plugin, RANK, "join", "2/exit=0", "barrier", ranks=3)
        self.assert_ended(result)
        self.assertIn("macadam: rank 2 on host node1 has ended without MPI_Finalize\n", result.stderr)

    def test_killed_while_others_compute(self):
        """Slurm ends the job by itself only where it is told to."""
        for options in ([], ["--ntasks-per-node=3", "-n", 4]):  # the second: it was alone on its machine
            result = self.srun(self.plugin, "--kill-on-bad-exit", *options, RANK, *MEET, "3/raise=9", "compute")
            self.assert_ended(result)

    def test_killed_alone_on_its_machine_while_others_wait(self):
        """Slurm tells nobody of it, and it has no neighbour to notice: the others ask, over their network."""
        program = f"""if [ $SLURM_PROCID = 2 ]; then
                          {PROGRAM} ring 20 1000; exit 1
                      fi
                      exec {PROGRAM} ring 20"""
        result = self.srun(self.plugin, "sh", "-c", program, ranks=3)
        ended = time.time()
        self.assertNotEqual(result.returncode, 0)
        killed = float(re.search(r"killed-(\S+)", result.stderr).group(1))
        self.assertLess(ended - killed, 4)  # of which Slurm has its part, and a busy machine
        self.assertRegex(result.stderr, r"macadam: rank [01] on host node0 failed in MPI_(Recv|Send): .*"
                                        r"(has ended|rank 2 on host node1 is not reached any more: .*)\n")
        self.assert_nothing_runs()

    def test_cancelled(self):
        job = self.start("-N", 2, "-n", 4, "--job-name", "mine", self.plugin, RANK, *MEET, "compute",
                         launcher="srun")
        self.wait_for_lines(job, 4)
        self.began = time.monotonic()
        subprocess.run(["scancel", "--name", "mine"], check=True)
        out, error = job.communicate(timeout=30)
        self.assert_ended(subprocess.CompletedProcess([], job.returncode, out, error))


class Pmix(WithPlugin, SlurmTest):
    plugin = "--mpi=pmix"

    def test_programs_one_after_the_other(self):
        result = self.srun(self.plugin, "-N", 1, "sh", "-c", f"{RANK} join barrier finalize; {RANK} join", ranks=2)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("Slurm's serves only the first MPI program of a task", result.stderr)


class Pmi2(WithPlugin, SlurmTest):
    plugin = "--mpi=pmi2"

    def test_killed_before_anybody_has_talked_to_it(self):
        """Nobody has a connection that breaks; but its machine says that nobody listens. (With PMIx its address
        is gone too, as Slurm keeps it on that machine for as long as a rank runs there.)"""
        result = self.srun(self.plugin, PROGRAM, "ends-unmet", 0.5, ranks=3)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"macadam: rank [01] on host node0 failed in MPI_Recv: .* has ended\n")
        self.assert_nothing_runs()

    def test_killed_while_others_wait_for_it(self):
        """The server tells nobody, so they look themselves."""
        program = f"""if [ $PMI_RANK = 1 ]; then {PROGRAM} ring 20 & sleep 1; kill -9 $!; sleep 20; fi
                      exec {PROGRAM} ring 20"""
        result = self.srun(self.plugin, "sh", "-c", program)
        self.assert_ended(result)
        self.assertRegex(result.stderr, r"macadam: (rank 1 on host node0 has ended without MPI_Finalize|rank [023] on "
                                        r"host node[01] failed in MPI_\w+: rank 1 on host node0 is not reached any more)")


class WithoutPlugin(SlurmTest):
    def test_no_ranks_alone(self):
        result = self.srun("--mpi=none", PROGRAM, "hello")
        self.assertEqual(result.stdout, "")
        self.assertIn("this program was started as one of several by Slurm (srun) (SLURM_STEP_NUM_TASKS=4), and "
                      "cannot join that job", result.stderr)
        self.assertIn("start it with srun --mpi=pmix or --mpi=pmi2", result.stderr)


class Allocation(SlurmTest):
    """mpiexec in a job of Slurm's: on its machines, by srun. The test's own lines are all that it prints, but
    for srun's about a cluster without binding of processes."""

    def salloc(self, *arguments, options=("-N", 2, "-n", 3), **more):
        result = self.mpiexec("--quiet", *options, MPIEXEC, *arguments, launcher="salloc", **more)
        result.stderr = "".join(line for line in result.stderr.splitlines(keepends=True)
                                if line != "srun: cluster configuration lacks support for cpu binding\n")
        return result

    def test_its_machines_are_taken(self):
        self.assert_ran(self.salloc("hostname"), ["node0", "node0", "node1"])
        self.assert_ran(self.salloc("-n", 2, "--map-by", "node", "hostname"), ["node0", "node1"])
        self.assert_ran(self.salloc("-host", "node1:2", "hostname"), ["node1", "node1"])

    def test_in_a_step(self):
        """As in a shell of srun --pty: the machines are the job's, and so is what they have room for."""
        result = self.mpiexec("--quiet", "-N", 2, "-n", 3, "srun", "--quiet", "-N", 1, "-n", 1, MPIEXEC,
                              "--map-by", "node", "-n", 2, "hostname", launcher="salloc")
        self.assertEqual((result.returncode, sorted(result.stdout.split())), (0, ["node0", "node1"]), result.stderr)

    def test_from_a_machine_that_is_not_among_them(self):
        self.assert_ran(self.salloc("hostname", options=("-w", "node1", "-n", 2)), ["node1", "node1"])

    def test_all_processors_of_a_machine(self):
        self.assert_ran(self.salloc("nproc"), [str(len(os.sched_getaffinity(0)))] * 3)

    def test_ranks_meet(self):
        self.assert_ran(self.salloc(RANK, "join", "meet", "who", "barrier", "finalize"),
                        [f"rank {rank} of 3, app 0, launched" for rank in range(3)])
        self.assert_ran(self.salloc(PROGRAM, "work", 1))

    def test_input_and_long_output(self):
        result = self.salloc("cat", options=("-w", "node1", "-n", 1), stdin="one\ntwo\n")  # through srun
        self.assert_ran(result, ["one", "two"])
        result = self.salloc("sh", "-c", "hostname | grep -q node1 && seq 100000 || true")
        self.assert_ran(result, map(str, range(1, 100001)))

    def test_failures(self):
        for actions, status, line in ((("2/raise=9", "compute"), 137, "rank 2 on host node1 was killed by signal 9"),
                                      (("2/abort=3", "compute"), 3,
                                       "rank 2 on host node1 called MPI_Abort(MPI_COMM_WORLD, 3)")):
            result = self.salloc(RANK, *MEET, *actions)
            self.assert_ended(result)
            self.assertEqual(result.returncode, status)
            self.assertIn(f"mpiexec: {line}", result.stderr)

    def test_mpiexec_is_killed(self):
        job = self.start("--quiet", "-N", 2, "-n", 4, "sh", "-c", 'echo $$; exec "$@"', "sh", MPIEXEC, RANK, *MEET,
                         "compute", launcher="salloc")
        pid = int(self.wait_for_lines(job, 5)[0])
        began = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        job.communicate(timeout=30)  # its status is salloc's affair
        time.sleep(max(0.0, began + 3 - time.monotonic()))  # until the proxies have seen it
        self.assert_nothing_runs()

    def test_batch_script(self):
        with tempfile.TemporaryDirectory(dir="/mnt") as folder:
            script = pathlib.Path(folder, "script")
            script.write_text(f"#!/bin/sh\n{MPIEXEC} --display-map {PROGRAM} work 1\n", encoding="utf8")
            self.mpiexec("--quiet", "--wait", "-N", 2, "-n", 5, "-o", f"{folder}/output", script, launcher="sbatch")
            output = pathlib.Path(folder, "output").read_text(encoding="utf8")
        self.assertIn("host node0: ranks 0 to 3\nhost node1: rank 4\n", output)


if __name__ == "__main__":
    unittest.main(failfast=True)
