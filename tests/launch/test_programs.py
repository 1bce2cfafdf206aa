# SPDX-License-Identifier: BSD-3-Clause
"""mpiexec with real MPI programs: what ends them, what a hang shows, kill -9 at random moments."""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from common import HOST, MPIEXEC, LaunchTest

PROGRAM = os.environ["LAUNCH_PROGRAM"]
FORTRAN = os.environ.get("LAUNCH_FORTRAN")
SANITIZED = bool(os.environ.get("SANITIZED"))


def child_ranks(process):
    listed = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(process.pid)],
                            capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "launch_prog" in line]


class Programs(LaunchTest):
    def test_run(self):
        result = self.mpiexec("-n", 2, PROGRAM, "hello", ":", "-n", 1, PROGRAM, "hello")
        self.assert_ran(result, [f"rank {r} of 3, app {r // 2}" for r in range(3)])

    def test_what_was_asked_for(self):
        """Each program knows its own number of ranks, also where these are on several machines."""
        self.environment["MACADAM_SSH"] = f"{sys.executable} -SE {pathlib.Path(__file__).with_name('remote_shell.py')}"
        for hosts in ((), ("-map-by", "node", "-host", "one:2,two:2")):
            result = self.mpiexec(*hosts, "-n", 1, PROGRAM, "asked", ":", "-n", 3, PROGRAM, "asked")
            self.assert_ran(result, [f"rank {r}: maxprocs {3 if r else 1}, soft not there" for r in range(4)])

    def test_process_sets(self):
        """All ranks see all sets, in one order; programs that have one name are one set."""
        result = self.mpiexec("-n", 1, "-pset", "app://master", PROGRAM, "sets", ":",
                              "-n", 2, "--pset", "Workers", PROGRAM, "sets", ":",
                              "-n", 1, PROGRAM, "sets", ":", "--pset=Workers", PROGRAM, "sets")
        places = {1: 0, 2: 1, 4: 2}
        self.assert_ran(result, [
            line for rank in range(5) for line in (
                f"process {rank}: app://master has 1 (1), place {0 if rank == 0 else -1}, sum 0",
                f"process {rank}: Workers has 3 (3), place {places.get(rank, -1)}, "
                f"sum {7 if rank in places else 0}")])
        self.assert_ran(self.mpiexec("-n", 2, PROGRAM, "sets"), [])

    def test_alone(self):
        result = subprocess.run([PROGRAM, "hello"], env=self.environment, capture_output=True,
                                text=True, timeout=20)
        self.assertEqual((result.stdout, result.stderr), ("rank 0 of 1, app 0\n", ""))

    @unittest.skipIf(SANITIZED, "a sanitizer takes more addresses than this")
    def test_few_addresses(self):
        for command in [f"exec {PROGRAM} hello", f"exec {MPIEXEC} -n 4 {PROGRAM} work 0.2"]:
            result = subprocess.run(["sh", "-c", f"ulimit -v 300000; {command}"],
                                    env=self.environment, capture_output=True, text=True,
                                    timeout=60)
            self.assertEqual((result.returncode, result.stderr), (0, ""))

    @unittest.skipIf(SANITIZED or not shutil.which("valgrind"), "runs under valgrind")
    def test_valgrind(self):
        # What another process has written into shared memory valgrind does not know as written.
        result = self.mpiexec("-n", 2, "valgrind", "-q", "--error-exitcode=9",
                              "--undef-value-errors=no", PROGRAM, "work", "0.2")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_refuses_to_be_several_singletons(self):
        result = subprocess.run([PROGRAM, "hello"], env={**self.environment, "PMI_SIZE": "4"},
                                capture_output=True, text=True, timeout=20)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("start it with Macadam's mpiexec, or unset PMI_SIZE", result.stderr)

    def test_abort(self):
        result = self.mpiexec("-n", 4, PROGRAM, "abort", 3)
        self.assert_fails(result, 3, f"mpiexec: rank 1 on host {HOST} called "
                                     "MPI_Abort(MPI_COMM_WORLD, 3); ending the other 3 ranks")

    def test_abort_flushes_what_others_have_printed(self):
        """Those that wait in MPI; who computes elsewhere (rank 2) is ended all the same."""
        for _ in range(5):
            begin = time.monotonic()
            result = self.mpiexec("-n", 4, "-l", PROGRAM, "abort-late", 3)
            self.assertLess(time.monotonic() - begin, 2)
            self.assertEqual(result.returncode, 3)
            self.assertEqual(sorted(result.stdout.splitlines()),
                             [f"[{rank}] rank {rank} waits" for rank in (0, 1, 3)])

    def test_failures_flush_too(self):
        """Whatever ends the job: a rank that is killed."""
        process = self.start("-n", 4, "-l", PROGRAM, "circle", "-", "printed")
        ranks = self.wait_for(lambda: len(r := child_ranks(process)) == 4 and r)
        time.sleep(0.3)
        os.kill(ranks[2], signal.SIGKILL)
        out, _ = process.communicate(timeout=10)
        self.assertEqual(process.returncode, 137)
        self.assertEqual(len(out.splitlines()), 3)

    @unittest.skipUnless(FORTRAN, "built without a Fortran compiler")
    def test_abort_flushes_fortran(self):
        """Into a file: its runtime keeps nothing back from a pipe."""
        for _ in range(5):
            with tempfile.TemporaryFile("w+") as file:
                result = self.mpiexec("-n", 4, FORTRAN, stdout=file)
                self.assertEqual(result.returncode, 3)
                file.seek(0)
                self.assertEqual(sorted(file.read().splitlines()),
                                 [f"printed by {rank}" for rank in range(4)])

    def test_end_without_finalize(self):
        result = self.mpiexec("-n", 3, PROGRAM, "no-finalize")
        self.assert_fails(result, 1, f"mpiexec: rank 1 on host {HOST} exited without calling "
                                     "MPI_Finalize; ending the other 2 ranks")

    def test_end_between_the_first_call_and_the_beginning(self):
        result = self.mpiexec("-n", 3, PROGRAM, "ends-unbegun")
        self.assertEqual(result.returncode, 137)
        self.assertRegex(result.stderr, rf"^mpiexec: rank 1 on host {HOST} was killed by signal 9 "
                                        r"\(Killed\); ending the other (2 )?ranks?\n$")

    def test_more_ranks_than_cores(self):
        self.assert_ran(self.mpiexec("-n", 8, PROGRAM, "work", "0.3"), [])


