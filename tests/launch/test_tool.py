# SPDX-License-Identifier: BSD-3-Clause
"""The `macadam` tool of the build tree."""
import json
import os
import pathlib
import re
import subprocess
import unittest

BUILD = pathlib.Path(os.environ["BUILD_FOLDER"])


class Tool(unittest.TestCase):
    def macadam(self, *arguments, **environment):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("MACADAM_")}
        return subprocess.run([BUILD / "bin/macadam", *arguments], capture_output=True, text=True,
                              timeout=60, env={**clean, **environment})


class Info(Tool):
    def info(self, *arguments, **environment):
        result = self.macadam("info", *arguments, **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_page(self):
        page = self.info()
        self.assertRegex(page, r"^Macadam \d+\.\d+\.\d+, MPI 5\.0 with the standard ABI\n")
        self.assertRegex(page, r"library   /\S+/libmpi_abi\.so\.1\n +Macadam")
        self.assertRegex(page, r"\n  shm +ranks on this machine; cross-memory attach (works|does not)")
        self.assertRegex(page, r"\n  rdma +(ranks on any machine|none: RDMA: )")
        self.assertNotIn("\n* ", page)

    def test_settings(self):
        page = self.info(MACADAM_SHM_EAGER="4K", MACADAM_PROTOCOLS="sender")
        self.assertRegex(page, r"\n\* MACADAM_SHM_EAGER +4")
        self.assertRegex(page, r"\n\* MACADAM_PROTOCOLS +sender")
        self.assertRegex(page, r"\n  MACADAM_SHM_HYBRID ")

    def test_protocols_follow_the_settings(self):
        page = self.info(MACADAM_SHM_EAGER="4K", MACADAM_SHM_HYBRID="64K",
                         MACADAM_RENDEZVOUS="write")
        self.assertRegex(page, r"up to 4096 bytes +EAGER +EAGER +EAGER\n")
        self.assertRegex(page, r"up to 65536 bytes +HYBRID +RECV_RNDV +HYBRID\n")
        self.assertRegex(page, r"larger +SEND_RNDV write +RECV_RNDV +RECV_RNDV\n")
        page = self.info(MACADAM_PROTOCOLS="sender")
        self.assertRegex(page, r"larger +SEND_RNDV read +SEND_RNDV read +SEND_RNDV read\n")
        self.assertNotIn("to 131072 bytes    HYBRID", page)
        self.assertNotIn("RECV_RNDV ", page)

    def test_misspelt_variable(self):
        self.assertRegex(self.info(MACADAM_SHM_EAGR="4K"), r"warning: .*MACADAM_SHM_EAGER")

    def test_api(self):
        page = self.info("--api")
        written = len(re.findall(r"^  written +MPI_\w+$", page, re.M))
        missing = len(re.findall(r"^  not written +MPI_\w+$", page, re.M))
        self.assertEqual(written + missing, 664)
        self.assertTrue(page.endswith(f"\n{written} of 664 functions written, {missing} not written; "
                                      "those return MPI_ERR_UNSUPPORTED_OPERATION\n"))
        self.assertRegex(page, r"\n  written +MPI_Send\n")

    def test_mistakes(self):
        self.assertNotEqual(self.macadam().returncode, 0)
        self.assertNotEqual(self.macadam("frobnicate").returncode, 0)
        self.assertIn("info", self.macadam("--help").stdout)


class Model(Tool):
    def model(self, *arguments, **environment):
        result = self.macadam("model", *arguments, **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_table(self):
        page = self.model("--ranks", "2,1024")
        self.assertRegex(page, r"\n +ranks +ring +credit +shared\n")
        rows = re.findall(r"^ +(\d+) +([\d.]+) +([\d.]+) +([\d.]+)$", page, re.M)
        self.assertEqual([row[0] for row in rows], ["2", "1024"])
        for ring, credit, shared in (map(float, row[1:]) for row in rows[1:]):
            self.assertLess(shared, min(ring, credit) / 4)

    def test_json_follows_the_settings(self):
        def grows_by(**environment):
            found = json.loads(self.model("--json", "-n", "1000,1001", "-r", "credit",
                                          **environment))
            self.assertEqual((found["ranks"], list(found["bytes"])), ([1000, 1001], ["credit"]))
            return found["bytes"]["credit"][1] - found["bytes"]["credit"][0]
        # Equation 2 of Sur et al.: a connection more costs its window of buffers.
        self.assertGreater(grows_by(MACADAM_RDMA_WINDOW="64"), 1.8 * grows_by())

    def test_what_the_adapter_does_not_allow_is_told(self):
        page = self.model("-r", "shared", "--completion-depth", "1024",
                          MACADAM_RDMA_BUFFERS="64K")
        self.assertIn("MACADAM_RDMA_BUFFERS is 57344, the depth of a completion queue allows 1024",
                      page)

    def test_mistakes(self):
        for arguments, told in ((["-n", "0"], "--ranks"), (["-r", "carrier-pigeon"], "--receive"),
                                (["-n", "many"], "--ranks")):
            result = self.macadam("model", *arguments)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(told, result.stderr + result.stdout)
        result = self.macadam("model", MACADAM_RDMA_WINDOW="1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("MACADAM_RDMA_WINDOW is 1, needed 2 to", result.stderr)


if __name__ == "__main__":
    unittest.main()
