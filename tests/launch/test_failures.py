# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that fail: one line that names rank, host and cause, the others ended within a second."""
import ctypes
import errno
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from common import HOST, MPIEXEC, RANK, LaunchTest, marked_processes, python

ENDING = "; ending the other 3 ranks"


class FailureTest(LaunchTest):
    def fails(self, status, sentence, *actions, ranks=4):
        """Rank 2 fails by `actions` once all have joined; how long the end took is bounded."""
        process = self.start("-n", ranks, RANK, "join", "barrier", "0/who", *actions, "compute")
        self.wait_for_lines(process, 1)
        begin = time.monotonic()
        out, error = process.communicate(timeout=20)
        self.assertLess(time.monotonic() - begin, 1.0)
        self.assertEqual(error, f"mpiexec: rank 2 on host {HOST} {sentence}\n")
        self.assertEqual(process.returncode, status)


class Failures(FailureTest):
    def test_killed(self):
        self.fails(137, f"was killed by signal 9 (Killed){ENDING}", "2/raise=9")

    def test_segmentation_fault(self):
        self.fails(139, f"was killed by signal 11 (Segmentation fault){ENDING}", "2/raise=11")

    def test_abort(self):
        self.fails(3, f"called MPI_Abort(MPI_COMM_WORLD, 3){ENDING}", "2/abort=3")

    def test_abort_with_a_code_that_is_no_exit_status(self):
        self.fails(1, f"called MPI_Abort(MPI_COMM_WORLD, 0){ENDING}", "2/abort=0")
        self.fails(1, f"called MPI_Abort(MPI_COMM_WORLD, 256){ENDING}", "2/abort=256")

    def test_the_cause_is_named_and_not_who_notices_it(self):
        self.fails(137, "was killed by signal 9 (Killed); ending the other 2 ranks", "1/follow=5",
                   "2/sleep_ms=50", "2/raise=9")
        self.fails(5, f"failed because another rank is gone{ENDING}", "2/follow=5")

    def test_exit_before_finalize(self):
        self.fails(1, f"exited without calling MPI_Finalize{ENDING}", "2/exit=0")
        self.fails(7, f"exited with status 7 without calling MPI_Finalize{ENDING}", "2/exit=7")

    def test_python_that_ends_as_by_an_exception(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "python3.11"
            program.symlink_to(RANK)
            hint = " (with python -m mpi4py an uncaught exception calls MPI_Abort)"
            for words, said in (([], hint), (["-m", "mpi4py"], None)):
                process = self.start("-n", 2, program, "join", "barrier", "1/exit=1", "compute", *words)
                _, error = process.communicate(timeout=20)
                if said:
                    self.assertEqual(error, f"mpiexec: rank 1 on host {HOST} exited with status 1 "
                                            f"without calling MPI_Finalize{said}; ending the other "
                                            "rank\n")
                else:
                    self.assertNotIn("mpi4py", error)

    def test_others_that_ignore_sigterm(self):
        process = self.start("-n", 3, "sh", "-c",
                             'trap "" TERM; case $MACADAM_JOB in *:1) sleep .2; kill -9 $$;; esac; '
                             "while :; do sleep 1; done")
        begin = time.monotonic()
        _, error = process.communicate(timeout=20)
        self.assertLess(time.monotonic() - begin, 1.2)
        self.assertEqual(error, f"mpiexec: rank 1 on host {HOST} was killed by signal 9 (Killed); "
                                "ending the other 2 ranks\n")

    def test_stopped_others(self):
        self.fails(137, f"was killed by signal 9 (Killed){ENDING}", f"1/raise={signal.SIGSTOP:d}",
                   "2/sleep_ms=50", "2/raise=9")

    def test_before_mpi(self):
        result = self.mpiexec("-n", 2, RANK, "1/exit=5", "join", "compute")
        self.assert_fails(result, 5, f"mpiexec: rank 1 on host {HOST} exited with status 5; "
                                     "ending the other rank")

    def test_rank_that_never_joins(self):
        """Whichever comes first: the end of one rank or MPI_Init of the other."""
        for order in (["1/exit=0", "0/sleep_ms=100"], ["0/join", "1/sleep_ms=100", "1/exit=0"]):
            tail = ["0/join"] if "0/join" not in order else []
            result = self.mpiexec("-n", 2, RANK, *order, *tail, "compute")
            self.assert_fails(result, 1,
                              f"mpiexec: rank 1 on host {HOST} ended without calling MPI_Init, "
                              "which rank 0 has called; ending the other rank")

    def test_waiting_for_the_address_of_an_absent_rank(self):
        result = self.mpiexec("-n", 2, RANK, "1/raise=15", "join", "meet", "compute")
        self.assertEqual(result.returncode, 143)

    def test_failure_after_finalize_spares_the_others(self):
        result = self.mpiexec("-n", 2, RANK, "join", "barrier", "finalize", "1/exit=4",
                              "0/sleep_ms=200", "0/print=done")
        self.assert_fails(result, 4, f"mpiexec: rank 1 on host {HOST} exited with status 4")
        self.assertEqual(result.stdout, "done")

    def test_status_is_of_the_first_failure(self):
        result = self.mpiexec("-n", 3, RANK, "join", "barrier", "finalize", "0/sleep_ms=200",
                              "0/exit=4", "2/exit=6")
        self.assert_fails(result, 6, f"mpiexec: rank 2 on host {HOST} exited with status 6")

    def test_what_ranks_leave_running_is_ended(self):
        result = self.mpiexec("-n", 2, "sh", "-c", "sleep 100 & exit 0")
        self.assert_ran(result)
        self.assert_nothing_left()

    def test_what_has_left_the_session_is_ended(self):
        daemon = "setsid sh -c 'sleep 100 & sleep 100' & "
        self.assert_ran(self.mpiexec("-n", 2, "sh", "-c", daemon + "sleep .2"))
        self.assert_nothing_left(within=0)
        result = self.mpiexec("-n", 2, "sh", "-c", daemon + f"{RANK} join barrier 1/abort=3 compute")
        self.assertEqual(result.returncode, 3)
        self.assert_nothing_left(within=0)

    def test_rank_that_has_left_the_session(self):
        """... and heeds no SIGTERM."""
        code = ("import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
                "os.setsid(); time.sleep(.2); "
                "sys.exit(5) if os.environ['MACADAM_JOB'].endswith(':1') else time.sleep(30)")
        begin = time.monotonic()
        self.assertEqual(self.mpiexec("-n", 2, "python3", "-c", code).returncode, 5)
        self.assertLess(time.monotonic() - begin, 10)

    def test_children_from_before_are_not_the_jobs(self):
        """A shell has started something, then becomes mpiexec."""
        process = subprocess.Popen(
            ["sh", "-c", f"(setsid sleep 30 & sleep 30) & exec {MPIEXEC} -n 1 sleep .3"],
            env=self.environment)
        self.assertEqual(process.wait(timeout=20), 0)
        left = marked_processes(self.mark)
        for line in left:
            os.kill(int(line.split(":")[0]), signal.SIGKILL)
        self.assertEqual(sum("sleep 30" in line for line in left), 2, left)

    def test_wrapper_around_a_rank_that_aborts(self):
        """The wrapper stays; mpiexec learns of MPI_Abort from the rank itself."""
        begin = time.monotonic()
        result = self.mpiexec("-n", 2, "sh", "-c",
                              f'{RANK} join barrier 1/abort=3 compute; sleep 100')
        self.assertLess(time.monotonic() - begin, 2.0)
        self.assert_fails(result, 3, f"mpiexec: rank 1 on host {HOST} called "
                                     "MPI_Abort(MPI_COMM_WORLD, 3); ending the other rank")


class Launcher(LaunchTest):
    def test_mpiexec_is_killed(self):
        """kill -9: nothing can be cleaned up by mpiexec itself, nothing is left all the same."""
        for command in ((RANK, "join", "who", "compute"),
                        ("sh", "-c", f"{RANK} join who compute; echo no")):
            process = self.start("-n", 3, *command)
            self.wait_for_lines(process, 3)
            self.assertGreaterEqual(len(marked_processes(self.mark)), 4)
            process.kill()
            process.wait()
            self.assert_nothing_left()

    def test_mpiexec_is_killed_while_it_starts(self):
        for i in range(40):
            process = self.start("-n", 8, RANK, "join", "compute")
            time.sleep(0.0002 * i)
            process.kill()
            process.wait()
            self.assert_nothing_left()

    def test_watchdog_and_mpiexec_are_killed(self):
        process = self.start("-n", 3, RANK, "join", "who", "compute")
        self.wait_for_lines(process, 3)
        children = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(process.pid)],
                                  capture_output=True, text=True, check=True).stdout
        watchdog = [int(line.split()[0]) for line in children.splitlines() if "watchdog" in line]
        self.assertEqual(len(watchdog), 1)
        os.kill(watchdog[0], signal.SIGKILL)
        process.kill()
        process.wait()
        self.assert_nothing_left()

    def test_ranks_inherit_only_what_they_need(self):
        code = ("import os; print(sorted(os.readlink(f'/proc/self/fd/{n}') for n in "
                "os.listdir('/proc/self/fd') if int(n) > 2 and os.path.exists(f'/proc/self/fd/{n}')"
                " or n == '64'))")
        for option in ((), ("-l",)):
            result = self.mpiexec(*option, "python3", "-c", code, stdin="")
            self.assertIn("['/memfd:macadam-job (deleted)']", result.stdout)


