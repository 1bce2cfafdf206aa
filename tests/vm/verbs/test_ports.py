#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in a virtual machine with four soft-RoCE devices: which of them ranks take, that ranks on different
ones talk, and that long data go by two. Arguments: a build tree."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv[1])
RANKS = 4
ROUNDS = 5
BYTES = 8 + 1000 + 9000 + 70000 + 300000  # that a rank sends to each other one in so many rounds
BACKGROUND = 10_000  # bytes that an interface sends at most without RDMA: the kernel's own
BOTH = {"MACADAM_RDMA_DEVICE": "rxe0,rxe1:1"}
ALL = {"MACADAM_RDMA_DEVICE": "rxe0,rxe1,rxe2,rxe3"}
PROGRAMS = ("pt2pt.random_traffic", "pt2pt.truncation", "pt2pt.persistent", "partitioned.rounds",
            "rma.random_epochs", "rma.accumulate")


def bytes_sent(interface):
    return int(pathlib.Path(f"/sys/class/net/{interface}/statistics/tx_bytes").read_text(encoding="ascii"))


class Ports(unittest.TestCase):
    def run_job(self, ranks=RANKS, **environment):
        """Traffic between all ranks, checked byte by byte; the lines of the report about ports."""
        environment = {**os.environ, "MACADAM_NETWORK": "rdma", "MACADAM_REPORT": "1",
                       "TRAFFIC_ROUNDS": str(ROUNDS), **environment}
        done = subprocess.run([BUILD / "bin/mpiexec", "-silence", "30", "-n", str(ranks),
                               BUILD / "tests/vm/verbs.traffic"], env=environment, text=True, timeout=120,
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"1 parts passed on {ranks} ranks", done.stdout)
        return [line.strip() for line in done.stdout.splitlines() if "of several ports" in line]

    def info(self, **environment):
        return subprocess.run([BUILD / "bin/macadam", "info"], env={**os.environ, **environment}, text=True,
                              capture_output=True, timeout=60, check=True).stdout

    def test_ranks_use_both_that_were_named_and_reach_each_other(self):
        before = bytes_sent("eth0"), bytes_sent("eth1")
        lines = self.run_job(**BOTH)
        sent = [bytes_sent(name) - count for name, count in zip(("eth0", "eth1"), before)]
        text = "\n".join(lines)
        for port in ("rxe0:1", "rxe1:1"):
            self.assertIn(f"only {port} is used: in turn one of rxe0:1, rxe1:1", text)
        # Each port has two ranks, and each of these two peers on the other port; the third is reached
        # within this one. Beside the data there are headers and what is sent again.
        self.assertGreater(min(sent), 4 * BYTES, sent)
        self.assertLess(max(sent), 6 * BYTES, sent)

    def test_each_way_to_receive(self):
        for receive in ("credit", "ring", "mixed"):
            with self.subTest(receive=receive):
                self.assertEqual(len(self.run_job(MACADAM_RDMA_RECEIVE=receive, **BOTH)), 2)

    def test_long_data_go_by_two_where_there_are_more_than_ranks(self):
        interfaces = ("eth0", "eth1", "eth2", "eth3")
        for receive in ("shared", "credit"):
            before = [bytes_sent(name) for name in interfaces]
            lines = self.run_job(2, MACADAM_RDMA_RECEIVE=receive, **ALL)
            sent = [bytes_sent(name) - count for name, count in zip(interfaces, before)]
            text = "\n".join(lines)
            for first, second in (("rxe0:1", "rxe2:1"), ("rxe1:1", "rxe3:1")):
                self.assertIn(f"of several ports {first} is used: in turn one of rxe0:1, rxe1:1, rxe2:1, rxe3:1; "
                              "and for half of what is longer than", text)
                self.assertIn(f"{second}: beside {first} for half of long data", text)
            # By the second one goes half of the longest message at least, by the first all of the short ones.
            for first, second in ((0, 2), (1, 3)):
                self.assertGreater(sent[second], 140_000, sent)
                self.assertLess(sent[second], sent[first], sent)
                self.assertGreater(sent[first] + sent[second], BYTES, sent)

    def test_programs_of_the_suite_by_two(self):
        for program in PROGRAMS:
            with self.subTest(program=program):
                environment = {**os.environ, **ALL, "MACADAM_NETWORK": "rdma", "PROGRAMS_LIGHT": "1",
                               "MACADAM_REPORT": "1"}
                command = [BUILD / "bin/mpiexec", "-silence", "30", "-n", "2",
                           BUILD / f"tests/programs/programs.{program}"]
                done = subprocess.run(command, env=environment, text=True, timeout=120, check=False,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertIn("rxe3:1: beside rxe1:1", done.stdout)

    def test_one_is_used_where_none_is_named(self):
        before = bytes_sent("eth1")
        lines = self.run_job()
        self.assertEqual(len(lines), 1)
        self.assertIn("only rxe0:1 is used: the best port", lines[0])
        self.assertLess(bytes_sent("eth1") - before, BACKGROUND)

    def test_info_tells_which_and_why(self):
        page = self.info()
        self.assertRegex(page, r"\n +rxe0:1 +used: RoCE v2, GID 1 = 10\.0\.0\.1, MTU 4096, [\d.]+ Gb/s; the best port\n"
                               r" +rxe1:1 +could be used: RoCE v2, GID 1 = 10\.0\.0\.11, .*; the kernel's software")
        page = self.info(**BOTH)
        self.assertRegex(page, r"rxe0:1 +used: .*; in turn one of rxe0:1, rxe1:1\n"
                               r" +rxe1:1 +used: .*; beside rxe0:1 for half of long data, as no other rank of this "
                               r"machine takes it\n")
        subprocess.run(["ip", "address", "replace", "10.9.0.1/24", "dev", "eth1"], check=True)
        subprocess.run(["ip", "address", "del", "10.0.0.11/24", "dev", "eth1"], check=True)
        try:
            page = self.info(**BOTH)
        finally:
            subprocess.run(["ip", "address", "del", "10.9.0.1/24", "dev", "eth1"], check=True)
            subprocess.run(["vm-network"], check=True)
        self.assertRegex(page, r"rxe1:1 +could be used: .*10\.9\.0\.1.*; in another network than rxe0:1")
        self.assertTrue(re.search(r"rxe0:1 +used: .*; the best port\n", page), page)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
