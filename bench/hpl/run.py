#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""High Performance Linpack by the ways to receive, as Figure 13 of Sur et al. (docs/nas.md): the sources
come from Debian's package hpcc, the BLAS is Debian's OpenBLAS for one thread; both are fetched into the
build tree and pinned by checksum, built with our mpicc.

    python3 -B bench/hpl/run.py --build build/release --over simulator
    python3 -B bench/hpl/run.py --build build/release --over soft-roce --sizes 400,800

The exit status is 1 if a result did not pass HPL's own check, 77 with the reason where it cannot run."""
import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("bench", "bench/nas", "tests/third_party")]
from harness import SKIPPED, in_guest  # noqa: E402
from simulator import PRESET, RECEIVE, Failed, Simulator, over_first, save  # noqa: E402
from sources import Debian, Unavailable, fetch  # noqa: E402

HPCC = Debian("hpcc", "1.5.0-3", "hpcc_1.5.0.orig.tar.gz",
              "0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8")
BLAS = Debian("libopenblas0-serial", "0.3.21+ds-4", "libopenblas0-serial_0.3.21+ds-4_amd64.deb",
              "9b1f8b7e553357ff4fbbf7006ffb50d34c8454559d5d116f08435dfcec0b0d40", binary=True)
PARTS = ("src/auxil", "src/blas", "src/comm", "src/grid", "src/panel", "src/pauxil", "src/pfact", "src/pgesv",
         "testing/matgen", "testing/pmatgen", "testing/timer", "testing/ptimer", "testing/ptest")
FLAGS = ("-O2", "-w", "-fPIC", "-DAdd_", "-DF77_INTEGER=int", "-DStringSunStyle")
BLOCK = 80
# name: (problem sizes, rows and columns of ranks). The paper has 16 ranks, and 10,000 to 16,000.
NETWORKS = {"simulator": ((2000, 4000), (4, 4)), "soft-roce": ((400,), (2, 2)),
            "shared-memory": ((1000, 4000), (2, 2))}
SECONDS = 1500  # for one run, or one guest


def built(build):
    """(the program, the same as a module of the simulator), made if they are not there."""
    folder = build / "bench" / "hpl"
    program, module = folder / "hpl", folder / "hpl.so"
    driver = pathlib.Path(__file__).with_name("driver.c")
    if module.exists() and program.exists() and module.stat().st_mtime > driver.stat().st_mtime:
        return program, module
    archive, blas = (fetch(package, folder / "downloads") for package in (HPCC, BLAS))
    with tarfile.open(archive) as packed:
        packed.extractall(folder)
    subprocess.run(["dpkg", "-x", blas, folder / "blas"], check=True)
    top = folder / "hpcc-1.5.0" / "hpl"
    library = folder / "blas/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0"
    # Its inquiry into the run and what calls it is HPCC's; a problem's size comes from the driver.
    sources = [file for part in PARTS for file in sorted((top / part).glob("*.c"))
               if file.name not in ("HPL_pddriver.c", "HPL_pdinfo.c")]
    words = [build / "bin" / "mpicc", *FLAGS, "-I", top / "include", driver, *sources, library,
             f"-Wl,-rpath,{library.parent}", "-lm"]
    for more in (["-o", program], ["-shared", "-o", module]):
        subprocess.run([*map(str, words), *map(str, more)], check=True)
    return program, module


def line_in(output):
    found = re.search(r"^hpl (n=.*)", output, re.M)
    return dict(word.split("=") for word in found[1].split()) if found else None


def checked(output, what):
    line = line_in(output)
    if not line or line["verified"] != "yes":
        raise Failed(f"hpl: {what}: it did not come to a verified end\n{output[-2000:]}")
    return {"seconds": float(line["seconds"]), "gflops": float(line["gflops"])}


def in_simulator(build, module, sizes, grid, times):
    """{size as text: {way to receive: numbers}}; all are connected at the start, as the paper's library has it."""
    results = {}
    for size in sizes:
        run = Simulator(build, module, grid[0] * grid[1], PRESET["receives"], times, f"hpl.{size}",
                        [size, BLOCK, *grid], SECONDS)
        results[str(size)] = {name: checked(run.output({"RDMA_CONNECTIONS": "all", **settings}), f"{size}, {name}")
                         for name, settings in RECEIVE.items()}
    return results


def with_mpiexec(build, program, sizes, grid, guest):
    """The same over shared memory of this machine, or over soft-RoCE in the guest."""
    names, script = [], []
    for size in sizes:
        for name, settings in RECEIVE.items() if guest else [("shared memory", {})]:
            names.append((size, name))
            network = {"NETWORK": "rdma"} if guest else {}
            words = [f"MACADAM_{key}={value}" for key, value in {**network, **settings}.items()]
            job = ["env", *words, build / "bin" / "mpiexec", "-n", grid[0] * grid[1], program, size, BLOCK, *grid]
            script.append(f"echo '== job'; {shlex.join(map(str, job))} 2>&1")
    command = ["sh", "-c", "; ".join(script)]
    if guest:
        command = in_guest(command, SECONDS, "--icount", "--memory", "3072")
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS + 60, check=False)
    if done.returncode == SKIPPED:
        raise Unavailable(done.stdout.strip())
    outputs = done.stdout.split("== job\n")[1:]
    if len(outputs) != len(names):
        raise Failed(f"hpl: it ended before all was run\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    results = {}
    for (size, name), output in zip(names, outputs):
        results.setdefault(str(size), {})[name] = checked(output, f"{size}, {name}")
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--over", choices=NETWORKS, default="simulator")
    parser.add_argument("--sizes", help="of the problem, as 4000,8000")
    parser.add_argument("--times", type=pathlib.Path, help="folder of compute times, to repeat a run to the digit")
    parser.add_argument("--json", type=pathlib.Path, help="write every number, beside what is there")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    sizes, grid = NETWORKS[arguments.over]
    if arguments.sizes:
        sizes = [int(size) for size in arguments.sizes.split(",")]
    try:
        program, module = built(build)
        if arguments.over == "simulator":
            results = in_simulator(build, module, sizes, grid, arguments.times or build / "bench" / "hpl" / "times")
        else:
            results = with_mpiexec(build, program, sizes, grid, arguments.over == "soft-roce")
    except Unavailable as why:
        print(why)
        sys.exit(SKIPPED)
    except Failed as why:
        sys.exit(str(why))
    print(over_first(f"HPL, {grid[0] * grid[1]} ranks, {arguments.over}", results, "gflops", "Gflop/s"))
    if arguments.json:
        kept = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
        save(arguments.json, {**kept, "hpl": {**kept.get("hpl", {}), arguments.over: results}})


if __name__ == "__main__":
    main()
