# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that ranks start."""
import os
import resource
import signal
import subprocess
import tempfile
import unittest

from common import HOST, MPIEXEC
from universe import MPI_ERR_OTHER, MPI_ERR_SPAWN, OTHER_USER, UNIVERSE, UniverseTest, sockets_of, spawn


class Spawning(UniverseTest):
    def test_a_job_of_its_own_numbers(self):
        result = self.universe(2, "who", "0/" + spawn(3, "who", "parent", "wait=50"), "0/meet", "wait=100")
        self.assert_ran(result, ["rank 0 of 2, app 0, no parent", "rank 1 of 2, app 0, no parent",
                                 "spawned 3", "met a job of 3",
                                 *[f"rank {i} of 3, app 0, spawned by rank 0" for i in range(3)],
                                 *["met rank 0 of 2"] * 3])

    def test_several_commands(self):
        commands = f"{spawn(1, 'who', 'parent')}&2,{UNIVERSE},who,parent"
        result = self.universe(1, commands, "wait=200")
        self.assert_ran(result, ["spawned 1+2", *["met rank 0 of 1"] * 3,
                                 "rank 0 of 3, app 0, spawned by rank 0",
                                 "rank 1 of 3, app 1, spawned by rank 0",
                                 "rank 2 of 3, app 1, spawned by rank 0"])

    def test_memory_is_shared_both_ways(self):
        for start in (self.universe, lambda _, *actions: self.alone(*actions)):
            result = start(1, "write=5", spawn(1, "write=7", "parent", "read", "wait=200"), "read", "wait=200")
            self.assert_ran(result, ["spawned 1", "met rank 0 of 1", "read 5", "read 7"])

    def test_trees(self):
        result = self.universe(1, spawn(1, "tree=3", "wait=300"), "wait=300")
        self.assert_ran(result, ["spawned 1", "tree 3", *["tree 2"] * 2, *["tree 1"] * 4,
                                 *["tree 0"] * 8])

    def test_many_one_after_the_other(self):
        """Nothing grows: mpiexec has as many descriptors after 100 jobs as after 10."""
        process = self.start("-n", 1, UNIVERSE, *[spawn(1), "wait=30"] * 10, "print=ten", "line=x",
                             *[spawn(1), "wait=5"] * 90, "wait=100", "print=hundred", "line=x",
                             stdin=subprocess.PIPE)
        counts = []
        for word in ("ten", "hundred"):
            while (line := process.stdout.readline().strip()) != word:
                self.assertEqual(line, "spawned 1")
            counts.append(len(os.listdir(f"/proc/{process.pid}/fd")))
            process.stdin.write("\n")
            process.stdin.flush()
        self.assertEqual(process.wait(20), 0)
        self.assertEqual(counts[0], counts[1])

    def test_where_and_what(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(UNIVERSE, f"{folder}/found_there")
            with open(f"{folder}/info", "w") as file:
                file.write(f"# where\nwdir = {folder}\npath = {folder}\n")
            for info in (f";wdir:{folder};path:{folder}", f";file:{folder}/info", f";wdir:{folder};host:localhost;path:."):
                name = "found_there"
                if info.endswith("path:."):
                    name = UNIVERSE
                result = self.universe(1, f"spawn=1,{name},folder{info}", "wait=100")
                self.assert_ran(result, ["spawned 1", os.path.realpath(folder)])

    def test_environment_is_that_of_the_parent_program(self):
        result = self.mpiexec("-genv", "ALL", "1", "-n", "1", "-env", "SOME", "2", UNIVERSE,
                              spawn(1, "variable=ALL", "variable=SOME"), "wait=100")
        self.assert_ran(result, ["spawned 1", "ALL=1", "SOME=2"])

    def test_universe_size(self):
        self.assert_ran(self.mpiexec("-usize", "7", "-n", "1", UNIVERSE, "size"), ["universe 7"])
        cores = str(len(os.sched_getaffinity(0)))
        result = self.universe(1, "size")
        self.assertRegex(result.stdout, r"universe \d+")
        self.assertLessEqual(int(result.stdout.split()[1]), int(cores))
        self.assert_ran(self.universe(5, "0/size"), ["universe 5"])

    def test_what_cannot_be_started(self):
        for command, parts in ((f"spawn=2,/no/such/program", ["/no/such/program"]),
                               ("spawn=1,no_such_program", ["no_such_program", "PATH"]),
                               ("spawn=1,/dev/null", ["/dev/null", "no program"]),
                               (spawn(1, info=";host:elsewhere"), ["elsewhere", HOST]),
                               (spawn(1, info=";wdir:/no/folder"), ["/no/folder"]),
                               (spawn(5000), ["4096"]),
                               (spawn(2**31 - 1), ["2147483647", "4096"]),
                               ("&".join([spawn(2**31 - 1)] + [f"{count},{UNIVERSE}" for count in (2**31 - 1, 4)]),
                                [str(2**32 + 2), "4096"]),
                               (f"{spawn(1, 'print=started')}&1,/no/such", ["/no/such"])):
            with self.subTest(command):
                result = self.universe(1, f"fails={command}", "wait=20")
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assert_failed_line(result, MPI_ERR_SPAWN, *parts)
                self.assertNotIn("started", result.stdout.replace("be started", ""))

    def test_a_program_that_exec_refuses(self):
        with tempfile.NamedTemporaryFile("w", suffix=".bin", delete=False) as file:
            file.write("#!/no/such/interpreter\n")
        os.chmod(file.name, 0o700)
        self.addCleanup(os.unlink, file.name)
        result = self.universe(1, f"fails=spawn=2,{file.name}", spawn(1), "wait=50")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assert_failed_line(result, MPI_ERR_SPAWN, file.name)
        self.assertIn("spawned 1", result.stdout)

    def test_no_descriptors(self):
        """The memory of the job's descriptor is 64; of the next, 65; there is none for a third."""
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (66, 66))
        result = self.universe(1, spawn(1, "wait=500"), "fails=" + spawn(1, "print=started"), "wait=100",
                               preexec_fn=limit)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assert_failed_line(result, MPI_ERR_SPAWN, "descriptor")
        self.assertNotIn("\nstarted", result.stdout)

    @unittest.skipUnless(os.geteuid() == 0, "a limit on processes is set for another user")
    def test_no_processes(self):
        """Of 40 none is left; of 1, 2 or 40 there are two."""
        def limit():
            os.setgid(OTHER_USER)
            os.setuid(OTHER_USER)
            resource.setrlimit(resource.RLIMIT_NPROC, (20, 20))
        try:
            result = self.universe(1, "fails=" + spawn(40, "print=started"), spawn("1|2|40", "who"), "wait=200",
                                   preexec_fn=limit)
        except (PermissionError, subprocess.SubprocessError):
            self.skipTest("another user cannot run the programs of this folder")
        if "Permission denied" in result.stderr:
            self.skipTest("another user cannot run the programs of this folder")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assert_failed_line(result, MPI_ERR_SPAWN, "40 processes")
        self.assertNotIn("\nstarted", result.stdout)
        self.assertIn("spawned 2", result.stdout)

    def test_a_control_group_that_is_full(self):
        """As with a limit on the processes of a user: mpiexec with its watchdog, the rank and two more have room."""
        group = self.control_group("pids", "pids.max", value=5)
        result = self.universe(1, "fails=" + spawn(40, "print=started"), spawn("1|2|40", "who"), "wait=300",
                               preexec_fn=group.enter)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assert_failed_line(result, MPI_ERR_SPAWN, "40 processes")
        self.assertNotIn("\nstarted", result.stdout)
        self.assertIn("spawned 2", result.stdout)

    def test_no_file_of_that_size(self):
        """The memory of a job is a sparse file, of which the limit allows that of the first only."""
        process = self.start("-n", 1, UNIVERSE, "line=x", "fails=" + spawn(2, "print=started"), "line=x",
                             spawn(1, "who"), "wait=100", stdin=subprocess.PIPE)
        self.wait_for(lambda: len(sockets_of(process)) == 1)
        before = resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        process.stdin.write("\n")
        process.stdin.flush()
        line = self.wait_for_lines(process, 1)[0]
        self.assertTrue(line.startswith(f"{MPI_ERR_SPAWN}: "), line)
        self.assertIn("ulimit -f", line)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, before)
        out, error = process.communicate("\n", timeout=20)
        self.assertEqual((process.returncode, error), (0, ""))
        self.assertEqual(sorted(out.splitlines()), ["rank 0 of 1, app 0, spawned by rank 0", "spawned 1"])

    def test_no_address_space(self):
        """mpiexec maps what it shares with the ranks of a job; a spawn that it has no room for fails alone."""
        process = self.start("-n", 1, UNIVERSE, "line=x", "fails=" + spawn(64, "print=started"), "line=x",
                             spawn(1, "who"), "wait=100", stdin=subprocess.PIPE)
        self.wait_for(lambda: len(sockets_of(process)) == 1)
        with open(f"/proc/{process.pid}/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        before = resource.prlimit(process.pid, resource.RLIMIT_AS, (used + (4 << 20), resource.RLIM_INFINITY))
        process.stdin.write("\n")
        process.stdin.flush()
        line = self.wait_for_lines(process, 1)[0]
        self.assertTrue(line.startswith(f"{MPI_ERR_SPAWN}: 64 processes cannot be started: "), line)
        self.assertIn("Cannot allocate memory", line)
        resource.prlimit(process.pid, resource.RLIMIT_AS, before)
        out, error = process.communicate("\n", timeout=20)
        self.assertEqual((process.returncode, error), (0, ""))
        self.assertEqual(sorted(out.splitlines()), ["rank 0 of 1, app 0, spawned by rank 0", "spawned 1"])

    def test_called_off(self):
        """A job whose parent does not want it any more is ended, and that is no failure."""
        result = self.universe(1, f"spawn_and_forget=8,{UNIVERSE},wait=30000", "wait=100", "print=on")
        self.assert_ran(result, ["on"])

    def test_labels(self):
        result = self.mpiexec("-l", "-n", "1", UNIVERSE, spawn(2, "print=hello"), "wait=100")
        self.assert_ran(result, ["[0] spawned 2", "[2:0] hello", "[2:1] hello"])


class Ends(UniverseTest):
    def test_a_failure_ends_all_jobs(self):
        result = self.universe(2, "0/" + spawn(2, "wait=200", "1/raise=9", "wait=30000"), "wait=30000")
        self.assert_fails(result, 137, f"mpiexec: rank 1 of job 2 (spawned by rank 0) on host {HOST} was killed "
                                       "by signal 9 (Killed); ending the other 3 ranks")

    def test_a_parent_that_fails_ends_its_children(self):
        result = self.universe(1, spawn(2, "wait=30000"), "raise=11")
        self.assert_fails(result, 139, f"mpiexec: rank 0 on host {HOST} was killed by signal 11 "
                                       "(Segmentation fault); ending the other 2 ranks")

    def test_a_parent_that_dies_while_its_children_start(self):
        for signal_number in (9, 15):
            result = self.universe(1, f"spawn_and_forget=16,{UNIVERSE},wait=30000", f"raise={signal_number}")
            self.assertEqual(result.returncode, 128 + signal_number)

    def test_a_failure_after_one_that_ends_nobody(self):
        """The first decides the status."""
        result = self.universe(2, "0/" + spawn(1, "leave", "exit=5"), "wait=400", "0/raise=9", "wait=30000")
        self.assert_fails(result, 5, f"mpiexec: rank 0 of job 2 (spawned by rank 0) on host {HOST} exited with status 5",
                          f"mpiexec: rank 0 on host {HOST} was killed by signal 9 (Killed); ending the other rank")

    def test_an_abort_of_a_child(self):
        result = self.universe(1, spawn(1, "wait=200", "abort=5"), "wait=30000")
        self.assert_fails(result, 5, f"mpiexec: rank 0 of job 2 (spawned by rank 0) on host {HOST} called "
                                     "MPI_Abort; ending the other rank")

    def test_what_a_child_has_written_before_it_aborts(self):
        """Also where the parent's spawn fails by it."""
        for _ in range(10):
            result = self.universe(1, spawn(1, "buffer=last words", "abort=5"), "wait=1000")
            self.assertIn("last words", result.stdout)

    def test_a_child_that_ends_well_ends_nobody(self):
        self.assert_ran(self.universe(1, spawn(1), "wait=200", "print=on"), ["spawned 1", "on"])

    def test_a_parent_may_end_before_its_children(self):
        result = self.universe(1, spawn(1, "wait=300", "print=later"))
        self.assert_ran(result, ["spawned 1", "later"])

    def test_mpiexec_killed(self):
        process = self.start("-n", 1, UNIVERSE, spawn(2, "wait=30000"), "wait=30000")
        self.wait_for_lines(process, 1)
        process.kill()
        self.assert_nothing_left(within=3.0)

    def test_a_job_that_has_ended_is_known_still(self):
        result = self.universe(1, spawn(1, "who"), "wait=300", "meet")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("met a job of 1", result.stdout)

    def test_the_hang_page_tells_jobs_apart(self):
        process = self.start("-n", 1, "-timeout", "1", UNIVERSE, spawn(2, "wait=30000"), "wait=30000")
        out, error = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 124)
        self.assertIn(f"what 1 rank on host {HOST} is waiting for", error)
        self.assertIn(f"what 2 ranks of job 2 (spawned by rank 0) on host {HOST} are waiting for", error)


