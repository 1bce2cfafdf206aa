# SPDX-License-Identifier: BSD-3-Clause
"""Standard streams: labels, whole lines, input to rank 0."""
import os
import pty
import re
import signal
import subprocess
import time
import unittest

from common import MPIEXEC, RANK, LaunchTest, python


class Labels(LaunchTest):
    def test_both_streams(self):
        code = "import sys; print('out'); print('error', file=sys.stderr)"
        result = self.mpiexec("-n", 2, "-l", *python(code))
        self.assertEqual(sorted(result.stdout.splitlines()), ["[0] out", "[1] out"])
        self.assertEqual(sorted(result.stderr.splitlines()), ["[0] error", "[1] error"])

    def test_lines_stay_whole(self):
        """Ranks that write their lines in small pieces, and lines longer than a pipe holds."""
        code = ("import os, sys\n"
                "me = os.environ['MACADAM_JOB'].split(':')[1]\n"
                "for i in range(300):\n"
                "    for piece in (me, '-', str(i), ' ', me * (i * 7), '\\n'):\n"
                "        os.write(1, piece.encode())\n"
                "os.write(1, (me * 200000 + '\\n').encode())\n")
        result = self.mpiexec("-n", 4, "-l", *python(code))
        self.assertEqual(result.returncode, 0)
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), 4 * 301)
        for rank in map(str, range(4)):
            mine = [line for line in lines if line.startswith(f"[{rank}] ")]
            wanted = [f"[{rank}] {rank}-{i} {rank * (i * 7)}" for i in range(300)]
            self.assertEqual(mine, wanted + [f"[{rank}] {rank * 200000}"])

    def test_last_line_without_end(self):
        self.assertEqual(self.mpiexec("-n", 1, "-l", "printf", "a\\nb").stdout, "[0] a\n[0] b\n")

    def test_output_of_a_rank_that_aborts(self):
        result = self.mpiexec("-n", 1, "-l", RANK, "join", "print=last words", "abort=3")
        self.assertEqual(result.stdout, "[0] last words\n")

    def test_reader_that_goes_away(self):
        process = self.start("-n", 2, "-l", "sh", "-c", "while :; do echo line; done")
        self.wait_for_lines(process, 1)
        process.stdout.close()
        self.assertIn(process.wait(timeout=10), (-13, 141))
        process.stdout = None


    def test_full_disk(self):
        with open("/dev/full", "w") as full:
            result = self.mpiexec("-n", 1, "-l", "echo", "lost", stdout=full)
            self.assert_fails(result, 1, "mpiexec: the ranks' standard output cannot be written: "
                                         "No space left on device; what does not go is lost")
            result = self.mpiexec("-n", 1, "-l", "sh", "-c", "echo lost >&2", stderr=full)
            self.assertEqual(result.returncode, 1)
            # The rank's own failure goes before.
            result = self.mpiexec("-n", 1, "-l", "sh", "-c", "echo lost; exit 5", stdout=full)
            self.assertEqual(result.returncode, 5)

    def test_slow_reader_gets_all(self):
        process = self.start("-n", 2, "-l", "seq", 100000)
        time.sleep(0.5)
        out, _ = process.communicate(timeout=20)
        self.assertEqual((process.returncode, len(out.splitlines())), (0, 200000))

    def test_interrupt_while_nobody_reads(self):
        """As in less, which reads a page and waits for its user."""
        for code in ("while :; do echo line; done",  # while the ranks run,
                     "yes | head -n 50000"):         # and when they have ended
            process = self.start("-n", 2, "-l", "sh", "-c", code)
            self.wait_for_lines(process, 1)
            time.sleep(0.7)
            self.assertIsNone(process.poll())
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=5), 130)
            self.assert_nothing_left()


class Closed(LaunchTest):
    """Standard streams that mpiexec was started without."""

    def without(self, streams, *arguments):
        return self.mpiexec("-c", f'exec {streams}; exec "$0" "$@"', MPIEXEC, *arguments, launcher="/bin/sh").returncode

    def test_what_is_said(self):
        for streams in ("2>&-", "0<&- 1>&- 2>&-"):
            self.assertEqual(self.without(streams, "-n", 2, "sh", "-c", "exit 3"), 3)
            self.assertEqual(self.without(streams, "-n", 2, "/no/such/program"), 127)
            self.assertEqual(self.without(streams, "-n", 2, "-timeout", 0.5, "sleep", 30), 124)

    def test_labels(self):
        for streams in ("1>&-", "2>&-", "0<&- 1>&- 2>&-"):
            self.assertEqual(self.without(streams, "-n", 2, "-l", "sh", "-c", "echo out; echo error >&2"), 0)


class Input(LaunchTest):
    code = "import os, sys; print(os.environ['MACADAM_JOB'].split(':')[1] + ' ' + repr(sys.stdin.read()))"

    def test_rank_0_gets_it(self):
        self.assert_ran(self.mpiexec("-n", 3, *python(self.code), stdin="some\ntext"),
                        ["0 'some\\ntext'", "1 ''", "2 ''"])

    def test_much_of_it(self):
        text = "0123456789" * 100000
        result = self.mpiexec("-n", 2, "wc", "-c", stdin=text)
        self.assertEqual(sorted(result.stdout.split()), ["0", str(len(text))])

    def test_from_a_terminal(self):
        """The ranks are in the background of mpiexec's terminal, where reading would stop them."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        process = self.start("-n", 2, *python(self.code), stdin=slave, start_new_session=True,
                             preexec_fn=lambda: self.take_terminal(0))
        os.close(slave)
        os.write(master, b"typed\n\x04")
        out, error = process.communicate(timeout=20)
        self.assertEqual((process.returncode, error), (0, ""))
        self.assertEqual(sorted(out.splitlines()), ["0 'typed\\n'", "1 ''"])

    def test_control_c_at_a_terminal(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        process = self.start("-n", 2, RANK, "join", "who", "compute", stdin=slave,
                             start_new_session=True, preexec_fn=lambda: self.take_terminal(0))
        os.close(slave)
        self.wait_for_lines(process, 2)
        os.write(master, b"\x03")
        self.assertEqual(process.wait(timeout=10), 130)

    @staticmethod
    def take_terminal(fd):
        import fcntl
        import termios
        fcntl.ioctl(fd, termios.TIOCSCTTY, 0)


if __name__ == "__main__":
    unittest.main()
