# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of different mpiexecs that meet, on different machines, which are this one under other names
(remote_shell.py): asked for without MPI (launch_universe.cc)."""
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from common import marked_processes
from links import LinkTest
from universe import MPI_ERR_OTHER, MPI_ERR_PORT, UNIVERSE, VERSION, spawn


class Meeting(LinkTest):
    def test_two_machines(self):
        first, port = self.open_on("a", "-n", 2, UNIVERSE, "0/open", "0/accept=port", "0/address", "write=1", "0/life")
        second = self.on("b", "-n", 2, UNIVERSE, f"1/connect={port}", "write=1", "1/address", "wait=300")
        self.finish(second, "met rank 0 of 2", "address 7 of host a, not local")
        self.finish(first, "met rank 1 of 2", "address 7 of host b, not local", "it is over")

    def test_an_address_that_comes_late(self):
        """A rank opens its network when it needs one, and until then has none that others could be told."""
        first, port = self.open_on("a", "-n", 1, UNIVERSE, "open", "accept=port", "wait=400", "write=1", "wait=500")
        second = self.on("b", "-n", 1, UNIVERSE, f"connect={port}", "address")
        self.finish(second, "met rank 0 of 1", "address 7 of host a, not local")
        self.finish(first, "met rank 0 of 1")

    def test_alone_and_alone(self):
        first, port = self.open_on("a", "open", "accept=port", "wait=400", launcher=UNIVERSE)
        second = self.on("b", f"connect={port}", "wait=400", launcher=UNIVERSE)
        self.finish(second, "met rank 0 of 1")
        self.finish(first, "met rank 0 of 1")

    def test_all_of_one_with_all_of_the_other(self):
        """Jobs on two machines each: every rank learns of every one."""
        first, port = self.open_on("x", "-host", "a,c", UNIVERSE, "0/open", "0/accept=port", *self.learn())
        second = self.on("y", "-host", "b,d", UNIVERSE, f"0/connect={port}", *self.learn())
        # Each rank tells what it knows of the two of the other job.
        self.finish(second, "met rank 0 of 2", *["met a job of 2", "ranks on a+c, none local"] * 2)
        self.finish(first, "met rank 0 of 2", *["met a job of 2", "ranks on b+d, none local"] * 2)

    def test_a_machine_in_common(self):
        """There both see the other's memory, whichever machine the roots are on."""
        for of_first, of_second in (("a,c", "b,c"), ("c,a", "b,c"), ("c,a", "c,b")):
            with self.subTest(f"{of_first} {of_second}"):
                first, port = self.open_on("x", "-host", of_first, "-ppn", 2, UNIVERSE, "0/open", "0/accept=port", *self.learn())
                second = self.on("y", "-host", of_second, "-ppn", 2, UNIVERSE, f"0/connect={port}", *self.learn())
                first_out, second_out = first.communicate(timeout=30), second.communicate(timeout=30)
                hosts = {True: of_first.split(","), False: of_second.split(",")}
                for is_first, (out, errors) in ((True, first_out), (False, second_out)):
                    self.assertEqual(errors, "")
                    found = [line for line in out.splitlines() if line.startswith("ranks on")]
                    other = "+".join(host for host in hosts[not is_first] for _ in range(2))
                    local = "+".join(str(2 * hosts[not is_first].index("c") + i) for i in range(2))
                    self.assertEqual(sorted(found), sorted([f"ranks on {other}, none local"] * 2
                                                           + [f"ranks on {other}, local {local}"] * 2), out)

    def test_spawned_jobs_meet_through_the_same_link(self):
        first = self.on("a", "-n", 1, UNIVERSE, spawn(1, "open", "accept=port", "write=1", "wait=900"), "wait=1500")
        port = next(line for line in self.wait_for_lines(first, 2) if line.startswith("port")).split()[1]
        second = self.on("b", "-n", 1, UNIVERSE, spawn(1, f"connect={port}", "address", "wait=900"), "wait=1500")
        self.wait_for(lambda: len(self.links()) == 1)
        self.finish(second, "spawned 1", "met rank 0 of 1", "address 7 of host a, not local")
        self.finish(first, "met rank 0 of 1")


