# SPDX-License-Identifier: BSD-3-Clause
"""A kernel in the simulator: it comes to its published result, and repeats to the digit."""
import os
import pathlib
import tempfile
import unittest

import jobs
import simulator

BUILD = pathlib.Path(os.environ["BUILD_FOLDER"])


class Simulated(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.times = pathlib.Path(folder.name)

    def run_on(self, preset, *arguments):
        return simulator.Simulator(BUILD, BUILD / "bench/nas/cg.so", 4, preset, self.times, "cg", ["S", *arguments], 100)

    def line(self, preset, settings):
        return jobs.line_in(self.run_on(preset).output(settings))

    def test_it_computes_and_repeats(self):
        first = self.line("ddr-2009", {})
        self.assertEqual((first["verified"], first["iterations"], first["messages"]), ("yes", "15", "6720"))
        self.assertEqual(self.line("ddr-2009", {}), first)
        other = self.line("ddr-2009", {"PROTOCOLS": "sender", "RDMA_EAGER": "1K"})
        self.assertEqual(other["verified"], "yes")
        self.assertNotEqual(other["seconds"], first["seconds"])
        # The same computation by a slower processor, on a slower network.
        self.assertGreater(float(self.line("clan-2002", {"RDMA_RECEIVE": "credit"})["seconds"]), float(first["seconds"]))

    def test_a_run_that_fails_is_told(self):
        with self.assertRaisesRegex(simulator.Failed, r"(?s)MACADAM_RDMA_RECEIVE=credit .*cg.so Q: ended with 2.*unknown argument Q"):
            simulator.Simulator(BUILD, BUILD / "bench/nas/cg.so", 4, "ndr", self.times, "cg", ["Q"], 100)


if __name__ == "__main__":
    unittest.main()
