#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The virtual machine itself: what the tests that run in it rely on."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUN = pathlib.Path(__file__).resolve().with_name("run.py")
SKIPPED = 77


def words(*arguments):
    """run.py with `arguments`; a guest that hangs ends by the time limit among them."""
    return [sys.executable, "-B", RUN, "--timeout", "180", *map(str, arguments)]


def run(*arguments, **options):
    return subprocess.run(words(*arguments), capture_output=True, text=True, timeout=240, check=False,
                          **options)


class MachineTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # It sleeps while the others run.
        script = "echo begun; echo last words >/dev/console; sleep 1000"
        cls.limited = subprocess.Popen(words("--timeout", 30, "--", "sh", "-c", script), text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_a_command_runs_on_the_files_of_this_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "read").write_text("seen\n", encoding="utf8")
            script = f"""
                cat {folder}/read
                echo gone >{folder}/written && cat {folder}/written
                mkdir -p $VM_JOB/results && echo kept >$VM_JOB/results/result
                ibv_devinfo -d rxe0 | grep -c PORT_ACTIVE
                exit 3"""
            done = run("--results", f"{folder}/results", "--", "sh", "-c", script)
            self.assertEqual((done.returncode, done.stdout), (3, "seen\ngone\n1\n"), done.stderr)
            self.assertFalse(os.path.exists(f"{folder}/written"))
            self.assertEqual(pathlib.Path(folder, "results/result").read_text(encoding="utf8"),
                             "kept\n")

    def test_two_nodes_reach_each_other_by_verbs(self):
        script = """
            if [ $VM_NODE = 0 ]; then
              exec ibv_rc_pingpong -d rxe0 -g 1 -n 100
            fi
            while ! ibv_rc_pingpong -d rxe0 -g 1 -n 100 node0; do sleep 0.2; done"""
        done = run("--nodes", 2, "--", "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for node in (0, 1):
            self.assertIn(f"node{node}: 100 iters in", done.stdout)

    def test_the_time_limit_ends_a_guest_and_shows_its_console(self):
        output, errors = self.limited.communicate(timeout=240)
        self.assertEqual((self.limited.returncode, output), (124, "begun\n"))
        self.assertIn("the time limit of 30.0 s; the console of node 0:", errors)
        self.assertIn("  last words", errors)

    def test_a_guest_that_dies_is_told(self):
        done = run("--", "sh", "-c", "echo c >/proc/sysrq-trigger; sleep 1000")
        self.assertEqual(done.returncode, 124)
        self.assertIn("node 0 ended before its command did", done.stderr)
        self.assertIn("Kernel panic", done.stderr)

    def test_what_is_missing_is_named(self):
        done = run("--", "true", env={**os.environ, "PATH": "/nowhere"})
        self.assertEqual((done.returncode, done.stdout.splitlines()),
                         (SKIPPED, ["vm: skipped: there is no qemu-system-x86_64 (Debian's package "
                                    "qemu-system-x86)"]))


if __name__ == "__main__":
    possible = run("--", "true")
    if possible.returncode == SKIPPED:
        print(possible.stdout, end="")
        sys.exit(SKIPPED)
    unittest.main()
