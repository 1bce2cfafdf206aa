# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that ranks start and jobs that they meet, asked for without MPI (launch_universe.cc)."""
import array
import multiprocessing
import os
import resource
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from common import HOST, MPIEXEC, LaunchTest

UNIVERSE = os.environ["LAUNCH_UNIVERSE"]
OTHER_USER = 65534
MPI_ERR_OTHER, MPI_ERR_SERVICE, MPI_ERR_NAME, MPI_ERR_PORT, MPI_ERR_SPAWN = 16, 51, 38, 43, 53


def spawn(count, *actions, info=""):
    return f"spawn={count},{','.join([UNIVERSE, *map(str, actions)])}{info}"


def all_sockets() -> dict[str, str]:
    """The abstract sockets of Macadam that listen, by inode; other tests may have some too."""
    found = {}
    with open("/proc/net/unix") as table:
        for line in table:
            fields = line.split()
            if fields[-1].startswith("@macadam-") and fields[3] == "00010000":
                found[fields[6]] = fields[-1][1:]
    return found


def sockets_of(process) -> set[str]:
    """Those of one process."""
    links = set()
    for entry in os.scandir(f"/proc/{process.pid}/fd"):
        try:
            links.add(os.readlink(entry.path))
        except FileNotFoundError:
            pass  # closed meanwhile
    return {name for inode, name in all_sockets().items() if f"socket:[{inode}]" in links}


class UniverseTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.environment["MACADAM_MPIEXEC"] = MPIEXEC

    def universe(self, ranks, *actions, **options):
        return self.mpiexec("-n", ranks, UNIVERSE, *actions, **options)

    def alone(self, *actions, **options):
        return self.mpiexec(*actions, launcher=UNIVERSE, **options)

    def assert_failed_line(self, result, error_class, *parts):
        """One line of output tells the class and, in its sentence, all parts."""
        lines = [l for l in result.stdout.splitlines() if l.startswith(f"{error_class}: ")]
        self.assertEqual(len(lines), 1, result.stdout + result.stderr)
        for part in parts:
            self.assertIn(part, lines[0])


class Spawning(UniverseTest):
    def test_a_job_of_its_own_numbers(self):
        result = self.universe(2, "who", "0/" + spawn(3, "who", "parent", "wait=50"), "0/meet", "wait=100")
        self.assert_ran(result, ["rank 0 of 2, app 0, no parent", "rank 1 of 2, app 0, no parent",
                                 "spawned 3, codes 0,0,0", "met a job of 3",
                                 *[f"rank {i} of 3, app 0, spawned by rank 0" for i in range(3)],
                                 *["met rank 0 of 2"] * 3])

    def test_several_commands(self):
        commands = f"{spawn(1, 'who', 'parent')}&2,{UNIVERSE},who,parent"
        result = self.universe(1, commands, "wait=200")
        self.assert_ran(result, ["spawned 1+2, codes 0,0,0", *["met rank 0 of 1"] * 3,
                                 "rank 0 of 3, app 0, spawned by rank 0",
                                 "rank 1 of 3, app 1, spawned by rank 0",
                                 "rank 2 of 3, app 1, spawned by rank 0"])

    def test_memory_is_shared_both_ways(self):
        for start in (self.universe, lambda _, *actions: self.alone(*actions)):
            result = start(1, "write=5", spawn(1, "write=7", "parent", "read", "wait=200"), "read", "wait=200")
            self.assert_ran(result, ["spawned 1, codes 0", "met rank 0 of 1", "read 5", "read 7"])

    def test_trees(self):
        result = self.universe(1, spawn(1, "tree=3", "wait=300"), "wait=300")
        self.assert_ran(result, ["spawned 1, codes 0", "tree 3", *["tree 2"] * 2, *["tree 1"] * 4,
                                 *["tree 0"] * 8])

    def test_many_one_after_the_other(self):
        """Nothing grows: mpiexec has as many descriptors after 100 jobs as after 10."""
        process = self.start("-n", 1, UNIVERSE, *[spawn(1), "wait=30"] * 10, "print=ten", "line=x",
                             *[spawn(1), "wait=5"] * 90, "wait=100", "print=hundred", "line=x",
                             stdin=subprocess.PIPE)
        counts = []
        for word in ("ten", "hundred"):
            while (line := process.stdout.readline().strip()) != word:
                self.assertEqual(line, "spawned 1, codes 0")
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
                self.assert_ran(result, ["spawned 1, codes 0", os.path.realpath(folder)])

    def test_environment_is_that_of_the_parent_program(self):
        result = self.mpiexec("-genv", "ALL", "1", "-n", "1", "-env", "SOME", "2", UNIVERSE,
                              spawn(1, "variable=ALL", "variable=SOME"), "wait=100")
        self.assert_ran(result, ["spawned 1, codes 0", "ALL=1", "SOME=2"])

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
        self.assertIn("spawned 1, codes 0", result.stdout)

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
        codes = ",".join(["0"] * 2 + [str(MPI_ERR_SPAWN)] * 38)
        self.assertIn(f"spawned 2, codes {codes}", result.stdout)

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
        self.assertEqual(sorted(out.splitlines()), ["rank 0 of 1, app 0, spawned by rank 0", "spawned 1, codes 0"])

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
        self.assertEqual(sorted(out.splitlines()), ["rank 0 of 1, app 0, spawned by rank 0", "spawned 1, codes 0"])

    def test_called_off(self):
        """A job whose parent does not want it any more is ended, and that is no failure."""
        result = self.universe(1, f"spawn_and_forget=8,{UNIVERSE},wait=30000", "wait=100", "print=on")
        self.assert_ran(result, ["on"])

    def test_labels(self):
        result = self.mpiexec("-l", "-n", "1", UNIVERSE, spawn(2, "print=hello"), "wait=100")
        self.assert_ran(result, ["[0] spawned 2, codes 0,0", "[2:0] hello", "[2:1] hello"])


