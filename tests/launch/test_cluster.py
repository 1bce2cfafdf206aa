# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on several machines: here all on one, by a stand-in for ssh that gives each its own host name."""
import os
import pathlib
import re
import signal
import sys
import tempfile
import time
import unittest

from common import HOST, MPIEXEC, RANK, LaunchTest, marked_processes

SHELL = str(pathlib.Path(__file__).with_name("remote_shell.py"))
SOON = 2.0  # seconds in which a failure has ended the job everywhere
SILENCE = r"\d+(\.\d+)? s"
SILENT = 12.0  # seconds in which who says nothing is gone if the machine is busy; SOON if not
TWO = ("-host", "one:2,two:2")
# Prints rank and host of a process without MPI.
PLACE = ("sh", "-c", 'echo "${MACADAM_JOB#*:} $(hostname)"')


class ClusterTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.environment["MACADAM_SSH"] = f"{sys.executable} -SE {SHELL}"

    def processes(self, words):
        """Of this test's processes, those whose command line has these words."""
        return [int(line.split(":")[0]) for line in marked_processes(self.mark) if words in line]

    def connections(self):
        return self.processes(f"-SE {SHELL}")

    def connection(self, host):
        return self.processes(f"-SE {SHELL} {host} ")[0]

    def proxies(self):
        return [pid for pid in self.processes(f"{MPIEXEC} --proxy") if pid not in self.connections()
                and pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf8") == "mpiexec\n"]

    def start_job(self, *actions, hosts=TWO, lines=4):
        """A job of which all ranks have met."""
        job = self.start(*hosts, RANK, "join", "meet", "barrier", "who", *actions)
        self.wait_for_lines(job, lines)
        return job

    def finish(self, job, within=SOON):
        begin = time.monotonic()
        out, error = job.communicate(timeout=20)
        self.assertLess(time.monotonic() - begin, within)
        return out, error


class Jobs(ClusterTest):
    def test_everybody_meets_everybody(self):
        for hosts, ranks in ((TWO, 4), (("-host", f"{HOST}:1,one:2"), 3), (("-host", "one"), 1),
                             (("-ppn", 2, "-host", "a,b,c,d,e,f,g,h"), 16),
                             (("-map-by", "node", "-host", "one:3,two:2"), 5)):
            result = self.mpiexec(*hosts, RANK, "join", "meet", "who", "barrier",
                                  "barrier", "finalize")
            self.assert_ran(result, [f"rank {rank} of {ranks}, app 0, launched"
                                     for rank in range(ranks)])

    def test_a_barrier_is_left_when_all_have_come(self):
        begin = time.monotonic()
        self.assert_ran(self.mpiexec(*TWO, RANK, "join", "0/sleep_ms=300", "barrier",
                                     "3/sleep_ms=300", "barrier", "finalize"), [])
        self.assertGreater(time.monotonic() - begin, 0.6)

    def test_an_address_is_waited_for(self):
        self.assert_ran(self.mpiexec(*TWO, RANK, "join", "3/sleep_ms=300", "meet", "barrier", "finalize"),
                        [])

    def test_several_programs(self):
        actions = ("join", "meet", "who", "barrier", "finalize")
        result = self.mpiexec(*TWO, "-n", 1, RANK, *actions, ":", "-n", 2, RANK, *actions, ":",
                              "-n", 1, RANK, *actions)
        self.assert_ran(result, ["rank 0 of 4, app 0, launched", "rank 1 of 4, app 1, launched",
                                 "rank 2 of 4, app 1, launched", "rank 3 of 4, app 2, launched"])

    def test_environment_and_folder(self):
        self.environment.update(A="ours", HOSTNAME="of-the-first", SSH_TTY="of-a-login")
        show = ("sh", "-c", "echo $A $B $HOSTNAME $SSH_TTY $(pwd)")
        with tempfile.TemporaryDirectory() as folder:
            folder = os.path.realpath(folder)
            result = self.mpiexec("-host", "one,two", "-genv", "B", "b' \"$c", *show, cwd=folder)
            self.assertEqual(result.stderr, "")
            for line in result.stdout.splitlines():
                self.assertRegex(line, rf"""^ours b' "\$c (of-the-first of-a-login )?{folder}$""")

    def test_input_goes_to_rank_0(self):
        text = "".join(f"{number}\n" for number in range(100_000))
        result = self.mpiexec("-host", "one,two", "cat", stdin=text)
        self.assertEqual((result.returncode, result.stderr, result.stdout), (0, "", text))
        # One that reads nothing holds nobody up.
        self.assert_ran(self.mpiexec("-host", "one,two", "true", stdin=text), [])

    def test_output_waits_for_a_slow_reader_and_is_whole(self):
        job = self.start("-host", "one,two", "seq", 1, 300_000)
        time.sleep(2.5)  # nobody reads, which is no failure of a machine
        out, error = job.communicate(timeout=30)
        self.assertEqual((job.returncode, error), (0, ""))
        self.assertEqual(sorted(map(int, out.split())), sorted([*range(1, 300_001)] * 2))

    def test_labels(self):
        result = self.mpiexec("-l", "-host", "one,two", "sh", "-c", "hostname; hostname >&2")
        self.assertEqual(sorted(result.stdout.splitlines()), ["[0] one", "[1] two"])
        self.assertEqual(sorted(result.stderr.splitlines()), ["[0] one", "[1] two"])

    def test_exit_status_after_finalize(self):
        result = self.mpiexec(*TWO, RANK, "join", "barrier", "finalize", "3/exit=4")
        self.assert_fails(result, 4, "mpiexec: rank 3 on host two exited with status 4")

    def test_the_secret_is_nowhere_to_be_seen_and_nothing_listens(self):
        job = self.start(*TWO, RANK, "join", "meet", "barrier", "secret", "compute")
        secrets = set(self.wait_for_lines(job, 4))
        self.assertEqual(len(secrets), 1)
        secret = bytes.fromhex(secrets.pop())
        for pid in map(int, (line.split(":")[0] for line in marked_processes(self.mark))):
            for name in ("cmdline", "environ"):
                data = pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
                self.assertNotIn(secret, data)
                self.assertNotIn(secret.hex().encode(), data)
        # A proxy has a socket from the stand-in; no other is there, and none listens.
        of_connections = {os.readlink(f"/proc/{pid}/fd/{fd}") for pid in self.proxies() for fd in (3, 6)}
        for pid in [job.pid, *self.proxies()]:
            sockets = {os.readlink(fd) for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
            self.assertLessEqual({fd for fd in sockets if fd.startswith("socket")}, of_connections)
        job.terminate()
        self.finish(job)

    def test_report_of_all(self):
        result = self.mpiexec(*TWO, RANK, "join", "meet", "report", "barrier", "finalize")
        self.assertIn("what the job did: 4 ranks, 2 on host one, 2 on host two\n", result.stderr)
        self.assertRegex(result.stderr, r"eager_sent +100 +10 +40 ")


class Places(ClusterTest):
    """Which rank is where."""

    def places(self, *arguments):
        result = self.mpiexec(*arguments, *PLACE)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = dict(line.split() for line in result.stdout.splitlines())
        return " ".join(lines[str(rank)] for rank in range(len(lines)))

    def test_orders(self):
        hosts = ("-host", "a:2,b:2")
        for arguments, expected in (
                (hosts, "a a b b"),
                ((*hosts, "-n", 3), "a a b"),
                ((*hosts, "-n", 7), "a a a a b b b"),
                ((*hosts, "-ppn", 1, "-n", 2), "a b"),
                (("-host", "a,b", "-ppn", 2), "a a b b"),
                (("-host", "a,b", "-N", 2, "-n", 3), "a a b"),
                (("-host", "a,b", "--map-by", "ppr:2:node"), "a a b b"),
                ((*hosts, "--map-by", "node", "-n", 3), "a b a"),
                ((*hosts, "--map-by", "node:OVERSUBSCRIBE", "-n", 5), "a b a b a"),
                ((*hosts, "--map-by", "node", "--rank-by", "slot"), "a a b b"),
                ((*hosts, "--map-by", "core", "--rank-by", "node"), "a b a b"),
                (("-host", "a:1,b:3", "--map-by", "node"), "a b b b"),
                (("-hosts", "a,b,a"), "a a b")):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.places(*arguments), expected)

    def test_programs_follow_each_other(self):
        self.assertEqual(self.places("-host", "a:2,b:2", "-n", 1, *PLACE, ":", "-n", 2),
                         "a a b")
        self.assertEqual(self.places("-host", "a", *PLACE, ":", "-host", "b:2"), "a b b")

    def test_file(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# of Open MPI and of MPICH\na slots=2 max_slots=4\nb:1  # again\n\na\n")
            file.flush()
            for option in ("-f", "-hostfile", "-machinefile"):
                self.assertEqual(self.places(option, file.name), "a a a b")

    def test_map(self):
        result = self.mpiexec("-display-map", "-map-by", "node", "-host", "a:3,b:1", "true")
        self.assertEqual(result.stderr, "host a: ranks 0, 2 to 3\nhost b: rank 1\n")

    def test_refused(self):
        for arguments, sentence in (
                (("--map-by", "ppr:2:socket"),
                 '--map-by: "ppr:2:socket": ranks can be counted by node only, ppr:COUNT:node'),
                (("--map-by", "wheel"),
                 '--map-by: "wheel" is no order of ranks; "slot" and "node" are, and ppr:COUNT:node')):
            self.assert_fails(self.mpiexec(*arguments, "true"), 2, f"mpiexec: {sentence}",
                              "Run mpiexec --help for the options.")
        self.assert_fails(self.mpiexec("-host", "-oProxyCommand=x", "true"), 2,
                          'mpiexec: --host -oProxyCommand=x: "-oProxyCommand=x" is no name of a host')


class Failures(ClusterTest):
    """One line, soon, and nothing is left anywhere."""

    def fails(self, sentence, status, *actions):
        job = self.start_job(*actions, "compute")
        _, error = self.finish(job)
        self.assertEqual((error, job.returncode), (f"mpiexec: {sentence}\n", status))

    def test_abort(self):
        self.fails("rank 3 on host two called MPI_Abort(MPI_COMM_WORLD, 3); ending the other 3 ranks", 3,
                   "3/abort=3")

    def test_killed(self):
        self.fails("rank 0 on host one was killed by signal 9 (Killed); ending the other 3 ranks", 137,
                   "0/raise=9")

    def test_exit_before_finalize(self):
        self.fails("rank 3 on host two exited without calling MPI_Finalize; ending the other 3 ranks", 1,
                   "3/exit=0")

    def test_the_cause_is_named_and_not_who_notices_it(self):
        self.fails("rank 3 on host two was killed by signal 9 (Killed); ending the other 3 ranks", 137,
                   "0/follow=5", "1/follow=5", "3/sleep_ms=300", "3/raise=9")

    def test_several_at_once_are_one(self):
        job = self.start_job("raise=9")
        _, error = self.finish(job)
        self.assertRegex(error, r"\Ampiexec: rank \d on host \S+ was killed by signal 9 .*\n\Z")

    def test_rank_that_never_joins(self):
        job = self.start(*TWO, RANK, "3/exit=0", "join", "compute")
        _, error = self.finish(job)
        self.assertRegex(error, r"\Ampiexec: rank 3 on host two ended without calling MPI_Init, which rank "
                                r"\d has called; ending the other 3 ranks\n\Z")

    def test_rank_that_never_joins_where_it_is_alone(self):
        job = self.start("-host", "one,two", RANK, "1/exit=0", "join", "0/meet", "compute")
        _, error = self.finish(job)
        self.assertEqual(error, "mpiexec: rank 1 on host two ended without calling MPI_Init, which rank 0 "
                                "has called; ending the other rank\n")

    def test_program_that_is_not_there(self):
        result = self.mpiexec("-host", "one,two", "/no/such")
        self.assertRegex(result.stderr, r"\Ampiexec: rank \d on host \S+ could not start /no/such: No such "
                                        r"file or directory; ending the other rank\n\Z|"
                                        r"\Ampiexec: rank \d .*/no/such: No such file or directory\n\Z")
        self.assertEqual(result.returncode, 127)

    def test_timeout(self):
        result = self.mpiexec("-timeout", 0.5, *TWO, RANK, "join", "hang")
        page = result.stderr
        self.assertTrue(page.startswith("mpiexec: what 4 ranks on 2 hosts are waiting for\n"), page)
        self.assertIn("rank 0 -> rank 1 -> rank 2 -> rank 3 -> rank 0: a circle", page)
        self.assertTrue(page.endswith("the job has not ended within 0.5 s; ending 4 ranks\n"), page)
        self.assertEqual(result.returncode, 124)

    def test_where_ranks_are_in_their_programs(self):
        """Each machine asks its own gdb; one that takes longer than a machine may be silent ends no job."""
        with tempfile.TemporaryDirectory() as folder:
            gdb = pathlib.Path(folder, "gdb")
            gdb.write_text("#!/bin/sh\n"
                           'while [ "$1" != -p ]; do shift; done\n'
                           "sleep 2.5\n"
                           'echo "#0  0x1 in at_$2_on_$(hostname) () at ../a.c:7"\n', encoding="utf8")
            gdb.chmod(0o755)
            self.environment["PATH"] = f"{folder}:{os.environ['PATH']}"
            result = self.mpiexec("-timeout", 0.5, *TWO, RANK, "join", "hang")
        page = result.stderr
        self.assertEqual(result.returncode, 124, page)
        self.assertTrue(page.endswith("the job has not ended within 0.5 s; ending 4 ranks\n"), page)
        for rank, host in enumerate(("one", "one", "two", "two")):
            self.assertRegex(page, rf"\n  rank {rank} waits in MPI_Recv \(process (\d+) on host {host}\)\n"
                                   rf" +at +at_\1_on_{host} \(a\.c:7\)\n")

    def test_page_on_request(self):
        job = self.start_job("0/compute", "hang")
        job.send_signal(signal.SIGUSR1)
        page = [job.stderr.readline() for _ in range(12)]
        self.assertEqual(page[0], "mpiexec: what 4 ranks on 2 hosts are waiting for\n")
        self.assertIn("    rank 1 waits for rank 2: a message with tag 5\n", page)
        job.terminate()
        self.finish(job)

    def test_mpiexec_is_killed(self):
        job = self.start_job("compute")
        job.kill()
        self.assert_nothing_left(SOON)

    def test_a_connection_is_killed(self):
        job = self.start_job("compute")
        os.kill(self.connection("two"), signal.SIGKILL)
        _, error = self.finish(job)
        self.assertRegex(error, r"\Ampiexec: the connection to host two is lost: \S+ was killed by signal 9; "
                                r"ending the other 2 ranks\n\Z")
        self.assertEqual(job.returncode, 1)
        self.assert_nothing_left(SOON)

    def test_a_proxy_is_killed(self):
        job = self.start_job("compute")
        os.kill(self.proxies()[0], signal.SIGKILL)
        _, error = self.finish(job)
        self.assertRegex(error, r"\A(Killed\n)?mpiexec: the connection to host \S+ is lost: .*; ending the "
                                r"other 2 ranks\n\Z")  # a shell may say the first
        self.assert_nothing_left(SOON)

    def test_a_machine_says_nothing_any_more(self):
        """Nothing passes between it and us: here and there the ranks end."""
        job = self.start_job("compute")
        wire = self.connection("two")
        os.kill(wire, signal.SIGSTOP)
        begin = time.monotonic()
        _, error = self.finish(job, SILENT + 1)  # the last second is for what does not answer
        self.assertRegex(error, rf"\Ampiexec: host two has said nothing for {SILENCE}; ending the other 2 ranks\n\Z")
        self.wait_for(lambda: not self.processes("launch_rank"), SILENT)
        self.assertLess(time.monotonic() - begin, SILENT + 3)

    def test_the_first_mpiexec_says_nothing_any_more(self):
        job = self.start_job("compute")
        job.send_signal(signal.SIGSTOP)
        self.wait_for(lambda: not [pid for pid in self.processes(RANK) if pid != job.pid
                                   and pid not in self.connections()], SILENT + 2)
        job.send_signal(signal.SIGCONT)
        _, error = self.finish(job)
        self.assertRegex(error, r"\Ampiexec: host (one|two) has not heard of mpiexec for " + SILENCE + "; ending the "
                                r"other [24] ranks\n\Z")
        self.assertEqual(job.returncode, 1)

    def test_a_longer_silence(self):
        job = self.start_job("sleep_ms=3500", "barrier", "finalize", hosts=("-silence", 30, *TWO))
        wire = self.connection("two")
        os.kill(wire, signal.SIGSTOP)
        time.sleep(2.5)
        os.kill(wire, signal.SIGCONT)
        out, error = job.communicate(timeout=20)
        self.assertEqual((job.returncode, error), (0, ""))


class Branches(ClusterTest):
    """Many machines, most of them reached through others: five through each of four."""
    HOSTS = [f"10.99.7.{number}" for number in range(10, 30)]  # which nobody needs to resolve
    LEAD, OTHER = HOSTS[5], HOSTS[8]  # reached through it
    MANY = ("-host", ",".join(HOSTS))

    def start_job(self, *actions):
        return super().start_job(*actions, hosts=self.MANY, lines=len(self.HOSTS))

    def ends(self, job, sentence):
        """Soon, with this line alone, and nothing is left."""
        _, error = self.finish(job, SOON + 1)  # the last second is for what does not answer
        self.assertRegex(error, rf"\A(Killed\n)?mpiexec: {sentence}\n\Z")
        self.assertEqual(job.returncode, 1)
        self.assert_nothing_left(SOON)

    def test_everybody_meets_everybody(self):
        job = self.start_job("barrier", "report", "0/sleep_ms=500", "finalize")
        children = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text(encoding="utf8").split()
        self.assertEqual(len(children), 4)
        out, error = job.communicate(timeout=30)
        self.assertEqual(job.returncode, 0, error)
        self.assertIn("what the job did: 20 ranks, 1 on host 10.99.7.10, 1 on host 10.99.7.11, ", error)

    def test_output_input_and_status(self):
        text = "".join(f"{number}\n" for number in range(50_000))
        result = self.mpiexec(*self.MANY, "cat", stdin=text)
        self.assertEqual((result.returncode, result.stderr, result.stdout), (0, "", text))
        result = self.mpiexec(*self.MANY, "sh", "-c", "seq 5000; hostname")
        self.assertEqual(sorted(result.stdout.splitlines()),
                         sorted([*map(str, range(1, 5001))] * 20 + self.HOSTS))
        result = self.mpiexec(*self.MANY, RANK, "join", "barrier", "finalize", "8/exit=4")
        self.assert_fails(result, 4, f"mpiexec: rank 8 on host {self.OTHER} exited with status 4")

    def test_page(self):
        page = self.mpiexec("-timeout", 5, *self.MANY, RANK, "join", "hang").stderr
        self.assertTrue(page.startswith("mpiexec: what 20 ranks on 20 hosts are waiting for\n"), page)
        self.assertTrue(page.endswith("the job has not ended within 5 s; ending 20 ranks\n"), page)

    def test_a_rank_is_killed(self):
        job = self.start_job("8/raise=9", "compute")
        _, error = self.finish(job)
        self.assertEqual(error, f"mpiexec: rank 8 on host {self.OTHER} was killed by signal 9 (Killed); ending "
                                "the other 19 ranks\n")
        self.assert_nothing_left(SOON)

    def test_mpiexec_is_killed(self):
        job = self.start_job("compute")
        job.kill()
        self.assert_nothing_left(SOON)

    def test_a_connection_in_the_middle_is_killed(self):
        job = self.start_job("compute")
        os.kill(self.connection(self.LEAD), signal.SIGKILL)
        self.ends(job, rf"the connection to host {self.LEAD} is lost: \S+ was killed by signal 9, and with it the way "
                       "to 4 other hosts; ending the other 15 ranks")

    def test_an_mpiexec_in_the_middle_is_killed(self):
        job = self.start_job("compute")
        branches = [pid for pid in self.processes("--branch")
                    if pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf8") == "mpiexec\n"]
        self.assertEqual(len(branches), 4)
        os.kill(branches[0], signal.SIGKILL)
        self.ends(job, r"the connection to host 10\.99\.7\.[12][05] is lost: .*, and with it the way to 4 other hosts; "
                       "ending the other 15 ranks")

    def test_a_connection_of_another_is_killed(self):
        job = self.start_job("compute")
        os.kill(self.connection(self.OTHER), signal.SIGKILL)
        self.ends(job, rf"the connection to host {self.OTHER} is lost: \S+ was killed by signal 9; ending the other 19 "
                       "ranks")

    def test_silence(self):
        for host, sentence in ((self.LEAD, f"host {self.LEAD}, and with it 4 other hosts that are reached through it, "
                                           f"has said nothing for {SILENCE}; ending the other 15 ranks"),
                               (self.OTHER, f"host {self.OTHER} has said nothing for {SILENCE}; ending the other 19 "
                                            "ranks")):
            job = self.start_job("compute")
            os.kill(self.connection(host), signal.SIGSTOP)
            _, error = self.finish(job, SILENT + SOON + 1)
            self.assertRegex(error, rf"\Ampiexec: {sentence}\n\Z")
            self.wait_for(lambda: not self.processes("launch_rank"), SILENT)

    def test_what_a_branch_cannot_reach(self):
        """We try ourselves: at once where it is refused, and after a while where nobody answers."""
        refused = self.HOSTS[7]
        with tempfile.TemporaryDirectory() as folder:
            shell = pathlib.Path(folder, "shell")
            shell.write_text(f"""#!/bin/sh
                if [ "$(hostname)" != {HOST} ]; then
                    [ "$1" = {refused} ] && exit 255
                    [ "$1" = {self.OTHER} ] && exec sleep 60
                fi
                exec {sys.executable} -SE {SHELL} "$@"\n""", encoding="utf8")
            shell.chmod(0o755)
            self.environment["MACADAM_SSH"] = str(shell)
            begin = time.monotonic()
            self.assert_ran(self.mpiexec(*self.MANY, "hostname"), self.HOSTS)
            self.assertLess(time.monotonic() - begin, 15)
            self.assert_nothing_left(SOON)
            shell.write_text(f"""#!/bin/sh
                [ "$1" = {refused} ] && exit 255
                exec {sys.executable} -SE {SHELL} "$@"\n""", encoding="utf8")
            self.assert_fails(self.mpiexec(*self.MANY, "hostname"), 1,
                              f'mpiexec: host {refused} cannot be reached: {shell} ended with status 255; "{shell} '
                              f'{refused} true" has to work without a question')


class Signals(ClusterTest):
    def test_passed_on(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            job = self.start_job("compute")
            job.send_signal(number)
            _, error = self.finish(job)
            self.assertEqual((error, job.returncode), ("", 128 + number))

    def test_twice(self):
        job = self.start("-host", "one,two", "sh", "-c", "trap '' INT; echo ready; sleep 60; sleep 60")
        self.wait_for_lines(job, 2)
        job.send_signal(signal.SIGINT)
        time.sleep(0.2)
        job.send_signal(signal.SIGINT)
        self.finish(job)
        self.assertEqual(job.returncode, 130)

    def test_to_one_machine_alone(self):
        """Which is no wish of the user's, and told."""
        job = self.start_job("compute")
        os.kill(self.proxies()[0], signal.SIGTERM)
        _, error = self.finish(job)
        self.assertRegex(error, r"\Ampiexec: rank \d on host (one|two) was killed by signal 15 \(Terminated\); "
                                r"ending the other [23] ranks\n\Z")
        self.assertEqual(job.returncode, 143)

    def test_stop_and_go_on(self):
        job = self.start_job("sleep_ms=500", "barrier", "finalize")
        job.send_signal(signal.SIGTSTP)
        self.wait_for(lambda: pathlib.Path(f"/proc/{job.pid}/stat").read_text(encoding="utf8")
                      .rpartition(")")[2].split()[0] == "T")
        time.sleep(3)  # longer than a silence may last
        job.send_signal(signal.SIGCONT)
        out, error = job.communicate(timeout=20)
        self.assertEqual((job.returncode, error), (0, ""))

    def test_before_machines_have_answered(self):
        self.environment["MACADAM_SSH"] = "sleep 60; :"
        with tempfile.TemporaryDirectory() as folder:
            slow = pathlib.Path(folder, "slow")
            slow.write_text("#!/bin/sh\necho >&2 called\nexec sleep 60\n", encoding="utf8")
            slow.chmod(0o755)
            self.environment["MACADAM_SSH"] = str(slow)
            job = self.start("-host", "one", "true")
            job.stderr.readline()
            job.send_signal(signal.SIGINT)
            self.finish(job)
            self.assertEqual(job.returncode, 130)


class BatchSystem(ClusterTest):
    """Slurm, as far as mpiexec sees it: the environment, and an srun."""

    def test_its_machines_are_reached_by_its_starter(self):
        """Named or not, unless there are others among them."""
        del self.environment["MACADAM_SSH"]
        self.environment.update(SLURM_JOB_ID="1", SLURM_JOB_NODELIST="one,two", SLURM_TASKS_PER_NODE="1(x2)")
        with tempfile.TemporaryDirectory() as folder:
            for name, script in (("srun", 'while [ "$1" != --nodelist ]; do shift; done; shift; '
                                          f'exec {sys.executable} -SE {SHELL} "$@"'),
                                 ("ssh", "exit 255")):
                program = pathlib.Path(folder, name)
                program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf8")
                program.chmod(0o755)
            self.environment["PATH"] = f"{folder}:{os.environ['PATH']}"
            self.assert_ran(self.mpiexec("hostname"), ["one", "two"])
            self.assert_ran(self.mpiexec("-host", "two,one", "hostname"), ["one", "two"])
            self.assert_ran(self.mpiexec("-n", 1, "hostname", ":", "-host", "two", "hostname"), ["one", "two"])
            self.assertIn("ssh ended with status 255", self.mpiexec("-host", "one,three", "hostname").stderr)


class BadInput(ClusterTest):
    def refused(self, sentence, status=1, hosts="one"):
        self.assert_fails(self.mpiexec("-host", hosts, "true"), status, f"mpiexec: {sentence}")

    def shell(self, script):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, "shell")
        path.write_text("#!/bin/sh\n" + script, encoding="utf8")
        path.chmod(0o755)
        self.environment["MACADAM_SSH"] = str(path)
        return path

    def test_no_such_shell(self):
        self.environment["MACADAM_SSH"] = "/no/ssh -x"
        self.refused("/no/ssh, which is to start ranks on host one, cannot be run: No such file or "
                     "directory; MACADAM_SSH names another program, to be called with a host and a command",
                     2)

    def test_machine_that_cannot_be_reached(self):
        path = self.shell("exit 255\n")
        self.refused(f'host one cannot be reached: {path} ended with status 255; "{path} one true" has to '
                     "work without a question")

    def test_machine_without_macadam(self):
        path = self.shell("exec /no/such/mpiexec 2>/dev/null\n")
        self.refused(f"{MPIEXEC} cannot be run on host one ({path} ended with status 127): Macadam is at "
                     "the same path on all machines of a job")

    def test_machine_that_does_not_answer(self):
        """It is named, and not those that wait for it."""
        self.shell(f'[ "$1" = mute ] && exec sleep 60; exec {sys.executable} -SE {SHELL} "$@"\n')
        result = self.mpiexec("-silence", "0.5", "-host", "one,mute,two", "true")
        self.assert_fails(result, 1, "mpiexec: host mute has not answered within 30 s")

    def test_time_limit_before_all_have_answered(self):
        self.shell(f'[ "$1" = mute ] && exec sleep 60; exec {sys.executable} -SE {SHELL} "$@"\n')
        begin = time.monotonic()
        result = self.mpiexec("-timeout", 4, "-host", "one,mute,two", "true")
        self.assert_fails(result, 124, "mpiexec: the job has not ended within 4 s; no answer has come from host mute")
        self.assertLess(time.monotonic() - begin, 10)

    def test_machine_of_another_version(self):
        self.shell("printf '\\nmacadam mpiexec proxy, version 0.0.1 (1.1)\\n'; cat >/dev/null\n")
        result = self.mpiexec("-host", "one", "true")
        self.assertRegex(result.stderr, r"\Ampiexec: host one has version 0\.0\.1 \(1\.1\) of Macadam, this "
                                        r"machine \S+ \(\S+\): install the same version on all machines\n\Z")

    def test_machine_that_says_other_things(self):
        self.shell("yes; exit 1\n")
        self.refused("host one prints other things than mpiexec's answer")

    def test_a_greeting_is_skipped(self):
        self.environment["REMOTE_SHELL_SAYS"] = "Welcome!\nLast login: never"
        self.assert_ran(self.mpiexec("-host", "one", "hostname"), ["one"])

    def test_folder_that_is_not_there(self):
        with tempfile.TemporaryDirectory() as parent:
            folder = pathlib.Path(os.path.realpath(parent), "ours")
            folder.mkdir()
            self.shell(f"exec unshare --mount {'' if os.geteuid() == 0 else '--map-root-user'} sh -c "
                       f"""'mount -t tmpfs none {parent} && cd / && exec "$@"' sh """
                       f'{sys.executable} -SE {SHELL} "$@"\n')
            result = self.mpiexec("-host", "one", "true", cwd=folder)
        self.assert_fails(result, 2, f"mpiexec: host one: cannot enter the folder {folder}: No such file or "
                                     "directory; folders and programs have the same paths on all machines "
                                     "of a job, or -wdir names one that all have")

    def test_two_names_of_one_machine(self):
        self.shell('shift; exec sh -c "$*"\n')
        self.refused(f"one and two are one machine, {HOST}: name it by one name", 2, "one,two")

    def test_too_many(self):
        result = self.mpiexec("-host", "one,two", "-n", 9000, "true")
        self.assert_fails(result, 2, "mpiexec: 4500 ranks on host one are more than the 4096 that one "
                                     "machine can have")


if __name__ == "__main__":
    unittest.main()
