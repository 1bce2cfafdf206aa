#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs in the virtual machine: the unit tests that need an adapter, or that go well with a slow machine,
and what `macadam info` says of the adapter."""
import pathlib
import re
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv[1])


class Device(unittest.TestCase):
    def run_program(self, *words):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=200,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def unit_test(self, path):
        output = self.run_program(BUILD / "tests/unit" / path)
        self.assertIn("[  PASSED  ]", output)
        self.assertNotIn("SKIPPED", output)

    def test_what_the_simulated_device_promises_holds(self):
        self.unit_test("ibverbs/ibverbs_device_test")

    def test_threads_have_small_stacks(self):
        self.unit_test("base/base_test")

    def test_no_registration_is_older_than_its_memory(self):
        self.unit_test("mem/mem_threads_test")

    def test_info_tells_the_adapter(self):
        page = self.run_program(BUILD / "bin/macadam", "info")
        self.assertRegex(page, r"\n +rxe0:1 +used: RoCE v2, GID 1 = 10\.0\.0\.1, MTU 4096, [\d.]+ Gb/s; the only port that can be used\n"
                               r" +\d+ queue pairs, \d+ memory regions, completion queues of 32767\n"
                               r".* 256 bytes inline\n")

    def test_tune_measures_the_adapter_and_the_library_reads_it(self):
        page = self.run_program(BUILD / "bin/macadam", "tune", "--quick")
        self.assertRegex(page, r"\n  rxe0:1: the progress thread wakes up in [\d.]+ us, in which \d+ of \d+ messages "
                               r"per second arrive\n")
        written = dict(re.findall(r"^(rdma_\w+) = (\d+)$", page, re.MULTILINE))
        self.assertEqual({"rdma_eager", "rdma_hybrid", "rdma_watermark"} - written.keys(), set(), page)
        info = self.run_program(BUILD / "bin/macadam", "info")
        self.assertRegex(info, rf"\nt MACADAM_RDMA_WATERMARK +{written['rdma_watermark']} ")

    def test_info_tells_why_an_adapter_is_refused(self):
        subprocess.run(["ip", "link", "set", "eth0", "down"], check=True)
        try:
            page = self.run_program(BUILD / "bin/macadam", "info")
        finally:
            subprocess.run(["ip", "link", "set", "eth0", "up"], check=True)
        self.assertRegex(page, r"\n +rxe0:1 +refused: .*down")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
