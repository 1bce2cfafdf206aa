# SPDX-License-Identifier: BSD-3-Clause
"""What cmake/check_layers.py refuses. Usage: test_layers.py PATH_OF_THE_CHECK."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = sys.argv.pop(1)


class Layers(unittest.TestCase):
    def check(self, path: str, include: str) -> str:
        """What is said of a tree of one file."""
        with tempfile.TemporaryDirectory() as root:
            file = pathlib.Path(root, path)
            file.parent.mkdir(parents=True)
            file.write_text(f'#include "{include}"\n')
            result = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True)
            self.assertEqual(result.returncode, 1 if result.stdout else 0, result.stderr)
            return result.stdout

    def test_order(self):
        for path, include in (("src/net/shm/a.cc", "engine/b.h"), ("sim/a.cc", "mpi/b.h"),
                              ("tests/unit/a.cc", "sim/b.h"), ("tests/unit/a.cc", "tools/b.h"),
                              ("bench/a.cc", "bench.h"), ("examples/a.c", "mpi.h")):
            self.assertEqual(self.check(path, include), "")

    def test_offences(self):
        for path, include in (("src/engine/a.cc", "net/b.h"), ("src/mpi/a.h", "sim/b.h"),
                              ("src/base/a.cc", "tests/b.h"), ("sim/a.cc", "libgravel/b.h"),
                              ("sim/a.cc", "tests/b.h"), ("bench/a.cc", "engine/b.h"),
                              ("examples/gravel/a.c", "gravel/b.h")):
            self.assertIn(f'{path}:1: layer \'', self.check(path, include))

    def test_layer_that_is_not_known(self):
        self.assertIn("src/novel: no layer", self.check("src/novel/a.cc", "base/b.h"))


if __name__ == "__main__":
    unittest.main()
