#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Figure 4 of Danalis et al. 2008: a ring and a wavefront on MPI and on Gravel, over shared memory,
over soft-RoCE in the virtual machine, and in the simulator (InfiniBand of that time).

    python3 bench/gravel/figure.py --build build/release

Runs gravel_patterns on our library and on MPICH 5, whose package comes from PyPI into the build
tree, and the simulator's pattern; writes the times as JSON and draws each over the version that does
not communicate. What this machine cannot run is left out with the reason, and keeps the times that it
had, as does what --over leaves out."""
import argparse
import functools
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs" / "figures"
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "sim" / "figures")]
import peers  # noqa: E402
from figures import python_with_plots  # noqa: E402
from harness import SKIPPED, in_guest  # noqa: E402
from runs import environment_with, save  # noqa: E402

SECONDS = 600  # for one program on this machine
VM_SECONDS = 3600  # for one library in the virtual one
PRESET = "ddr-2009"  # the paper does not name its InfiniBand; this is the next year's
BARS = [("traditional", "traditional MPI"), ("mpi", "MPI"), ("gravel", "Gravel, write"),
        ("gravel_announced", "Gravel, write, announced each"), ("gravel_read", "Gravel, read"), ("traditional_strips", "traditional MPI, strips"),
        ("mpi_strips", "MPI, strips"), ("gravel_strips", "Gravel, strips"),
        ("gravel_one", "Gravel, strips, one handshake")]
# The MPI of the paper: the sender asks, and writes when it is answered. Ours by other settings.
TRADITIONAL = {"MACADAM_PROTOCOLS": "sender", "MACADAM_RENDEZVOUS": "write"}
NAMES = {"macadam": "Macadam", "mpich": "MPICH 5"}
# MPICH too is to use its network and not shared memory: UCX on reliable connections. To soft-RoCE
# UCX's usual count of resends means for ever, and MPI_Finalize then waits for who has left.
OVER_VERBS = {"macadam": {"MACADAM_NETWORK": "rdma"},
              "mpich": {"MACADAM_NETWORK": "rdma",  # Gravel's
                        "MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ucx",
                        "UCX_TLS": "rc_verbs,ud_verbs:aux,self",
                        "UCX_RC_VERBS_RETRY_COUNT": "3", "UCX_RC_VERBS_TIMEOUT": "50ms"}}


class Unavailable(Exception):
    """Why a network cannot be measured here."""


class Programs:
    """What is run, on our library and on MPICH's."""

    def __init__(self, build, mpich):
        self.build, self.mpich = build, mpich
        self.program = build / "bench" / "gravel" / "gravel_patterns"

    @functools.cached_property
    def libraries(self):
        """{name: (its mpiexec, settings of the environment)}"""
        found = {"macadam": (self.build / "bin" / "mpiexec", {})}
        try:
            venv = self.mpich or peers.mpich_environment(self.build / "bench" / "peers")
            found["mpich"] = (venv / "bin" / "mpiexec", {"LD_LIBRARY_PATH": str(venv / "lib")})
        except (subprocess.CalledProcessError, OSError) as error:
            left_out("MPICH", error)
        return found

    def job(self, library, pattern, ranks, fewer, settings, variants=""):
        """The command of one run; `settings` are of the environment, `variants` the beginning of
        their names."""
        mpiexec, own = self.libraries[library]
        words = [f"{name}={value}" for name, value in {**own, **settings}.items()]
        return ["env", *words, str(mpiexec), "-n", str(ranks), str(self.program), pattern,
                str(fewer), variants]

    def jobs(self, library, pattern, ranks, fewer, settings):
        """All runs of a library: (what is "mpi" in the names of its variants, command)"""
        found = [("mpi", self.job(library, pattern, ranks, fewer, settings))]
        if library == "macadam":
            found.append(("traditional", self.job(library, pattern, ranks, fewer,
                                                  {**settings, **TRADITIONAL}, "mpi")))
        return found


def left_out(what, why):
    print(f"figure: {what} is left out: {why}", file=sys.stderr)


def run(command, seconds=SECONDS):
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds,
                          env=environment_with())
    if done.returncode == SKIPPED:
        raise Unavailable(done.stdout.strip())
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def times_in(output, of_runs):
    """{pattern: {bytes: {variant: seconds}}}, by `of_runs` of several runs; behind a line "= NAME" that
    one stands for "mpi" in the names of variants."""
    found, name = {}, "mpi"
    for row in output.splitlines():
        words = row.split()
        if len(words) == 2 and words[0] == "=":
            name = words[1]
        if len(words) == 4 and words[0] in ("ring", "wavefront"):
            jobs = found.setdefault(words[0], {}).setdefault(words[2], {})
            jobs.setdefault(name, {}).setdefault(words[1].replace("mpi", name), []).append(float(words[3]))
    return {pattern: {size: {variant: seconds for variants in jobs.values()
                             for variant, seconds in of_runs(variants).items()}
                      for size, jobs in sizes.items()} for pattern, sizes in found.items()}


def medians(variants):
    return {variant: statistics.median(times) for variant, times in variants.items()}


