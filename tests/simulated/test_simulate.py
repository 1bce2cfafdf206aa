#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`macadam simulate` from outside: what it prints, how it ends, what it refuses.

Usage: test_simulate.py MACADAM PROGRAM MODULE COMPUTES SPAWNS. PROGRAM is an ordinary executable, MODULE
the shared object of tests/programs/env/hello.c, COMPUTES and SPAWNS those of computes.cc and spawns.cc.
"""
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import unittest

MACADAM, PROGRAM, MODULE, COMPUTES, SPAWNS = sys.argv[1:6]


def simulate(*arguments, **variables):
    return subprocess.run([MACADAM, "simulate", *arguments], capture_output=True, text=True,
                          timeout=60, check=False, env={**os.environ, **variables})


class Running(unittest.TestCase):
    def test_a_program_runs_and_one_line_tells_of_it(self):
        result = simulate("-n", "8", MODULE)
        self.assertEqual((result.returncode, result.stdout), (0, "hello: 8 ranks\n"))
        self.assertRegex(result.stderr, r"^macadam simulate: 8 ranks on ndr, seed 1: [0-9.]+ s of "
                                        r"virtual time in [0-9.]+ s, \d+ events, trace [0-9a-f]{16}\n$")

    def test_a_long_run_shows_its_progress(self):
        """On a terminal."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        process = subprocess.Popen([MACADAM, "simulate", "-n", "4096", "pattern:alltoall"],
                                   stdout=subprocess.DEVNULL, stderr=slave)
        os.close(slave)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertRegex(os.read(master, 4096), rb"^macadam simulate: [0-9.]+ s of virtual time "
                                                rb"after [0-9]+ s, \d+ events\r\n")

    def test_quiet_says_nothing(self):
        self.assertEqual(simulate("-q", "-n", "2", MODULE).stderr, "")

    def test_the_same_seed_gives_the_same_trace(self):
        def trace(seed):
            result = simulate("-n", "5", "-s", seed, "-f", "jitter=2,datagram_loss=0.3", MODULE)
            return re.search("trace ([0-9a-f]+)", result.stderr).group(1)
        self.assertEqual(trace("7"), trace("7"))
        self.assertNotEqual(trace("7"), trace("8"))

    def test_settings_and_report_are_as_with_mpiexec(self):
        result = simulate("-n", "2", MODULE, MACADAM_REPORT="1", MACADAM_RDMA_RECEIVE="ring")
        self.assertIn("what the job did: 2 ranks", result.stderr)
        self.assertIn("MACADAM_RDMA_RECEIVE=ring", result.stderr)

    def test_the_report_is_in_virtual_time(self):
        def summary():
            page = simulate("-q", "-n", "3", MODULE, MACADAM_REPORT="1").stderr
            return page[page.index("  run time"):page.index("\n  protocol ")]
        self.assertRegex(summary(), r"run time [0-9.]+ [mu]?s, of which \d+ % in MPI")
        self.assertIn("messages / bytes sent", summary())
        self.assertEqual(summary(), summary())

    def test_a_timeline_is_in_virtual_time(self):
        """The same run gives the same timeline, to the last digit; in it are the watermark's events."""
        def timeline():
            with tempfile.TemporaryDirectory() as folder:
                run = simulate("-q", "-n", "2", "pattern:burst", "bursts=1000", "bytes=64",
                               MACADAM_TRACE=folder)
                self.assertEqual(run.returncode, 0, run.stderr)
                merged = subprocess.run([MACADAM, "trace", folder], capture_output=True, text=True,
                                        timeout=60, check=False)
                self.assertEqual(merged.returncode, 0, merged.stderr)
                with open(os.path.join(folder, "trace.json")) as file:
                    return file.read()
        text = timeline()
        events = json.loads(text)["traceEvents"]
        names = {event["name"] for event in events}
        for needed in ("shared receives below the watermark", "connecting: 1", "connected: 1",
                       "EAGER to 1"):
            self.assertIn(needed, names)
        self.assertEqual(text, timeline())

    def test_a_pattern_as_json(self):
        result = simulate("-q", "-n", "16", "--json", "pattern:ring", "bytes=64")
        found = json.loads(result.stdout)
        self.assertEqual(found["connections"], {"least": 2, "mean": 2, "most": 2})
        self.assertEqual(found["ranks"], 16)

    def test_lists(self):
        self.assertIn("infinihost-2006", simulate("--presets").stdout)
        self.assertIn("pattern:halo", simulate("--patterns").stdout)

    def test_a_preset_from_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"latency_ns": 1e6}')
            file.flush()
            slow = simulate("-n", "2", "-p", file.name, MODULE)
        self.assertEqual(slow.returncode, 0, slow.stderr)


