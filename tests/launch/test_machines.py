# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that ranks start on other machines of their mpiexec, and meet there: asked for without MPI
(launch_universe.cc); the machines are this one under other names (remote_shell.py)."""
import os
import pathlib
import signal
import sys
import time

from common import MPIEXEC, LaunchTest, marked_processes
from universe import VERSION

UNIVERSE = os.environ["LAUNCH_UNIVERSE"]
SHELL = pathlib.Path(__file__).with_name("remote_shell.py")
MPI_ERR_OTHER, MPI_ERR_SERVICE, MPI_ERR_NAME, MPI_ERR_PORT, MPI_ERR_SPAWN = 16, 51, 38, 43, 53
HOSTS = "one, two"


def spawn(count, *actions, host=None):
    return f"spawn={count},{','.join([UNIVERSE, *map(str, actions)])}" + (f";host:{host}" if host else "")


class MachinesTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.environment["MACADAM_SSH"] = f"{sys.executable} -SE {SHELL}"

    def universe(self, *actions, options=()):
        return self.mpiexec(*options, "-host", "one,two", UNIVERSE, *actions)

    def start_universe(self, *actions):
        return self.start("-host", "one,two", UNIVERSE, *actions)

    def running(self, words):
        """Of this test's processes, those whose command line has these words; without watchdogs."""
        found = [int(line.split(":")[0]) for line in marked_processes(self.mark) if words in line]
        return [pid for pid in found if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith(("mpiexec", "python"))]

    def failed_line(self, result, error_class):
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = [l for l in result.stdout.splitlines() if l.startswith(f"{error_class}: ")]
        self.assertEqual(len(lines), 1, result.stdout)
        return lines[0]


class Spawning(MachinesTest):
    def test_on_each_machine(self):
        for rank in (0, 1):
            for host in ("one", "two"):
                result = self.universe(f"{rank}/spawn=1,hostname;host:{host}",
                                       f"{rank}/" + spawn(2, "who", "parent", "wait=200", host=host), f"{rank}/meet", "wait=700")
                self.assert_ran(result, ["spawned 1", host, "spawned 2", "met a job of 2",
                                         *[f"rank {i} of 2, app 0, spawned by rank {rank}" for i in range(2)],
                                         *[f"met rank {rank} of 2"] * 2])

    def test_where_there_is_most_room(self):
        """Two processes on each machine in turn, as both have as many cores."""
        result = self.universe(*["0/" + spawn(2, "host", "wait=700")] * 2, "wait=1000")
        self.assert_ran(result, ["spawned 2"] * 2 + ["one", "one", "two", "two"])

    def test_numbers_are_unique(self):
        result = self.universe(*["0/" + spawn(1, "print=x", host=host) for host in ("one", "two", "two")],
                               "wait=1000", options=["-l"])
        self.assert_ran(result, ["[0] spawned 1"] * 3 + ["[2:0] x", "[3:0] x", "[4:0] x"])

    def test_environment_is_that_of_the_parent_program(self):
        result = self.universe("0/" + spawn(1, "variable=SOME", host="two"), "wait=1000", options=["-genv", "SOME", "2"])
        self.assert_ran(result, ["spawned 1", "SOME=2"])

    def test_what_cannot_be_started(self):
        for command, parts in (("spawn=1,/no/such;host:two", ["/no/such"]),
                               (spawn(1, host="three"), ["three", HOSTS]),
                               (spawn(5000, host="two"), ["4096"]),
                               (f"{spawn(1, host='one')}&1,{UNIVERSE};host:two", ["one machine"])):
            with self.subTest(command):
                line = self.failed_line(self.universe(f"0/fails={command}", "1/wait=1500"), MPI_ERR_SPAWN)
                for part in parts:
                    self.assertIn(part, line)

    def test_called_off(self):
        result = self.universe(f"0/spawn_and_forget=8,{UNIVERSE},wait=30000;host:two", "wait=200", "print=on")
        self.assert_ran(result, ["on", "on"])

    def test_trees(self):
        result = self.universe("0/" + spawn(1, "tree=3", "wait=500"), "wait=700")
        self.assert_ran(result, ["spawned 1", "tree 3", *["tree 2"] * 2, *["tree 1"] * 4, *["tree 0"] * 8])


