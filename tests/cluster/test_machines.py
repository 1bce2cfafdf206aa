#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The cluster itself: what the tests that run on it rely on."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest
import uuid

RUN = pathlib.Path(__file__).resolve().with_name("run.py")
SKIPPED, FAILED = 77, 124


def words(*arguments):
    return [sys.executable, "-B", RUN, "--timeout", "100", *map(str, arguments)]


def run(*arguments, **options):
    return subprocess.run(words(*arguments), capture_output=True, text=True, timeout=120, check=False,
                          **options)


def mounts_and_links():
    """Of this machine: what a cluster could leave besides processes."""
    commands = (["findmnt", "--noheadings", "--output", "TARGET"], ["ip", "-o", "link"])
    return [subprocess.run(command, capture_output=True, text=True, check=True).stdout for command in commands]


def processes(mark):
    """All that have it in their environment, in any namespace."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append((entry / "comm").read_text(encoding="utf8").strip())
        except OSError:
            pass  # ended meanwhile
    return found


def listens(port):
    """Whether a process of this machine does, at any address."""
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"
               for file in ("/proc/net/tcp", "/proc/net/tcp6")
               for line in pathlib.Path(file).read_text(encoding="utf8").splitlines()[1:])


class MachinesTest(unittest.TestCase):
    def test_each_has_its_own_name_files_and_processes(self):
        script = """
            srun -N 4 hostname | sort | paste -sd,
            touch /tmp/mine /dev/shm/mine; ssh node3 ls /tmp /dev/shm | grep -c mine
            ssh node2 'ps -e' | grep -c slurmctld
            ssh node1 touch /mnt/ours; ls /mnt/ours
            exit 3"""
        done = run("--nodes", 4, "--", "sh", "-c", script)
        self.assertEqual((done.returncode, done.stdout), (3, "node0,node1,node2,node3\n0\n0\n/mnt/ours\n"),
                         done.stderr)

    def test_no_way_leads_out(self):
        done = run("--", "sh", "-c", "ip route; grep -c : /proc/net/dev")
        self.assertEqual(done.stdout, "10.99.0.0/24 dev eth0 proto kernel scope link src 10.99.0.1 \n2\n",
                         done.stderr)

    def test_nothing_is_left(self):
        """Whatever ends it: its command, the time limit, or a kill that cannot be caught."""
        before = mounts_and_links()
        mark = f"CLUSTER_MARK={uuid.uuid4()}"
        marked = {**os.environ, **dict([mark.split("=")])}
        self.assertEqual(run("--", "true", env=marked).returncode, 0)
        self.assertEqual(processes(mark), [])
        limited = run("--timeout", 5, "--", "srun", "-N", "2", "sleep", "1000", env=marked)
        self.assertEqual((limited.returncode, processes(mark)), (FAILED, []))
        with subprocess.Popen(words("--", "sh", "-c", "echo begun; exec srun -N 2 sleep 1000"), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=marked) as killed:
            self.assertEqual(killed.stdout.readline(), "begun\n")
            time.sleep(1)
            there, heard = processes(mark), [port for port in (6817, 6818) if listens(port)]
            killed.send_signal(signal.SIGKILL)
        self.assertLess({"slurmctld", "slurmd", "munged", "sleep"}, set(there))
        self.assertEqual(heard, [])
        end = time.monotonic() + 5
        while processes(mark) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual((processes(mark), mounts_and_links()), ([], before))

    def test_who_is_not_root_is_told(self):
        done = subprocess.run(["setpriv", "--reuid", "65534", *words("--", "true")], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stdout),
                         (SKIPPED, "cluster: skipped: making machines of namespaces needs root: sudo make "
                                   "cluster\n"))


if __name__ == "__main__":
    possible = run("--", "true")
    if possible.returncode == SKIPPED:
        print(possible.stdout, end="")
        sys.exit(SKIPPED)
    unittest.main()