class Agreement(LaunchTest):
    """Ranks that read different files of `macadam tune`, on two machines: this one under other names."""

    def setUp(self):
        super().setUp()
        self.environment["MACADAM_SSH"] = f"{sys.executable} -SE {pathlib.Path(__file__).with_name('remote_shell.py')}"
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_with(self, one, two, hosts="one:2,two:2"):
        for host, text in (("one", one), ("two", two)):
            file = self.folder / host / "macadam/tuned.conf"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o600)
        own = f'XDG_CONFIG_HOME={self.folder}/$(hostname) exec "$@"'
        return self.mpiexec("-timeout", 20, "-host", hosts, "sh", "-c", own, "sh", PROGRAM, "collective-once")

    def test_rules_of_collectives(self):
        result = self.run_with("levels = allreduce leaders any 2\n", "levels = none\n")
        self.assertEqual(result.returncode, 16, result.stderr)
        self.assertRegex(re.sub(r"\s+", " ", result.stderr),
                         r"MPI_ERR_OTHER: rank \d on host (one|two) and rank \d on host (?!\1)(one|two) have different rules "
                         r"of collectives for several machines, .*; copy the file to all machines of the job")
        self.assert_nothing_left(2.0)

    def test_rules_that_are_the_library_s_own_elsewhere(self):
        """The table for a fast network, in words: over TCP, which this is, the library has another."""
        result = self.run_with("levels = barrier leaders any 4, bcast leaders any 4, reduce leaders 256 2, reduce slices 64K 2, "
                               "reduce slices any 16, allreduce leaders 256 2, allreduce slices 64K 2, allreduce slices any 4, "
                               "allgather slices 256 2, allgather slices 4K 4, alltoall slices 1K 2, "
                               "reduce_scatter slices any 2\n", "")
        self.assertEqual(result.returncode, 16, result.stderr)
        self.assertIn("different rules", re.sub(r"\s+", " ", result.stderr))

    def test_the_longest_eager_message(self):
        result = self.run_with("rdma_eager = 4K\n", "rdma_eager = 16K\n")
        self.assertEqual(result.returncode, 16, result.stderr)
        self.assertRegex(re.sub(r"\s+", " ", result.stderr), r"rdma_eager is (4096 here and 16384|16384 here and 4096) there")

    def test_what_is_the_same(self):
        self.assert_ran(self.run_with("levels = allreduce leaders 4K 2\n", "rdma_eager = 8K\nlevels = allreduce leaders 4096 2\n"))

    def test_one_machine(self):
        """Rules for several are not asked there, whatever the ranks have read."""
        own = f'XDG_CONFIG_HOME={self.folder}/$TUNED_FOR exec "$@"'
        for name, text in (("a", "levels = none\n"), ("b", "")):
            file = self.folder / name / "macadam/tuned.conf"
            file.parent.mkdir(parents=True)
            file.write_text(text)
            file.chmod(0o600)
        part = ("sh", "-c", own, "sh", PROGRAM, "collective-once")
        self.assert_ran(self.mpiexec("-n", 1, "-env", "TUNED_FOR", "a", *part, ":", "-n", 1, "-env", "TUNED_FOR", "b", *part))


