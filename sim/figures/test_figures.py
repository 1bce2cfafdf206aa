# SPDX-License-Identifier: BSD-3-Clause
"""The measurements behind the figures, with few ranks, and what the papers claim of them."""
import os
import unittest

import measure
from runs import Programs, RunFailed

LARGEST = 16


class Figures(unittest.TestCase):
    programs = Programs(os.environ["BUILD_FOLDER"], seconds=60)

    def measured(self, name):
        return measure.FIGURES[name](self.programs, LARGEST)

    def test_memory_is_what_the_model_says(self):
        data = self.measured("memory")
        self.assertEqual(len(data["runs"]), 6)
        for run in data["runs"]:
            self.assertEqual(run["connections"], LARGEST - 1, run)
            self.assertLess(abs(run["difference_percent"]), 1, run)
        for held in data["model"]["bytes"].values():
            self.assertEqual(len(held), len(data["model"]["ranks"]))
            self.assertEqual(held, sorted(held))

    def test_idle_ranks_cost_little(self):
        less, more = measure.idle_ranks(self.programs, "ndr", [16, 64])
        self.assertNotIn("bytes_per_idle_rank", less)
        self.assertLessEqual(more["bytes_per_idle_rank"], 256)

    def test_connections_on_demand_are_fewer(self):
        rows = {row["program"]: row for row in self.measured("connections")["rows"]}
        self.assertEqual(rows.keys(), measure.TABLE_2.keys())
        self.assertEqual(rows["Ring"]["on_demand"], 2)
        self.assertEqual(rows["Alltoall, 512 bytes"]["on_demand"], 15)
        self.assertLess(rows["EP"]["on_demand"], rows["EP"]["static"])

    def test_startup_is_fastest_on_demand(self):
        took = {(row["preset"], row["ranks"], row["connections"]): row["init_us"]
                for row in self.measured("startup")["rows"]}
        for preset, ranks, _ in took:
            self.assertLess(took[preset, ranks, "on-demand"], took[preset, ranks, "all"])

    def test_watermark_keeps_waitall_short(self):
        longest = {row["watermark"]: row["waitall_us"] for row in self.measured("burst")["rows"]}
        self.assertLess(2 * longest[300], longest[0])  # the longest burst comes last

    def test_customized_protocols_overlap(self):
        for name, figure in self.measured("protocols")["figures"].items():
            for x, customized, sender in zip(figure["x"], figure["customized"], figure["sender"],
                                             strict=True):
                self.assertLess(customized, sender, f"figure {name} at {x}")

    def test_one_sided_by_rdma_needs_no_target(self):
        rdma, messages = (self.measured("one_sided")["by"][name] for name in ("RDMA", "messages"))
        saved = lambda fast, slow: 1 - fast / slow
        self.assertGreater(saved(rdma["synchronization"], messages["synchronization"]), 0.13)
        small = [next(row["pingpong_us"] for row in each["latency"] if row["what"] == "64 bytes")
                 for each in (rdma, messages)]
        self.assertGreater(saved(*small), 0.19)
        gains = [fast["put_mb_per_s"] / slow["put_mb_per_s"]
                 for fast, slow in zip(rdma["bandwidth"], messages["bandwidth"], strict=True)]
        self.assertGreater(max(gains), 1.77)
        self.assertGreater(min(gains), 1)
        for field, part in (("pingpong_us", "latency"), ("bidirectional_us", "latency")):
            for fast, slow in zip(rdma[part], messages[part], strict=True):
                self.assertLess(fast[field], slow[field], fast["what"])
        skew = [row["skew_us"] for row in rdma["busy"]]
        self.assertLessEqual(skew[-1], skew[0])  # flat; the longest computation comes last
        self.assertGreater(messages["busy"][-1]["skew_us"], 800)

    def test_scale_tells_what_a_run_takes(self):
        run = self.programs.simulate(16, "halo")
        self.assertEqual([row["what"] for row in run["rows"]], ["halo exchange", "allreduce"])
        self.assertGreater(run["run"]["most_resident_bytes"], 1 << 20)

    def test_a_failed_run_says_which(self):
        with self.assertRaisesRegex(RunFailed, r"(?s)MACADAM_X=1 .*pattern:rign.*no pattern"):
            self.programs.simulate(2, "rign", settings={"MACADAM_X": "1"})
        with self.assertRaisesRegex(RunFailed, "/nowhere/bin/macadam-simulate is not there"):
            Programs("/nowhere", 1)


if __name__ == "__main__":
    unittest.main()
