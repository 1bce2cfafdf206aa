#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Starts commands on the other of two virtual machines, in place of ssh: MACADAM_SSH="python3 remote.py".

    remote.py HOST COMMAND...    the command there, on this process's standard input and output
    remote.py --serve FILE       on the other machine: runs what it is sent, until FILE is there

The wire between the guests is theirs alone, so nobody else can connect."""
import os
import pathlib
import select
import socket
import subprocess
import sys
import time

PORT = 7000
LONGEST = 60  # seconds until the other machine serves


def connect(host):
    deadline = time.monotonic() + LONGEST
    while True:
        try:
            return socket.create_connection((host, PORT), timeout=5)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


def run(host, command):
    with connect(host) as there:
        there.settimeout(None)
        there.sendall(command.encode() + b"\0")
        sources = [0, there.fileno()]
        while True:
            for source in select.select(sources, [], [])[0]:
                data = os.read(source, 1 << 16)
                if source == 0 and data:
                    there.sendall(data)
                elif source == 0:
                    sources.remove(0)
                    there.shutdown(socket.SHUT_WR)
                elif data:
                    write_all(1, data)
                else:
                    return


def read_command(connection):
    command = b""
    while not command.endswith(b"\0"):
        byte = connection.recv(1)  # no more than the command: the rest is its input
        if not byte:
            return None
        command += byte
    return command[:-1].decode()


def serve(end):
    jobs = []
    with socket.create_server(("", PORT), reuse_port=True) as server:
        server.settimeout(0.1)
        while not end.exists():
            jobs = [job for job in jobs if job.poll() is None]
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(None)
                command = read_command(connection)
                if command is not None:
                    jobs.append(subprocess.Popen(["sh", "-c", command], stdin=connection,
                                                 stdout=connection))
    for job in jobs:
        job.wait(timeout=LONGEST)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(pathlib.Path(sys.argv[2]))
    else:
        run(sys.argv[1], " ".join(sys.argv[2:]))
