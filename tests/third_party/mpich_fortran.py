#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian's programs in Fortran that were built with its MPICH, on the library just built: the tester
of the BLACS in Fortran, and ScaLAPACK's of LU, whose communication is in C. And MPICH's mpif.h,
whose constants must be those that we know. Unpacked, not installed. Exit code 77 (skipped): the
registry cannot be reached."""
import argparse
import os
import pathlib
import re
import subprocess
import sys

from sources import Debian, Unavailable, fetch

PACKAGES = [Debian(package, version, f"{package}_{version}_{architecture}.deb", sha256, binary=True)
            for package, version, architecture, sha256 in (
    ("libmpich-dev", "4.0.2-3+b1", "amd64",
     "d7fc62d292e0ff3a08a73b5293cb38e8ffdbcc31ff93c1ca12ab448b3d6140dc"),
    ("scalapack-mpi-test", "2.2.1-2+b1", "amd64",
     "160e1c7d959c104ff14c926c9515f164db53fea4d81907e197f4801e14303f0b"),
    ("scalapack-test-common", "2.2.1-2", "all",
     "f2dffe8b9aad4c84781f327683b5584dd2ad9b159bcf784774c346bd29ebae44"),
    ("libscalapack-mpich2.2", "2.2.1-2+b1", "amd64",
     "30cc1a29ca8266164b0d787aa959f85ed88f0a44fc34ab7663ab5dfb1dd42f82"),
    ("libblas3", "3.11.0-2", "amd64",
     "9aae8058b8d02b800bdafc5b340614df1442a2d2abbc2d351947c0fdd67aa08a"),
    ("liblapack3", "3.11.0-2", "amd64",
     "4cb4ba9c36ee0242d91c8bcd69286db59a6a0c86f8c522b72f5eb0053e127d7d"))]
MPIF = pathlib.Path(__file__).parents[1] / "fortran/mpich/mpif.py"
SECONDS = 120
SKIPPED = 77


def unpack(folder: pathlib.Path) -> pathlib.Path:
    root = folder / "root"
    for package in PACKAGES:
        file = fetch(package, folder / "downloads")
        subprocess.run(["dpkg", "-x", file, root], check=True)
    return root / "usr"


def run(arguments: argparse.Namespace, root: pathlib.Path, program: str) -> tuple[int, str]:
    libraries = root / "lib/x86_64-linux-gnu"
    path = [arguments.lib.absolute(), libraries, libraries / "blas", libraries / "lapack"]
    done = subprocess.run([arguments.mpiexec.absolute(), "-timeout", str(SECONDS), "-n", "4",
                           libraries / "scalapack/mpich-tests" / program],
                          cwd=root / "share/scalapack" / ("BLACS" if "btest" in program else ""),
                          env={**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, path)),
                               "GFORTRAN_UNBUFFERED_ALL": "1"},
                          timeout=SECONDS + 20, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpiexec", type=pathlib.Path, required=True)
    parser.add_argument("--lib", type=pathlib.Path, required=True, help="with libmpifort.so.12")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="where packages go")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    try:
        root = unpack(work)
    except Unavailable as error:
        print(f"skipped: {error}")
        return SKIPPED
    subprocess.run([sys.executable, "-B", MPIF, work / "mpif.h", "--compare",
                    root / "include/x86_64-linux-gnu/mpich/mpif.h"], check=True)

    # It ends itself with BLACS_ABORT, as its last test.
    _, output = run(arguments, root, "xFbtest")
    counts = [[int(n) for n in found] for found in
              re.findall(r"(\d+) TESTS; *(\d+) PASSED, *(\d+) SKIPPED, *(\d+) FAILED", output)]
    total, passed, _, failed = map(sum, zip(*counts)) if counts else (0, 0, 0, 0)
    if len(counts) != 22 or failed or "all processes should be killed" not in output:
        sys.exit(f"xFbtest: {len(counts)} reports, {failed} tests failed\n{output[-4000:]}")
    print(f"xFbtest: {passed} of {total} tests passed, the others are skipped by itself")

    code, output = run(arguments, root, "xdlu")
    passed = len(re.findall(r"\bPASSED\b", output))
    if code != 0 or passed < 100 or re.search(r"\bFAILED\b", output):
        sys.exit(f"xdlu: exit code {code}\n{output[-4000:]}")
    print(f"xdlu: {passed} tests passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