class Ends(UniverseTest):
    def test_a_failure_ends_all_jobs(self):
        result = self.universe(2, "0/" + spawn(2, "1/raise=9", "wait=30000"), "wait=30000")
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
        result = self.universe(1, spawn(1, "abort=5"), "wait=30000")
        self.assert_fails(result, 5, f"mpiexec: rank 0 of job 2 (spawned by rank 0) on host {HOST} called "
                                     "MPI_Abort; ending the other rank")

    def test_a_child_that_ends_well_ends_nobody(self):
        self.assert_ran(self.universe(1, spawn(1), "wait=200", "print=on"), ["spawned 1, codes 0", "on"])

    def test_a_parent_may_end_before_its_children(self):
        result = self.universe(1, spawn(1, "wait=300", "print=later"))
        self.assert_ran(result, ["spawned 1, codes 0", "later"])

    def test_mpiexec_killed(self):
        process = self.start("-n", 1, UNIVERSE, spawn(2, "wait=30000"), "wait=30000")
        self.wait_for_lines(process, 1)
        process.kill()
        self.assert_nothing_left(within=3.0)

    def test_the_hang_page_tells_jobs_apart(self):
        process = self.start("-n", 1, "-timeout", "1", UNIVERSE, spawn(2, "wait=30000"), "wait=30000")
        out, error = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 124)
        self.assertIn(f"what 1 rank on host {HOST} is waiting for", error)
        self.assertIn(f"what 2 ranks of job 2 (spawned by rank 0) on host {HOST} are waiting for", error)


class Alone(UniverseTest):
    def test_spawns(self):
        result = self.alone(spawn(2, "parent"), "meet", "wait=100", "children")
        self.assert_ran(result, ["spawned 2, codes 0,0", "met a job of 2", *["met rank 0 of 1"] * 2,
                                 "1", ""])  # the shell that counts: mpiexec is no child

    def test_killed(self):
        process = self.start(spawn(2, "wait=30000"), "wait=30000", launcher=UNIVERSE)
        self.wait_for_lines(process, 1)
        process.kill()
        self.assert_nothing_left(within=3.0)

    def test_a_child_fails(self):
        result = self.alone(spawn(1, "raise=9"), "wait=30000")
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
        self.assertEqual([l.split(":")[0] for l in lines], [str(MPI_ERR_OTHER)] * 2)
        for line in lines:
            self.assertIn("did not come within 0.1 s", line)

    def test_one_that_gave_up_is_not_met(self):
        result = self.universe(2, "0/open", f"0/publish={self.mark}", "1/wait=150", f"1/look_up={self.mark}",
                               "1/fails=connect_in_vain=port", "0/wait=600", "0/fails=accept_in_vain=port")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertNotIn("met rank", result.stdout)

    def test_bad_ports(self):
        closed = self.universe(1, "open", "close=port", "fails=connect=port")
        self.assert_failed_line(closed, MPI_ERR_PORT, "closed")
        port = closed.stdout.split()[1]
        for bad, parts in ((port, ["has ended"]), ("nonsense", ["no port's name"]), (port[:-1], ["cut"]),
                           (port.replace(":3:", ":2:"), ["version", "2"]), (port[:-1] + "x", ["damaged"]),
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
        self.assertEqual(self.wait_for_lines(twice, 2)[1].split(":")[0], str(MPI_ERR_OTHER))
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
        self.assertIn("spawned 1, codes 0", out)
        self.assertLess(time.monotonic() - begin, 5)

    def test_garbage(self):
        for packet in (b"x", b"\0" * 44, os.urandom(1000), b"y" * 100000, os.urandom(44)):
            client = self.connect()
            client.send(packet)
            self.assertIn(b"no request" if len(packet) >= 44 else b"ends within", client.recv(1000))
            self.assertEqual(client.recv(1000), b"")
        self.assert_it_serves()

    def test_wrong_secret_and_version(self):
        def head(version=3, request=0):
            magic = 0x6d61636374726c
            return (magic.to_bytes(8, "little") + version.to_bytes(4, "little") + request.to_bytes(4, "little")
                    + os.urandom(16) + (0).to_bytes(4, "little") + bytes(4))
        for packet, part in ((head(version=9), b"version 9"), (head(), b"no job of the process"),
                             (head(request=8) + bytes(4), b"has ended"),
                             # What a part of mpiexec on another machine may ask, and nobody else.
                             *[(head(request=request), b"no job of the process") for request in (9, 10, 11, 12)],
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
