#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs that use Gravel over soft-RoCE in the virtual machine, beside the library of this
build and beside MPICH 5: PROGRAM:RANKS ...."""
import argparse
import os
import pathlib
import subprocess
import sys
import time

import beside_mpich
import mpich

HERE = pathlib.Path(__file__).resolve()
RUN_VM = HERE.parent.parent / "vm" / "run.py"
SECONDS = 120  # for one program; processors are emulated
# Operations that the adapter has given up, as nobody answered.
GIVEN_UP = pathlib.Path("/sys/class/infiniband/rxe0/ports/1/hw_counters/retry_exceeded_err")


def run(name: str, mpiexec: list, program: str, ranks: str, environment: dict) -> None:
    begin = time.monotonic()
    done = subprocess.run([*mpiexec, "-n", ranks, program], capture_output=True, text=True,
                          env={**environment, "MACADAM_NETWORK": "rdma"}, timeout=SECONDS)
    if done.returncode != 0 or not beside_mpich.GOOD.search(done.stdout):
        sys.exit(f"{program} on {ranks} ranks of {name} over soft-RoCE: exit code "
                 f"{done.returncode}\n{done.stdout}{done.stderr}")
    print(f"{name}: {done.stdout.strip()} ({time.monotonic() - begin:.1f} s)", flush=True)


def inside(arguments) -> None:
    own = [arguments.mpiexec, "-timeout", str(SECONDS - 10)]
    venv = pathlib.Path(arguments.venv)
    # Its own messages need no adapter, and it takes long to find out what one can do.
    its = dict(os.environ, LD_LIBRARY_PATH=str(venv / "lib"), UCX_TLS="self,sysv")
    for program, ranks in (word.rsplit(":", 1) for word in arguments.programs):
        run("this library", own, program, ranks, dict(os.environ))
        # MPICH's mpiexec ends all processes when the first one has ended.
        if pathlib.Path(program).name == "gone":
            continue
        run("MPICH 5", [venv / "bin/mpiexec"], program, ranks, its)
        # Nobody was killed, so nobody has waited at its end for one who had ended.
        if (given_up := int(GIVEN_UP.read_text(encoding="ascii"))) != 0:
            sys.exit(f"{program} on {ranks} ranks: {given_up} operations had no answer")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true")
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--venv", default="")
    parser.add_argument("--timeout", default="300")
    parser.add_argument("programs", nargs="+")
    arguments = parser.parse_args()
    if arguments.inside:
        return inside(arguments)
    venv = mpich.locate(arguments.venv, arguments.work)  # the guest has no way to the registry
    os.execv(sys.executable, [
        sys.executable, "-B", str(RUN_VM), "--timeout", arguments.timeout, "--",
        "python3", "-B", str(HERE), "--inside", "--mpiexec", arguments.mpiexec, "--venv", str(venv),
        *arguments.programs])


if __name__ == "__main__":
    main()