class Meeting(MachinesTest):
    def test_parent_and_child_find_each_other(self):
        result = self.universe("0/write=1", "0/" + spawn(1, "write=1", "parent", "address", "wait=100", host="two"),
                               "0/address", "wait=1000")
        self.assert_ran(result, ["spawned 1", "met rank 0 of 2", "address 7 of host one, not local",
                                 "address 7 of host two, not local"])

    def test_a_child_of_a_rank_alone_on_its_machine(self):
        """Its parent has opened no shared memory."""
        result = self.universe("0/write=1", "0/" + spawn(1, "parent", "address", host="one"), "wait=200")
        self.assert_ran(result, ["spawned 1", "met rank 0 of 2", "address 7 of host one, not local"])

    def test_a_port_of_another_mpiexec(self):
        """From a machine where its job has nobody: through the part that is beside it."""
        other = self.start("-host", "one", UNIVERSE, "open", "accept=port", "address", "write=3", "wait=300")
        port = self.wait_for_lines(other, 1)[0].split()[1]
        result = self.universe("write=5", "0/wait=1000", f"1/connect={port}", "1/address", "1/wait=300")
        self.assert_ran(result, ["met rank 0 of 1", "address 7 of host one, not local"])
        out, error = other.communicate(timeout=20)
        self.assertEqual((other.returncode, error, out.splitlines()),
                         (0, "", ["met rank 1 of 2", "address 7 of host one, not local"]))

    def test_jobs_of_different_machines(self):
        """By a name; each then knows the other's address, and that it is over."""
        accepts = spawn(1, "open", f"publish={self.mark}", "accept=port", "write=1", "wait=300", host="one")
        connects = spawn(2, "0/wait=200", f"0/look_up={self.mark}", "0/connect=port", "0/address", "0/life", host="two")
        result = self.universe("0/" + accepts, "1/" + connects, "wait=1000")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = [line for line in result.stdout.splitlines() if not line.startswith("port")]
        self.assertEqual(sorted(lines), sorted(["spawned 1", "spawned 2", "published",
                                                "met rank 0 of 2", "met rank 0 of 1",
                                                "address 7 of host one, not local", "it is over"]))

    def test_a_name_is_given_once(self):
        result = self.universe("open", f"0/publish={self.mark}", "1/wait=200", f"1/fails=publish={self.mark}",
                               f"1/fails=unpublish={self.mark}", "1/fails=look_up=nobody", f"1/look_up={self.mark}",
                               "wait=300")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        heads = sorted(line.split(":")[0].split()[0] for line in result.stdout.splitlines())
        self.assertEqual(heads, sorted(["port"] * 3 + ["published", str(MPI_ERR_SERVICE), str(MPI_ERR_SERVICE),
                                                       str(MPI_ERR_NAME)]))

    def test_a_name_ends_with_its_job(self):
        publishes = spawn(1, "open", f"publish={self.mark}", host="two")
        result = self.universe("0/" + publishes, "0/wait=400", f"0/fails=look_up={self.mark}", "1/wait=500")
        self.failed_line(result, MPI_ERR_NAME)

    def test_a_port_is_good_for_its_jobs_life(self):
        process = self.start("-host", "one,two", UNIVERSE, "0/" + spawn(1, "open", host="two"), "0/line=port",
                             "0/fails=connect=port", "1/wait=200", stdin=-1)
        lines = self.wait_for_lines(process, 2)
        port = [line for line in lines if line.startswith("port")][0].split()[1]
        time.sleep(0.3)
        out, error = process.communicate(port + "\n", timeout=20)
        self.assertEqual((process.returncode, error), (0, ""))
        self.assertTrue(out.startswith(f"{MPI_ERR_PORT}: "), out)

    def test_ports_that_lead_nowhere(self):
        key = 32 * "0"
        for host, parts in (("three", ["host three", "has ended"]), ("two", ["host two", "has ended"])):
            port = f"macadam-port:{VERSION}:{host}:macadam-{key}:{key}"
            line = self.failed_line(self.universe(f"0/fails=connect={port}", "wait=50"), MPI_ERR_PORT)
            for part in parts:
                self.assertIn(part, line)

    def test_nobody_comes(self):
        result = self.universe("0/open", "0/" + f"publish={self.mark}", "1/wait=100", f"1/look_up={self.mark}",
                               "1/fails=connect_in_vain=port", "0/wait=500")
        self.assertIn("did not come within 0.1 s", self.failed_line(result, MPI_ERR_PORT))


