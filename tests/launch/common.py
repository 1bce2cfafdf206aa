# SPDX-License-Identifier: BSD-3-Clause
"""What the launch tests share. The environment tells them where things are: MPIEXEC, LAUNCH_RANK."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest
import uuid

MPIEXEC = os.environ["MPIEXEC"]
RANK = os.environ["LAUNCH_RANK"]
HOST = os.uname().nodename
LONGEST = 60  # seconds for one command; a slow machine, not the expected time


def marked_processes(mark: str) -> list[str]:
    """The command lines of all processes that have `mark` in their environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state not in "ZX":
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found.append(f"{entry.name}: {command}")
        except OSError:
            pass  # ended meanwhile
    return found


class ControlGroup:
    """One of its own, with a limit."""

    def __init__(self, folder: pathlib.Path, limit: str, value: int):
        folder.mkdir()
        self.folder, self.limit = folder, folder / limit
        try:
            if not self.limit.exists():
                raise FileNotFoundError(self.limit)
            self.limit.write_text(str(value))
        except OSError:
            folder.rmdir()
            raise

    def enter(self):
        """For what begins a child."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self, within: float = 5.0):
        """The kernel keeps it busy for a moment after its last process was waited for."""
        end = time.monotonic() + within
        while True:
            try:
                return self.folder.rmdir()
            except OSError:
                if time.monotonic() > end:
                    raise
            time.sleep(0.01)


class LaunchTest(unittest.TestCase):
    """Every test gets a mark in the environment of what it starts; at its end no process may carry
    it any more and /dev/shm must be as it was."""

    def setUp(self):
        self.mark = f"LAUNCH_TEST_MARK={uuid.uuid4()}"
        self.environment = {**os.environ, **dict([self.mark.split("=")])}
        for name in ("PMI_FD", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID",
                     "PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "LSB_MCPU_HOSTS", "PE_HOSTFILE", "MACADAM_REPORT",
                     "PYTHONUNBUFFERED"):
            self.environment.pop(name, None)
        self.shm = set(os.listdir("/dev/shm"))

    def tearDown(self):
        self.assert_nothing_left()

    def assert_nothing_left(self, within: float = 5.0):
        end = time.monotonic() + within
        while (left := marked_processes(self.mark)) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual(left, [], "processes are left behind:\n" + "\n".join(line[:160] for line in left))
        new = {n for n in set(os.listdir("/dev/shm")) - self.shm if "macadam" in n}
        self.assertEqual(new, set(), "/dev/shm is not as it was")

    def start(self, *arguments, launcher=MPIEXEC, **options) -> subprocess.Popen:
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True,
                   "stderr": subprocess.PIPE, "env": self.environment, **options}
        process = subprocess.Popen([launcher, *map(str, arguments)], **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        """Nothing survives a test that failed."""
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def mpiexec(self, *arguments, stdin=None, **options) -> subprocess.CompletedProcess:
        if stdin is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*arguments, **options)
        try:
            out, error = process.communicate(stdin, timeout=LONGEST)
        except subprocess.TimeoutExpired as so_far:
            self.fail(f"no end in {LONGEST} s; processes:\n{self.who_waits()}\n"
                      f"output: {so_far.stdout}\nerrors: {so_far.stderr}")
        return subprocess.CompletedProcess(process.args, process.returncode, out, error)

    def control_group(self, controller: str, *limits: str, value: int) -> ControlGroup:
        """Below this process's own, of version 1 or 2; `limits`: what the file is called in either. Skips the
        test where none can be had."""
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            parent = pathlib.Path("/sys/fs/cgroup", controller if controllers else "", path.lstrip("/"))
            for limit in limits:
                try:
                    group = ControlGroup(parent / f"launch_test_{os.getpid()}", limit, value)
                except OSError:  # not ours to change, or another version's
                    continue
                self.addCleanup(group.remove)
                return group
        self.skipTest(f"no control group with {' or '.join(limits)} can be made here")

    def who_waits(self):
        """What each process of this test is in."""
        lines = []
        for line in marked_processes(self.mark):
            folder = pathlib.Path("/proc", line.split(":")[0])
            try:
                for thread in sorted((folder / "task").iterdir()):
                    state = (thread / "stat").read_text().rpartition(")")[2].split()
                    call = (thread / "syscall").read_text().split()[0]
                    where = (thread / "wchan").read_text()
                    lines.append(f"{line[:160]} thread {thread.name}, child of {state[1]}: "
                                 f"{state[0]}, system call {call} {where}")
            except OSError:  # it has ended meanwhile
                pass
        return "\n".join(lines)

    def assert_ran(self, result, out=None):
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        if out is not None:
            self.assertEqual(sorted(result.stdout.splitlines()), sorted(out))

    def assert_fails(self, result, status: int, *lines: str):
        """Exit status and exactly these lines on standard error."""
        self.assertEqual(result.stderr.splitlines(), list(lines))
        self.assertEqual(result.returncode, status)

    def wait_for(self, what, seconds=20.0, message="it did not happen in time"):
        end = time.monotonic() + seconds
        while not (value := what()):
            self.assertLess(time.monotonic(), end, message)
            time.sleep(0.005)
        return value

    def page_of_tool(self, program: str, words: str) -> str:
        """What `macadam hang` says of a rank of this test's that runs the program, once it has these words."""
        tool = pathlib.Path(os.environ["BUILD_FOLDER"], "bin/macadam")

        def ask():
            for line in marked_processes(self.mark):
                process, _, command = line.partition(":")
                if not command.strip().startswith(program):
                    continue
                asked = subprocess.run([tool, "hang", process], capture_output=True, text=True, timeout=20)
                if words in asked.stdout:
                    return asked.stdout
            return None
        return self.wait_for(ask)

    def wait_for_lines(self, process, count: int) -> list[str]:
        """The next lines of the process's output: the sign that its ranks have come so far."""
        return [process.stdout.readline().rstrip("\n") for _ in range(count)]


def python(code: str) -> list[str]:
    """A command line that runs `code`."""
    return [sys.executable, "-c", code]


if __name__ == "__main__":
    sys.exit("this is a module of the launch tests")