class Alone(LaunchTest):
    def alone(self, *actions, **environment):
        return subprocess.run([RANK, *actions], env={**self.environment, **environment},
                              capture_output=True, text=True, timeout=20)

    def test_without_mpiexec(self):
        result = self.alone("join", "who", "meet", "barrier", "finalize")
        self.assert_ran(result, ["rank 0 of 1, app 0, alone"])

    def test_opens_nothing(self):
        result = self.alone("join", f"execute=ls -l /proc/$PPID/fd")
        self.assertNotIn("memfd", result.stdout)

    def test_abort(self):
        result = self.alone("join", "abort=3")
        self.assert_fails(result, 3, "macadam: this program called MPI_Abort(MPI_COMM_WORLD, 3)")

    def test_foreign_launchers_are_refused(self):
        for variable, value, launcher in (("PMI_SIZE", "4", "MPICH"),
                                          ("OMPI_COMM_WORLD_SIZE", "2", "Open MPI"),
                                          ("SLURM_STEP_NUM_TASKS", "16", "srun --mpi=pmix"),
                                          ("FLUX_JOB_SIZE", "2", "Flux"),
                                          ("JSM_NAMESPACE_SIZE", "2", "jsrun"),
                                          ("PALS_RANKID", "1", "PALS"),
                                          ("PMIX_RANK", "1", "PMIx")):
            result = self.alone("join", **{variable: value})
            self.assertEqual(result.returncode, 9)
            self.assertIn(launcher, result.stderr)
            self.assertIn(f"{variable}={value}", result.stderr)
            self.assertIn("cannot join that job: it ", result.stderr)
            self.assertIn("start it with Macadam's mpiexec, or unset", result.stderr)

    def test_a_pmix_server_that_cannot_be_joined(self):
        """Rank 0 does not know how many there are, and is no job of one for that."""
        for rank in ("0", "1"):
            result = self.alone("join", PMIX_NAMESPACE="gone", PMIX_RANK=rank,
                                PMIX_SERVER_URI4="gone.0;tcp4://127.0.0.1:1")
            self.assertEqual(result.returncode, 9)
            self.assertIn("PMIx server", result.stderr)
            self.assertIn("Macadam's mpiexec", result.stderr)

    def test_one_process_of_a_foreign_launcher_is_fine(self):
        for variable, value in (("PMI_SIZE", "1"), ("OMPI_COMM_WORLD_SIZE", "1"),
                                ("SLURM_STEP_NUM_TASKS", "1"), ("PMIX_RANK", "0"),
                                ("SLURM_NTASKS", "8")):
            self.assert_ran(self.alone("join", "who", **{variable: value}),
                            ["rank 0 of 1, app 0, alone"])

    def test_invitation_that_is_damaged(self):
        for text in ("", "3", "x:1", "3:", "3:x", "-1:0", "3:0:1"):
            result = self.alone("join", MACADAM_JOB=text)
            self.assertEqual(result.returncode, 9)
            self.assertIn(f'MACADAM_JOB="{text}" is not what mpiexec writes there', result.stderr)

    def test_descriptor_that_got_lost(self):
        result = self.mpiexec("python3", "-c",
                              f"import subprocess; exit(subprocess.run(['{RANK}', 'join']).returncode)")
        self.assertIn("pass_fds", result.stderr)
        self.assertEqual(result.returncode, 9)

    def test_program_started_by_a_rank_is_alone(self):
        result = self.mpiexec("-n", 2, RANK, "join", "barrier", "finalize",
                              f"execute={RANK} join who finalize")
        self.assert_ran(result, ["rank 0 of 1, app 0, alone"] * 2)

    def test_without_the_environment(self):
        """The rank is found by what it has inherited, as often as it takes."""
        ranks = [f"rank {r} of 3, app 0, launched" for r in range(3)]
        rank = f"{RANK} join meet who barrier finalize"
        for command in (["env", "-i", *rank.split()], ["env", "-u", "MACADAM_JOB", *rank.split()],
                        ["sh", "-c", f"env -i {rank}; true"],
                        ["setsid", "-w", "env", "-i", *rank.split()]):
            self.assert_ran(self.mpiexec("-n", 3, *command), ranks)

    def test_without_the_environment_and_the_descriptor(self):
        """As sudo does it. What a rank starts that is in MPI stays a job of its own."""
        code = ("import subprocess, sys; "
                f"sys.exit(subprocess.run(['{RANK}', *sys.argv[1:]], env={{}}).returncode)")
        result = self.mpiexec("-n", 3, *python(code), "join", "meet", "who", "barrier", "finalize")
        self.assert_ran(result, [f"rank {r} of 3, app 0, launched" for r in range(3)])
        result = self.mpiexec("-n", 2, RANK, "join", "barrier",
                              f"execute=exec env -i {RANK} join who finalize", "finalize")
        self.assertEqual(result.stdout, "rank 0 of 1, app 0, alone\n" * 2)

    def test_job_in_a_job_without_the_environment(self):
        result = self.mpiexec("-n", 1, MPIEXEC, "-n", 3, "env", "-i", RANK, "join", "who", "barrier",
                              "finalize")
        self.assert_ran(result, [f"rank {r} of 3, app 0, launched" for r in range(3)])

    def test_rank_that_cannot_be_told(self):
        """A process that no rank's process stands above any more."""
        result = self.mpiexec("-n", 1, "sh", "-c",
                              f"(env -i sh -c 'sleep .3; exec {RANK} join who finalize' &); sleep 1")
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        self.assertIn("no process above this one is a rank that mpiexec has started", result.stderr)
        self.assertIn("MACADAM_JOB=alone", result.stderr)

    def test_alone_on_purpose(self):
        result = self.mpiexec("-n", 2, "env", "MACADAM_JOB=alone", RANK, "join", "who", "finalize")
        self.assert_ran(result, ["rank 0 of 1, app 0, alone"] * 2)

    def test_second_program_of_one_rank(self):
        result = self.mpiexec("-n", 1, "sh", "-c",
                              f"{RANK} join finalize && exec {RANK} join finalize")
        self.assertEqual(result.returncode, 9)
        self.assertIn("rank 0 of this job is taken by process", result.stderr)

    def test_file_size_limit(self):
        result = subprocess.run(["sh", "-c", f"ulimit -f 100; exec {MPIEXEC} true"],
                                env=self.environment, capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("ulimit -f unlimited", result.stderr)


SYSTEM_CALLS = {"x86_64": {"memfd_create": 319, "signalfd4": 289},
                "aarch64": {"memfd_create": 279, "signalfd4": 74}}[os.uname().machine]


def forbid(name):
    """Makes a system call fail with EPERM, as a container's seccomp profile does."""
    class Instruction(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte),
                    ("k", ctypes.c_uint)]

    class Filter(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.POINTER(Instruction))]

    load_number, equal, answer = 0x20, 0x15, 0x06
    code = (Instruction * 4)((load_number, 0, 0, 0), (equal, 0, 1, SYSTEM_CALLS[name]),
                             (answer, 0, 0, 0x00050000 | errno.EPERM), (answer, 0, 0, 0x7fff0000))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, seccomp, by_filter = 38, 22, 2
    if (libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0
            or libc.prctl(seccomp, by_filter, ctypes.byref(Filter(4, code)), 0, 0) != 0):
        raise OSError(ctypes.get_errno(), "no filter of system calls")