class Alone(UniverseTest):
    def test_spawns(self):
        result = self.alone(spawn(2, "parent"), "meet", "wait=100", "children")
        self.assert_ran(result, ["spawned 2", "met a job of 2", *["met rank 0 of 1"] * 2,
                                 "1", ""])  # the shell that counts: mpiexec is no child

    def test_killed(self):
        process = self.start(spawn(2, "wait=30000"), "wait=30000", launcher=UNIVERSE)
        self.wait_for_lines(process, 1)
        process.kill()
        self.assert_nothing_left(within=3.0)

    def test_a_child_fails(self):
        result = self.alone(spawn(1, "wait=200", "raise=9"), "wait=30000")
        self.assertIn("rank 0 of job 2 (spawned by rank 0)", result.stderr)
        self.assertNotEqual(result.returncode, 0)

    def test_its_mpiexec_is_killed(self):
        process = self.start(spawn(2, "wait=30000"), "line=x", "fails=open", launcher=UNIVERSE,
                             stdin=subprocess.PIPE)
        self.wait_for_lines(process, 1)
        # The watchdog is called so, too, until it has come to say who it is.
        self.wait_for(lambda: len(self.servers()) == 1)
        os.kill(self.servers()[0], signal.SIGKILL)
        out, error = process.communicate("\n", timeout=20)
        self.assertIn(f"{MPI_ERR_OTHER}: mpiexec cannot be reached", out)
        self.assertEqual(process.returncode, 0)

    def servers(self):
        return [int(e) for e in os.listdir("/proc") if e.isdigit() and self.is_server_of(e)]

    def is_server_of(self, pid):
        def read(name):
            with open(f"/proc/{pid}/{name}", encoding="utf8", errors="replace") as file:
                return file.read()
        try:
            return ("--serve-lone-program" in read("cmdline") and self.mark in read("environ")
                    and read("comm").strip() == "mpiexec")  # and not its watchdog
        except OSError:
            return False

    def test_no_mpiexec(self):
        self.environment["MACADAM_MPIEXEC"] = "/bin/true"
        result = self.alone("fails=open")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assert_failed_line(result, MPI_ERR_OTHER, "/bin/true", "mpiexec -n 1")


if __name__ == "__main__":
    unittest.main()