class Hangs(LaunchTest):
    def hang(self, *arguments):
        result = self.mpiexec("-timeout", 1, *arguments)
        self.assertEqual(result.returncode, 124, result.stderr)
        return result.stderr

    def test_wrong_tag(self):
        page = self.hang("-n", 2, PROGRAM, "wrong-tag")
        self.assertIn("rank 0 waits in MPI_Recv (process ", page)
        self.assertRegex(page, r"receive +from rank 1, tag 5 in MPI_COMM_WORLD, 4 bytes")
        self.assertRegex(page, r"unexpected +from rank 1, tag 6 in MPI_COMM_WORLD, 4 bytes")
        self.assertIn("rank 0 waits for a message from rank 1 with tag 5 in MPI_COMM_WORLD; one "
                      "with tag 6 has arrived and nobody receives it: is a tag wrong?", page)
        self.assertIn("rank 1 waits in MPI_Finalize", page)

    def test_a_loop_of_tests_is_a_wait(self):
        page = self.hang("-n", 2, PROGRAM, "test-loop")
        self.assertIn("rank 0 waits in MPI_Test (process ", page)
        self.assertRegex(page, r"receive +from rank 1, tag 5 in MPI_COMM_WORLD, 4 bytes")

    def test_a_circle_with_a_rank_that_tests(self):
        page = self.hang("-n", 2, PROGRAM, "test-circle")
        self.assertIn("rank 0 -> rank 1 -> rank 0: a circle, unless rank 0 does something else first\n", page)

    def test_probes(self):
        page = self.hang("-n", 2, PROGRAM, "probe")
        self.assertIn("    rank 0 waits for rank 1: a message with tag 5\n", page)
        self.assertIn("    rank 1 waits for rank 0: a message with any tag\n", page)
        self.assertIn("rank 0 -> rank 1 -> rank 0: a circle, none of these can go on by itself\n", page)
        self.assertRegex(page, r"rank 0 waits in MPI_Mprobe .*\n(.+\n)? +probe +for rank 1, tag 5 in MPI_COMM_WORLD\n")

    def test_partitions_that_do_not_come(self):
        page = self.hang("-n", 2, PROGRAM, "partitions")
        self.assertIn("1 of 2 partitions are not marked (MPI_Pready)", page)
        self.assertIn("1 of the sender's 2 partitions are still to be received", page)

    def test_ranks_of_another_job(self):
        page = self.hang("-n", 2, PROGRAM, "children")
        for rank in 0, 1:
            self.assertIn(f"    rank {rank} waits for rank {rank} of another job: a message with tag 1\n", page)
        self.assertRegex(page, r"receive +from rank 0 of another job, tag 1 in communicator \d+ with other jobs, 4 bytes")
        self.assertNotRegex(page, r"rank \d{4,}|ranks? [23]\b")

    def test_a_window_that_a_rank_does_not_make(self):
        page = self.hang("-n", 2, PROGRAM, "window")
        self.assertNotIn("of a window", page)
        self.assertRegex(page, r"    rank 0 is in MPI_Win_allocate on window \d+ of rank 0; rank 1 has not entered it: ")

    def test_a_collective_that_a_rank_does_not_enter(self):
        page = self.hang("-n", 3, PROGRAM, "collective")
        self.assertIn("    ranks 0, 2 are in MPI_Barrier on MPI_COMM_WORLD, number 3 of its "
                      "collectives; rank 1 has not entered it: it waits in MPI_Finalize for the "
                      "other ranks\n", page)
        self.assertIn("  ranks 0, 2 wait in MPI_Barrier (process ", page)

    def test_different_collectives(self):
        page = self.hang("-n", 3, PROGRAM, "different")
        self.assertIn("    rank 0 is in MPI_Barrier, ranks 1, 2 are in MPI_Bcast on MPI_COMM_WORLD, "
                      "number 1 of its collectives: different calls\n", page)

    def test_calls_that_differ_are_both_named(self):
        """As far as a rank reads what others have written; MACADAM_CHECK is not set."""
        for how, error, one, another in (
                ("count", "TRUNCATE", "MPI_Allreduce (MPI_SUM, 16 bytes)", "MPI_Allreduce (MPI_SUM, 20 bytes)"),
                ("operation", "ARG", "MPI_Allreduce (MPI_SUM, 16 bytes)", "MPI_Allreduce (MPI_MAX, 16 bytes)"),
                ("root", "ARG", "MPI_Reduce (root 0, MPI_SUM, 16 bytes)", "MPI_Reduce (root 1, MPI_SUM, 16 bytes)"),
                ("function", "ARG", "MPI_Bcast (root 2, 16 bytes)", "MPI_Barrier")):
            with self.subTest(how):
                result = self.mpiexec("-timeout", 20, "-n", 3, PROGRAM, "unequal", how)
                self.assertNotEqual(result.returncode, 124, result.stderr)
                one, another = re.escape(one), re.escape(another)
                self.assertRegex(result.stderr, rf"MPI_ERR_{error}: ranks differ in a collective: rank \d called "
                                 rf"(?:{one}, and rank 2 called {another}|{another}, and rank \d called {one}); all must "
                                 r".*; rank \d is in MPI_\w+ on communicator MPI_COMM_WORLD, number 2 there")

    def test_a_broadcast_with_two_roots_is_named_by_the_next_collective(self):
        for ranks in (2, 3):
            with self.subTest(ranks=ranks):
                result = self.mpiexec("-timeout", 20, "-n", ranks, PROGRAM, "unequal", "roots")
                self.assertNotEqual(result.returncode, 124, result.stderr)
                self.assertRegex(re.sub(r"\s+", " ", result.stderr),
                                 r"MPI_ERR_ARG: ranks differ in a collective, 1 before this one \(those without data not "
                                 r"counted\): rank 0 called MPI_Bcast \(root 0, 16 bytes\), and rank \d called MPI_Bcast "
                                 rf"\(root {ranks - 1}, 16 bytes\); .*; rank \d is in MPI_Allreduce on communicator "
                                 "MPI_COMM_WORLD, number 3 there")

    def test_the_tool_asks_at_any_time(self):
        """The job goes on, and is told apart from others; mpiexec prints nothing."""
        job = self.start("-n", 2, PROGRAM, "late", 8)
        page = self.page_of_tool(PROGRAM, "rank 1 waits in MPI_Recv")
        self.assertIn(f"macadam: what 2 ranks on host {HOST} are waiting for\n", page)
        self.assertIn("    rank 1 waits for rank 0: a message with tag 0\n", page)
        tool = pathlib.Path(os.environ["BUILD_FOLDER"], "bin/macadam")
        everything = subprocess.run([tool, "hang"], capture_output=True, text=True, timeout=30)
        self.assertEqual(everything.stdout.count(f"(process {self.rank_of_page(page, 1)})"), 1, everything.stdout)
        nobody = subprocess.run([tool, "hang", str(os.getpid())], capture_output=True, text=True, timeout=20)
        self.assertEqual((nobody.returncode, nobody.stdout, nobody.stderr),
                         (1, "", f"macadam: process {os.getpid()} is no rank in MPI of a job that this user may look at\n"))
        out, error = job.communicate(timeout=20)
        self.assertEqual((job.returncode, out, error), (0, "", ""))

    @staticmethod
    def rank_of_page(page, rank):
        return re.search(rf"rank {rank} waits in \w+ \(process (\d+)\)", page)[1]

    def test_a_lock_of_a_window(self):
        page = self.hang("-n", 3, PROGRAM, "lock")
        self.assertIn("    ranks 0, 2 wait for the lock of rank 0 on window temperatures; rank 1 "
                      "holds it exclusively and waits in MPI_Recv\n", page)
        page = self.hang("-n", 3, PROGRAM, "lock-silent")
        self.assertIn("    ranks 0, 2 wait for the lock of rank 0 on window temperatures; none of "
                      "those that answer holds it, perhaps rank 1\n", page)

    def test_a_fence_that_a_rank_does_not_enter(self):
        page = self.hang("-n", 3, PROGRAM, "fence")
        self.assertRegex(page, r"    ranks 0, 2 are in MPI_Win_fence on window \d+ of rank 0, number "
                               r"2 of its fences; rank 1 has not entered it: it waits in "
                               r"MPI_Finalize for the other ranks\n")

    def test_a_post_and_completions_that_do_not_come(self):
        page = self.hang("-n", 3, PROGRAM, "post")
        self.assertIn("    rank 0 waits for rank 1: its MPI_Win_post on window pressures\n", page)
        for rank in 0, 2:
            self.assertIn(f"    rank 1 waits for rank {rank}: its MPI_Win_complete on window "
                          "temperatures\n", page)

    def test_why_there_are_no_stacks(self):
        self.environment["PATH"] = "/no/such"
        self.assertIn("      at            not known, as there is no gdb\n", self.hang("-n", 2, PROGRAM, "circle"))
        with tempfile.TemporaryDirectory() as folder:
            gdb = pathlib.Path(folder, "gdb")  # that may not attach, and says so to its standard error
            gdb.write_text("#!/bin/sh\n")
            gdb.chmod(0o755)
            self.environment["PATH"] = folder
            self.assertIn("not known, as gdb may not look into it (docker run --cap-add SYS_PTRACE; sysctl "
                          "kernel.yama.ptrace_scope=0)\n", self.hang("-n", 2, PROGRAM, "circle"))

    @unittest.skipUnless(shutil.which("gdb") and not SANITIZED, "needs gdb, which takes its time in a "
                                                               "program with a sanitizer")
    def test_where_ranks_are_in_their_programs(self):
        page = self.hang("-n", 2, PROGRAM, "wrong-tag")
        self.assertRegex(page, r"rank 0 waits in MPI_Recv \(process \d+\)\n +at +wait_for .*, main ")
        page = self.hang("-n", 3, PROGRAM, "lock-silent")
        self.assertRegex(page, r"rank 1 computes outside MPI .*\n +at +.*pause.*, main ")

    def test_a_stopped_rank(self):
        process = self.start("-n", 2, PROGRAM, "ring", "4")
        self.wait_for(lambda: len(child_ranks(process)) == 2)
        time.sleep(0.5)
        rank = child_ranks(process)[1]
        os.kill(rank, signal.SIGSTOP)
        process.send_signal(signal.SIGUSR1)
        time.sleep(1.5)
        os.kill(rank, signal.SIGCONT)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, error)
        self.assertIn(f"  rank 1 is stopped, by SIGSTOP or a debugger (kill -CONT {rank} lets it go "
                      "on)\n", error)

    def test_circle(self):
        page = self.hang("-n", 3, PROGRAM, "circle")
        self.assertIn("rank 0 -> rank 1 -> rank 2 -> rank 0: a circle", page)

    def test_no_circle_in_a_job_that_runs(self):
        process = self.start("-n", 2, PROGRAM, "ring", "5")
        for _ in range(8):
            time.sleep(0.6)
            process.send_signal(signal.SIGUSR1)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, error)
        self.assertIn("what 2 ranks", error)
        self.assertNotIn("circle", error)

    def test_a_name_that_is_not_utf8(self):
        page = self.hang("-n", 2, PROGRAM, "circle", os.fsdecode(b"caf\xe9"))
        self.assertIn("from rank 1, tag 3 in caf\ufffd, 4 bytes", page)


