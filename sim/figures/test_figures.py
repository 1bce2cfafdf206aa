# SPDX-License-Identifier: BSD-3-Clause
"""The measurements behind the figures, with few ranks, and what the papers claim of them."""
import json
import os
import unittest

import measure
import presets
from figures import DOCS
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

    def test_published_memory_is_that_of_this_version(self):
        published = json.loads((DOCS / "memory.json").read_text())["model"]
        today = self.programs.model(published["ranks"], list(published["bytes"]), "ndr")
        for receive, sizes in published["bytes"].items():
            for then, now in zip(sizes, today["bytes"][receive], strict=True):
                self.assertLess(abs(then - now) / now, 0.01, f"{receive}: make figures FIGURE=memory")

    def test_idle_ranks_cost_little(self):
        less, more = measure.idle_ranks(self.programs, "ndr", [16, 64])
        self.assertNotIn("bytes_per_idle_rank", less)
        self.assertLessEqual(more["bytes_per_idle_rank"], 256)

    def test_connections_on_demand_are_fewer(self):
        rows = {row["program"]: row
                for row in measure.connections_of_programs(self.programs, LARGEST)}
        self.assertEqual(rows.keys(), measure.TABLE_2.keys())
        self.assertEqual(rows["Ring"]["on_demand"], 2)
        self.assertEqual(rows["Alltoall, 512 bytes"]["on_demand"], 15)
        for name in ("Barrier", "Allreduce", "Allgather", "Alltoall, 64 bytes"):
            self.assertEqual(rows[name]["on_demand"], 4, name)  # log2 of 16 ranks
        self.assertLess(rows["EP"]["on_demand"], rows["EP"]["static"])

    def test_barriers_take_few_connections_on_demand(self):
        rows = {(row["connections"], row["ranks"]): row for row in measure.barriers(self.programs, 16)}
        self.assertEqual(rows["all", 8]["exchanges_partners"], 7)
        self.assertEqual(rows["on-demand", 8]["exchanges_partners"], 3)
        self.assertEqual(rows["on-demand", 16]["barrier_partners"], 4)  # Table 2 holds for any number of barriers

    def test_who_calls_often_is_connected_to_a_few_more_and_as_fast_as_if_to_all(self):
        for field, measured in (("barrier_us", measure.barriers), ("allreduce_us", measure.allreduces)):
            took = {(row["preset"], row["connections"], row["ranks"]): row[field]
                    for row in measured(self.programs, 8)}
            for preset, mode, ranks in took:
                if mode == "on-demand":
                    self.assertLess(took[preset, mode, ranks], 1.1 * took[preset, "all", ranks], (preset, ranks))

    def test_by_the_same_exchanges_only_connections_that_cost_make_barriers_slower(self):
        took = {(row["preset"], row["connections"], row["ranks"]): row["exchanges_us"]
                for row in measure.barriers(self.programs, 8)}
        for preset, mode, ranks in took:
            if mode == "on-demand" and ranks > 2:
                fewer, all_of_them = took[preset, mode, ranks], took[preset, "all", ranks]
                if preset == "berkeley-via-2002":  # Figure 4 (b)
                    self.assertLess(fewer, all_of_them, ranks)
                else:  # Figure 4 (a): the curves lie on each other
                    self.assertAlmostEqual(fewer / all_of_them, 1, delta=0.05, msg=f"{preset}, {ranks}")

    def test_startup_is_fastest_on_demand(self):
        took = {(row["preset"], row["ranks"], row["connections"]): row["init_us"]
                for row in self.measured("startup")["rows"]}
        for preset, ranks, _ in took:
            self.assertLess(took[preset, ranks, "on-demand"], took[preset, ranks, "all"])

    def test_watermark_keeps_waitall_short(self):
        longest = {(row["burst"], row["watermark"]): row for row in self.measured("burst")["rows"]}
        for burst in ("first", "second"):  # of the longest, which comes last
            with_it, without = longest[burst, 300], longest[burst, 0]
            self.assertLess(with_it["waitall_us"], without["waitall_us"])
            self.assertLess(2 * with_it["sender_us"], without["sender_us"])
            # The computation pays.
            self.assertAlmostEqual(without["taken_us"], 0, places=6)
            self.assertGreater(with_it["taken_us"], 0)
        # Less than it saves, once the memory is registered.
        self.assertLess(longest["second", 300]["total_us"], longest["second", 0]["total_us"])

    def test_credits_and_polled_rings_cost_what_a_shared_queue_does_not(self):
        rows = measure.wavefront(self.programs, 64, iterations=5)["rows"]
        self.assertEqual(len(rows), 12)
        for row in rows:
            for window in ("credit, 10", "credit, 32"):
                self.assertLess(row["shared"], row[window], row)
            # Looking at the rings of all who are connected costs; of four neighbours it does not.
            if row["ranks"] == 64:
                self.assertEqual(row["ring"] < row["shared"], row["connections"] == "on-demand", row)

    def test_rings_for_those_who_talk_most_are_faster_than_a_shared_queue_alone(self):
        plane = {name: self.programs.simulate(16, "wavefront", "compute_us=0", "iterations=40",
                                              preset="infinihost-2006", settings=settings)["rows"][0]["plane_us"]
                 for name, settings in measure.WAVEFRONT.items() if name in ("shared", "mixed")}
        self.assertLess(plane["mixed"], plane["shared"])

    def test_customized_protocols_overlap(self):
        for name, figure in self.measured("protocols")["figures"].items():
            for x, customized, sender in zip(figure["x"], figure["customized"], figure["sender"],
                                             strict=True):
                self.assertLess(customized, sender, f"figure {name} at {x}")

    def test_one_sided_by_rdma_needs_no_target(self):
        rdma, messages = (self.measured("one_sided")["by"][name] for name in ("RDMA", "messages"))
        saved = lambda figure, at: 1 - rdma[figure][at] / messages[figure][at]
        # Shapes. By how much is in docs/figures.md, beside what the paper has.
        self.assertGreater(saved("epoch_us", "0"), 0)
        gains = [fast / slow for fast, slow in zip(rdma["put_mb_per_s"].values(),
                                                   messages["put_mb_per_s"].values(), strict=True)]
        self.assertGreater(min(gains), 1)
        self.assertEqual(max(gains), max(gains[:len(gains) // 2]))  # the most at small sizes
        for figure in ("pingpong_us", "bidirectional_us"):
            for size in rdma[figure]:
                self.assertGreater(saved(figure, size), 0, f"{figure}, {size} bytes")
        self.assertLessEqual(rdma["skew_us"]["800"], rdma["skew_us"]["0"])  # flat
        self.assertGreater(messages["skew_us"]["800"], 800)
        self.assertEqual(len(rdma["origins_mb_per_s"]), 7)
        self.assertGreater(max(rdma["origins_mb_per_s"].values()), max(rdma["put_mb_per_s"].values()))
        # What is not overlapped grows with the computation, but not by RDMA.
        left = lambda by, us: by["overlap_us"][us] - int(us)
        self.assertGreater(left(messages, "200"), 2 * max(left(rdma, "200"), 1))

    def test_scale_tells_what_a_run_takes(self):
        run = self.programs.simulate(16, "halo")
        self.assertEqual([row["what"] for row in run["rows"]], ["halo exchange", "allreduce"])
        self.assertGreater(run["run"]["most_resident_bytes"], 1 << 20)

    def test_the_page_has_the_table_of_the_presets(self):
        page = presets.PAGE.read_text()
        self.assertEqual(page, presets.page_with(page, presets.table()),
                         "sim/figures/presets.py --write")

    def test_a_failed_run_says_which(self):
        with self.assertRaisesRegex(RunFailed, r"(?s)MACADAM_X=1 .*pattern:rign.*no pattern"):
            self.programs.simulate(2, "rign", settings={"MACADAM_X": "1"})
        with self.assertRaisesRegex(RunFailed, "/nowhere/bin/macadam-simulate is not there"):
            Programs("/nowhere", 1)


if __name__ == "__main__":
    unittest.main()
