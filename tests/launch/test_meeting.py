# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that meet: by ports, sockets and names."""
import multiprocessing
import os
import signal
import socket
import subprocess
import time
import unittest

from universe import (MPI_ERR_NAME, MPI_ERR_OTHER, MPI_ERR_PORT, MPI_ERR_SERVICE, OTHER_USER, UNIVERSE, VERSION,
                      UniverseTest, all_sockets, sockets_of, spawn)


class Meeting(UniverseTest):
    def port_of(self, process):
        word, port = self.wait_for_lines(process, 1)[0].split()
        self.assertEqual(word, "port")
        return port

    def finish(self, process):
        out, error = process.communicate(timeout=20)
        self.assertEqual((process.returncode, error), (0, ""), out)
        return out.splitlines()

    def test_two_mpiexecs(self):
        first = self.start("-n", 3, UNIVERSE, "1/open", "1/accept=port", "1/write=3", "1/wait=300", "wait=100")
        port = self.port_of(first)
        second = self.start("-n", 2, UNIVERSE, f"1/connect={port}", "0/line=x", stdin=subprocess.PIPE)
        self.both_meet(first, "met rank 1 of 2", second, "met rank 1 of 3")
        self.assertEqual(self.finish(first), [])

    def test_alone_and_alone(self):
        first = self.start("open", "accept=port", "accept=port", "wait=300", launcher=UNIVERSE)
        port = self.port_of(first)
        for _ in range(2):
            second = self.start(f"connect={port}", "line=x", launcher=UNIVERSE, stdin=subprocess.PIPE)
            self.both_meet(first, "met rank 0 of 1", second, "met rank 0 of 1")
        self.assertEqual(self.finish(first), [])

    def both_meet(self, first, of_first, second, of_second):
        """The second, which waits for a line, is there until the first has met it."""
        self.assertEqual(self.wait_for_lines(first, 1), [of_first])
        out, error = second.communicate("\n", timeout=20)
        self.assertEqual((second.returncode, error, out), (0, "", of_second + "\n"))

    def test_within_a_job(self):
        result = self.universe(2, "0/open", f"0/publish={self.mark}", "1/wait=200", f"1/look_up={self.mark}",
                               "1/connect=port", "0/accept=port")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(len([l for l in result.stdout.splitlines() if l.startswith("met rank")]), 2)

    def test_nobody_comes(self):
        result = self.universe(1, "open", "fails=accept_in_vain=port", "fails=connect_in_vain=port")
        lines = result.stdout.splitlines()[1:]
        self.assertEqual([l.split(":")[0] for l in lines], [str(MPI_ERR_OTHER), str(MPI_ERR_PORT)])
        for line in lines:
            self.assertIn("did not come within 0.1 s", line)

    def test_one_that_gave_up_is_not_met(self):
        result = self.universe(2, "0/open", f"0/publish={self.mark}", "1/wait=150", f"1/look_up={self.mark}",
                               "1/fails=connect_in_vain=port", "0/wait=600", "0/fails=accept_in_vain=port")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertNotIn("met rank", result.stdout)

    def test_one_that_waits_is_accepted_without_mpiexec(self):
        """Which has introduced the two, and is stopped while they meet."""
        first = self.start("-n", 1, UNIVERSE, "open", f"publish={self.mark}",
                           spawn(1, f"look_up={self.mark}", "connect=port"), "wait=800", "accept_in_vain=port")
        self.wait_for_lines(first, 4)
        time.sleep(0.3)
        first.send_signal(signal.SIGSTOP)
        time.sleep(1)
        first.send_signal(signal.SIGCONT)
        self.assertEqual(self.finish(first), ["met rank 0 of 1"] * 2)

    def test_one_that_gave_up_is_passed_over(self):
        """Though it was introduced, and so is nobody after it until it has gone."""
        first = self.start("-n", 1, UNIVERSE, "open", f"publish={self.mark}",
                           spawn(1, f"look_up={self.mark}", "fails=connect_in_vain=port"),
                           spawn(2, f"look_up={self.mark}", "1/wait=300", "1/connect=port"), "wait=600",
                           "accept=port", "fails=accept_in_vain=port")
        lines = self.finish(first)
        self.assertEqual(sorted(line for line in lines if line.startswith("met")),
                         ["met rank 0 of 1", "met rank 1 of 2"])
        self.assertEqual(len([line for line in lines if "did not come within 0.1 s" in line]), 2)

    def test_bad_ports(self):
        closed = self.universe(1, "open", "close=port", "fails=connect=port")
        self.assert_failed_line(closed, MPI_ERR_PORT, "closed")
        port = closed.stdout.split()[1]
        for bad, parts in ((port, ["has ended"]), ("nonsense", ["no port's name"]), (port[:-1], ["cut"]),
                           (port.replace(f":{VERSION}:", ":2:"), ["version", "2"]), (port[:-1] + "x", ["damaged"]),
                           (port + ":", ["cut or has more"])):
            with self.subTest(bad):
                self.assert_failed_line(self.universe(1, f"fails=connect={bad}"), MPI_ERR_PORT, *parts)
        result = self.universe(1, "open", "close=port", "fails=close=port")
        self.assert_failed_line(result, MPI_ERR_PORT, "closed")

    def test_a_port_is_good_for_its_jobs_life(self):
        """Though mpiexec goes on, for a job that it has spawned."""
        first = self.start("-n", 1, UNIVERSE, "open", spawn(1, "wait=1500"))
        port = [line for line in self.wait_for_lines(first, 2) if line.startswith("port ")][0].split()[1]
        time.sleep(0.3)
        result = self.universe(1, f"fails=connect={port}")
        self.assert_failed_line(result, MPI_ERR_PORT, "closed, or the job that opened it has ended")
        self.assertIsNone(first.poll())
        first.communicate(timeout=20)

    def test_connects_twice(self):
        """Each connection is met by an accept of its own; the second waits for one."""
        first = self.start("-n", 1, UNIVERSE, "open", "accept=port", "line=x", "accept=port", "wait=300",
                           stdin=subprocess.PIPE)
        port = self.port_of(first)
        twice = self.start("-n", 1, UNIVERSE, f"connect={port}", f"fails=connect_in_vain={port}",
                           f"connect={port}", "wait=300")
        self.assertEqual(self.wait_for_lines(twice, 2)[1].split(":")[0], str(MPI_ERR_PORT))
        out, error = first.communicate("\n", timeout=20)
        self.assertEqual((first.returncode, error, out.splitlines()), (0, "", ["met rank 0 of 1"] * 2))
        self.assertEqual(self.finish(twice), ["met rank 0 of 1"])

    def test_names_of_ports_share_nothing(self):
        """128 bits of the system's random source in each, and as many in the name of the socket."""
        result = self.universe(1, *["open"] * 20)
        keys = {line.split(":")[-1] for line in result.stdout.splitlines()}
        self.assertEqual(len(keys), 20)
        self.assertEqual({len(key) for key in keys}, {32})

    def test_a_port_that_is_closed_while_one_waits_at_it(self):
        first = self.start("-n", 1, UNIVERSE, "open", "wait=400", "close=port")
        port = self.port_of(first)
        self.assert_failed_line(self.universe(1, f"fails=connect={port}"), MPI_ERR_PORT, "closed")
        self.finish(first)

    def test_the_other_job_dies(self):
        first = self.start("-n", 1, UNIVERSE, "open", "accept=port", "wait=30000")
        port = self.port_of(first)
        second = self.start("-n", 1, UNIVERSE, f"connect={port}", "life")
        self.assertEqual(self.wait_for_lines(second, 1), ["met rank 0 of 1"])
        first.kill()
        self.assertEqual(self.finish(second), ["it has failed"])

    def test_join(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            number = probe.getsockname()[1]
        first = self.start("-n", 1, UNIVERSE, f"join_listening={number}", "wait=200")
        result = self.alone(f"join_connecting={number}", "wait=100")
        expected = ["met rank 0 of 1", "flags are as before"]
        self.assert_ran(result, expected)
        self.assertEqual(self.finish(first), expected)

    def test_join_with_strangers(self):
        for said, parts in ((b"", ["closed the socket"]), (b"x" * 100, ["after 100 of"]),
                            (b"x" * 280, ["does not call MPI_Comm_join"])):
            ours, theirs = socket.socketpair()
            theirs.sendall(said)
            theirs.shutdown(socket.SHUT_WR)
            with ours, theirs:
                result = self.universe(1, f"fails=join_socket={ours.fileno()}", pass_fds=[ours.fileno()])
                self.assert_failed_line(result, MPI_ERR_OTHER, *parts)


class NamesTest(UniverseTest):
    def setUp(self):
        super().setUp()
        self.service = "service " + self.mark

    def test_between_two_mpiexecs(self):
        first = self.start("-n", 1, UNIVERSE, "open", f"publish={self.service}", "accept=port", "wait=200")
        port, published = self.wait_for_lines(first, 2)
        self.assertEqual(published, "published")
        result = self.alone(f"look_up={self.service}", "connect=port", "wait=200")
        self.assert_ran(result, [port, "met rank 0 of 1"])
        self.assertEqual(first.wait(20), 0)
        self.assert_failed_line(self.universe(1, f"fails=look_up={self.service}"), MPI_ERR_NAME, self.service)

    def test_taken_and_given_back(self):
        first = self.start("-n", 1, UNIVERSE, "open", f"publish={self.service}", "line=x",
                           f"unpublish={self.service}", "line=x", stdin=subprocess.PIPE)
        self.wait_for_lines(first, 2)
        result = self.universe(1, "open", f"fails=publish={self.service}", f"fails=unpublish={self.service}")
        lines = result.stdout.splitlines()[1:]
        self.assertEqual([int(l.split(":")[0]) for l in lines], [MPI_ERR_SERVICE] * 2)
        self.assertIn("published already", lines[0])
        self.assertIn("not published by this job", lines[1])
        first.stdin.write("\n")
        first.stdin.flush()
        self.assertEqual(self.wait_for_lines(first, 1), ["unpublished"])
        result = self.universe(1, "open", f"publish={self.service}")
        self.assertIn("published", result.stdout.split())
        first.communicate("\n", timeout=20)

    def test_gone_with_a_killed_publisher(self):
        first = self.start("-n", 1, UNIVERSE, "open", f"publish={self.service}", "wait=30000")
        self.wait_for_lines(first, 2)
        names = sockets_of(first)
        self.assertEqual(len(names), 2)  # mpiexec's and the name's
        first.kill()
        first.wait()
        self.assert_failed_line(self.universe(1, f"fails=look_up={self.service}"), MPI_ERR_NAME)
        self.wait_for(lambda: not names & set(all_sockets().values()))

    @unittest.skipUnless(os.geteuid() == 0, "another user is needed")
    def test_another_user_has_the_name(self):
        first = self.start("-n", 1, UNIVERSE, "open", f"publish={self.service}", "wait=30000")
        self.wait_for_lines(first, 2)
        name = next(s for s in sockets_of(first) if s.startswith(f"macadam-{os.geteuid()}-"))
        first.kill()
        first.wait()
        ready = multiprocessing.Event()
        squatter = multiprocessing.Process(target=squat, args=(name, ready))
        self.wait_for(lambda: name not in all_sockets().values())
        squatter.start()
        self.addCleanup(squatter.kill)
        self.assertTrue(ready.wait(20))
        result = self.universe(1, "open", f"fails=look_up={self.service}")
        self.assert_failed_line(result, MPI_ERR_NAME, f"user {OTHER_USER} listens", "nothing was told")
        result = self.universe(1, "open", f"fails=publish={self.service}")
        self.assert_failed_line(result, MPI_ERR_SERVICE, f"user {OTHER_USER} holds")
        self.assertTrue(squatter.is_alive(), "it was told something")


def squat(name, ready):
    os.setuid(OTHER_USER)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind("\0" + name)
        listener.listen()
        ready.set()
        while True:
            peer, _ = listener.accept()
            with peer:
                if peer.recv(1 << 17):
                    os._exit(1)  # it was told something


if __name__ == "__main__":
    unittest.main()
