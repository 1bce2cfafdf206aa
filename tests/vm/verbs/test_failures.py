#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the virtual machine: a rank is killed, or the link goes down, in the middle of traffic. No
rank hangs, and no data are wrong."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

MPIEXEC, TRAFFIC = sys.argv[1:3]
PORT = pathlib.Path("/sys/class/infiniband/rxe0/ports/1/state")
LONGEST = 40  # seconds from the failure to the end of the job, far below the program's own end


class Failures(unittest.TestCase):
    def start(self, ranks, receive, **more):
        environment = {**os.environ, "MACADAM_NETWORK": "rdma", "MACADAM_RDMA_RECEIVE": receive, **more}
        job = subprocess.Popen([MPIEXEC, "-n", str(ranks), TRAFFIC], env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        ids = {}
        for _ in range(ranks):
            line = job.stdout.readline()
            found = re.fullmatch(r"rank (\d+) runs as (\d+)\n", line)
            self.assertTrue(found, f"no traffic: {line}")
            ids[int(found[1])] = int(found[2])
        return job, ids

    def finish(self, job):
        begin = time.monotonic()
        output, _ = job.communicate(timeout=LONGEST)
        self.assertNotIn("byte ", output, "wrong data")
        self.assertLess(time.monotonic() - begin, LONGEST)
        return output

    def test_a_rank_is_killed(self):
        for receive in ("shared", "credit", "ring"):
            with self.subTest(receive=receive):
                job, ids = self.start(3, receive)
                os.kill(ids[1], signal.SIGKILL)
                output = self.finish(job)
                self.assertEqual(job.returncode, 128 + signal.SIGKILL, output)
                self.assertRegex(output, r"rank 1 on \S+ .*(killed|signal 9)")

    def set_link(self, state, port):
        """`state`: up or down; returns when the port is `port`."""
        subprocess.run(["ip", "link", "set", "eth0", state], check=True)
        deadline = time.monotonic() + LONGEST
        while port not in PORT.read_text(encoding="utf8"):
            self.assertLess(time.monotonic(), deadline, f"the port does not become {port}")
            time.sleep(0.05)

    def test_the_link_goes_down(self):
        for receive in ("shared", "credit", "ring"):
            with self.subTest(receive=receive):
                job, _ = self.start(3, receive)
                try:
                    self.set_link("down", "DOWN")
                    output = self.finish(job)
                finally:
                    self.set_link("up", "ACTIVE")
                self.assertEqual(job.returncode, 3, output)
                self.assertRegex(output, r"an operation with rank \d failed: .*MPI_ERR_PROC_ABORTED")

    def test_the_link_is_down_for_a_moment(self):
        job, _ = self.start(3, "shared", TRAFFIC_SECONDS="6")
        try:
            self.set_link("down", "DOWN")
        finally:
            self.set_link("up", "ACTIVE")
        output = self.finish(job)
        # Shorter than adapters send again, it does no harm. Some give up at once, and say so.
        if job.returncode != 0:
            self.assertEqual(job.returncode, 3, output)
            self.assertRegex(output, r"an operation with rank \d failed: .*MPI_ERR_PROC_ABORTED")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