class Limits(LaunchTest):
    """What is missing is named with its limit and what raises it."""

    def refused(self, limit, *needed):
        result = self.mpiexec("-l", "-n", 64, "true", preexec_fn=limit)
        self.assertEqual(result.returncode, 2, result.stderr)
        for text in needed:
            self.assertIn(text, result.stderr)

    def test_open_files(self):
        for files in (40, 72):  # below mpiexec's own descriptor, and too few for pipes
            self.refused(lambda files=files: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                                (files, files)),
                         f"the limit of open files (nofile) is {files}, needed are 152: raise it with "
                         "\"ulimit -n 152\" as root")
        # What is said to be enough is.
        for ranks, labels, files in ((64, ["-l"], 152), (64, [], 88)):
            self.assert_ran(self.mpiexec(*labels, "-n", ranks, "true", preexec_fn=lambda files=files:
                                         resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))))

    @unittest.skipUnless(os.getuid() == 0, "needs a user of its own: root has no limit of processes")
    def test_processes(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NPROC, (5, 5))
            os.setuid(54321)
        self.refused(limit, "starting a rank failed", "this user may have 5 processes (nproc) and has",
                     'the job needs 65: raise it with "ulimit -u ', '" as root, as the hard limit is 5 (docker run '
                     "--ulimit nproc=")

    def test_processes_of_a_control_group(self):
        group = self.control_group("pids", "pids.max", value=20)
        self.refused(group.enter, "the control group may have 20 processes, the job needs 65: "
                     f'raise it with "echo 85 >{group.limit}"')

    def test_memory_of_a_control_group(self):
        group = self.control_group("memory", "memory.max", "memory.limit_in_bytes", value=64 << 20)
        eat = "b = []\nwhile True: b.append(bytearray(1 << 20))"
        result = self.mpiexec("-n", 1, "sleep", 20, ":", "-n", 1, sys.executable, "-c", eat,
                              preexec_fn=group.enter)
        self.assertEqual(result.returncode, 137, result.stderr)
        self.assertIn("rank 1 on host", result.stderr)
        self.assertIn("by the kernel, as the memory of the control group, 64 MiB, was used up: run fewer ranks, or "
                      f'raise it with "echo 128M >{group.limit}"', result.stderr)

    def test_forbidden_system_calls(self):
        self.refused(lambda: forbid("memfd_create"), "memfd_create for macadam-job", "seccomp")
        self.refused(lambda: forbid("signalfd4"), "signalfd", "seccomp")


if __name__ == "__main__":
    unittest.main()