class Computing(unittest.TestCase):
    """What a program computes takes no virtual time, or what it took, or what a file says."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file, self.slow = (os.path.join(folder.name, name) for name in ("times", "slow.json"))
        with open(self.slow, "w") as preset:
            preset.write('{"compute_factor": 10}')

    def run_of(self, *arguments):
        """The result, and how long the ring took."""
        result = simulate("-n", "4", *arguments, COMPUTES)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result, float(re.search(r" in ([0-9.]+) s", result.stdout).group(1))

    def test_a_run_repeats_to_the_digit_from_its_file(self):
        first, took = self.run_of("--measure", self.file)
        self.assertGreater(took, 5 * self.run_of()[1])
        again = [self.run_of("--repeat", self.file) for _ in range(2)]
        self.assertEqual(again[0][0].stdout, again[1][0].stdout)
        without_real_time = [re.sub(r"in [0-9.]+ s,", "", run.stderr) for run, _ in again]
        self.assertEqual(*without_real_time)
        # As long as what was measured, but for what was smoothed.
        self.assertLess(abs(again[0][1] - took), took)
        self.assertEqual(first.stdout.split()[0], again[0][0].stdout.split()[0])

    def test_a_slower_processor(self):
        self.run_of("--measure", self.file)
        times = [self.run_of("--repeat", self.file, *more)[1] for more in ((), ("-p", self.slow))]
        self.assertGreater(times[1], 5 * times[0])
        self.assertLess(times[1], 11 * times[0])

    def test_what_is_wrong_with_a_file(self):
        for text, file in (("cannot be read: No such file", "nothing"), ("is no file of compute "
                           "times", __file__)):
            result = simulate("-n", "4", "--repeat", file, COMPUTES)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(text, result.stderr)
            self.assertIn("--measure writes", result.stderr)
        self.run_of("--measure", self.file)
        self.assertIn("was measured with 4 ranks, not 2; --measure writes another",
                      simulate("-n", "2", "--repeat", self.file, COMPUTES).stderr)
        self.assertIn("times has no times for", simulate("-n", "4", "--repeat", self.file,
                                                         MODULE).stderr)


class Spawning(unittest.TestCase):
    """Programs that ranks start: other ones too, and found as mpiexec finds them."""
    STARTED = "class none, codes success: nothing is wrong"

    def spawns(self, *arguments, options=(), **how):
        result = subprocess.run([MACADAM, "simulate", "-n", "2", *options, SPAWNS, *arguments],
                                capture_output=True, text=True, timeout=60, check=False, **how)
        return result, result.stdout

    def test_by_path_by_a_name_beside_the_first_and_by_PATH(self):
        folder, name = os.path.split(MODULE)
        with tempfile.TemporaryDirectory() as other:
            os.symlink(MODULE, os.path.join(other, "elsewhere"))
            path = {**os.environ, "PATH": other}
            for program, how in ((MODULE, {}), (name, {}), ("./" + name, {"cwd": folder}),
                                 ("elsewhere", {"env": path})):
                result, text = self.spawns(program, **how)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(self.STARTED, text)
                self.assertIn("hello: 2 ranks\n", text)
                self.assertIn("2 ranks and 2 spawned on ndr", result.stderr)

    def test_what_cannot_be_started(self):
        folder = os.path.dirname(SPAWNS)
        for program, why in (("/no/such/program", "/no/such/program is no program that can be run"),
                             ("no-such-program", "no program no-such-program is in PATH"),
                             (PROGRAM, "is a whole program, which cannot be loaded"),
                             (folder, "is no program that can be run")):
            result, text = self.spawns(program)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("class spawn, codes spawn: ", text)
            self.assertIn(why, text)
            self.assertIn("2 ranks on ndr", result.stderr)

    def test_universe_size(self):
        """As many processes at a time, and never less than the ranks."""
        for size, told, text in (("4", "4", self.STARTED), ("3", "3", "there is room for 1"),
                                 ("1", "2", "there is room for 0")):
            found = self.spawns(options=("--usize", size))[1]
            self.assertIn(f"universe {told}, ", found)
            self.assertIn(text, found)
        self.assertIn("universe 2, ", self.spawns()[1])  # nobody has said

    def test_an_end_names_the_job(self):
        result = self.spawns(SPAWNS, "child", "waits")[0]
        self.assertEqual(result.returncode, 1)
        self.assertIn("nothing moves any more", result.stderr)
        self.assertIn("what 2 ranks of job 2 on simulated are waiting for", result.stderr)
        self.assertIn("in MPI_Recv", result.stderr)

    def test_the_same_seed_gives_the_same_run(self):
        def run(*options):
            result = self.spawns(options=("-f", "jitter=2,datagram_loss=0.3,shuffle", *options))[0]
            self.assertEqual(result.returncode, 0, result.stderr)
            return re.sub("in [0-9.]+ s,", "", result.stderr)
        self.assertEqual(run("-s", "7"), run("-s", "7"))
        self.assertNotEqual(run("-s", "7"), run("-s", "8"))

    def test_reports_are_of_each_job(self):
        result = self.spawns(env={**os.environ, "MACADAM_REPORT": "1"})[0]
        self.assertIn("what the job did: 2 ranks", result.stderr)
        self.assertIn("what job 2 did: 2 ranks", result.stderr)

    def test_a_run_from_times_repeats(self):
        with tempfile.TemporaryDirectory() as folder:
            times = os.path.join(folder, "times")
            self.assertEqual(self.spawns(options=("--measure", times))[0].returncode, 0)
            again = [re.sub("in [0-9.]+ s,", "", self.spawns(options=("--repeat", times))[0].stderr)
                     for _ in range(2)]
        self.assertEqual(*again)
        self.assertNotIn("has no times", again[0])


class Refusing(unittest.TestCase):
    def refused(self, text, *arguments, **variables):
        result = simulate(*arguments, **variables)
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertIn(text, result.stderr + result.stdout)

    def test_what_is_wrong_is_named(self):
        self.refused("there is no preset ndx; there are berkeley-via-2002", "-p", "ndx", MODULE)
        self.refused("nothing.json cannot be read: No such file", "-p", "nothing.json", MODULE)
        self.refused('no key "jiter"; the nearest is "jitter"', "-f", "jiter=1", MODULE)
        self.refused("there is no pattern 'rign'", "pattern:rign")
        self.refused("a power of two of ranks, not on 6", "-n", "6", "pattern:cg")
        self.refused("no program given")
        self.refused("is a whole program, which cannot be loaded into another one; build it with "
                     "`mpicc -shared -fPIC`", PROGRAM)
        self.refused("missing.so cannot be read: No such file", "missing.so")
        self.refused("is no shared object of this machine", __file__)

    def test_a_stack_that_is_too_small(self):
        self.refused("has used up its stack; give more with --stack", "--stack", "4", "-n", "2",
                     MODULE)

    def test_a_static_job_with_too_few_queue_pairs(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"queue_pairs": 4}')
            file.flush()
            self.refused("7 connections at start need 8 queue pairs", "-n", "8", "-p", file.name,
                         MODULE, MACADAM_RDMA_CONNECTIONS="all")
            few = simulate("-n", "8", "-p", file.name, "pattern:alltoall")
            self.assertEqual(few.returncode, 0, few.stderr)  # on demand: connections take turns

    def test_a_device_without_shared_queues_asks_for_another_way_to_receive(self):
        self.refused("no shared receive queues; set MACADAM_RDMA_RECEIVE=credit", "-n", "4", "-p",
                     "clan-2002", MODULE)
        result = simulate("-n", "4", "-p", "clan-2002", MODULE, MACADAM_RDMA_RECEIVE="credit")
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
