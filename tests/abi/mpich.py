# SPDX-License-Identifier: BSD-3-Clause
"""The yardstick: MPICH 5's library with the standard ABI, from its package on PyPI."""
import fcntl
import pathlib
import re
import subprocess
import sys

PACKAGE = "mpich==5.0.2"
SKIPPED = 77  # CTest counts this exit code as skipped

# What pip says when it cannot reach the registry, as opposed to any other failure.
UNREACHABLE = re.compile(r"NewConnectionError|ConnectTimeout|ReadTimeout|name resolution|"
                         r"Network is unreachable|Connection refused|ProxyError")


def locate(given: str, folder: pathlib.Path) -> pathlib.Path:
    """The virtual environment with the package: the given one, else one made in `folder`."""
    if given:
        venv = pathlib.Path(given)
        if not (venv / "include/mpi_abi.h").exists():
            sys.exit(f"MACADAM_MPICH_VENV is {venv}, which has no include/mpi_abi.h; install "
                     f"{PACKAGE} there with its pip, or leave the variable empty")
        return venv
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "mpich.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side
        return install(folder / "mpich")


def install(venv: pathlib.Path) -> pathlib.Path:
    if (venv / "include/mpi_abi.h").exists():
        return venv
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    pip = subprocess.run([venv / "bin/pip", "install", "--quiet", "--retries", "1", "--timeout", "20",
                          PACKAGE], capture_output=True, text=True)
    if pip.returncode == 0:
        return venv
    if UNREACHABLE.search(pip.stderr):
        print(f"skipped: {PACKAGE} is not here and the package registry cannot be reached")
        sys.exit(SKIPPED)
    sys.exit(f"pip install {PACKAGE} failed:\n{pip.stderr}")
