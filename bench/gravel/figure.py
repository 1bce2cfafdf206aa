#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Figure 4 of Danalis et al. 2008: a ring and a wavefront on MPI and on Gravel.

    python3 bench/gravel/figure.py --build build/release --mpich VENV

Runs gravel_patterns on our library and on MPICH 5 (a Python environment that has its package),
writes the times as JSON and draws each over the version that does not communicate."""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs" / "figures"
SECONDS = 300
BARS = [("mpi", "MPI"), ("gravel", "Gravel, write"), ("gravel_read", "Gravel, read"),
        ("mpi_strips", "MPI, strips"), ("gravel_strips", "Gravel, strips"),
        ("gravel_one", "Gravel, strips, one handshake")]


def run(mpiexec, ranks, program, library):
    """{pattern: {bytes: {variant: seconds}}}"""
    environment = dict(os.environ)
    if library:
        environment["LD_LIBRARY_PATH"] = str(library)
    done = subprocess.run([mpiexec, "-n", str(ranks), program], capture_output=True, text=True,
                          env=environment, timeout=SECONDS)
    if done.returncode != 0:
        sys.exit(f"{program} on {ranks} ranks: exit code {done.returncode}\n{done.stdout}"
                 f"{done.stderr}")
    found = {}
    for row in done.stdout.splitlines():
        pattern, variant, size, seconds = row.split()
        found.setdefault(pattern, {}).setdefault(size, {})[variant] = float(seconds)
    return found


def measure(build, mpich, repeats):
    program = build / "bench" / "gravel" / "gravel_patterns"
    libraries = {"macadam": (build / "bin" / "mpiexec", None)}
    if mpich:
        libraries["mpich"] = (mpich / "bin" / "mpiexec", mpich / "lib")
    data = {"ranks": {"ring": 2, "wavefront": 4}, "libraries": {}}
    for name, (mpiexec, library) in libraries.items():
        best = {}
        for _ in range(repeats):
            for pattern, ranks in data["ranks"].items():
                for size, times in run(mpiexec, ranks, program, library)[pattern].items():
                    kept = best.setdefault(pattern, {}).setdefault(size, times)
                    for variant, seconds in times.items():
                        kept[variant] = min(kept[variant], seconds)
        data["libraries"][name] = best
    return data


def draw(data, path):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"svg.hashsalt": "macadam", "svg.fonttype": "none", "font.size": 9,
                         "axes.spines.top": False, "axes.spines.right": False,
                         "legend.frameon": False, "figure.constrained_layout.use": True})
    libraries = list(data["libraries"])
    figure, all_axes = plt.subplots(2, len(libraries), figsize=(5 * len(libraries), 6),
                                    squeeze=False, sharey="row")
    for row, pattern in enumerate(data["ranks"]):
        for column, library in enumerate(libraries):
            axes, sizes = all_axes[row][column], data["libraries"][library][pattern]
            for i, (variant, label) in enumerate(BARS):
                axes.bar([x + i * 0.14 for x in range(len(sizes))],
                         [times[variant] / times["none"] for times in sizes.values()], 0.13,
                         label=label, color=f"C{i}")
            axes.axhline(1, color="k", linewidth=0.8)
            axes.set(xticks=[x + 0.35 for x in range(len(sizes))],
                     xticklabels=[f"{int(size) // 1024} KiB" for size in sizes],
                     title=f"{pattern}, {data['ranks'][pattern]} ranks, beside {library}")
        all_axes[row][0].set_ylabel("time over the one without communication")
    all_axes[0][-1].legend(fontsize=7)
    figure.suptitle("Gravel beside MPI over shared memory (Danalis et al., Figure 4)")
    figure.savefig(path, metadata={"Date": None})
    print(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--mpich", type=pathlib.Path, help="environment with MPICH 5, if wanted")
    parser.add_argument("--out", type=pathlib.Path, default=DOCS)
    parser.add_argument("--repeats", type=int, default=3, help="the best counts (%(default)s)")
    parser.add_argument("--redraw", action="store_true", help="draw from the data that is there")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "sim" / "figures"))
    from figures import python_with_plots
    file = options.out / "gravel.json"
    if not options.redraw:
        options.out.mkdir(parents=True, exist_ok=True)
        data = measure(options.build.resolve(), options.mpich, options.repeats)
        file.write_text(json.dumps(data, indent=1) + "\n")
        # Drawing needs the plotting library, which is in an environment of its own.
        python = str(python_with_plots(options.build))
        os.execv(python, [python, __file__, "--redraw", "--out", str(options.out)])
    draw(json.loads(file.read_text()), options.out / "gravel.svg")


if __name__ == "__main__":
    main()
