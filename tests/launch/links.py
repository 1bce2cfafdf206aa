# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of mpiexecs on different machines share."""
import os
import pathlib
import re
import sys
import tempfile
import time

from common import MPIEXEC, marked_processes
from universe import UniverseTest

SHELL = pathlib.Path(__file__).with_name("remote_shell.py")
ENTER = 'hostname "$0" && exec "$@"'


class LinkTest(UniverseTest):
    def setUp(self):
        super().setUp()
        self.environment["MACADAM_SSH"] = f"{sys.executable} -SE {SHELL}"

    def on(self, host, *arguments, launcher=MPIEXEC, **options):
        """mpiexec, or a program that is started alone, on a machine of that name."""
        rights = [] if os.geteuid() == 0 else ["--map-root-user"]
        return self.start(*rights, "--uts", "sh", "-c", ENTER, host, launcher, *arguments, launcher="unshare",
                          **options)

    def open_on(self, host, *arguments, **options):
        """Its process, and the port that it opens first."""
        process = self.on(host, *arguments, **options)
        word, port = self.wait_for_lines(process, 1)[0].split()
        self.assertEqual(word, "port")
        return process, port

    def finish(self, process, *lines, error="", status=0):
        out, errors = process.communicate(timeout=30)
        self.assertEqual((process.returncode, errors), (status, error), out)
        self.assertEqual(sorted(out.splitlines()), sorted(lines))

    def learn(self):
        """All ranks of a job learn of the one that their rank 0 has met, and of all its addresses."""
        ticket = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "ticket")
        return [f"0/give_ticket={ticket}", f"take_ticket={ticket}", "meet", "write=1", "addresses", "wait=800"]

    def failed_line(self, process, error_class):
        """Of one that ends well; and what it says on standard error."""
        out, errors = process.communicate(timeout=40)
        self.assertEqual(process.returncode, 0, out + errors)
        lines = [line for line in out.splitlines() if line.startswith(f"{error_class}: ")]
        self.assertEqual(len(lines), 1, out)
        return lines[0]

    def links(self):
        """Processes that are the far ends of links."""
        return [line for line in marked_processes(self.mark)
                if re.search(r"^\d+: \S*mpiexec --link", line)]

    def signal_shells(self, number):
        """To all remote shells of the test."""
        for line in marked_processes(self.mark):
            if SHELL.name in line:
                os.kill(int(line.split(":")[0]), number)

    def assert_nobody_waits_long(self, begin, longest=6):
        self.assertLess(time.monotonic() - begin, longest)
