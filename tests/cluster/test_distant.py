#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of different mpiexecs on different machines that meet, over OpenSSH and TCP (launch_distant.c). Run on
the first of three machines."""
import os
import signal
import subprocess
import time
import unittest

MPIEXEC, PROGRAM = os.environ["MPIEXEC"], os.environ["LAUNCH_DISTANT"]
NODES = ("node0", "node1", "node2")
LONGEST = 60  # seconds


def on(node, *words):
    """A command on a machine."""
    return words if node == "node0" else ("ssh", node, " ".join(map(str, words)))


class DistantTest(unittest.TestCase):
    def setUp(self):
        self.addCleanup(self.assert_nothing_left)

    def start(self, node, *words):
        process = subprocess.Popen(list(map(str, on(node, MPIEXEC, *words))), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def meet(self, first, second, rounds):
        """Each a machine, and options of the mpiexec there."""
        accepting = self.start(*first, PROGRAM, "world", rounds)
        port = accepting.stdout.readline().strip()
        return accepting, self.start(*second, PROGRAM, "world", rounds, port)

    def finish(self, *processes, lines):
        """All of them before anything is asserted, as one tells why another fails."""
        ends = []
        for process in processes:
            out, error = process.communicate(timeout=LONGEST)
            ends.append((process.returncode, out.splitlines(), error))
        for code, out, _ in ends:
            self.assertEqual((code, out), (0, list(lines)), "\n".join(map(str, ends)))

    @staticmethod
    def processes(node, what):
        """Of a machine, those whose command lines begin with `what`, the oldest first."""
        found = subprocess.run(on(node, "ps", "-eo", "pid,args", "--no-headers"), capture_output=True, text=True,
                               check=True).stdout
        return [line.split()[0] for line in found.splitlines() if line.split(None, 1)[1].startswith(what)]

    def assert_nothing_left(self):
        end = time.monotonic() + 10
        while left := [(node, pid) for node in NODES for what in (MPIEXEC, PROGRAM)
                       for pid in self.processes(node, what)]:
            self.assertLess(time.monotonic(), end, left)
            time.sleep(0.1)

    def test_one_machine_each(self):
        pair = self.meet(("node0", "-n", 2), ("node1", "-n", 2), 5)
        self.finish(*pair, lines=["done"] * 2)

    def test_one_on_two_machines(self):
        for first, second in ((("node0", "-n", 2), ("node1", "-host", "node1,node2")),
                              (("node0", "-host", "node0,node2"), ("node1", "-n", 2)),
                              (("node0", "-host", "node0,node2"), ("node1", "-host", "node1,node2"))):
            with self.subTest(f"{first} {second}"):
                pair = self.meet(first, second, 2)
                self.finish(*pair, lines=["done"] * 2)

    def test_an_mpiexec_is_killed(self):
        """On the other machine, and on this one."""
        for node in ("node1", "node0"):
            with self.subTest(node):
                pair = self.meet(("node0", "-n", 1), ("node1", "-n", 1), 0)
                for process in pair:
                    self.assertEqual(process.stdout.readline(), "met\n")
                begin = time.monotonic()
                victim = self.processes(node, f"{MPIEXEC} -n 1")[0]  # and then its watchdog
                subprocess.run(on(node, "kill", f"-{signal.SIGKILL:d}", victim), check=True)
                self.finish(pair[0 if node == "node1" else 1], lines=["the other side has ended", "done"])
                self.assertLess(time.monotonic() - begin, 10)
                self.assert_nothing_left()

    def test_a_host_that_is_not_there(self):
        port = self.start("node0", "-n", 1, PROGRAM, "world", 1)
        name = port.stdout.readline().strip().replace(":node0:", ":node9:")
        _, error = self.start("node1", "-n", 1, PROGRAM, "world", 1, name).communicate(timeout=LONGEST)
        self.assertIn("host node9 cannot be reached: ssh ended with status 255", error)
        self.assertIn("MPI_ERR_PORT", error)
        port.terminate()
        port.communicate(timeout=LONGEST)


if __name__ == "__main__":
    unittest.main(failfast=True)