class Report(LaunchTest):
    def test_at_the_end(self):
        self.environment["MACADAM_REPORT"] = "1"
        result = self.mpiexec("-n", 2, PROGRAM, "work", "0.2")
        self.assertEqual(result.returncode, 0)
        self.assertIn(f"macadam: what the job did: 2 ranks on host {HOST}\n", result.stderr)
        for word in ("protocol", "memory", "transports"):
            self.assertIn(f"\n  {word}", result.stderr)

    def test_as_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "report.json"
            self.environment["MACADAM_REPORT"] = str(file)
            result = self.mpiexec("-n", 2, PROGRAM, "late", "0.2")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stderr, f"macadam: the report is in {file}; `macadam report {file}` "
                                            "makes a page of it\n")
            ranks = json.loads(file.read_text())["ranks"]
        wait, = (wait for wait in ranks[1]["waits"] if wait["cause"] == "late sender")
        self.assertEqual((wait["peer"], wait["times"]), (0, 1))
        self.assertGreater(wait["seconds"], 0.15)
        self.assertLessEqual(wait["seconds"], ranks[1]["time"]["run"])
        functions = {row["name"]: row for row in ranks[1]["time"]["functions"]}
        self.assertEqual(functions["MPI_Recv"]["calls"], 1)
        self.assertGreaterEqual(functions["MPI_Recv"]["seconds"], wait["seconds"])
        self.assertEqual([(row["peer"], row["messages"], row["bytes"]) for row in ranks[0]["sent"]
                          if row["bytes"] != 0], [(1, 1, 4)])
        self.assertEqual([(row["below"], row["messages"]) for row in ranks[0]["sizes"]
                          if row["below"] > 1], [(8, 1)])


