# SPDX-License-Identifier: BSD-3-Clause
"""`macadam report`: the HTML page of a report, looked at by a real browser without a window."""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from common import LaunchTest

PROGRAM = os.environ["LAUNCH_PROGRAM"]
MACADAM = pathlib.Path(os.environ["BUILD_FOLDER"]) / "bin/macadam"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

# Runs in the browser after the page's own script: what is drawn, and texts that overlap or stick out.
LOOK = """
<script>
const errors = [];
window.addEventListener("error", e => errors.push(e.message));
</script>
"""
MEASURE = """
<script>
document.querySelector("details").open = true;
const texts = [...document.querySelectorAll("svg text, h1, h2, p, li, td, th, button, .card b, .card span, .legend span")]
  .filter(e => e.textContent.trim() && e.getClientRects().length).map(e => [e, e.getBoundingClientRect()]);
const overlaps = [];
for (let i = 0; i < texts.length; ++i) for (let j = 0; j < i; ++j) {
  const [a, p] = texts[i], [b, q] = texts[j];
  if (a.contains(b) || b.contains(a) || a.hasAttribute("transform") && b.hasAttribute("transform")) continue;
  if (p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 2 && q.top < p.bottom - 2)
    overlaps.push(a.textContent + " / " + b.textContent);
}
// What is wider than its box can be scrolled to there.
const out = texts.filter(([e, r]) => !e.closest(".picture") && (r.left < 0 || r.right > innerWidth)).map(([e]) => e.textContent);
for (const button of document.querySelectorAll("button")) if (button.dataset.what === "messages") button.click();
const found = {errors, overlaps, out, wide: document.documentElement.scrollWidth > innerWidth,
  cells: document.querySelectorAll("#matrix .cell").length,
  hints: [...document.querySelectorAll("#matrix .cell title")].map(e => e.textContent),
  bars: document.querySelectorAll("#times .time").length,
  sizes: [...document.querySelectorAll("#sizes .size title")].map(e => e.textContent),
  memory: document.querySelectorAll("#memory rect").length,
  headings: [...document.querySelectorAll("h2")].map(e => e.textContent),
  text: document.body.innerText};
const result = document.createElement("pre");
result.id = "found";
result.textContent = JSON.stringify(found);
document.body.append(result);
</script>
"""