class Life(LinkTest):
    def test_one_link_that_ends_when_nobody_needs_it(self):
        """Both ask over it; then it is made again."""
        accepts = ["accept=port", "write=1", "address", "forget"]
        connects = ["line=port", "connect=port", "write=1", "address", "line=x", "forget"]
        first, port = self.open_on("a", "-n", 1, UNIVERSE, "open", *accepts * 2, "wait=7000")
        second = self.on("b", "-n", 1, UNIVERSE, *connects * 2, stdin=subprocess.PIPE)
        for _ in range(2):
            second.stdin.write(port + "\n")
            second.stdin.flush()
            self.assertEqual(len(self.wait_for_lines(second, 2)), 2)
            time.sleep(2.5)  # longer than a link stays that nobody needs
            self.assertEqual(len(self.links()), 1)
            second.stdin.write("\n")
            second.stdin.flush()
            self.wait_for(lambda: not self.links())
        self.finish(second)
        self.finish(first, *["met rank 0 of 1", "address 7 of host b, not local"] * 2)

    def meet(self):
        """Two that know each other, and wait for the other's end."""
        first, port = self.open_on("a", "-n", 1, UNIVERSE, "open", "accept=port", "life", "wait=200")
        second = self.on("b", "-n", 1, UNIVERSE, f"connect={port}", "life", "wait=200")
        self.assertEqual(self.wait_for_lines(first, 1), ["met rank 0 of 1"])
        self.assertEqual(self.wait_for_lines(second, 1), ["met rank 0 of 1"])
        return first, second

    def test_an_mpiexec_is_killed(self):
        for killed in (0, 1):
            pair = self.meet()
            begin = time.monotonic()
            pair[killed].kill()
            self.finish(pair[1 - killed], "it has failed")
            self.assert_nobody_waits_long(begin)
            self.assert_nothing_left()

    def test_the_remote_shell_is_killed(self):
        first, second = self.meet()
        begin = time.monotonic()
        self.signal_shells(signal.SIGKILL)
        self.finish(first, "it has failed")
        self.finish(second, "it has failed")
        self.assert_nobody_waits_long(begin)

    def test_a_machine_says_nothing_any_more(self):
        first, second = self.meet()
        begin = time.monotonic()
        first.send_signal(signal.SIGSTOP)
        self.finish(second, "it has failed")  # after 10 s
        self.assert_nobody_waits_long(begin, 15)
        first.send_signal(signal.SIGCONT)
        self.finish(first, "it has failed")

    def test_a_user_stops_one_for_a_while(self):
        """With Ctrl-Z: the other side waits."""
        first, second = self.meet()
        first.send_signal(signal.SIGTSTP)
        time.sleep(3)
        self.assertIsNone(second.poll())
        first.send_signal(signal.SIGCONT)
        time.sleep(1)
        self.assertIsNone(second.poll())
        first.terminate()
        first.communicate(timeout=20)
        self.finish(second, "it has failed")

    def test_a_rank_is_killed(self):
        first, port = self.open_on("a", "-n", 2, UNIVERSE, "0/open", "0/accept=port", "0/wait=300", "0/raise=9",
                                   "1/wait=30000")
        second = self.on("b", "-n", 1, UNIVERSE, f"connect={port}", "life")
        first.communicate(timeout=20)
        self.finish(second, "met rank 0 of 2", "it has failed")


class BadInput(LinkTest):
    PORT = f"macadam-port:{VERSION}:{{}}:macadam-{32 * '0'}:{32 * '0'}"

    def shell(self, script):
        """A remote shell that does this."""
        path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "shell")
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    def connect(self, host):
        begin = time.monotonic()
        process = self.on("b", "-n", 1, UNIVERSE, f"fails=connect={self.PORT.format(host)}")
        line = self.failed_line(process, MPI_ERR_PORT)
        self.assert_nobody_waits_long(begin)
        return line

    def test_nobody_there(self):
        line = self.connect("c")
        self.assertIn("the mpiexec on host c has ended", line)

    def test_a_shell_that_fails(self):
        self.environment["MACADAM_SSH"] = "false"
        line = self.connect("c")
        self.assertIn('host c cannot be reached: false ended with status 1; "false c true" has to work', line)
        self.environment["MACADAM_SSH"] = "/no/such"
        self.assertIn("/no/such, which is to start mpiexec on host c, cannot be run", self.connect("c"))

    def test_another_version(self):
        self.environment["MACADAM_SSH"] = self.shell(
            "printf '\\nmacadam mpiexec proxy, version 9 (9.9)\\n'; cat > /dev/null")
        line = self.connect("c")
        self.assertIn("mpiexec on host c has version 9 (9.9) of Macadam, this machine ", line)
        self.assertIn("install the same version", line)

    def test_no_mpiexec_there(self):
        self.environment["MACADAM_SSH"] = self.shell("exit 127")
        self.assertIn("mpiexec cannot be run on host c", self.connect("c"))

    def test_a_host_that_is_an_option_of_the_shell(self):
        for host in ("-oProxyCommand=true", "c;true", "c d"):
            self.assertIn(f'"{host}" is no name of a host', self.connect(host))

    def test_a_shell_that_does_not_answer(self):
        """The time-out of the call counts, and the shell is not left behind."""
        self.environment["MACADAM_SSH"] = self.shell("exec sleep 100")
        process = self.on("b", "-n", 1, UNIVERSE, f"fails=connect_in_vain={self.PORT.format('c')}", "wait=1500")
        line = self.failed_line(process, MPI_ERR_PORT)
        self.assertIn("did not come within 0.1 s", line)

    def test_a_port_that_is_closed(self):
        first, port = self.open_on("a", "-n", 1, UNIVERSE, "open", "close=port", "wait=2000")
        time.sleep(0.2)
        line = self.failed_line(self.on("b", "-n", 1, UNIVERSE, f"fails=connect={port}"), MPI_ERR_PORT)
        self.assertIn("the port was closed", line)
        self.finish(first)

    def test_nobody_accepts(self):
        first, port = self.open_on("a", "-n", 1, UNIVERSE, "open", "wait=2500", "fails=accept_in_vain=port")
        second = self.on("b", "-n", 1, UNIVERSE, f"fails=connect_in_vain={port}")
        self.assertIn("did not come within 0.1 s", self.failed_line(second, MPI_ERR_PORT))
        # Who gave up is not met.
        self.assertIn("did not come within 0.1 s", self.failed_line(first, MPI_ERR_OTHER))

    def test_no_secret_is_on_a_command_line(self):
        first, port = self.open_on("a", "-n", 1, UNIVERSE, "open", "accept=port", "wait=1000")
        second = self.on("b", "-n", 1, UNIVERSE, "line=port", "connect=port", "wait=1000", stdin=subprocess.PIPE)
        second.stdin.write(port + "\n")
        second.stdin.flush()
        self.wait_for_lines(second, 1)
        _, _, _, socket, key = port.split(":")
        lines = marked_processes(self.mark)
        self.assertTrue(any("--link" in line for line in lines))
        for line in lines:
            self.assertNotIn(socket, line)
            self.assertNotIn(key, line)
        self.finish(second)
        self.finish(first, "met rank 0 of 1")


if __name__ == "__main__":
    unittest.main()
