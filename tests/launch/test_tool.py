# SPDX-License-Identifier: BSD-3-Clause
"""The `macadam` tool of the build tree."""
import json
import os
import pathlib
import pty
import re
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["BUILD_FOLDER"])


class Tool(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.file = self.home / "macadam/tuned.conf"

    def run_tool(self, command, **environment):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("MACADAM_")}
        return subprocess.run(command, capture_output=True, text=True, timeout=100,
                              env={**clean, "XDG_CONFIG_HOME": str(self.home), **environment})

    def macadam(self, *arguments, **environment):
        return self.run_tool([BUILD / "bin/macadam", *arguments], **environment)

    def tuned(self, text):
        self.file.parent.mkdir()
        self.file.write_text(text)
        self.file.chmod(0o600)


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
        self.assertRegex(page, r"\n  ofi +(ranks on any machine|none: libfabric: )")
        self.assertNotIn("\n* ", page)
        self.assertNotIn("\nt ", page)
        self.assertIn(f"t from {self.file}, not used)", page)

    def test_settings(self):
        page = self.info(MACADAM_SHM_EAGER="4K", MACADAM_PROTOCOLS="sender")
        self.assertRegex(page, r"\n\* MACADAM_SHM_EAGER +4")
        self.assertRegex(page, r"\n\* MACADAM_PROTOCOLS +sender")
        self.assertRegex(page, r"\n  MACADAM_SHM_HYBRID ")

    def test_where_settings_come_from(self):
        self.tuned("shm_eager = 2K\nshm_hybrid = 1M\n")
        page = self.info(MACADAM_SHM_HYBRID="256K")
        self.assertIn(f"t from {self.file})", page)
        self.assertRegex(page, r"\nt MACADAM_SHM_EAGER +2K")
        self.assertRegex(page, r"\n\* MACADAM_SHM_HYBRID +256K")
        self.assertRegex(page, r"\n  MACADAM_SHM_RINGS ")
        self.assertRegex(page, r"up to 2048 bytes +EAGER")

    def test_damaged_file(self):
        self.tuned("shm_eager = 2K\nshm_hybrid = large\n")
        page = self.info()
        self.assertRegex(page, rf"warning: {self.file} is ignored: line 2: .*'large'.*macadam tune")
        self.assertNotRegex(page, r"MACADAM_SHM_EAGER +2K")

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
        self.assertEqual(len(set(re.findall(r"^  (MPI_\w+)$", page, re.M))), 662)
        *chapters, end = page.split("\n\n")
        for chapter in chapters:
            self.assertRegex(chapter, r"^\w[^\n]*(\n  MPI_\w+)+$")
        self.assertEqual(end, "662 functions of MPI 5.0, all of them written\n")

    def test_mistakes(self):
        self.assertNotEqual(self.macadam().returncode, 0)
        wrong = self.macadam("frobnicate")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn('macadam: there is no command "frobnicate"; the commands are info, simulate',
                      wrong.stderr)
        for words, said in ((("model", "--rank", "5"), 'macadam model: it takes no "--rank"\n'
                             "Run macadam model --help for more.\n"),
                            (("model", "-n", "x"), "macadam model: -n: Value x not in range 1 to 1073741824\n"
                             "Run macadam model --help for more.\n"),
                            (("simulate", "--rank", "5"), 'macadam simulate: it takes no "--rank"\n'
                             "Run macadam simulate --help for more.\n"),
                            (("simulate", "-n", "0", "pattern:barrier"),
                             "macadam simulate: --ranks: Value 0 not in range 1 to 1048576\n"
                             "Run macadam simulate --help for more.\n"),
                            (("report",), "macadam report: FILE is required\n"
                             "Run macadam report --help for more.\n")):
            wrong = self.macadam(*words)
            self.assertEqual((wrong.returncode, wrong.stderr), (2, said))
        self.assertIn("info", self.macadam("--help").stdout)

    def test_a_folder_is_no_report(self):
        wrong = self.macadam("report", self.home)
        self.assertEqual(wrong.returncode, 1)
        self.assertTrue(wrong.stderr.startswith(f"macadam: {self.home} "), wrong.stderr)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            wrong = subprocess.run([BUILD / "bin/macadam", "info"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=20)
        self.assertEqual((wrong.returncode, wrong.stderr),
                         (1, "macadam: the output could not be written: No space left on device\n"))


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
        for option, value in (("-n", "0"), ("--receive", "carrier-pigeon"), ("-r", "carrier-pigeon"),
                              ("-n", "many")):
            result = self.macadam("model", option, value)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(f"macadam model: {option}: ", result.stderr)
        result = self.macadam("model", MACADAM_RDMA_WINDOW="1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("MACADAM_RDMA_WINDOW is 1, needed 2 to", result.stderr)


class Tune(Tool):
    def tune(self, *arguments, **environment):
        return self.macadam("tune", "--quick", "--despite-load", *arguments, **environment)

    def test_writes_nothing_under_load(self):
        busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
        self.addCleanup(busy.wait)
        self.addCleanup(busy.kill)
        result = self.macadam("tune", "--quick")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, r"^macadam: other programs use \d+\.\d processors of this "
                                        r"machine, nothing was measured; .* --despite-load\n$")
        self.assertFalse(self.file.exists())
        result = self.macadam("tune", "--quick", "--print")
        self.assert_page(result)
        self.assertRegex(result.stdout, r"Meanwhile other programs use \d")

    def test_shows_on_a_terminal_how_far_it_is(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        command = [BUILD / "bin/macadam", "tune", "--quick", "--print"]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=slave, timeout=100)
        os.close(slave)
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"measuring shm, receiver late: round 1 of 1", os.read(master, 4096))

    def assert_page(self, result):
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^ +1024 +[\d.]+ us +[\d.]+ us")
        self.assertRegex(result.stdout, r"(?m)^shm_eager = \d+$")
        self.assertRegex(result.stdout, r"(?m)^shm_hybrid = \d+$")

    def test_writes_what_the_library_reads(self):
        self.assert_page(self.tune())
        settings = dict(re.findall(r"(?m)^(\w+) = (\d+)$", self.file.read_text()))
        self.assertLessEqual(1024, int(settings["shm_eager"]))
        self.assertLessEqual(int(settings["shm_eager"]), int(settings["shm_hybrid"]))
        page = self.macadam("info").stdout
        self.assertIn(f"up to {settings['shm_eager']} bytes", page)
        self.assertNotIn("warning", page)

    def test_only_prints(self):
        self.assert_page(self.tune("--print"))
        self.assertFalse(self.file.exists())

    def test_levels_of_a_network(self):
        result = self.tune("--network", "ndr")
        self.assert_page(result)
        self.assertIn("8 machines of ndr, copy_mb_per_s=", result.stdout)
        levels = re.search(r"(?m)^levels = (.*)$", self.file.read_text())[1]
        self.assertRegex(levels, r"^(none|barrier leaders any [24])$")  # --quick knows no more
        self.assertEqual(self.macadam("info").stdout.count("on several machines of"),
                         0 if levels == "none" else 1)

    def test_an_unknown_network_is_told_before_anything_is_measured(self):
        result = self.tune("--print", "--network", "carrier-pigeon")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("macadam simulate: ", result.stderr)
        self.assertIn("carrier-pigeon", result.stderr)
        self.assertNotIn("measuring", result.stderr)

    def test_levels_decide(self):
        self.tuned("levels = allreduce leaders 1K 7\n")
        page = self.macadam("info").stdout
        self.assertRegex(page, r"up to 1024 +leaders \(on several machines of 7 ranks or more\)")
        self.assertEqual(page.count("on several machines of"), 1)

    def test_levels_that_are_none(self):
        self.tuned("levels = allreduce leaders lots 7\n")
        self.assertRegex(self.macadam("info").stdout,
                         r"warning: .*/tuned\.conf is ignored: line 1: levels: found 'allreduce leaders lots 7', "
                         r"needed a number of bytes.*; correct it, remove it or run 'macadam tune' again")

    def test_another_file(self):
        self.assert_page(self.tune("--output", self.home / "mine"))
        self.assertFalse(self.file.exists())
        self.assertIn("shm_eager", (self.home / "mine").read_text())

    def test_a_file_that_cannot_be_written(self):
        self.tuned("shm_eager = 2K\n")
        target = self.home / "target"
        self.file.rename(target)
        self.file.symlink_to(target)
        result = self.tune()
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, r"^macadam: .*tuned.conf cannot be written: .*--output\n$")
        self.assertEqual(target.read_text(), "shm_eager = 2K\n")

    def test_programs_read_the_file_and_warn_once(self):
        self.tuned("shm_eager = 2K\nshm_hybrid = large\n")
        command = [BUILD / "bin/mpiexec", "-n", "2", BUILD / "bin/macadam-tune", "ready", "1", "8"]
        result = self.run_tool(command)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr.count("tuned.conf is ignored: line 2"), 1)
        self.file.write_text("shm_eager = 2K\n")
        result = self.run_tool(command, MACADAM_REPORT="1")
        self.assertNotIn("warning", result.stderr)

    def test_the_program_by_itself(self):
        result = self.run_tool([BUILD / "bin/macadam-tune"])
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("macadam tune", result.stderr)


if __name__ == "__main__":
    unittest.main()
