# SPDX-License-Identifier: BSD-3-Clause
"""MPI programs of different mpiexecs on different machines that meet (launch_distant.c), over TCP; the
machines are this one under other names (remote_shell.py)."""
import os
import random
import re
import signal
import time
import unittest

from common import marked_processes
from links import LinkTest

DISTANT = os.environ["LAUNCH_DISTANT"]


class DistantTest(LinkTest):
    def setUp(self):
        super().setUp()
        if os.environ["SANITIZED"]:  # libfabric's own memory, which it keeps
            self.environment["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

    def start_both(self, first, second, comm="world", rounds=2):
        """Command lines of mpiexec: its host, and its options."""
        accepting = self.on(*first, DISTANT, comm, rounds)
        port = self.wait_for_lines(accepting, 1)[0]
        return accepting, self.on(*second, DISTANT, comm, rounds, port)

    def end_both(self, pair, ranks):
        for process, count in zip(pair, ranks):
            self.finish(process, *["done"] * count)


class Meeting(DistantTest):
    def test_jobs_on_one_machine_each(self):
        for ranks in ((1, 1), (3, 2)):
            with self.subTest(ranks):
                self.end_both(self.start_both(("a", "-n", ranks[0]), ("b", "-n", ranks[1])), ranks)

    def test_one_on_several_machines(self):
        self.end_both(self.start_both(("a", "-n", 2), ("x", "-host", "b,c")), (2, 2))
        self.end_both(self.start_both(("x", "-host", "b,c"), ("a", "-n", 2)), (2, 2))

    def test_both_on_several_machines(self):
        self.end_both(self.start_both(("x", "-host", "a,b"), ("y", "-host", "c,d")), (2, 2))

    def test_a_machine_in_common(self):
        for second in ("b,c", "c,b"):
            with self.subTest(second):
                self.end_both(self.start_both(("x", "-host", "a:2,b:2"), ("y", "-host", second, "-ppn", 2)), (4, 4))

    def test_beside_a_job_that_has_ranks_elsewhere_too(self):
        """Two mpiexecs on one machine."""
        self.end_both(self.start_both(("a", "-n", 2), ("a", "-host", "a:2,b:2")), (2, 4))

    def test_one_rank_of_a_job_alone(self):
        """The others have no network, and make windows with it."""
        self.end_both(self.start_both(("a", "-n", 3), ("b", "-n", 2), comm="self"), (3, 2))

    def test_many_rounds(self):
        self.end_both(self.start_both(("a", "-n", 1), ("b", "-n", 2), rounds=50), (1, 2))

    def test_a_job_on_one_machine_opens_no_network(self):
        """Until it meets another one."""
        process = self.on("a", "-n", 2, DISTANT, "world", 1)
        self.wait_for_lines(process, 1)

        def find_ranks():  # one may still be on its way
            found = [line.split(":")[0] for line in marked_processes(self.mark) if line.split()[1] == DISTANT]
            return found if len(found) == 2 else None
        ranks = self.wait_for(find_ranks)
        for pid in ranks:
            with open(f"/proc/{pid}/maps") as maps:
                self.assertNotIn("libfabric", maps.read())
        process.terminate()
        process.communicate(timeout=20)

    def test_a_network_that_does_not_reach(self):
        """Both sides learn it, whichever has it, at once."""
        for first, second in (("shm", "shm"), ("shm", "automatic"), ("automatic", "ofi"), ("ofi", "automatic")):
            with self.subTest(f"{first} {second}"):
                begin = time.monotonic()
                pair = self.start_both(("a", "-genv", "MACADAM_NETWORK", first, "-n", 2),
                                       ("b", "-genv", "MACADAM_NETWORK", second, "-n", 1), rounds=-1)
                for process, network in zip(pair, (first, second)):
                    _, error = process.communicate(timeout=30)
                    self.assertNotEqual(process.returncode, 0)
                    self.assertRegex(error, {"shm": "MACADAM_NETWORK=shm, but rank 0 of the other job is on host ",
                                             "ofi": "for this machine alone",
                                             "automatic": "which leads the other group|has no network"}[network])
                self.assert_nobody_waits_long(begin, 10)

    def test_settings_that_do_not_fit(self):
        """Of two mpiexecs on one machine: both sides learn it, at once."""
        for setting, value, said in (("NETWORK", "ofi", "over shared memory, and the other only over a network"),
                                     ("CHECK", "1", "different settings: MACADAM_CHECK is "),
                                     ("REPRODUCIBLE", "1", "different settings: MACADAM_REPRODUCIBLE is ")):
            given, none = ("a", "-genv", f"MACADAM_{setting}", value, "-n", 2), ("a", "-n", 2)
            for sides in ((given, none), (none, given)):
                with self.subTest(setting, first=sides[0] is given):
                    begin = time.monotonic()
                    for process in self.start_both(*sides, rounds=-1):
                        _, error = process.communicate(timeout=30)
                        self.assertNotEqual(process.returncode, 0)
                        self.assertIn(said, error)
                    self.assert_nobody_waits_long(begin, 10)


class Ends(DistantTest):
    def meet(self, first=("a", "-n", 1), second=("b", "-n", 1)):
        pair = self.start_both(first, second, rounds=0)
        for process in pair:
            self.assertEqual(self.wait_for_lines(process, 1), ["met"])
        return pair

    def test_an_mpiexec_is_killed(self):
        for killed in (0, 1):
            with self.subTest(killed):
                pair = self.meet()
                begin = time.monotonic()
                pair[killed].kill()
                self.finish(pair[1 - killed], "the other side has ended", "done")
                self.assert_nobody_waits_long(begin, 8)
                self.assert_nothing_left()

    def test_the_remote_shell_is_killed(self):
        pair = self.meet()
        begin = time.monotonic()
        self.signal_shells(signal.SIGKILL)
        for process in pair:
            self.finish(process, "the other side has ended", "done")
        self.assert_nobody_waits_long(begin, 8)

    def test_the_remote_shell_stands_still(self):
        """Nothing of the job's own tells why its ranks end, so they and mpiexec do."""
        pair = self.start_both(("a", "-n", 1), ("b", "-n", 1), rounds=-2)
        for process in pair:
            self.assertEqual(self.wait_for_lines(process, 1), ["met"])
        self.signal_shells(signal.SIGSTOP)
        reasons = []
        for process, other in zip(pair, "ba"):
            _, error = process.communicate(timeout=40)
            self.assertEqual(process.returncode, 58, error)  # MPI_ERR_PROC_ABORTED
            said = re.fullmatch(r"mpiexec: rank 0 on host \S+ failed in MPI_Recv: .*the other process has ended; "
                                rf"the (.*mpiexec on host {other} has .*)\n", error)
            self.assertIsNotNone(said, error)
            reasons.append(said[1])
        # Who is later sees that the other one has ended for that.
        self.assertTrue(any("has said nothing for 10 s" in reason for reason in reasons), reasons)

    def test_an_mpiexec_is_killed_at_any_moment(self):
        """While the two begin, meet, talk or part. The other side goes on or has an error, and ends; or it
        waits for somebody who connects, who does not come."""
        chance = random.Random(7)
        for _ in range(12):
            pair = self.start_both(("a", "-n", 1), ("b", "-n", 1), rounds=30)
            time.sleep(chance.uniform(0, 2.5))
            killed = chance.choice((0, 1))
            pair[killed].kill()
            pair[killed].wait()
            if killed == 1:
                time.sleep(3)
                pair[0].terminate()
            pair[1 - killed].communicate(timeout=20)
            self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
