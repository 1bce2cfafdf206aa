#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Stands in for ssh: runs a command as on another machine, under the host name it is given, with a
connection between that is this process: what it passes on ends when it is killed, and waits when it is
stopped.

    remote_shell.py HOST COMMAND...

REMOTE_SHELL_SAYS is printed before, as a login shell may. REMOTE_SHELL_CLOCKS, "a=77,b=5000", is by how many
seconds the clock of a host is ahead. Needs the right to make a namespace (root, or
user namespaces)."""
import os
import select
import socket
import subprocess
import sys

# In the other machine's name; a shell reads the command, as sshd has it.
ENTER = 'hostname "$0" && exec sh -c "$*"'


def pump(ends):
    """Passes bytes on, from one end to the other of each pair, until the first that comes back is over."""
    while True:
        ready, _, _ = select.select(list(ends), [], [])
        for source in ready:
            data = os.read(source, 1 << 16)
            sink = ends[source]
            if data:
                view = memoryview(data)
                try:
                    while view:
                        view = view[os.write(sink, view):]
                except OSError:
                    del ends[source]  # nobody reads it
                    if source != 0:
                        return
            elif source == 0:
                del ends[source]
                socket.socket(fileno=os.dup(sink)).shutdown(socket.SHUT_WR)
            else:
                return


def main():
    host, *command = sys.argv[1:]
    here, there = socket.socketpair()
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    clocks = dict(clock.split("=") for clock in os.environ.get("REMOTE_SHELL_CLOCKS", "").split(",") if clock)
    clock = ["--time", "--monotonic", clocks[host], "--fork", "--kill-child"] if host in clocks else []
    machine = subprocess.Popen(["unshare", *rights, *clock, "--uts", "sh", "-c", ENTER, host, *command],
                               stdin=there, stdout=there, start_new_session=True)
    there.close()
    os.write(1, os.environ.get("REMOTE_SHELL_SAYS", "").encode())
    try:
        pump({0: here.fileno(), here.fileno(): 1})
    except OSError:
        pass  # one side has gone; the other learns it
    here.close()
    return machine.wait()


if __name__ == "__main__":
    sys.exit(main())