class Ends(MachinesTest):
    def test_a_failure_ends_all_jobs(self):
        result = self.universe("0/" + spawn(2, "wait=200", "1/raise=9", "wait=30000", host="two"), "wait=30000")
        self.assert_fails(result, 137, "mpiexec: rank 1 of job 2 (spawned by rank 0) on host two was killed "
                                       "by signal 9 (Killed); ending the other 3 ranks")

    def test_a_failure_after_one_that_ends_nobody(self):
        result = self.universe("0/" + spawn(1, "leave", "exit=5", host="two"), "wait=400", "1/raise=9", "wait=30000")
        self.assert_fails(result, 5, "mpiexec: rank 0 of job 2 (spawned by rank 0) on host two exited with status 5",
                          "mpiexec: rank 1 on host two was killed by signal 9 (Killed); ending the other rank")

    def test_an_abort_of_a_child(self):
        result = self.universe("0/" + spawn(1, "wait=200", "abort=5", host="two"), "wait=30000")
        self.assert_fails(result, 5, "mpiexec: rank 0 of job 2 (spawned by rank 0) on host two called "
                                     "MPI_Abort; ending the other 2 ranks")

    def test_a_parent_that_fails_ends_its_children(self):
        result = self.universe("0/" + spawn(2, "wait=30000", host="two"), "0/wait=500", "0/raise=11",
                               "wait=30000")
        self.assert_fails(result, 139, "mpiexec: rank 0 on host one was killed by signal 11 "
                                       "(Segmentation fault); ending the other 3 ranks")

    def test_children_may_outlive_all_ranks_of_their_machine(self):
        result = self.universe("0/" + spawn(1, "wait=500", "print=later", host="two"), "1/wait=300")
        self.assert_ran(result, ["spawned 1", "later"])

    def test_where_all_have_ended_nothing_is_started(self):
        """Before that is known, and after."""
        for pause in (20, 40, 300):
            result = self.universe(f"0/wait={pause}", "0/fails=" + spawn(1, host="two"),
                                   "0/" + spawn(1, host="one"), "0/wait=100")
            self.assertIn("host two", self.failed_line(result, MPI_ERR_SPAWN))

    def test_the_hang_page_has_all_jobs(self):
        process = self.start("-timeout", 1, "-host", "one,two", UNIVERSE,
                             "0/" + spawn(2, "wait=30000", host="two"), "wait=30000")
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 124)
        self.assertIn("what 2 ranks on 2 hosts are waiting for", error)
        self.assertIn("what 2 ranks of job 2 (spawned by rank 0) on host two are waiting for", error)

    def test_kills(self):
        """Of mpiexec, of what connects it with a machine, of a machine's part of it; while a child runs."""
        for words in (f"{MPIEXEC} -host", f"-SE {SHELL} two", f"{MPIEXEC} --proxy"):
            with self.subTest(words):
                process = self.start_universe("0/" + spawn(2, "wait=30000", host="two"), "wait=30000")
                self.wait_for_lines(process, 1)
                os.kill(self.running(words)[-1], signal.SIGKILL)
                self.assert_nothing_left(within=6.0)


if __name__ == "__main__":
    import unittest
    unittest.main()
