# SPDX-License-Identifier: BSD-3-Clause
"""What is asked of mpiexec without MPI (launch_universe.cc)."""
import os
import pathlib
import re

from common import MPIEXEC, LaunchTest

UNIVERSE = os.environ["LAUNCH_UNIVERSE"]
OTHER_USER = 65534
CONTROL = pathlib.Path(__file__).parents[2] / "src/boot/control.h"
VERSION = int(re.search(r"control_version = (\d+);", CONTROL.read_text())[1])
MPI_ERR_OTHER, MPI_ERR_SERVICE, MPI_ERR_NAME, MPI_ERR_PORT, MPI_ERR_SPAWN = 16, 51, 38, 43, 53


def spawn(count, *actions, info=""):
    return f"spawn={count},{','.join([UNIVERSE, *map(str, actions)])}{info}"


def all_sockets() -> dict[str, str]:
    """The abstract sockets of Macadam that listen, by inode; other tests may have some too."""
    found = {}
    with open("/proc/net/unix") as table:
        for line in table:
            fields = line.split()
            if fields[-1].startswith("@macadam-") and fields[3] == "00010000":
                found[fields[6]] = fields[-1][1:]
    return found


def sockets_of(process) -> set[str]:
    """Those of one process."""
    links = set()
    for entry in os.scandir(f"/proc/{process.pid}/fd"):
        try:
            links.add(os.readlink(entry.path))
        except FileNotFoundError:
            pass  # closed meanwhile
    return {name for inode, name in all_sockets().items() if f"socket:[{inode}]" in links}


class UniverseTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.environment["MACADAM_MPIEXEC"] = MPIEXEC

    def universe(self, ranks, *actions, **options):
        return self.mpiexec("-n", ranks, UNIVERSE, *actions, **options)

    def alone(self, *actions, **options):
        return self.mpiexec(*actions, launcher=UNIVERSE, **options)

    def assert_failed_line(self, result, error_class, *parts):
        """One line of output tells the class and, in its sentence, all parts."""
        lines = [l for l in result.stdout.splitlines() if l.startswith(f"{error_class}: ")]
        self.assertEqual(len(lines), 1, result.stdout + result.stderr)
        for part in parts:
            self.assertIn(part, lines[0])
