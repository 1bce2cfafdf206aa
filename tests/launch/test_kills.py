# SPDX-License-Identifier: BSD-3-Clause
"""kill -9 of mpiexec or of a rank, at any moment of a spawn, an accept and a connect: who is left ends, and
nothing stays."""
import os
import pathlib
import random
import signal
import sys
import time
import unittest

from common import LaunchTest, marked_processes
from universe import MPI_ERR_SPAWN

PROGRAM = os.environ["LAUNCH_DYNAMIC"]
SHELL = pathlib.Path(__file__).with_name("remote_shell.py")
MOMENTS = 8  # of each kind
SOON = 8.0    # seconds in which all have ended; a rank that sleeps looks each 10 ms, mpiexec ends the rest in 0.7 s


def our_sockets():
    with open("/proc/net/unix") as table:
        return {line.split()[-1] for line in table if "@macadam-" in line}


class KillsTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.random = random.Random(22)

    def job(self, *words, hosts=("-n", "2")):
        return self.start(*hosts, PROGRAM, *words)

    def ranks_of(self, job):
        """Those of its first job, and of the job that it has spawned, if there is one just now."""
        children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
        return self.sort(children)

    def sort(self, pids):
        ranks = [int(pid) for pid in pids if self.is_rank(pid)]
        return [pid for pid in ranks if not self.is_spawned(pid)], [pid for pid in ranks if self.is_spawned(pid)]

    @staticmethod
    def is_spawned(pid):
        try:
            # The program alone; nothing yet of one that is just being executed.
            return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().count(b"\0") <= 1
        except OSError:
            return True  # it has ended

    def rank_of(self, job):
        return self.random.choice(self.ranks_of(job)[0])

    @staticmethod
    def is_rank(pid):
        try:
            return os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(PROGRAM)
        except OSError:
            return False

    def kill(self, victim):
        time.sleep(self.random.uniform(0, 0.02))
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has ended

    def assert_all_end(self, *jobs):
        end = time.monotonic() + SOON
        while any(job.poll() is None for job in jobs) and time.monotonic() < end:
            time.sleep(0.01)
        hung = [job.pid for job in jobs if job.poll() is None]
        self.assertEqual(hung, [], "somebody waits for the dead:\n" + self.who_waits())
        self.assert_nothing_left(within=3)
        for job in jobs:
            self.end(job)

    def spawns(self, victim_of, **options):
        for _ in range(MOMENTS):
            job = self.job("spawn", **options)
            self.wait_for_lines(job, 1)
            self.kill(victim_of(job))
            self.assert_all_end(job)

    def meets(self, victim_of):
        for moment in range(2 * MOMENTS):
            accepts = self.job("accept")
            port = self.wait_for_lines(accepts, 1)[0].strip()
            connects = self.job("connect", port)
            self.wait_for_lines(connects, 1)
            if moment % 2 == 0:
                self.kill(victim_of(accepts))
                self.assert_all_end(accepts, connects)
                continue
            self.kill(victim_of(connects))
            self.wait_for(lambda: connects.poll() is not None, SOON)
            # What accepts has ended by an error of its meeting, or waits for another one, and meets it.
            another = self.job("connect", port)
            self.wait_for(lambda: accepts.poll() is not None or another.stdout.readline())
            accepts.kill()
            self.assert_all_end(accepts, connects, another)

    def test_mpiexec_of_a_job_that_spawns(self):
        self.spawns(lambda job: job.pid)

    def test_a_rank_of_a_job_that_spawns(self):
        self.spawns(self.rank_of)

    def test_a_spawned_rank_and_then_its_parent(self):
        """The first may have left MPI, which is no failure."""
        def victim_of(job):
            child = self.wait_for(lambda: self.ranks_of(job)[1])[0]
            self.kill(child)
            return self.random.choice(self.ranks_of(job)[0] or [child])  # unless that has ended all
        self.spawns(victim_of)

    def tries(self, *command, **options):
        """The spawn fails at both ranks, of which nobody ends, and the next one does not."""
        result = self.mpiexec("-n", 2, PROGRAM, "try", *command, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(result.stdout.splitlines()), sorted(
            f"rank {rank}: class {error}, codes {error} and {error}" for rank in (0, 1)
            for error in (MPI_ERR_SPAWN, 0)))
        return result.stderr

    def test_children_that_fail_before_they_are_in_mpi(self):
        for program, cause in (("/bin/false", "exited with status 1"), ("/bin/true", ""), ("/no/such", "")):
            with self.subTest(program):
                error = self.tries(program)
                self.assertIn(cause and f"{cause}; it was being spawned, and the spawn fails", error)
                self.assertEqual(len(error.splitlines()), 1 if cause else 0, error)

    def test_children_for_whom_there_is_no_memory(self):
        group = self.control_group("memory", "memory.max", "memory.limit_in_bytes", value=256 << 20)
        error = self.tries(PROGRAM, "large", preexec_fn=group.enter)
        self.assertIn("was killed by signal 9 (Killed), by the kernel, as the memory of the control group", error)
        self.assertIn("the spawn fails", error)

    def test_mpiexec_of_one_that_meets(self):
        self.meets(lambda job: job.pid)

    def test_a_rank_of_one_that_meets(self):
        self.meets(self.rank_of)

    def test_no_socket_is_left(self):
        before = our_sockets()
        job = self.job("accept")
        self.wait_for_lines(job, 1)
        new = self.wait_for(lambda: our_sockets() - before)
        job.kill()
        self.assert_all_end(job)
        self.assertEqual(our_sockets() & new, set())


class OnTwoMachines(KillsTest):
    """The same for jobs that an mpiexec starts on two (remote_shell.py)."""

    def setUp(self):
        super().setUp()
        self.environment["MACADAM_SSH"] = f"{sys.executable} -SE {SHELL}"

    def job(self, *words, hosts=("-host", "one,two")):
        return super().job(*words, hosts=hosts)

    def ranks_of(self, job):
        return self.sort(line.split(":")[0] for line in marked_processes(self.mark))

    # Two mpiexecs on different machines: test_distant.py.
    test_mpiexec_of_one_that_meets = test_a_rank_of_one_that_meets = test_no_socket_is_left = None


if __name__ == "__main__":
    unittest.main()
