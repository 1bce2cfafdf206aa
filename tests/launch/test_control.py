# SPDX-License-Identifier: BSD-3-Clause
"""mpiexec's socket, in the hands of others."""
import array
import multiprocessing
import os
import resource
import socket
import subprocess
import time
import unittest

from universe import OTHER_USER, UNIVERSE, VERSION, UniverseTest, sockets_of, spawn


def as_other_user(name, results):
    os.setuid(OTHER_USER)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect("\0" + name)
        try:
            client.send(b"x")
            results.put(client.recv(100))
        except OSError as error:
            results.put(type(error).__name__)


class Abuse(UniverseTest):
    """mpiexec goes on serving its ranks, whatever is done to its socket."""

    def setUp(self):
        super().setUp()
        self.process = self.start("-n", 1, UNIVERSE, "print=ready", "line=x", "open", "line=x",
                                  spawn(1, "parent", "wait=100"), "wait=200", stdin=subprocess.PIPE)
        self.wait_for_lines(self.process, 1)
        (self.name,) = sockets_of(self.process)

    def connect(self):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(client.close)
        client.connect("\0" + self.name)
        client.settimeout(20)
        return client

    def assert_it_serves(self):
        begin = time.monotonic()
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.assertIn("macadam-port", self.wait_for_lines(self.process, 1)[0])
        out, error = self.process.communicate("\n", timeout=20)
        self.assertEqual((self.process.returncode, error), (0, ""))
        self.assertIn("spawned 1", out)
        self.assertLess(time.monotonic() - begin, 5)

    def test_garbage(self):
        for packet in (b"x", b"\0" * 44, os.urandom(1000), b"y" * 100000, os.urandom(44)):
            client = self.connect()
            client.send(packet)
            self.assertIn(b"no request" if len(packet) >= 44 else b"ends within", client.recv(1000))
            self.assertEqual(client.recv(1000), b"")
        self.assert_it_serves()

    @staticmethod
    def head(version=VERSION, request=0):
        magic = 0x6d61636374726c
        return (magic.to_bytes(8, "little") + version.to_bytes(4, "little") + request.to_bytes(4, "little")
                + os.urandom(16) + (0).to_bytes(4, "little") + bytes(4))

    def test_links_of_strangers(self):
        """They say nothing, something else, or go at once."""
        for said in (b"", b"x" * 100000, b"\nmacadam mpiexec proxy, version 0\n", None):
            client = self.connect()
            ours, theirs = socket.socketpair()
            with ours, theirs:
                client.sendmsg([self.head(request=14)],
                               [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))])
                self.assertNotIn(b"link", client.recv(1000))
                theirs.close()
                if said is not None:
                    ours.sendall(said)
                    self.assertIn(b"macadam mpiexec proxy, version", ours.recv(1000))
                if said:
                    while ours.recv(1000):  # until it is let go
                        pass
        self.assert_it_serves()

    def test_wrong_secret_and_version(self):
        head = self.head
        for packet, part in ((head(version=VERSION + 1), f"version {VERSION + 1}".encode()), (head(), b"no job of the process"),
                             (head(request=8) + bytes(8), b"has ended"),
                             # What a part of mpiexec on another machine may ask, and nobody else.
                             *[(head(request=request), b"no job of the process") for request in range(9, 14)],
                             (head(request=14), b"a link needs a stream"),
                             (head(request=77), b"no job of the process")):
            client = self.connect()
            client.send(packet)
            self.assertIn(part, client.recv(1000))
        self.assert_it_serves()

    def test_silent_clients(self):
        for _ in range(100):
            self.connect()
        self.assert_it_serves()

    def test_more_clients_than_it_takes(self):
        """Those that say nothing are sent away after 5 s; until then others have to wait."""
        limit = resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)[0]
        clients = []
        for _ in range(min(limit // 2, 1024) + 50):
            clients.append(self.connect())
        begin = time.monotonic()
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.assertIn("macadam-port", self.wait_for_lines(self.process, 1)[0])
        self.assertLess(time.monotonic() - begin, 15)
        for client in clients:
            client.close()
        self.process.communicate("\n", timeout=20)
        self.assertEqual(self.process.returncode, 0)

    def test_descriptors_are_not_kept(self):
        def count():
            return len(os.listdir(f"/proc/{self.process.pid}/fd"))
        before = count()
        for _ in range(20):
            client = self.connect()
            with open("/dev/null") as one, open("/dev/null") as two:
                client.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                         array.array("i", [one.fileno(), two.fileno()] * 20))])
            client.recv(1000)
            client.close()
        self.wait_for(lambda: count() == before)
        self.assert_it_serves()

    @unittest.skipUnless(os.geteuid() == 0, "another user is needed")
    def test_another_user(self):
        results = multiprocessing.Queue()
        client = multiprocessing.Process(target=as_other_user, args=(self.name, results))
        client.start()
        self.assertIn(results.get(timeout=20), (b"", "BrokenPipeError", "ConnectionResetError"))
        client.join()
        self.assert_it_serves()


if __name__ == "__main__":
    unittest.main()
