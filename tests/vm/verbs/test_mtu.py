#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in both of two virtual machines: traffic between two ports, of which one has a smaller MTU. It is
right, and goes in packets that fit the smaller. BUILD is a build tree."""
import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(sys.argv[1])
NODE = int(os.environ["VM_NODE"])
REMOTE = pathlib.Path(__file__).resolve().parents[1] / "remote.py"
STATISTICS = pathlib.Path("/sys/class/net/eth0/statistics")


def sent():
    return [int((STATISTICS / name).read_text(encoding="ascii")) for name in ("tx_bytes", "tx_packets")]


def run_job():
    """A job of two ranks, one on each node: the first node starts it."""
    over = pathlib.Path(os.environ["VM_JOB"], "mtu-is-over")
    if NODE != 0:
        subprocess.run([sys.executable, "-SE", REMOTE, "--serve", over], timeout=120, check=True)
        return
    environment = {**os.environ, "TRAFFIC_SECONDS": "0.5", "MACADAM_SSH": f"{sys.executable} -SE {REMOTE}"}
    job = [BUILD / "bin/mpiexec", "-silence", "30", "-host", "node0,node1", BUILD / "tests/vm/verbs.traffic"]
    done = subprocess.run(job, env=environment, text=True, timeout=60, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    over.touch()
    if done.returncode != 0 or "1 parts passed on 2 ranks" not in done.stdout:
        sys.exit(f"exit status {done.returncode}\n{done.stdout}")


def bytes_of_a_packet():
    """The mean of what this node sends in a job, a few packets of mpiexec's among it."""
    before = sent()
    run_job()
    count, packets = (after - first for after, first in zip(sent(), before))
    return count / packets


def info():
    page = subprocess.run([BUILD / "bin/macadam", "info"], capture_output=True, text=True, timeout=60, check=True)
    return re.search(r"rxe0:1 .*MTU (\d+),", page.stdout)[1]


def main():
    if NODE == 1:
        subprocess.run(["ip", "link", "set", "eth0", "mtu", "1500"], check=True)
    own = info()
    mean = bytes_of_a_packet()
    if NODE == 1:
        subprocess.run(["vm-network"], check=True)
    print(f"node {NODE}: its MTU is {own}, and it has sent {mean:.0f} bytes a packet", flush=True)
    if own != ("4096", "1024")[NODE]:
        sys.exit("the ports have not the MTUs they should have")
    # With headers, and with acknowledgements, which are short. With 4096 it is 3250.
    if not 700 < mean < 1100:
        sys.exit("needed 700 to 1100 bytes a packet")


if __name__ == "__main__":
    main()
