#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""MACADAM_TRACE and `macadam trace`: what the timeline of a run says, as the format of Chrome and
Perfetto has it."""
import bisect
import collections
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

from common import LaunchTest

BUILD = os.environ["BUILD_FOLDER"]
MACADAM = os.path.join(BUILD, "bin", "macadam")
PROGRAM = os.environ["LAUNCH_TRACE"]
OTHER_PROGRAM = os.environ["LAUNCH_PROGRAM"]
RECORD = struct.Struct("=ddQQQQIiIBBH")  # boot::TraceRecord


def merge(folder, *options):
    return subprocess.run([MACADAM, "trace", folder, *options], capture_output=True, text=True,
                          timeout=60, check=False)


class Timeline(LaunchTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "trace")

    def run_program(self, *arguments, ranks=2, options=(), program=PROGRAM):
        return self.mpiexec("-n", ranks, "-genv", "MACADAM_TRACE", self.folder, *options, program,
                            *arguments)

    def assert_status(self, result, status):
        self.assertEqual(result.returncode, status, result.stderr)

    def timeline(self):
        result = merge(self.folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.said = result.stdout
        with open(os.path.join(self.folder, "trace.json")) as file:
            return json.load(file)["traceEvents"]

    def check_format(self, events):
        """What the format asks of each event, and that slices of a track lie in each other."""
        tracks = collections.defaultdict(list)
        open_flows, open_slices = {}, collections.Counter()
        for event in sorted(events, key=lambda event: event["ts"]):
            self.assertIsInstance(event["ts"], (int, float))
            self.assertGreaterEqual(event["ts"], 0)
            phase = event["ph"]
            if phase == "X":
                self.assertGreaterEqual(event["dur"], 0)
                tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
            elif phase == "i":
                self.assertEqual(event["s"], "t")
            elif phase in "sf":
                open_flows.setdefault(event["id"], []).append(event)
            elif phase in "bne":
                open_slices[event["cat"], event["id"]] += {"b": 1, "n": 0, "e": -1}[phase]
            else:
                self.assertEqual(phase, "M")
        self.assertEqual(set(open_slices.values()) - {0}, set())
        for slices in tracks.values():
            slices.sort()
        for ends in open_flows.values():
            self.assertEqual([end["ph"] for end in ends], ["s", "f"], ends)
            for end in ends:  # inside a call, which the arrow is drawn from or to
                slices = tracks[end["pid"], end["tid"]]
                last = bisect.bisect_right(slices, (end["ts"], float("inf"))) - 1
                self.assertTrue(last >= 0 and slices[last][1] >= end["ts"], end)
        for slices in tracks.values():
            under_way = []
            for begin, until in sorted(slices, key=lambda slice: (slice[0], -slice[1])):
                while under_way and under_way[-1] <= begin:
                    under_way.pop()
                self.assertTrue(not under_way or until <= under_way[-1] + 0.002, (begin, until))
                under_way.append(until)

    def test_of_a_run(self):
        self.assert_status(self.run_program("protocols"), 0)
        events = self.timeline()
        self.check_format(events)
        names = collections.Counter(event["name"] for event in events)
        for needed in ("EAGER to 1", "EAGER from 0", "RTS (SEND_RNDV) to 1",
                       "RTS (SEND_RNDV) from 0, unexpected",
                       "announcement (RTR) to 0", "announcement (RTR) from 1", "RECV_RNDV from 0",
                       "data to 1", "send by SEND_RNDV",
                       "send by RECV_RNDV", "receive by RECV_RNDV", "MPI_Send", "MPI_Recv",
                       "MPI_Finalize", "connected: 1"):
            self.assertIn(needed, names)
        # Of SEND_RNDV the side that comes to wait first moves the data, and tells the other.
        if names["data from 0"] == 1:
            self.assertEqual((names["FIN to 0"], names["FIN from 1"]), (1, 1))
        else:
            self.assertEqual((names["data to 1"], names["FIN from 0"]), (2, 2))
        self.assertIn("2 ranks on 1 host", self.said)
        processes = {event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual({name.split(" on ")[0] for name in processes}, {"rank 0", "rank 1"})

    def test_no_message_comes_before_it_is_sent(self):
        self.assert_status(self.run_program("protocols"), 0)
        flows = collections.defaultdict(dict)
        for event in self.timeline():
            if event["ph"] in "sf":
                flows[event["id"]][event["ph"]] = event
        self.assertGreater(len(flows), 10)
        for flow in flows.values():
            self.assertLess(flow["s"]["ts"], flow["f"]["ts"])

    def test_of_threads(self):
        self.assert_status(self.run_program("threads"), 0)
        events = self.timeline()
        self.check_format(events)
        self.assertIn("calls of thread 1", {event["args"]["name"] for event in events
                                            if event["name"] == "thread_name"})

    def test_of_many_messages(self):
        """More than can be noted: pauses say how much, and the sum is right."""
        self.assert_status(self.run_program("many"), 0)
        events = self.timeline()
        self.check_format(events)
        self.assertRegex(self.said, r"In \d+ pauses more happened than could be noted")
        of_rank_0 = [event for event in events if event["pid"] == 1]
        in_pauses = sum(event["args"]["short messages sent"] for event in of_rank_0
                        if event["name"] == "more than could be noted")
        noted = sum(event["name"] == "EAGER to 1" for event in of_rank_0)
        self.assertGreater(noted, 1000)
        sent = 300000
        self.assertGreaterEqual(noted + in_pauses, sent)
        self.assertLess(noted + in_pauses, sent * 1.01)

    def test_of_a_job_that_hangs_and_of_one_that_aborts(self):
        """Whoever waits in MPI, or ends the job, leaves its timeline, with the call it is in."""
        for arguments, options, status, function in (
                (("wrong-tag",), ("-timeout", "1"), 124, "MPI_Recv"),
                (("abort", "3"), (), 3, "MPI_Abort")):
            self.assert_status(self.run_program(*arguments, options=options,
                                                program=OTHER_PROGRAM), status)
            under_way = [event["name"] for event in self.timeline()
                         if event.get("args", {}).get("under way")]
            self.assertIn(function, under_way)

    def test_the_newest_run_in_a_folder(self):
        self.assert_status(self.run_program("protocols", ranks=3), 0)
        self.assert_status(self.run_program("protocols", ranks=2), 0)
        self.timeline()
        self.assertIn("2 ranks on 1 host", self.said)
        os.remove(max((os.path.join(self.folder, name) for name in os.listdir(self.folder)
                       if name.endswith(".1.trace")), key=os.path.getmtime))
        self.timeline()
        self.assertIn("Only 1 of 2 ranks have left a trace.", self.said)

    def test_clocks_of_two_machines(self):
        """The file of rank 1 as if its machine had been switched on three seconds later, and ran
        fast: the messages set that right."""
        self.assert_status(self.run_program("paced"), 0)
        before = {(event["pid"], event["name"]): event["ts"] for event in self.timeline()
                  if event["ph"] == "X"}
        name, = (name for name in os.listdir(self.folder) if name.endswith(".1.trace"))
        path = os.path.join(self.folder, name)
        with open(path, "rb") as file:
            line, records = file.read().split(b"\n", 1)
        header = json.loads(line)

        def shift(at):
            return at - 3 + 40e-6 * (at - header["now"]) if at else at
        moved = b""
        for record in RECORD.iter_unpack(records):
            moved += RECORD.pack(shift(record[0]), shift(record[1]), *record[2:])
        header.update(clock="b", host="b", now=shift(header["now"]))
        for row in header["under_way"]:
            row["at"] = shift(row["at"])
        with open(path, "wb") as file:
            file.write(json.dumps(header).encode() + b"\n" + moved)
        after = {(event["pid"], event["name"]): event["ts"] for event in self.timeline()
                 if event["ph"] == "X"}
        self.assertRegex(self.said, r"The clock of b is -(2\.99|3\.00)\d+ s ahead of that of the job")
        self.assertEqual(before.keys(), after.keys())
        for key, at in before.items():
            # As well as messages can tell on a machine whose cores are busy.
            self.assertAlmostEqual(at, after[key], delta=20e3, msg=key)  # us

    @unittest.skipUnless(os.getuid() == 0, "needs a namespace of time")
    def test_clocks_of_machines_that_differ(self):
        """Two machines whose clocks are 4923 s apart, as each has a namespace of time."""
        shell = os.path.join(os.path.dirname(os.path.abspath(__file__)), "remote_shell.py")
        self.environment.update(MACADAM_SSH=f"{sys.executable} -SE {shell}", REMOTE_SHELL_CLOCKS="a=77,b=5000")
        self.assert_status(self.run_program("paced", options=("-host", "a,b")), 0)
        events = self.timeline()
        self.check_format(events)
        self.assertIn("2 ranks on 2 hosts", self.said)
        ahead, within = re.search(r"The clock of b is (\S+) s ahead of that of a, .* give or take (\S+) us",
                                  self.said).groups()
        self.assertLess(float(within), 1e6)
        self.assertAlmostEqual(float(ahead), 4923, delta=float(within) * 1e-6 + 1e-6)
        flows = collections.defaultdict(dict)
        for event in events:
            if event["ph"] in "sf":
                flows[event["id"]][event["ph"]] = event["ts"]
        self.assertGreater(len(flows), 10)
        for flow in flows.values():
            self.assertLess(flow["s"], flow["f"])
        self.assertLess(max(event["ts"] for event in events), 30e6)  # us

    def test_what_cannot_be(self):
        for folder, trouble in ((self.folder, "cannot be read: No such file"),
                                (os.path.dirname(self.folder), "has no traces; MACADAM_TRACE=")):
            result = merge(folder)
            self.assertEqual(result.returncode, 1)
            self.assertIn(trouble, result.stderr)
        os.mkdir(self.folder)
        for content, trouble in ((b"{}\n", "is no trace"), (b"", "is no trace"), (b"x", "is no trace"),
                                 (b'{"macadam": "trace", "record_bytes": 8}\n', "another version"),
                                 (b'{"macadam": "trace", "record_bytes": 64, "records": 5}\n',
                                  "is cut short: 0 of 5")):
            with open(os.path.join(self.folder, "a.0.trace"), "wb") as file:
                file.write(content)
            result = merge(self.folder)
            self.assertEqual(result.returncode, 1)
            self.assertIn(trouble, result.stderr)

    def test_a_folder_that_cannot_be_made(self):
        result = self.mpiexec("-n", "1", "-genv", "MACADAM_TRACE", "/dev/null/trace", PROGRAM)
        self.assert_status(result, 0)
        self.assertIn("macadam: no trace: the folder /dev/null/trace cannot be made", result.stderr)


if __name__ == "__main__":
    unittest.main()
