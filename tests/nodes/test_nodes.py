# SPDX-License-Identifier: BSD-3-Clause
"""A job whose ranks are started by several mpiexecs, as on several machines: here all on one."""
import os
import signal
import tempfile
import time
import unittest

from common import HOST, RANK, LaunchTest

MPIEXEC_NODE = os.environ["MPIEXEC_NODE"]


class NodesTest(LaunchTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()  # of mode 0700
        self.addCleanup(folder.cleanup)
        self.board = folder.name

    def start_node(self, node: int, *arguments, nodes=2):
        return self.start("--nodes", nodes, "--node", node, "--board", self.board, *arguments,
                          launcher=MPIEXEC_NODE)

    def start_nodes(self, *actions, ranks=(2, 2)):
        return [self.start_node(node, "-n", count, RANK, *actions, nodes=len(ranks))
                for node, count in enumerate(ranks)]

    def finish(self, nodes, within=20.0):
        """Output, errors and status of each, in the order of nodes."""
        end = time.monotonic() + within
        results = []
        for node in nodes:
            out, error = node.communicate(timeout=max(0.1, end - time.monotonic()))
            results.append((out, error, node.returncode))
        return results


class Jobs(NodesTest):
    def test_ranks_are_numbered_node_by_node(self):
        results = self.finish(self.start_nodes("join", "who", "barrier", "finalize",
                                               ranks=(2, 1, 3)))
        first = 0
        for (out, error, status), count in zip(results, (2, 1, 3)):
            self.assertEqual((error, status), ("", 0))
            self.assertEqual(sorted(out.splitlines()),
                             [f"rank {rank} of 6, app 0, launched"
                              for rank in range(first, first + count)])
            first += count

    def test_everybody_meets_everybody(self):
        """Cards are known on all nodes; a barrier is left when all nodes have come to it."""
        late = ["0/sleep_ms=300", "meet", "3/sleep_ms=300", "barrier", "barrier", "finalize"]
        begin = time.monotonic()
        for out, error, status in self.finish(self.start_nodes("join", *late)):
            self.assertEqual((out, error, status), ("", "", 0))
        self.assertGreater(time.monotonic() - begin, 0.6)

    def test_the_secret_is_one(self):
        results = self.finish(self.start_nodes("join", "secret", "finalize"))
        lines = [line for out, _, _ in results for line in out.splitlines()]
        self.assertEqual(len(lines), 4)
        self.assertEqual(len(set(lines)), 1)
        self.assertNotEqual(lines[0].strip("0"), "")

    def test_exit_status_after_finalize_is_a_nodes_own(self):
        results = self.finish(self.start_nodes("join", "barrier", "finalize", "3/exit=4"))
        self.assertEqual([status for _, _, status in results], [0, 4])


class Failures(NodesTest):
    def fails(self, sentence, status, *actions):
        """Rank 3, on the second node, fails once all have met; both nodes end soon and say so."""
        nodes = self.start_nodes("join", "meet", "barrier", "who", *actions, "compute")
        for node in nodes:
            self.wait_for_lines(node, 2)
        begin = time.monotonic()
        (_, near, near_status), (_, far, far_status) = self.finish(nodes)
        self.assertLess(time.monotonic() - begin, 2.0)
        who = f"mpiexec: rank 3 on host {HOST} {sentence}"
        self.assertEqual(far, f"{who}; ending the other rank\n")
        self.assertEqual(near, f"{who}; ending 2 ranks on host {HOST}\n")
        self.assertEqual((near_status, far_status), (status, status))

    def test_abort(self):
        self.fails("called MPI_Abort(MPI_COMM_WORLD, 3)", 3, "3/abort=3")

    def test_killed(self):
        self.fails("was killed by signal 9 (Killed)", 137, "3/raise=9")

    def test_exit_before_finalize(self):
        self.fails("exited without calling MPI_Finalize", 1, "3/exit=0")

    def test_the_cause_is_named_and_not_who_notices_it(self):
        """Both ranks of the first node end because they miss one of the second."""
        nodes = self.start_nodes("join", "meet", "barrier", "0/follow=5", "1/follow=5",
                                 "3/sleep_ms=300", "3/raise=9", "compute")
        (_, near, status), _ = self.finish(nodes)
        self.assertEqual(near, f"mpiexec: rank 3 on host {HOST} was killed by signal 9 (Killed)\n")
        self.assertEqual(status, 137)

    def test_rank_that_never_joins(self):
        nodes = self.start_nodes("3/exit=0", "join", "compute")
        # Whichever machine sees it first names a rank of its own.
        cause = (f"mpiexec: rank 3 on host {HOST} ended without calling MPI_Init, which rank [02] "
                 "has called")
        (_, near, near_status), (_, far, far_status) = self.finish(nodes)
        self.assertRegex(near, "^" + cause)
        self.assertIn("rank 3", far)
        self.assertEqual((near_status, far_status), (1, 1))

    def test_timeout_of_one_node(self):
        nodes = [self.start_node(0, "-timeout", 0.5, "-n", 1, RANK, "join", "hang"),
                 self.start_node(1, "-n", 1, RANK, "join", "hang")]
        (_, near, near_status), (_, far, far_status) = self.finish(nodes)
        self.assertIn("rank 0 waits in MPI_Recv", near)
        self.assertIn(f"rank 1 is on host {HOST}", near)
        self.assertIn("the job has not ended within 0.5 s", far)
        self.assertEqual((near_status, far_status), (124, 124))

    def test_mpiexec_killed(self):
        nodes = self.start_nodes("join", "barrier", "who", "compute")
        for node in nodes:
            self.wait_for_lines(node, 2)
        nodes[1].send_signal(signal.SIGKILL)
        (_, near, status), _ = self.finish(nodes, within=30.0)
        self.assertIn("(node 1) has not been heard of for", near)
        self.assertEqual(status, 1)


class BadInput(NodesTest):
    def refused(self, sentence, *arguments):
        process = self.start(*arguments, launcher=MPIEXEC_NODE)
        _, error = process.communicate(timeout=20)
        self.assertIn(sentence, error)
        self.assertEqual(process.returncode, 2)

    def test_no_description(self):
        self.refused("needed: --nodes COUNT", "-n", 1, RANK)

    def test_no_number(self):
        self.refused('--node is "x", a number is needed', "--nodes", 2, "--node", "x", "--board",
                     self.board, "-n", 1, RANK)

    def test_node_beyond_nodes(self):
        self.refused("nodes are numbered from 0", "--nodes", 2, "--node", 2, "--board", self.board,
                     "-n", 1, RANK)

    def test_no_folder(self):
        self.refused("No such file", "--nodes", 1, "--node", 0, "--board", self.board + "/no/ne",
                     "-n", 1, RANK)

    def test_a_folder_is_made(self):
        self.board += "/new"
        self.assertEqual(self.finish(self.start_nodes("join", "barrier", "finalize")),
                         [("", "", 0)] * 2)
        self.assertEqual(os.stat(self.board).st_mode & 0o777, 0o700)

    def test_a_folder_that_others_can_enter(self):
        os.chmod(self.board, 0o750)
        self.refused("chmod 700", "--nodes", 1, "--node", 0, "--board", self.board, "-n", 1, RANK)

    def test_a_folder_that_was_used(self):
        self.finish([self.start_node(0, "-n", 1, RANK, nodes=1)])
        self.refused("every job needs an empty folder", "--nodes", 1, "--node", 0, "--board",
                     self.board, "-n", 1, RANK)

    def test_nodes_that_disagree(self):
        one = self.start_node(0, "-n", 1, RANK, "join", "compute", nodes=2)
        other = self.start_node(1, "-n", 1, RANK, "join", "compute", nodes=3)
        (_, error, status), _ = self.finish([one, other], within=40)
        self.assertIn("node 1 was started with --nodes 3, this one with --nodes 2", error)
        self.assertEqual(status, 2)


if __name__ == "__main__":
    unittest.main()
