#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a command on the first machine of a small cluster, made of namespaces of this machine.

    sudo python3 tests/cluster/run.py -- srun -N 2 hostname
    sudo python3 tests/cluster/run.py --nodes 4 -- ssh node3 hostname

Each machine (node0, node1, ...) has its own processes, host name, network address, /etc, /tmp and
/dev/shm, a slurmd and an sshd; node0 has slurmctld too. All see the files of this machine, and /mnt, a
folder in memory. Nothing of it can be reached from outside, and all of it ends with this process,
however that ends. The exit status is the command's; 77 with the reason printed where this machine
cannot make the cluster; 124 if it was not ready in time or the time limit was reached."""
import argparse
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import packages

SKIPPED, FAILED = 77, 124
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
HERE = pathlib.Path(__file__).resolve().parent
NAMESPACES = ["--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, default=HERE.parents[1] / "build" / "cluster",
                        help="where Debian's packages are kept (build/cluster)")
    parser.add_argument("--nodes", type=int, choices=range(2, 9), default=2, metavar="COUNT",
                        help="machines, 2 to 8 (2)")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="after --")
    arguments = parser.parse_args()
    if arguments.command[:1] == ["--"]:
        del arguments.command[0]
    if not arguments.command:
        parser.error("needed a command after --")
    return arguments


def check_this_machine():
    if os.geteuid() != 0:
        raise packages.Unavailable("making machines of namespaces needs root: sudo make cluster")
    for tool, package in (("ip", "iproute2"), ("unshare", "util-linux"), ("setpriv", "util-linux"),
                          ("apt-get", "apt"), ("dpkg-deb", "dpkg")):
        if not shutil.which(tool):
            raise packages.Unavailable(f"there is no {tool} (Debian's package {package})")
    made = subprocess.run(["unshare", *NAMESPACES, "true"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise packages.Unavailable(f"namespaces cannot be made here: {made.stderr.strip()}")
    if "overlay" not in pathlib.Path("/proc/filesystems").read_text(encoding="utf8"):
        raise packages.Unavailable("the kernel has no overlay file system")


def wait_for_all():
    """What is killed ends a little later: a namespace's first process is reaped when all others are gone."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def run(arguments, root):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # the namespace outlives unshare
    world = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", *NAMESPACES, sys.executable, "-B",
                              HERE / "world.py", str(arguments.nodes), root, *arguments.command])
    try:
        return world.wait(timeout=arguments.timeout)
    except subprocess.TimeoutExpired:
        print(f"cluster: the time limit of {arguments.timeout} s", file=sys.stderr)
        return FAILED
    finally:
        world.kill()  # and with it all others
        wait_for_all()


def main():
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILED))
    try:
        check_this_machine()
        return run(arguments, packages.prepare(arguments.folder.resolve()))
    except packages.Unavailable as reason:
        print(f"cluster: skipped: {reason}")
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
