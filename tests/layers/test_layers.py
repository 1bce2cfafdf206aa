# SPDX-License-Identifier: BSD-3-Clause
"""What cmake/check_layers.py and check_copies.py refuse. Usage: test_layers.py FOLDER_OF_THE_CHECKS."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECKS = pathlib.Path(sys.argv.pop(1))


class Check(unittest.TestCase):
    name = ""

    def said(self, path: str, text: str) -> str:
        """What is said of a tree of one file."""
        with tempfile.TemporaryDirectory() as root:
            file = pathlib.Path(root, path)
            file.parent.mkdir(parents=True)
            file.write_text(text)
            result = subprocess.run([sys.executable, CHECKS / self.name, root], capture_output=True,
                                    text=True)
            self.assertEqual(result.returncode, 1 if result.stdout else 0, result.stderr)
            return result.stdout


class Layers(Check):
    name = "check_layers.py"

    def check(self, path: str, include: str) -> str:
        return self.said(path, f'#include "{include}"\n')

    def test_order(self):
        for path, include in (("src/net/shm/a.cc", "engine/b.h"), ("src/net/shm/a.cc", "boot/job.h"),
                              ("sim/a.cc", "mpi/b.h"),
                              ("tests/unit/a.cc", "sim/b.h"), ("tests/unit/a.cc", "tools/b.h"),
                              ("bench/a.cc", "bench.h"), ("examples/a.c", "mpi.h")):
            self.assertEqual(self.check(path, include), "")

    def test_offences(self):
        for path, include in (("src/engine/a.cc", "net/b.h"), ("src/net/a.cc", "boot/b.h"),
                              ("src/mpi/a.h", "sim/b.h"),
                              ("src/base/a.cc", "tests/b.h"), ("sim/a.cc", "libgravel/b.h"),
                              ("sim/a.cc", "tests/b.h"), ("bench/a.cc", "engine/b.h"),
                              ("examples/gravel/a.c", "gravel/b.h")):
            self.assertIn(f'{path}:1: layer \'', self.check(path, include))

    def test_networks_do_not_know_each_other(self):
        self.assertEqual(self.check("src/net/ofi/a.cc", "net/ofi/b.h"), "")
        self.assertEqual(self.check("src/mpi/a.cc", "net/ofi/b.h"), "")
        self.assertIn("src/net/ofi/a.cc:1: network 'ofi'", self.check("src/net/ofi/a.cc", "net/rdma/b.h"))

    def test_layer_that_is_not_known(self):
        self.assertIn("src/novel: no layer", self.check("src/novel/a.cc", "base/b.h"))


class Copies(Check):
    name = "check_copies.py"

    def test_copies_of_a_fixed_size(self):
        self.assertEqual(self.said("src/engine/a.cc", """
            std::memcpy(to, &header, sizeof header);
            std::memcpy(to, from, 8);
            memcpy(message, header.data(), header.size());
            std::memmove(to,
                         from, sizeof(Header));
            base::copy(to, from, bytes);
            """), "")
        self.assertEqual(self.said("src/boot/a.cc", "std::memcpy(to, from, bytes);\n"), "")

    def test_copies_that_nobody_would_charge(self):
        said = self.said("src/net/rdma/a.h", """
            std::memcpy(to, from, bytes);
            memmove(to,
                    from, sizeof header + n);
            std::memcpy(to, from, std::min(sizeof header, n));
            """)
        for line in (2, 3, 5):
            self.assertIn(f"src/net/rdma/a.h:{line}: a copy", said)


if __name__ == "__main__":
    unittest.main()
