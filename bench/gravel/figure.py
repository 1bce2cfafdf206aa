#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Figure 4 of Danalis et al. 2008: a ring and a wavefront on MPI and on Gravel, over shared memory,
in the simulator (InfiniBand of that time), and over soft-RoCE in the virtual machine.

    python3 bench/gravel/figure.py --build build/release --mpich VENV

Runs gravel_patterns on our library and on MPICH 5 (a Python environment that has its package) and
the simulator's pattern, writes the times as JSON and draws each over the version that does not
communicate. What --over leaves out keeps the times that it had."""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs" / "figures"
SECONDS = 600
PRESET = "ddr-2009"  # the paper does not name its InfiniBand; this is the next year's
BARS = [("mpi", "MPI"), ("gravel", "Gravel, write"), ("gravel_read", "Gravel, read"),
        ("mpi_strips", "MPI, strips"), ("gravel_strips", "Gravel, strips"),
        ("gravel_one", "Gravel, strips, one handshake")]


class Programs:
    """What is run, on our library and, if it is given, on MPICH's."""

    def __init__(self, build, mpich):
        self.build = build
        self.program = build / "bench" / "gravel" / "gravel_patterns"
        self.libraries = {"macadam": (build / "bin" / "mpiexec", {})}
        if mpich:
            self.libraries["mpich"] = (mpich / "bin" / "mpiexec",
                                       {"LD_LIBRARY_PATH": str(mpich / "lib")})

    def job(self, library, pattern, ranks, fewer, settings):
        """The command of one run; `settings` are of the environment."""
        mpiexec, own = self.libraries[library]
        words = [f"{name}={value}" for name, value in {**own, **settings}.items()]
        return ["env", *words, str(mpiexec), "-n", str(ranks), str(self.program), pattern,
                str(fewer)]


def run(command):
    # Settings of the caller's environment must not change a figure.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MACADAM_")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS,
                          env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def times_in(output):
    """{bytes: {variant: seconds}}"""
    found = {}
    for row in output.splitlines():
        words = row.split()
        if len(words) == 4 and words[0] in ("ring", "wavefront"):
            found.setdefault(words[2], {})[words[1]] = float(words[3])
    return found


def shared_memory(programs, repeats):
    data = {"ranks": {"ring": 2, "wavefront": 4}, "libraries": {}}
    for library in programs.libraries:
        best = data["libraries"][library] = {}
        for pattern, ranks in data["ranks"].items():
            for _ in range(repeats):
                times = times_in(run(programs.job(library, pattern, ranks, 1, {})))
                for size, each in times.items():
                    kept = best.setdefault(pattern, {}).setdefault(size, each)
                    for variant, seconds in each.items():
                        kept[variant] = min(kept[variant], seconds)
    return data


def soft_roce(programs, _repeats):
    data = {"ranks": {"ring": 2, "wavefront": 4}, "libraries": {}}
    for library in programs.libraries:
        # MPICH too is to use its network, and not shared memory.
        settings = {"MACADAM_NETWORK": "rdma", "MPIR_CVAR_NOLOCAL": "1"}
        data["libraries"][library] = {
            pattern: times_in(run([sys.executable, "-B", str(ROOT / "tests" / "vm" / "run.py"),
                                   "--icount", "--timeout", str(SECONDS - 10), "--",
                                   *programs.job(library, pattern, ranks, 40, settings)]))
            for pattern, ranks in data["ranks"].items()}
    return data


def simulator(programs, _repeats):
    data = {"ranks": {"ring": 24, "wavefront": 24}, "preset": PRESET, "libraries": {"macadam": {}}}
    for pattern, ranks in data["ranks"].items():
        rows = json.loads(run([str(programs.build / "bin" / "macadam-simulate"), "-q", "--json",
                               "-n", str(ranks), "-p", PRESET, "pattern:gravel",
                               f"shape={pattern}"]))["rows"]
        data["libraries"]["macadam"][pattern] = {
            row["what"].split()[0]: {name.removesuffix("_us"): value * 1e-6
                                     for name, value in row.items() if name.endswith("_us")}
            for row in rows}
    return data


NETWORKS = {"shared memory": shared_memory, "simulator": simulator, "soft-RoCE": soft_roce}


def draw(data, path):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"svg.hashsalt": "macadam", "svg.fonttype": "none", "font.size": 9,
                         "axes.spines.top": False, "axes.spines.right": False,
                         "legend.frameon": False, "figure.constrained_layout.use": True})
    columns = [(network, library) for network in NETWORKS if network in data
               for library in data[network]["libraries"]]
    figure, all_axes = plt.subplots(2, len(columns), figsize=(4 * len(columns), 6), squeeze=False)
    for row, pattern in enumerate(("ring", "wavefront")):
        for column, (network, library) in enumerate(columns):
            axes, sizes = all_axes[row][column], data[network]["libraries"][library][pattern]
            for i, (variant, label) in enumerate(BARS):
                axes.bar([x + i * 0.14 for x in range(len(sizes))],
                         [times[variant] / times["none"] for times in sizes.values()], 0.13,
                         label=label, color=f"C{i}")
            axes.axhline(1, color="k", linewidth=0.8)
            axes.set(xticks=[x + 0.35 for x in range(len(sizes))],
                     xticklabels=[f"{int(size) // 1024} KiB" for size in sizes],
                     title=f"{pattern}, {network}, {data[network]['ranks'][pattern]} ranks\n"
                           f"beside {library}")
        all_axes[row][0].set_ylabel("time over the one without communication")
    all_axes[0][-1].legend(fontsize=7)
    figure.suptitle("Gravel beside MPI (Danalis et al., Figure 4)")
    figure.savefig(path, metadata={"Date": None})
    print(path)


def table(data):
    """The ratios, for the page."""
    print("| network | beside | pattern | message | " + " | ".join(b for _, b in BARS) + " |")
    print("|---" * (4 + len(BARS)) + "|")
    for network in filter(data.__contains__, NETWORKS):
        for library, patterns in data[network]["libraries"].items():
            for pattern, sizes in patterns.items():
                for size, times in sizes.items():
                    ratios = " | ".join(f"{times[v] / times['none']:.2f}" for v, _ in BARS)
                    print(f"| {network} | {library} | {pattern} | {int(size) // 1024} KiB | "
                          f"{ratios} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--mpich", type=pathlib.Path, help="environment with MPICH 5, if wanted")
    parser.add_argument("--over", choices=NETWORKS, action="append", help="one network, or more")
    parser.add_argument("--out", type=pathlib.Path, default=DOCS)
    parser.add_argument("--repeats", type=int, default=3,
                        help="over shared memory; the best counts (%(default)s)")
    parser.add_argument("--redraw", action="store_true", help="draw from the data that is there")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "sim" / "figures"))
    from figures import python_with_plots
    file = options.out / "gravel.json"
    data = json.loads(file.read_text()) if file.exists() else {}
    if not options.redraw:
        options.out.mkdir(parents=True, exist_ok=True)
        programs = Programs(options.build.resolve(), options.mpich and options.mpich.resolve())
        for network in options.over or NETWORKS:
            data[network] = NETWORKS[network](programs, options.repeats)
            file.write_text(json.dumps(data, indent=1) + "\n")
        # Drawing needs the plotting library, which is in an environment of its own.
        python = str(python_with_plots(options.build))
        os.execv(python, [python, __file__, "--redraw", "--out", str(options.out)])
    draw(data, options.out / "gravel.svg")
    table(data)


if __name__ == "__main__":
    main()