class Report(LaunchTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "run.json"

    def macadam(self, *arguments):
        return subprocess.run([MACADAM, "report", *map(str, arguments)], capture_output=True, text=True,
                              timeout=60)

    def run_program(self, ranks, *arguments):
        self.environment["MACADAM_REPORT"] = str(self.file)
        result = self.mpiexec("-n", ranks, PROGRAM, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(self.file.read_text())["ranks"]

    def look_at(self, width):
        """What a browser makes of the page."""
        self.assertIsNotNone(CHROMIUM, "there is no Chromium: cmake/setup.sh installs it")
        page = (self.folder / "run.html").read_text()
        seen = self.folder / "seen.html"
        seen.write_text(page.replace("<main", LOOK + "<main").replace("</body>", MEASURE + "</body>"))
        result = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={self.folder}/profile", f"--window-size={width},1600", "--dump-dom",
             seen.as_uri()], capture_output=True, text=True, timeout=90)
        found = re.search(r'<pre id="found">(.*?)</pre>', result.stdout, re.DOTALL)
        self.assertIsNotNone(found, result.stderr[-2000:])
        return json.loads(html.unescape(found.group(1)))

    def make_page(self):
        result = self.macadam(self.file)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, f"The page is in {self.folder}/run.html; open it with a browser.\n")

    def assert_tidy(self, found):
        self.assertEqual([found[what] for what in ("errors", "overlaps", "out", "wide")],
                         [[], [], [], False])

    def test_of_a_run(self):
        ranks = self.run_program(4, "work", "0.3")
        self.make_page()
        page = (self.folder / "run.html").read_text()
        self.assertNotRegex(page, r"https?://(?!www\.w3\.org/2000/svg)")
        found = self.look_at(1200)
        self.assert_tidy(found)
        self.assertEqual(found["cells"], 16)
        sent = {(r["rank"], s["peer"]): s["messages"] for r in ranks for s in r["sent"]}
        for place, hint in enumerate(found["hints"]):
            row, column = divmod(place, 4)
            self.assertIn(f"rank {row} to rank {column}: {sent.get((row, column), 0)} messages,", hint)
        self.assertGreaterEqual(found["bars"], 4 * 2)
        self.assertGreaterEqual(found["memory"], 3)
        drawn = sum(int(re.search(r": (\d+) messages", hint)[1]) for hint in found["sizes"])
        self.assertEqual(drawn, sum(sent.values()))
        for heading in ("Who sent to whom", "Where the time went", "Who waited for whom",
                        "Protocols by size", "Memory"):
            self.assertIn(heading, found["headings"])
        self.assertIn("4 ranks on", found["text"])
        self.assert_tidy(self.look_at(600))

    def test_of_many_ranks_with_strange_names(self):
        ranks = [{"rank": rank, "host": f"node</script><b>{rank % 5}", "time": {"run": 2.5, "functions": [
                     {"name": f"MPI_Function_{i}", "calls": 3, "seconds": 0.1} for i in range(9)]},
                  "waits": [{"peer": (rank + 1) % 200, "cause": "late sender", "times": 3, "seconds": 0.2}],
                  "sent": [{"peer": (rank + k) % 200, "messages": 10 ** k, "bytes": 10 ** (3 * k),
                            "successive": 0, "successive_bytes": 0} for k in (1, 2, 3)],
                  "sizes": [{"below": 1 << k, "protocol": "EAGER", "messages": 10 ** 9} for k in range(0, 40, 2)],
                  "memory": {"resident": 10 ** 9, "shm": 10 ** 6}, "fallbacks": ["<img src=x>" * 20]}
                 for rank in range(200)]
        self.file.write_text(json.dumps({"macadam": "report", "ranks": ranks}))
        self.make_page()
        found = self.look_at(1200)
        self.assert_tidy(found)
        self.assertEqual(found["cells"], 50 * 50)
        self.assertIn("ranks 0 to 3 to ranks 0 to 3", found["hints"][0])
        self.assertIn("<img src=x>", found["text"])

    def test_of_an_empty_report(self):
        self.file.write_text('{"macadam": "report", "ranks": [{}, {"rank": 0}]}')
        self.make_page()
        self.assert_tidy(self.look_at(1200))

    def test_that_a_broken_page_is_seen(self):
        """Of the test itself: a script that fails, and headings that overlap."""
        self.run_program(2, "work", "0.1")
        self.make_page()
        path = self.folder / "run.html"
        good = path.read_text()
        for old, new in (("<script>", "<script>\nno_such_function();\n"),
                         ("</style>", "h2 { position: absolute; top: 9px; }</style>")):
            self.assertEqual(good.count(old), 1)
            path.write_text(good.replace(old, new))
            with self.assertRaises(AssertionError):
                self.assert_tidy(self.look_at(1200))

    def test_as_text(self):
        self.run_program(2, "late", "0.1")
        result = self.macadam("--text", self.file)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("rank 1 for rank 0, which sent late", result.stdout)

    def test_what_is_no_report(self):
        missing = self.folder / "none.json"
        result = self.macadam(missing)
        self.assertEqual((result.returncode, result.stderr),
                         (1, f"macadam: {missing} cannot be read: No such file or directory\n"))
        for text in ("", "{", "[]", "{}", '{"macadam": 1}', '{"macadam": 1, "ranks": 3}'):
            self.file.write_text(text)
            result = self.macadam(self.file)
            self.assertEqual(result.returncode, 1, text)
            self.assertEqual(result.stderr, f"macadam: {self.file} is no report; "
                             "MACADAM_REPORT=NAME.json mpiexec ... writes one\n")
        self.file.write_text('{"macadam": 1, "ranks": [{"rank": 0, "time": {"run": "x"}}]}')
        self.assertRegex(self.macadam(self.file).stderr, r"^macadam: \S+ is damaged: ")
        self.file.write_text('{"macadam": "report", "ranks": []}')
        result = self.macadam(self.file, "-o", "/no such folder/a.html")
        self.assertEqual((result.returncode, result.stderr), (
            1, "macadam: /no such folder/a.html cannot be written: No such file or directory\n"))


if __name__ == "__main__":
    unittest.main()