class Kills(LaunchTest):
    """kill -9 at random moments of start-up, work and end: one line, no hang, nothing left."""
    seed = random.randrange(1 << 32)

    def setUp(self):
        super().setUp()
        self.random = random.Random(self.seed)
        self.environment["LAUNCH_SEED"] = str(self.seed)

    def test_of_ranks(self):
        for i in range(100):
            with self.subTest(i=i, seed=self.seed):
                process = self.start("-n", 4, PROGRAM, "work", "10")
                time.sleep(self.random.choice((0, 0.002, 0.01, 0.03, 0.1)) * self.random.random())
                ranks = self.wait_for(lambda: child_ranks(process))
                os.kill(self.random.choice(ranks), signal.SIGKILL)
                _, error = process.communicate(timeout=10)
                self.assertRegex(error, rf"^mpiexec: rank \d on host {HOST} was killed by signal 9 "
                                        r"\(Killed\); ending the other (\d )?ranks?\n$")
                self.assertEqual(process.returncode, 137)
                self.assert_nothing_left()

    def test_of_mpiexec(self):
        for i in range(30):
            with self.subTest(i=i, seed=self.seed):
                process = self.start("-n", 4, PROGRAM, "work", "10")
                time.sleep(self.random.choice((0, 0.002, 0.01, 0.03, 0.1)) * self.random.random())
                process.kill()
                process.communicate(timeout=10)
                self.assert_nothing_left()

    def test_near_the_end(self):
        """While ranks leave MPI: the job fails or had ended already, but does not hang."""
        for i in range(20):
            with self.subTest(i=i, seed=self.seed):
                process = self.start("-n", 4, PROGRAM, "work", "0.05")
                self.wait_for(lambda: child_ranks(process) or process.poll() is not None)
                time.sleep(0.05 + 0.03 * self.random.random())
                if ranks := child_ranks(process):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(self.random.choice(ranks), signal.SIGKILL)
                process.communicate(timeout=10)
                self.assertIn(process.returncode, (0, 137))
                self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
