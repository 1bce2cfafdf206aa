# SPDX-License-Identifier: BSD-3-Clause
"""The suite of MPI programs as CTest knows it, for those who run it in other ways."""
import json
import subprocess


class Test:
    def __init__(self, entry):
        properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
        self.name = entry["name"]
        self.command = entry.get("command", [])
        self.labels = properties.get("LABELS", [])
        self.timeout = properties.get("TIMEOUT", 60)
        self.environment = dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", []))

    def ranks(self):
        """Of a test that is one job of one program; 0 for others."""
        if self.launcher() is None or ":" in self.command:
            return 0
        return int(self.command[self.command.index("-n") + 1])

    def launcher(self):
        """Where mpiexec stands in the command; None if it does not."""
        return next((i for i, word in enumerate(self.command) if word.endswith("/mpiexec")), None)


def list_tests(build, label):
    """Those that have `label` besides that of the suite."""
    listing = subprocess.run(["ctest", "--show-only=json-v1", "-L", label], check=True, cwd=build,
                             stdout=subprocess.PIPE)
    tests = [Test(entry) for entry in json.loads(listing.stdout)["tests"]]
    return [test for test in tests if "programs" in test.labels]
