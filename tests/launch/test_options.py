# SPDX-License-Identifier: BSD-3-Clause
"""The command line of mpiexec."""
import os
import pathlib
import tempfile
import unittest

from common import HOST, MPIEXEC, RANK, LaunchTest, python


class Counts(LaunchTest):
    def test_number_of_ranks(self):
        for option in ("-n", "-np", "--np", "--n"):
            result = self.mpiexec(option, 3, RANK, "join", "who", "finalize")
            self.assert_ran(result, [f"rank {r} of 3, app 0, launched" for r in range(3)])

    def test_one_rank_by_default(self):
        self.assert_ran(self.mpiexec(RANK, "join", "who", "finalize"),
                        ["rank 0 of 1, app 0, launched"])

    def test_several_programs(self):
        actions = ("join", "meet", "who", "barrier", "finalize")
        result = self.mpiexec("-n", 1, RANK, *actions, ":", "-n", 2, RANK, *actions, ":",
                              RANK, *actions)
        self.assert_ran(result, ["rank 0 of 4, app 0, launched", "rank 1 of 4, app 1, launched",
                                 "rank 2 of 4, app 1, launched", "rank 3 of 4, app 2, launched"])

    def test_meeting(self):
        for ranks in (1, 2, 5, 32):
            self.assert_ran(self.mpiexec("-n", ranks, RANK, "join", "meet", "barrier", "barrier",
                                         "finalize"), [])

    def test_secret_is_one_for_the_job_and_new_for_the_next(self):
        secrets = []
        for _ in range(2):
            result = self.mpiexec("-n", 3, RANK, "join", "secret", "finalize")
            self.assertEqual(len(set(result.stdout.split())), 1)
            secrets.append(result.stdout.split()[0])
        self.assertEqual(len(secrets[0]), 32)
        self.assertNotEqual(*secrets)


class Environment(LaunchTest):
    show = python("import os; print(os.environ.get('A'), os.environ.get('B'), flush=True)")

    def test_of_one_program_and_of_all(self):
        result = self.mpiexec("-genv", "A", "all", "-env", "B", "first", *self.show, ":",
                              "-env", "A", "mine", *self.show)
        self.assert_ran(result, ["all first", "mine None"])

    def test_value_may_look_like_an_option(self):
        self.assert_ran(self.mpiexec("-env", "A", "-n", "-env", "B", "=", *self.show), ["-n ="])

    def test_the_last_value_wins(self):
        self.environment["A"] = "outer"
        self.assert_ran(self.mpiexec("-env", "A", "1", "-env", "A", "2", *self.show), ["2 None"])

    def test_abi_of_mpich_is_found_first(self):
        show = python("import os; print(os.environ['LD_LIBRARY_PATH'], flush=True)")
        folder = str(pathlib.Path(MPIEXEC).parent.parent / "lib/mpich")
        self.assert_ran(self.mpiexec("-abi", "mpich", *show), [folder])
        self.environment["LD_LIBRARY_PATH"] = "/outer"
        self.assert_ran(self.mpiexec("-abi", "mpich", *show), [f"{folder}:/outer"])
        self.assert_ran(self.mpiexec("-x", "LD_LIBRARY_PATH=/given", "-abi", "mpich", *show),
                        [f"{folder}:/given"])
        self.assert_ran(self.mpiexec("-abi", "mpich", "-env", "LD_LIBRARY_PATH", "/its", *show, ":", *show),
                        [f"{folder}:/its", f"{folder}:/outer"])
        self.assert_ran(self.mpiexec("-abi", "standard", *show), ["/outer"])
        self.assert_fails(self.mpiexec("-abi", "lam", "true"), 2,
                          'mpiexec: -abi: "lam" is no ABI that programs can have here; standard and '
                          "mpich are", "Run mpiexec --help for the options.")

    def test_of_mpiexec_is_inherited(self):
        self.environment["A"] = "outer"
        self.assert_ran(self.mpiexec("-n", 2, *self.show), ["outer None"] * 2)


    def test_path_of_the_rank_finds_its_program(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "only-there")
            program.write_text("#!/bin/sh\necho found\n")
            program.chmod(0o755)
            for option in ("-env", "-genv"):
                path = f"{folder}:{os.environ['PATH']}"
                self.assert_ran(self.mpiexec(option, "PATH", path, "only-there"), ["found"])
            self.assertEqual(self.mpiexec("-env", "PATH", folder, "cat", "/dev/null").returncode,
                             127)

    def test_exported(self):
        """-x NAME, -x NAME=VALUE; and what says that all are passed on."""
        self.environment["A"] = "outer"
        self.assert_ran(self.mpiexec("-envall", "--genvall", "-x", "A", "-x", "B=b=b", *self.show),
                        ["outer b=b"])
        result = self.mpiexec("-x", "NO_SUCH", *self.show)
        self.assertEqual((result.returncode, result.stdout), (0, "outer None\n"))
        self.assertEqual(result.stderr,
                         "mpiexec: -x NO_SUCH: there is no such variable to pass on\n")


