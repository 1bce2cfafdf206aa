#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the virtual machine: a rank is killed, the link goes down or the adapter goes, in the middle of
traffic. No rank hangs, and no data are wrong. And what a job says that the adapter gives too little."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

MPIEXEC, TRAFFIC, REGIONS = sys.argv[1:4]
PORT = pathlib.Path("/sys/class/infiniband/rxe0/ports/1/state")
LONGEST = 40  # seconds from the failure to the end of the job, far below the program's own end


def shell(script):
    subprocess.run(["sh", "-ec", script], check=True, timeout=LONGEST)


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

    def test_the_adapter_goes(self):
        network = pathlib.Path("/sys/class/net/eth0/device").resolve().name
        driver = "/sys/bus/virtio/drivers/virtio_net"
        job, _ = self.start(3, "shared")
        try:
            shell(f"echo {network} >{driver}/unbind")
            output = self.finish(job)
        finally:
            shell(f"echo {network} >{driver}/bind; vm-network")
        self.assertEqual(job.returncode, 3, output)
        self.assertRegex(output, r"an operation with rank \d failed: .*MPI_ERR_PROC_ABORTED")


class Refusals(unittest.TestCase):
    """Each names the rank and the host, what was found and needed, and the remedy."""

    def refused(self, *texts, ranks=2, under=(), program=TRAFFIC, **settings):
        done = subprocess.run([*under, MPIEXEC, "-n", str(ranks), program], text=True, check=False,
                              env={**os.environ, "MACADAM_NETWORK": "rdma", **settings},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LONGEST)
        self.assertNotEqual(done.returncode, 0)
        for text in (r"rank \d (on |of \d \()host node0", *texts):
            self.assertRegex(done.stdout, text)

    def test_too_little_memory_may_be_locked(self):
        self.refused(r"rxe0:1 gives no registration of \d+ bytes",
                     r"limit of locked memory \(memlock\) is 64 KiB, needed .*: raise it with \"ulimit -l unlim",
                     under=("setpriv", "--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock",
                            "prlimit", f"--memlock={64 << 10}"))

    def test_there_is_no_such_gid(self):
        self.refused(r"rxe0:1: it has no GID of index 9; there are: 0 .*, 1 10\.0\.0\.1 \(RoCE v2\)",
                     MACADAM_RDMA_DEVICE="rxe0:1:9")

    def test_there_are_too_few_queue_pairs(self):
        self.refused("4 connections at start need 5 queue pairs, 2 are there; leave "
                     "MACADAM_RDMA_CONNECTIONS at on-demand", ranks=5, MACADAM_RDMA_CONNECTIONS="all",
                     MACADAM_RDMA_QUEUE_PAIRS="2")

    def test_there_are_no_memory_regions_left(self):
        groups = pathlib.Path(tempfile.mkdtemp())
        group = groups / "few"
        shell(f"mount -t cgroup2 none {groups}; echo +rdma >{groups}/cgroup.subtree_control; mkdir {group}")
        inside = ("sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh")
        said = (r"MPI_ERR_NO_MEM: .*rxe0:1 gives no registration of \d+ bytes at \S+: .*the adapter has no more "
                r"\(end other .*, or the control group .* \(raise its rdma\.max\)")
        # What needs no region goes on, and what needs one does when there are some again.
        done = subprocess.run([*inside, MPIEXEC, "-n", "2", REGIONS], text=True, check=False, timeout=LONGEST,
                              env={**os.environ, "MACADAM_NETWORK": "rdma", "REGIONS_GROUP": str(group)},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, said)
        self.refused(said, program=REGIONS, under=inside, REGIONS_GROUP=str(group), REGIONS_FATAL="1")

    def test_the_port_is_down(self):
        shell("ip link set eth0 down")
        try:
            self.refused("rxe0:1: its state is down, needed active; set its network interface up")
        finally:
            shell("vm-network")

    def test_the_address_is_gone(self):
        shell("ip address flush dev eth0")
        try:
            self.refused(r"rxe0:1 finds no way to GID fe80::.*is the peer's address reachable \(ping\)")
        finally:
            shell("vm-network")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