def median_run(variants):
    """The times of the run that is the median of all: where the machine may be faster in the next run,
    times of different runs do not compare."""
    runs = sorted(zip(*variants.values()), key=sum)
    return dict(zip(variants, runs[(len(runs) - 1) // 2]))


def shared_memory(programs, repeats):
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        raise Unavailable("its ranks want a core each, and there is one")
    data = {"ranks": {"ring": 2, "wavefront": 4 if cores >= 4 else 2}, "libraries": {}}
    outputs = {}
    for _ in range(repeats):
        for library in programs.libraries:
            for pattern, ranks in data["ranks"].items():
                outputs[library] = outputs.get(library, "") + "".join(
                    f"= {name}\n" + run(job) for name, job in programs.jobs(library, pattern, ranks, 1, {}))
    data["libraries"] = {library: times_in(output, median_run) for library, output in outputs.items()}
    return data


def soft_roce(programs, repeats):
    data = {"ranks": {"ring": 2, "wavefront": 4}, "libraries": {}}
    for library in programs.libraries:
        script = " && ".join(f"echo = {name} && {shlex.join(job)}"
                             for _ in range(min(repeats, 3))
                             for pattern, ranks in data["ranks"].items()
                             for name, job in programs.jobs(library, pattern, ranks, 160,
                                                            OVER_VERBS[library]))
        data["libraries"][library] = times_in(
            run(in_guest(["sh", "-c", script], VM_SECONDS - 10, "--icount"), VM_SECONDS), medians)
    return data


def simulator(programs, _repeats):
    data = {"ranks": {"ring": 24, "wavefront": 24}, "preset": PRESET, "libraries": {"macadam": {}}}
    for pattern, ranks in data["ranks"].items():
        sizes = data["libraries"]["macadam"].setdefault(pattern, {})
        for mpi, settings in (("mpi", {}), ("traditional", TRADITIONAL)):
            rows = json.loads(run(["env", *(f"{n}={v}" for n, v in settings.items()),
                                   str(programs.build / "bin" / "macadam-simulate"), "-q",
                                   "--json", "-n", str(ranks), "-p", PRESET, "pattern:gravel",
                                   f"shape={pattern}"]))["rows"]
            for row in rows:
                times = {name.removesuffix("_us").replace("mpi", mpi): value * 1e-6
                         for name, value in row.items() if name.endswith("_us")}
                kept = sizes.setdefault(row["what"].split()[0], times)
                kept.update((v, s) for v, s in times.items() if v.startswith(mpi))
    return data


NETWORKS = {"shared memory": shared_memory, "soft-RoCE": soft_roce, "simulator": simulator}


def text_of(size):
    kib = int(size) // 1024
    return f"{kib} KiB" if kib < 1024 else f"{kib // 1024} MiB"


def measured(data):
    """(network, library, {pattern: {bytes: {variant: seconds}}}) of what there is."""
    for network in filter(data.__contains__, NETWORKS):
        for library, patterns in data[network]["libraries"].items():
            yield network, library, patterns


def draw(data, path):
    import matplotlib
    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"savefig.dpi": 90, "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
                         "legend.frameon": False, "figure.constrained_layout.use": True})
    rows = list(measured(data))
    figure, all_axes = plt.subplots(len(rows), 2, figsize=(9, 2.6 * len(rows) + 0.8), squeeze=False)
    for row, (network, library, patterns) in enumerate(rows):
        for axes, (pattern, sizes) in zip(all_axes[row], patterns.items()):
            for i, (variant, label) in enumerate(BARS):
                axes.bar([x + i * 0.1 for x in range(len(sizes))],
                         [times.get(variant, 0) / times["none"] for times in sizes.values()], 0.09,
                         label=label, color=f"C{i}")
            axes.axhline(1, color="k", linewidth=0.8)
            axes.set(xticks=[x + 0.4 for x in range(len(sizes))],
                     xticklabels=map(text_of, sizes),
                     title=f"{pattern}, {network}, {data[network]['ranks'][pattern]} ranks, "
                           f"beside {NAMES[library]}")
    figure.supylabel("time over the one without communication")
    figure.legend(*all_axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle("Gravel beside MPI (Danalis et al., Figure 4)")
    figure.savefig(path, metadata={"Software": None})
    print(path)


def table(data):
    """The ratios, for the page."""
    network = None
    for its_network, library, patterns in measured(data):
        if its_network != network:
            network = its_network
            print(f"\n{network[0].upper() + network[1:]}:\n")
            print("| beside | pattern | message | " + " | ".join(b for _, b in BARS) + " |")
            print("|---" * (3 + len(BARS)) + "|")
        for pattern, sizes in patterns.items():
            for size, times in sizes.items():
                ratios = " | ".join(f"{times[v] / times['none']:.2f}" if v in times else ""
                                    for v, _ in BARS)
                print(f"| {NAMES[library]} | {pattern} | {text_of(size)} | {ratios} |")


def measure(options, file):
    """All times: those of `file`, and what can be measured anew."""
    data = json.loads(file.read_text()) if file.exists() else {}
    programs = Programs(options.build.resolve(), options.mpich and options.mpich.resolve())
    for network in options.over or NETWORKS:
        try:
            data[network] = NETWORKS[network](programs, options.repeats)
            save(file, data)
        except Unavailable as why:
            left_out(network, why)
    return data


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--mpich", type=pathlib.Path, help="an environment that has MPICH 5")
    parser.add_argument("--over", choices=NETWORKS, action="append", help="one network, or more")
    parser.add_argument("--out", type=pathlib.Path, default=DOCS)
    parser.add_argument("--repeats", type=int, default=9,
                        help="runs, of which the median counts; over soft-RoCE three at most (%(default)s)")
    parser.add_argument("--draw", type=pathlib.Path, metavar="JSON", help="only draw this")
    options = parser.parse_args()
    picture = options.out / "gravel.png"
    if options.draw:
        return draw(json.loads(options.draw.read_text()), picture)
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "gravel.json"
    table(measure(options, file))
    try:
        # Drawing needs the plotting library, which is in an environment of its own.
        python = python_with_plots(options.build)
    except (subprocess.CalledProcessError, OSError) as error:
        return left_out("the plot", error)
    subprocess.run([python, "-B", __file__, "--draw", file, "--out", options.out], check=True)


if __name__ == "__main__":
    main()
