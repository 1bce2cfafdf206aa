# SPDX-License-Identifier: BSD-3-Clause
"""What a rank holds for its peers over libfabric (launch_peers.c): the kernel's count beside that of
`macadam model --libfabric`, which measures the provider without any of our transport."""
import itertools
import json
import os
import pathlib
import statistics
import unittest

from common import LaunchTest

MACADAM = pathlib.Path(os.environ["BUILD_FOLDER"]) / "bin/macadam"
SHARED = pathlib.Path("/dev/shm")
RANKS = 8


class Peers(LaunchTest):
    def model(self, *arguments):
        result = self.mpiexec("model", *arguments, launcher=MACADAM)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_the_model_has_what_the_kernel_counts(self):
        self.environment["MACADAM_NETWORK"] = "ofi"
        result = self.mpiexec("-n", RANKS, os.environ["LAUNCH_PEERS"])
        self.assertEqual(result.returncode, 0, result.stderr)
        resident = [int(line) for line in result.stdout.split()]
        self.assertEqual(len(resident), RANKS)
        model = json.loads(self.model("--libfabric", RANKS, "-n", f"2,{RANKS}", "--json"))
        # Other memory grows meanwhile, in steps.
        each = statistics.median(after - before for before, after in itertools.pairwise(resident[1:]))
        self.assertAlmostEqual((model["bytes"][1] - model["bytes"][0]) / (RANKS - 2) / each, 1, delta=0.3)
        # Of all that a process has little is not the provider's.
        # (A pool of the provider that has grown a step more is a fifth of it.)
        self.assertAlmostEqual(model["bytes"][1] / resident[-1], 1, delta=0.3)
        self.assertEqual(model["files"], 1)

    def test_the_page_says_the_same(self):
        page = self.model("--libfabric", 2, "-n", "1,2,64")
        self.assertRegex(page, r"^MB that .* over \S+ on lo 127\.0\.0\.1\n +ranks +MB\n"
                               r" +1 +[\d.]+\n +2 +[\d.]+\n +64 +[\d.]+\nmeasured with 2 processes, bytes: ")

    def test_nothing_is_left(self):
        self.environment["FI_PROVIDER"] = "shm"  # which has files
        before = set(SHARED.iterdir())
        self.assertIn(" over shm ", self.model("--libfabric", 3, "-n", 4))
        # Of processes that are there no more: other tests may run meanwhile.
        left = [file for file in set(SHARED.iterdir()) - before
                if not pathlib.Path("/proc", file.name.split(":")[0]).exists()]
        self.assertEqual([file for file in left if file.exists()], [])

    def test_mistakes(self):
        result = self.mpiexec("model", "--libfabric", 1, launcher=MACADAM)
        self.assertIn("--libfabric: Value 1 not in range 2 to 1000", result.stderr)
        self.environment["FI_PROVIDER"] = "nothing"
        result = self.mpiexec("model", "--libfabric", 2, launcher=MACADAM)
        self.assertEqual(result.returncode, 1)
        self.assertIn("FI_PROVIDER is 'nothing'", result.stderr)


if __name__ == "__main__":
    unittest.main()
