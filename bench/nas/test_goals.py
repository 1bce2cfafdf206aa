# SPDX-License-Identifier: BSD-3-Clause
"""The judgement of goals.py, on numbers that are made up: what is over its bound does not hold, and says so."""
import unittest

import goals
import measure


def times(total, in_mpi=1.0):
    return {"seconds": total, "mpi_seconds": in_mpi}


def collective(field, odd):
    """Level, but for `odd` on three ranks on demand."""
    return [{"preset": "ndr", "ranks": ranks, "connections": mode,
             field: odd if (ranks, mode) == (3, "on-demand") else 1.0}
            for ranks in (2, 3) for mode in ("all", "on-demand")]


def data(bt=1.0, bt_in_mpi=1.0, ring=1.0, credit=1.0, mixed=1.0, demand=1.0, simulated=1.0, barrier=1.0,
         exchanges=1.0, summed=1.0):
    barriers = [{**one, **other} for one, other in zip(collective("barrier_us", barrier),
                                                       collective("exchanges_us", exchanges))]
    return {
        "simulated": {"protocols": [], "connections": [], "receives": [
            {"kernel": "sp", "preset": "ndr", "ranks": 16,
             "by": {"shared": times(simulated), "mixed": times(mixed), "credit, 32": times(1.0)}}]},
        "protocols": {"bt": {"customized": times(bt, bt_in_mpi), "sender, read": times(1.0, 2.0),
                             "sender, write": times(1.5)}},
        "receives": {"lu": {"shared": times(1.0), "ring, 32": times(ring), "credit, 10": times(credit)}},
        "connections": {"cg": {"on demand": times(demand), "all": times(1.0)}},
        "wavefront": [{"ranks": 16, "connections": "all", "compute_us": 0,
                       **dict.fromkeys(measure.WAVEFRONT, 1.0), "mixed": mixed}],
        "barriers": barriers,
        "allreduces": collective("allreduce_us", summed),
    }


class Goals(unittest.TestCase):
    def failed(self, **numbers):
        return [row["what"] for rows in goals.judged(data(**numbers)).values() for row in rows if not row["holds"]]

    def test_level_holds(self):
        self.assertEqual(self.failed(), [])
        self.assertEqual(goals.text(goals.judged(data())).count(": holds"), len(goals.GOALS))

    def test_each_bound(self):
        self.assertEqual(self.failed(bt=1.019), [])
        self.assertEqual(self.failed(bt=1.021), ["BT, soft-RoCE: total"])  # the better of the two others counts
        self.assertEqual(self.failed(bt_in_mpi=1.01), ["BT, soft-RoCE: in MPI"])
        self.assertEqual(self.failed(ring=0.96), [])
        self.assertEqual(self.failed(ring=0.95), ["LU, soft-RoCE: to ring, 32"])
        self.assertEqual(self.failed(credit=0.999), ["LU, soft-RoCE: to credit, 10"])
        self.assertEqual(self.failed(demand=1.03), ["CG, soft-RoCE"])
        self.assertEqual(self.failed(simulated=1.01), ["SP, ndr, 16 ranks: to credit, 32"])
        self.assertEqual(self.failed(barrier=1.03), ["barrier, ndr, 3 ranks"])
        self.assertEqual(self.failed(exchanges=1.03), ["the paper's exchanges, ndr, 3 ranks"])
        self.assertEqual(self.failed(summed=1.03), ["allreduce, ndr, 3 ranks"])

    def test_mixed_is_no_rival_of_a_shared_queue(self):
        self.assertEqual(self.failed(mixed=0.5), [])

    def test_it_is_told(self):
        self.assertIn("does not hold: 1 of ", goals.text(goals.judged(data(bt=1.1))))


if __name__ == "__main__":
    unittest.main()
