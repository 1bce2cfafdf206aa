# SPDX-License-Identifier: BSD-3-Clause
"""The first process of a machine of the cluster (world.py starts it): makes the machine's files, starts
its daemons and takes what they leave. On the first machine it runs the command once all are ready, and
ends with its exit status.

    node.py NODE NODES ROOT [COMMAND...]"""
import os
import pathlib
import socket
import subprocess
import sys
import time

import settings
import slurm

LONGEST_START = 60  # seconds until all machines are ready; a slow machine, not the expected time
NOT_READY = 124
TREE = pathlib.Path(__file__).resolve().parents[2]
daemons = {}


def mount(*words, **options):
    subprocess.run(["mount", *words], check=True, **options)


def make_files(nodes, root):
    """Of this machine alone are /etc, /tmp, /run and /dev/shm; the packages of `root` stand above /usr."""
    mount("-t", "proc", "none", "/proc")
    tree = os.open(TREE, os.O_PATH)
    # Slurm uses no control groups here, but looks whether something is mounted where they are.
    for folder, mode in (("/run", "755"), ("/tmp", "1777"), ("/dev/shm", "1777"), ("/sys/fs/cgroup", "755")):
        mount("-t", "tmpfs", "-o", f"mode={mode}", "none", folder)
    if not TREE.exists():  # it lies below one of these
        TREE.mkdir(parents=True)
        mount("--no-canonicalize", "--bind", f"/proc/self/fd/{tree}", TREE, pass_fds=[tree])
    os.close(tree)
    for folder in ("etc", "work", "munge", "sshd", "slurmd"):
        pathlib.Path("/run", folder).mkdir(mode=0o755)
    mount("-t", "overlay", "-o", f"lowerdir={root}/usr:/usr", "none", "/usr")
    mount("-t", "overlay", "-o", "lowerdir=/etc,upperdir=/run/etc,workdir=/run/work", "none", "/etc")
    settings.make_etc(nodes)


def start(name, *words):
    """A daemon in the foreground."""
    with open(settings.LOGS / f"{name}-{socket.gethostname()}-output", "w", encoding="utf8") as output:
        daemons[name] = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL,
                                         stdout=output, stderr=output, start_new_session=True)


def start_daemons(node):
    start("munged", "munged", "--foreground", "--key-file", settings.SHARED / "munge.key", "--log-file",
          "/run/munge/log", "--seed-file", "/run/munge/seed", "--pid-file", "/run/munge/pid", "--num-threads", 2)
    wait_for(pathlib.Path("/run/munge/munge.socket.2").exists, "munged")
    if node == 0:
        start("slurmctld", "slurmctld", "-D")
    start("slurmd", "slurmd", "-D")
    start("sshd", "/usr/sbin/sshd", "-D", "-e", "-o", f"ListenAddress={settings.address(node)}")


def wait_for(what, name):
    end = time.monotonic() + LONGEST_START
    while not what():
        ended = [daemon for daemon, process in daemons.items() if process.poll() is not None]
        if ended or time.monotonic() > end:
            raise TimeoutError(f"{name} on {socket.gethostname()}: not ready"
                               + (f", {ended[0]} has ended" if ended else f" after {LONGEST_START} s"))
        time.sleep(0.05)


def is_ready(nodes):
    """Whether Slurm takes jobs for all machines, and all can be reached by ssh."""
    return slurm.is_idle(nodes) and all(answers(settings.address(node), 22) for node in range(nodes))


def answers(address, port):
    try:
        socket.create_connection((address, port), timeout=1).close()
        return True
    except OSError:
        return False


def show_logs():
    for file in sorted(settings.LOGS.iterdir()):
        lines = file.read_text(encoding="utf8", errors="replace").splitlines()[-20:]
        print("\n".join([f"cluster: {file.name}:", *(f"  {line}" for line in lines)]), file=sys.stderr)


def reap(command):
    """Takes all that end here, as the first process has to, until the command has."""
    while True:
        pid, status = os.wait()
        if command is not None and pid == command.pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def main():
    node, nodes, root, words = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    folder = os.getcwd()
    socket.sethostname(settings.name(node))
    make_files(nodes, root)
    os.chdir(folder)
    command = None
    try:
        start_daemons(node)
        if node == 0:
            wait_for(lambda: is_ready(nodes), "Slurm and ssh")
            command = subprocess.Popen(words, env={**os.environ, "CLUSTER_NODES": str(nodes)})
    except (OSError, subprocess.SubprocessError) as error:
        print(f"cluster: {error}", file=sys.stderr)
        show_logs()
        return NOT_READY
    status = reap(command)
    if status != 0:
        show_logs()
    return status


if __name__ == "__main__":
    sys.exit(main())
