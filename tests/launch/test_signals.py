# SPDX-License-Identifier: BSD-3-Clause
"""Signals to mpiexec, time limits, and the reports."""
import os
import pathlib
import signal
import subprocess
import time
import unittest

from common import HOST, RANK, LaunchTest, python


def state(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


class Signals(LaunchTest):
    def test_that_end_the_job(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
            process = self.start("-n", 3, RANK, "join", "who", "compute")
            self.wait_for_lines(process, 3)
            process.send_signal(number)
            _, error = process.communicate(timeout=10)
            self.assertEqual((process.returncode, error), (128 + number, ""))
            self.assert_nothing_left()

    def test_that_ranks_handle(self):
        code = ("import os, signal, time\n"
                "def end(*_): os.write(1, b'handled\\n'); os._exit(0)\n"
                "signal.signal(signal.SIG{0}, end); print('ready', flush=True)\n"
                "while True: time.sleep(1)")
        for name in ("INT", "TERM", "USR2", "HUP"):
            process = self.start("-n", 2, *python(code.format(name)))
            self.wait_for_lines(process, 2)
            process.send_signal(getattr(signal, "SIG" + name))
            out, error = process.communicate(timeout=10)
            self.assertEqual((process.returncode, out, error), (0, "handled\n" * 2, ""))

    def test_asking_twice(self):
        """Ranks that heed nothing: the second time ends them."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
            process = self.start("-n", 2, "sh", "-c",
                                 'trap "" INT TERM HUP QUIT; echo ready; while :; do sleep 1; done')
            self.wait_for_lines(process, 2)
            process.send_signal(number)
            time.sleep(0.2)
            self.assertIsNone(process.poll())
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=5), 128 + number)

    def test_a_terminal_that_is_closed(self):
        """It sends SIGHUP more than once: ranks may still save what they have."""
        process = self.start("-n", 2, "sh", "-c",
                             "trap 'trap : HUP; sleep 1; echo saved; exit 0' HUP; echo ready; while :; do sleep 0.1; done")
        self.wait_for_lines(process, 2)
        for _ in range(3):
            process.send_signal(signal.SIGHUP)
            time.sleep(0.2)
        out, _ = process.communicate(timeout=10)
        self.assertEqual(out.split(), ["saved"] * 2)

    def test_stop_and_continue(self):
        process = self.start("-n", 2, "sh", "-c", "echo $$; exec sleep 100", start_new_session=False)
        pids = [int(line) for line in self.wait_for_lines(process, 2)]
        process.send_signal(signal.SIGTSTP)
        for pid in (*pids, process.pid):
            self.wait_for(lambda: state(pid) == "T")
        process.send_signal(signal.SIGCONT)
        for pid in (*pids, process.pid):
            self.wait_for(lambda: state(pid) == "S")
        process.terminate()
        self.assertEqual(process.wait(timeout=5), 143)

    def test_ignored_at_start_stays_ignored(self):
        """As under nohup."""
        process = self.start("-n", 1, "sh", "-c", "echo ready; sleep .4",
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.wait_for_lines(process, 1)
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(timeout=5), 0)

    def test_mask_and_dispositions_reach_the_ranks(self):
        """Whatever whoever started us ignores or blocks, a rank sees it as without mpiexec."""
        look = ("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
        for hidden in ((), (signal.SIGUSR2, signal.SIGRTMIN + 3)):
            def dispositions():
                signal.signal(signal.SIGPIPE, signal.SIG_DFL)
                for number in hidden:
                    signal.signal(number, signal.SIG_IGN)
                signal.pthread_sigmask(signal.SIG_BLOCK, hidden)

            alone = subprocess.run(look, stdout=subprocess.PIPE, text=True, check=True,
                                   preexec_fn=dispositions)
            under = self.mpiexec(*look, preexec_fn=dispositions)
            self.assertEqual(under.stdout, alone.stdout)


class TimeLimit(LaunchTest):
    def test_ends_the_job(self):
        begin = time.monotonic()
        result = self.mpiexec("-n", 2, "-timeout", "0.5", RANK, "join", "compute")
        self.assertLess(time.monotonic() - begin, 3)
        self.assertEqual(result.returncode, 124)
        self.assertIn("the job has not ended within 0.5 s; ending 2 ranks\n", result.stderr)
        self.assertIn("ranks 0, 1 compute outside MPI (no answer within 1 s) (process ", result.stderr)

    def test_of_the_environment(self):
        """As other launchers take it; the option goes before."""
        self.environment["MPIEXEC_TIMEOUT"] = "0.3"
        self.assertEqual(self.mpiexec("sleep", "10").returncode, 124)
        self.assert_ran(self.mpiexec("-timeout", "20", "sleep", "0.5"), [])

    def test_leaves_a_job_alone_that_ends_before(self):
        self.assert_ran(self.mpiexec("-n", 2, "-timeout", 20, RANK, "join", "finalize"), [])

    def test_reports_who_waits_for_whom(self):
        result = self.mpiexec("-n", 3, "-timeout", "0.3", RANK, "2/compute", "join", "hang")
        self.assertEqual(result.returncode, 124)
        for line in (
                "  rank 0 waits in MPI_Recv",
                "      receive       from rank 1, tag 5 in MPI_COMM_WORLD, 8 bytes",
                "      unexpected    from rank 1, tag 6 in MPI_COMM_WORLD, 8 bytes",
                "  rank 2 has not called MPI_Init",
                "    rank 0 waits for rank 1: a message with tag 5",
                "    rank 1 waits for rank 2: a message with tag 5",
                "    rank 0 waits for a message from rank 1 with tag 5 in MPI_COMM_WORLD; one with "
                "tag 6 has arrived and nobody receives it: is a tag wrong?",
        ):
            self.assertTrue(any(said.startswith(line) for said in result.stderr.splitlines()),
                            f"{line} is not in {result.stderr}")


class Reports(LaunchTest):
    def test_on_request(self):
        """SIGUSR1 asks, as often as one likes, and the job goes on."""
        process = self.start("-n", 2, RANK, "join", "who", "hang")
        self.wait_for_lines(process, 2)
        for _ in range(2):
            process.send_signal(signal.SIGUSR1)
            lines = []
            while "near misses" not in "".join(lines):
                lines.append(process.stderr.readline())
            self.assertIn("    rank 0 -> rank 1 -> rank 0: a circle, none of these can go on by "
                          "itself\n", lines)
            self.assertIsNone(process.poll())
            process.stderr.readline(), process.stderr.readline()  # the two near misses
        process.terminate()
        self.assertEqual(process.wait(timeout=5), 143)

    def test_at_the_end_of_the_job(self):
        result = self.mpiexec("-n", 4, RANK, "join", "report", "finalize")
        self.assertEqual(result.returncode, 0)
        self.assertIn(f"macadam: what the job did: 4 ranks on host {HOST}\n", result.stderr)
        self.assertRegex(result.stderr, r"eager_sent +100 +10 +40 +messages sent EAGER\n")
        self.assertRegex(result.stderr, r"resident +4 MiB +1 MiB +1 MiB")

    def test_of_a_program_started_alone(self):
        import subprocess
        result = subprocess.run([RANK, "join", "report", "finalize"], capture_output=True, text=True,
                                env=self.environment, timeout=20)
        self.assertIn(f"macadam: what the job did: 1 rank on host {HOST}\n", result.stderr)


if __name__ == "__main__":
    unittest.main()
