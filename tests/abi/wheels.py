# SPDX-License-Identifier: BSD-3-Clause
"""Packages of other MPI libraries from PyPI, each in a virtual environment of its own.

    wheels.py PACKAGE FOLDER SIGN    (install() below)"""
import fcntl
import pathlib
import re
import subprocess
import sys

SKIPPED = 77  # CTest counts this exit code as skipped

# What pip says when it cannot reach the registry, as opposed to any other failure.
UNREACHABLE = re.compile(r"NewConnectionError|ConnectTimeout|ReadTimeout|name resolution|"
                         r"Network is unreachable|Connection refused|ProxyError")


def install(package: str, venv: pathlib.Path, sign: str) -> pathlib.Path:
    """The environment with the package, made if it is not there: then the file `sign` is in it."""
    venv.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{venv}.lock", "w", encoding="utf8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side
        if (venv / sign).exists():
            return venv
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        pip = subprocess.run([venv / "bin/pip", "install", "--quiet", "--retries", "1", "--timeout", "20",
                              package], capture_output=True, text=True, check=False)
    if pip.returncode == 0:
        return venv
    if UNREACHABLE.search(pip.stderr):
        print(f"skipped: {package} is not here and the package registry cannot be reached")
        sys.exit(SKIPPED)
    sys.exit(f"pip install {package} failed:\n{pip.stderr}")


if __name__ == "__main__":
    install(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3])