class Hosts(LaunchTest):
    """This machine only, by any of its names."""

    def ranks(self, *arguments):
        result = self.mpiexec(*arguments, "--oversubscribe", "-allow-run-as-root", "echo", "ran")
        self.assert_ran(result)
        return result.stdout.count("ran\n")

    def test_this_machine(self):
        for option in ("-H", "-host", "--host", "-hosts"):
            for hosts in ("localhost", "127.0.0.1", HOST):
                self.assertEqual(self.ranks(option, hosts), 1)
        self.assertEqual(self.ranks("-n", 3, "-host=localhost"), 3)

    def test_slots_are_the_ranks_unless_told(self):
        self.assertEqual(self.ranks("-hosts", f"localhost:2,{HOST}"), 3)
        self.assertEqual(self.ranks("-hosts", "localhost:2", "-n", 5), 5)

    def test_file(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# machines\n\nlocalhost slots=2 max_slots=4\n127.0.0.1:1  # again\n")
            file.flush()
            for option in ("-f", "-hostfile", "--hostfile", "-machinefile"):
                self.assertEqual(self.ranks(option, file.name), 3)
                self.assertEqual(self.ranks(option, file.name, "-n", 2), 2)
            file.write("localhost cores=2\n")
            file.flush()
            self.assert_fails(self.mpiexec("-f", file.name, "true"), 2,
                              f'mpiexec: {file.name}, line 5: found "cores=2" behind the host; '
                              "slots=COUNT or max_slots=COUNT may stand there")

    def test_file_of_another_system(self):
        with tempfile.NamedTemporaryFile("wb") as file:
            file.write(b"\xef\xbb\xbflocalhost:2\r\n")
            file.flush()
            self.assertEqual(self.ranks("-f", file.name), 2)

    def test_more_slots_than_a_job_can_have(self):
        most = 2**31 - 1
        self.assertEqual(self.ranks("-host", f"localhost:{most},localhost:{most}", "-n", 1), 1)
        sentence = "ranks are more than the 1048576 that one job can have"
        for arguments, refusal in (
                (["-host", f"localhost:{most},localhost:1"],
                 f"1048576 ranks on host {HOST} are more than the 4096 that one machine can have"),
                (["-host", f"localhost:{most},other:2"], f"1048578 {sentence}"),
                (["-host", f"localhost:{most}", "true", ":", "-host", f"localhost:{most}"],
                 f"2097152 {sentence}")):
            self.assert_fails(self.mpiexec(*arguments, "true"), 2, f"mpiexec: {refusal}")

    def test_refused(self):
        for arguments, sentence in (
                (["-host", "localhost:x"],
                 '--host localhost:x: "x" is no number of slots above 0'),
                (["-hostfile", "/no/such"],
                 "the host file /no/such cannot be read: No such file or directory"),
                (["-hostfile", "/etc"], "the host file /etc cannot be read: Is a directory"),
                (["-hostfile", "/dev/null"], "the host file /dev/null names no host")):
            self.assert_fails(self.mpiexec(*arguments, "true"), 2, f"mpiexec: {sentence}")


class Folder(LaunchTest):
    def test_wdir(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = os.path.realpath(folder)
            result = self.mpiexec("-wdir", folder, "pwd", ":", "-n", 1, "pwd")
            self.assert_ran(result, [folder, os.getcwd()])

    def test_missing_folder(self):
        result = self.mpiexec("-wdir", "/no/such/folder", "pwd")
        self.assert_fails(result, 127, f"mpiexec: rank 0 on host {HOST} could not enter the folder "
                                       "/no/such/folder: No such file or directory")


class Binding(LaunchTest):
    show = python("import os; print(*sorted(os.sched_getaffinity(0)), flush=True)")

    def test_none_leaves_the_mask(self):
        mask = " ".join(map(str, sorted(os.sched_getaffinity(0))))
        for option in ((), ("--bind-to", "none")):
            self.assert_ran(self.mpiexec("-n", 2, *option, *self.show), [mask] * 2)

    def test_core_gives_each_rank_its_own(self):
        result = self.mpiexec("-n", 1, "-bind-to", "core", *self.show)
        self.assert_ran(result)
        self.assertLessEqual(set(result.stdout.split()), set(map(str, os.sched_getaffinity(0))))
        cores = self.cores()
        if cores > 1:
            masks = self.mpiexec("-n", cores, "--bind-to", "core", *self.show).stdout.splitlines()
            self.assertEqual(len(set(masks)), cores)

    def cores(self):
        return next(n for n in range(1, 4096)
                    if self.mpiexec("-n", n + 1, "--bind-to", "core", "true").returncode != 0)

    def test_core_respects_a_smaller_mask(self):
        """As in a container that may use one processor: the highest, not number 0."""
        last = max(os.sched_getaffinity(0))
        result = self.mpiexec("-n", 1, "--bind-to", "core", *self.show,
                              preexec_fn=lambda: os.sched_setaffinity(0, {last}))
        self.assert_ran(result, [str(last)])
        result = self.mpiexec("-n", 2, "--bind-to", "core", "true",
                              preexec_fn=lambda: os.sched_setaffinity(0, {last}))
        self.assert_fails(result, 2, "mpiexec: 2 ranks cannot be bound to 1 core, which is what "
                                     "mpiexec may use here; leave --bind-to out")

    def test_larger_parts(self):
        """Together the ranks may run wherever mpiexec may, each on one part of that."""
        usable = os.sched_getaffinity(0)
        for part in ("socket", "numa", "l3cache"):
            result = self.mpiexec("-n", 64, "--bind-to", part, *self.show)
            self.assert_ran(result)
            masks = {frozenset(map(int, line.split())) for line in result.stdout.splitlines()}
            self.assertEqual(frozenset().union(*masks), usable, part)
            self.assertEqual(sum(map(len, masks)), len(usable), part)

    def test_bindings_are_reported(self):
        last = max(os.sched_getaffinity(0))

        def on_last():
            os.sched_setaffinity(0, {last})
        for options, line in ((("--bind-to", "core"), f"mpiexec: rank 0 runs on hardware thread {last}"),
                              ((), "mpiexec: the rank runs on any of the hardware threads "
                                   f"{last}")):
            result = self.mpiexec("-n", 1, "--report-bindings", *options, "true", preexec_fn=on_last)
            self.assertEqual((result.returncode, result.stderr), (0, line + "\n"))

    def test_ranks_know_how_many_cores_there_are(self):
        last = max(os.sched_getaffinity(0))
        result = self.mpiexec("-n", 1, RANK, "join", "cores", "finalize",
                              preexec_fn=lambda: os.sched_setaffinity(0, {last}))
        self.assert_ran(result, ["1"])


class Mistakes(LaunchTest):
    hint = "Run mpiexec --help for the options."

    def refused(self, arguments, sentence):
        result = self.mpiexec(*arguments)
        self.assert_fails(result, 2, f"mpiexec: {sentence}", self.hint)
        self.assertEqual(result.stdout, "")

    def test_refused_with_the_reason(self):
        for arguments, sentence in (
                ([], "no program to run was given"),
                (["-n", 2], "no program to run was given"),
                (["-n", 2, ":", "true"], "no program to run was given"),
                (["true", ":"], "no program to run was given"),
                (["-n", 0, "true"], '-n: "0" is no decimal number from 1 to 1048576'),
                (["-np", "two", "true"], '-np: "two" is no decimal number from 1 to 1048576'),
                (["-n", "010", "true"], '-n: "010" is no decimal number from 1 to 1048576'),
                (["-n", "0x2", "true"], '-n: "0x2" is no decimal number from 1 to 1048576'),
                (["-n", 1048577, "true"], '-n: "1048577" is no decimal number from 1 to 1048576'),
                (["-usize", "0b11", "true"], '-usize: "0b11" is no decimal number from 1 to 4096'),
                (["-frobnicate", "true"], "unknown option -frobnicate"),
                (["-hosted", "true"], "unknown option -hosted; there is --host"),  # neither -h nor a cluster
                (["-Verbose", "true"], "unknown option -Verbose; there is --verbose"),
                (["-lh", "true"], "unknown option -lh"),
                (["-l", "-V=", "-n", 1, "-frob", 2, "true"], "unknown option -frob"),
                (["-n"], "-n needs COUNT"),
                (["-env", "A"], "-env needs NAME VALUE"),
                (["-perhost", 0, "true"], '-perhost: "0" is no decimal number from 1 to 4096'),
                (["-configfile", "/no/such", "true"],
                 "-configfile /no/such: No such file or directory"),
                (["-configfile", "/etc", "true"], "-configfile /etc: Is a directory"),
                (["-configfile"], "-configfile needs FILE"),
                (["--mca", "btl"], "--mca needs NAME VALUE"),
                (["--mca", "btl", "self", "--gmca", "btl_tcp_if_include", "eth1", "true"], "parameter "
                 "btl_tcp_if_include of Open MPI is not here; instead: MACADAM_NET_INTERFACE=NAME"),
                (["-mca", "plm_rsh_agent", "rsh", "true"], "parameter plm_rsh_agent of Open MPI is not here; "
                 "instead: MACADAM_SSH=PROGRAM"),
                (["-n", 2, "-configfile", "jobs"], "no option -configfile here; instead: alone and "
                 "in front, mpiexec -configfile FILE"),
                (["-rr", "true"], "no option -rr here; instead: --map-by node"),
                (["-pmi_args", 38519, "default_interface", "default_key", 4711],
                 "no option -pmi_args here; instead: mpiexec -abi mpich ... ./program, as it runs on MPICH's own library"),
                (["-n", 2, "--cpu-bind=cores", "true"], "no option --cpu-bind here; instead: "
                 "--bind-to none, core, l3cache, numa or socket"),
                (["-t", "5", "true"], "no option -t here; instead: -timeout SECONDS (of -t for a "
                 "trace: MACADAM_TRACE=FOLDER)"),
                (["-prot", "true"], "no option -prot here; instead: MACADAM_REPORT=1, which says by what "
                 "ranks have reached each other"),
                (["-dbg=gdb", "true"], "no option -dbg here; instead: mpiexec -l -n 2 gdb -q -batch -ex run "
                 "-ex bt --args ./program, or gdb -p PROCESS"),
                (["-report-binding", "true"],
                 "unknown option -report-binding; there is --report-bindings"),
                (["-outfile-pattern", "%d", "true"],
                 '-outfile-pattern: "%d": %r stands for the rank, %h for the host, %% for a %'),
                (["--frobnicate", "true"], "unknown option --frobnicate"),
                (["-env", "A=B", "C", "true"], '"A=B" is no name of a variable'),
                (["-pset", "", "true"], "-pset: a process set needs a name"),
                (["-pset", "MPI://mine", "true"],
                 '-pset: "MPI://mine": names that begin with mpi:// are MPI\'s own'),
                (["-pset", 248 * "x", "true"],
                 "-pset: a process set's name has at most 247 bytes"),
                (["-bind-to", "board", "true"], '-bind-to: "board" is no part of a machine that ranks are '
                 "bound to; none, core, l3cache, numa and socket are"),
                (["-map-by", "ppr:2:socket", "true"],
                 '-map-by: "ppr:2:socket": ranks can be counted by node only, ppr:COUNT:node'),
                (["-n", "2", "-n", "3", "true"], "-n is given twice"),
                (["-n2", "--n", "3", "true"], "--n is given, and -n, which means the same"),
                (["-N0", "true"], '-N: "0" is no decimal number from 1 to 4096'),
                (["-c", "2", "-np", "3", "true"], "-np is given, and -c, which means the same"),
                (["-wdir", "/", "-wd=/", "true"], "-wd is given, and -wdir, which means the same"),
                (["-rank-by", "board", "true"],
                 '-rank-by: "board" is no order of ranks; "slot" and "node" are'),
                (["-timeout", "0", "true"], '-timeout: "0" is no number of seconds above 0'),
                (["-timeout", "1m", "true"], '-timeout: "1m" is no number of seconds above 0'),
        ):
            with self.subTest(arguments):
                self.refused(arguments, sentence)

    def test_time_limit_of_the_environment(self):
        self.environment["MPIEXEC_TIMEOUT"] = "soon"
        self.assert_fails(self.mpiexec("true"), 2,
                          'mpiexec: MPIEXEC_TIMEOUT: "soon" is no number of seconds above 0')

    def test_time_limit_beyond_the_clock(self):
        for seconds in ("1e10", "1e300", "inf"):
            self.assert_ran(self.mpiexec("-timeout", seconds, "-n", 1, "sleep", 0.2))

    def test_program_that_cannot_be_started(self):
        for program, why in (("/no/such/program", "No such file or directory"),
                             ("/etc/passwd", "Permission denied; it is not executable: chmod +x /etc/passwd"),
                             ("/etc", "Permission denied; it is a folder"),
                             ("no-such-program-in-path", "No such file or directory")):
            self.assert_fails(self.mpiexec("-n", 1, program), 127,
                              f"mpiexec: rank 0 on host {HOST} could not start {program}: {why}")

    def test_program_of_this_folder_is_hinted_at(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "hello-of-mine")
            program.write_text("#!/bin/sh\n")
            program.chmod(0o755)
            said = (f"mpiexec: rank 0 on host {HOST} could not start hello-of-mine: No such file or "
                    "directory; the folder has one of this name, which is started as ./hello-of-mine")
            self.assert_fails(self.mpiexec("-n", 1, "hello-of-mine", cwd=folder), 127, said)
            self.assert_fails(self.mpiexec("-n", 1, "-wd", folder, "hello-of-mine"), 127, said)
            program.chmod(0o644)
            self.assertIn("; the folder has one of this name, which is not executable: chmod +x hello-of-mine",
                          self.mpiexec("-n", 1, "hello-of-mine", cwd=folder).stderr)
            result = self.mpiexec("-n", 1, "hello-of-others", cwd=folder)
            self.assertNotIn("; the folder", result.stderr)


class Habits(LaunchTest):
    """What people type who come from other launchers."""

    def test_other_names(self):
        for count in (["-n3"], ["--n=3"], ["-c", 3], ["-c3"], ["-ppn", 3], ["-perhost", 3], ["-N", 3], ["-N3"],
                      ["-npernode", 3], ["--ntasks=3"], ["--ntasks-per-node", 3]):
            result = self.mpiexec(*count, "echo", "here")
            self.assertEqual(result.stdout, 3 * "here\n", count)
        self.assertEqual(self.mpiexec("-n", 2, "-ppn", 1, "echo", "here").stdout, 2 * "here\n")
        for label in ("-prepend-rank", "--tag-output"):
            self.assertIn("0", self.mpiexec(label, "-n", 1, "echo", "here").stdout)
        self.assertEqual(self.mpiexec("-wd", "/", "pwd").stdout, "/\n")

    def test_path(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "true")  # not the one in PATH
            program.write_text("#!/bin/sh\necho mine\n")
            program.chmod(0o755)
            self.assertEqual(self.mpiexec("-n", 1, "-path", f"/no/such:{folder}", "true").stdout,
                             "mine\n")

    def test_config_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "jobs")
            file.write_text("# two programs\n-n 1 echo 'one word'\n\n-n 2 -env A \"b c\" sh -c 'echo $A'\n")
            result = self.mpiexec("-configfile", file)
            self.assertEqual(sorted(result.stdout.splitlines()), ["b c", "b c", "one word"])
            file.write_bytes(b"# no words \\\n-n 1 echo a\\\r\n b \"x\\dy\" \\\n 'c' \"q\\\"\\\\\"\r\n")
            self.assert_ran(self.mpiexec("-configfile", file), ['a b x\\dy c q"\\'])
            for text, trouble in (("-n 1 'echo\n", f"{file}:1: a ' is not closed"),
                                  ("-n 1 true\n-n 1 \\\n'echo\n", f"{file}:2: a ' is not closed"),
                                  ("# nothing\n", f"-configfile {file}: there is no program in it; a "
                                   'line for each, such as "-n 2 ./program"')):
                file.write_text(text)
                self.assert_fails(self.mpiexec("-configfile", file), 2, f"mpiexec: {trouble}",
                                  Mistakes.hint)
            file.write_text("-n 1 true")
            self.assert_fails(self.mpiexec("-configfile", file, "true"), 2,
                              f'mpiexec: -configfile {file}: "true" stands behind it; all options '
                              "stand in the file", Mistakes.hint)

    def test_output_to_files(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assert_ran(self.mpiexec("-n", 2, "-outfile-pattern", "out.%r.%h%%", "-wdir", "/",
                                         "echo", "here", cwd=folder))
            self.assertEqual(sorted(os.listdir(folder)), [f"out.0.{HOST}%", f"out.1.{HOST}%"])
            self.assertEqual(pathlib.Path(folder, f"out.1.{HOST}%").read_text(), "here\n")
            result = self.mpiexec("-n", 1, "--output-filename", f"{folder}/run", "sh", "-c",
                                  "echo out; echo error >&2")
            self.assertEqual((result.stdout, result.stderr), ("", ""))
            for name, text in (("run.0.out", "out\n"), ("run.0.err", "error\n")):
                self.assertEqual(pathlib.Path(folder, name).read_text(), text)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "all")
            for _ in range(2):  # the second time in place of the first
                result = self.mpiexec("-n", 3, "-outfile-pattern", file, "-errfile-pattern", file, "sh", "-c",
                                      "echo out; echo error >&2; sleep 0.1; echo end")
                self.assert_ran(result, [])
                self.assertEqual(sorted(file.read_text().split()), ["end"] * 3 + ["error"] * 3 + ["out"] * 3)
        self.assert_fails(self.mpiexec("-n", 1, "-outfile-pattern", "/no/such/%r", "true"), 127,
                          f"mpiexec: rank 0 on host {HOST} could not open the file of its output, /no/such/0: "
                          "No such file or directory")

    def test_variables_that_are_passed_on_anyway(self):
        self.environment["OF_MINE"] = "kept"
        result = self.mpiexec("-genvlist", "OF_MINE,NO_SUCH", "sh", "-c", "echo $OF_MINE")
        self.assertEqual(result.stdout, "kept\n")
        self.assertEqual(result.stderr,
                         "mpiexec: -genvlist NO_SUCH: there is no such variable to pass on\n")

    def test_what_changes_nothing_is_said_when_asked(self):
        habit = ["--tune", "file", "-bootstrap", "ssh", "--mca", "btl", "self", "--mca", "pml", "ob1", "--map-by", "core:PE=2",
                 "--map-by", ":OVERSUBSCRIBE", "--oversubscribe", "-q", "-l", "-l", "-envall", "--rank-by", "slot",
                 "-x", "HOME", "-genvlist", "HOME,PATH", "-n", 1]
        result = self.mpiexec(*habit, "echo", "here")
        self.assertEqual((result.stdout, result.stderr), ("[0] here\n", ""))
        result = self.mpiexec("-v", *habit, "echo", "here")
        self.assertEqual(result.stdout, "[0] here\n")
        self.assertEqual([line.split(" changes nothing: ")[0] for line in result.stderr.splitlines()],
                         [f"mpiexec: {name}" for name in
                          ("--oversubscribe", "--mca", "--tune", "-envall", "-q", "-bootstrap",
                           "--map-by core", "--map-by PE=2", "--map-by OVERSUBSCRIBE", "-x HOME",
                           "-genvlist HOME", "-genvlist PATH")])

    def test_kinds_of_memory(self):
        """Of the MPI standard: what is not there is said, and the program asks itself what it has."""
        for kinds in ("mpi", "system,mpi:alloc_mem"):
            self.assert_ran(self.mpiexec("-memory-alloc-kinds", kinds, "echo", "here"), ["here"])
        result = self.mpiexec("-memory-alloc-kinds", "system,cuda:device,mpi", "echo", "here")
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (0, "here\n", "mpiexec: memory of kind cuda is not there; all ranks have the kinds mpi and system\n"))

    def test_tune_with_and_without_a_value(self):
        """A file or a folder of Intel MPI's may follow -tune, or nothing; --tune of Open MPI has a file."""
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            for words in (["-tune"], ["-tune", file.name], ["-tune", "/tmp"], ["-tune=none"], ["--tune", "none"],
                          ["--hetero", "-tune"], ["-tune", "-hetero"]):
                with self.subTest(words):
                    self.assert_ran(self.mpiexec("-n", 1, *words, "echo", "here"), ["here"])
                    self.assert_ran(self.mpiexec(*words, "-n", 1, "/bin/echo", "here"), ["here"])
        self.assert_ran(self.mpiexec("-tune", "/bin/echo", "here"), ["here"])


class Help(LaunchTest):
    def test_help_and_version(self):
        for option in ("--help", "-help", "-h"):
            result = self.mpiexec(option)
            self.assert_ran(result)
            for word in ("-n", "--env", "--genv", "--wdir", "--label", "--timeout", "--bind-to",
                         "SIGUSR1", "MACADAM_REPORT"):
                self.assertIn(word, result.stdout)
        self.assertRegex(self.mpiexec("--version").stdout, r"^mpiexec of Macadam \d+\.\d+\.\d+\n$")

    def test_options_of_the_program_are_its_own(self):
        result = self.mpiexec("-n", 1, "echo", "-n", "--help", "-timeout")
        self.assertEqual(result.stdout, "--help -timeout")


if __name__ == "__main__":
    unittest.main()
