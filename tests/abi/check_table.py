#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The reader of the table of MPI: what it makes of a function, and what it says of a mistake."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "src/api"))
from generator import entries, mpich, table  # noqa: E402


def parse(text: str) -> table.Function:
    return table.parse_function(text, "some.table:7", "Chapter", "some")


def code(text: str, form: int = 0) -> str:
    return entries.entry_point(parse(text).entries()[form])


class Functions(unittest.TestCase):
    def test_forms(self):
        function = parse("Get_elements(status: in_status, datatype: any_datatype, "
                         "count: out_count) large x")
        self.assertEqual([e.prototype("MPI") for e in function.entries()], [
            "int MPI_Get_elements(const MPI_Status *status, MPI_Datatype datatype, int *count)",
            "int MPI_Get_elements_c(const MPI_Status *status, MPI_Datatype datatype, "
            "MPI_Count *count)",
            "int MPI_Get_elements_x(const MPI_Status *status, MPI_Datatype datatype, "
            "MPI_Count *count)"])

    def test_collective_forms(self):
        forms = table.forms(parse("Bcast(buffer: recv_buffer, count, datatype, root, comm) collective"))
        self.assertEqual([f.name for f in forms], ["Bcast", "Ibcast", "Bcast_init"])
        self.assertEqual([p.name for p in forms[2].parameters][-2:], ["info", "request"])

    def test_large_only(self):
        function = parse("F(a: count, +b: MPI_Count, c: out_count) large")
        small, large = function.entries()
        self.assertEqual(small.prototype("MPI"), "int MPI_F(int a, int *c)")
        self.assertEqual(large.prototype("MPI"),
                         "int MPI_F_c(MPI_Count a, MPI_Count b, MPI_Count *c)")
        self.assertIn("mpi::f(self, a, 0, &c_large)", entries.entry_point(small))

    def test_significance(self):
        text = code("G(sendbuf/leaf, sendcount: count/leaf, sendtype: datatype/leaf, root, comm)")
        self.assertIn("sendbuf_significant = sides.leaf && sendbuf != MPI_IN_PLACE", text)
        self.assertIn("if (sendbuf_significant) check::count(sendcount", text)

    def test_significance_beside_a_buffer(self):
        text = code("R(recvbuf/root, count/member, datatype/member, op/member, root, comm)")
        self.assertIn("recvbuf_significant = sides.root;", text)
        self.assertIn("if ((sides.root || sides.leaf)) check::count(count", text)
        self.assertIn("check::nothing(self)", text)
        self.assertIn("check::any_op(self)", text)

    def test_receiver(self):
        text = code("F(n: int) anytime")
        self.assertIn("Library& self = anytime();", text)
        text = code("F(n: int) offline")
        self.assertIn("Library& self = anytime();", text)
        self.assertIn('if (self.users == 0) [[unlikely]] not_initialized("MPI_F");', text)
        text = code("F(n: int) anytime lifecycle")
        self.assertIn("Process& self = anytime();", text)
        self.assertNotIn("not_initialized", text)
        text = code("F(n: int)")
        self.assertIn('begin_running("MPI_F")', text)
        self.assertIn("Process& self = *runs;", text)

    def test_error_source(self):
        self.assertIn('failed("MPI_F", {.comm = comm})', code("F(comm)"))


class Mistakes(unittest.TestCase):
    def refused(self, text: str, message: str):
        with self.assertRaises(table.TableError) as caught:
            parse(text)
        self.assertIn("some.table:7", str(caught.exception))
        self.assertIn(message, str(caught.exception))

    def test_messages(self):
        self.refused("F(comm", "not a function: 'F(comm'")
        self.refused("F(a b)", "not a parameter: 'a b'")
        self.refused("F(bogus)", "parameter 'bogus' has no kind")
        self.refused("F(comm) larg", "unknown word 'larg'")
        self.refused("F(a: ints[b])", "length 'b' of 'a' is no parameter")
        self.refused("F(comm/left)", "side 'left' of 'comm'")

    def test_renamed(self):
        with self.assertRaises(table.TableError) as caught:
            mpich.entry_points([parse("Status_set_error(status: inout_status, error: int)")])
        self.assertIn("err,", str(caught.exception))


class Whole(unittest.TestCase):
    def test_count(self):
        functions = table.read_functions(pathlib.Path(table.__file__).parents[1] / "table")
        self.assertEqual(sum(len(f.entries()) for f in functions if "removed" not in f), 662)


if __name__ == "__main__":
    unittest.main()
