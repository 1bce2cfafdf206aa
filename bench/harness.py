# SPDX-License-Identifier: BSD-3-Clause
"""What the drivers of the benchmarks share: libraries, the programs of this folder run on them, and
tables that put the figures side by side."""
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

SOURCES = pathlib.Path(__file__).resolve().parent
VM = SOURCES.parent / "tests" / "vm" / "run.py"
SKIPPED = 77  # the virtual machine's exit code where it cannot run
# Seconds for one run of one program.
TIME_LIMIT = int(os.environ.get("BENCH_TIME_LIMIT", "180"))

# Until all ranks are there, with the slowest launcher.
SECONDS_TO_START = 2
HALO_SIZES = (8, 1024, 65536)
# figure: (title, unit, whether less is better)
FIGURES = {
    "half_round_trip_us": ("Half round trip", "us", True),
    "touched_us": ("Half round trip, data written and read", "us", True),
    "bandwidth_gb": ("Bandwidth, windows of 64", "GB/s", False),
    "message_rate_millions": ("Message rate, windows of 64", "million/s", False),
    "thread_rate_millions": ("Message rate of threads, windows of 64 of 8 bytes, by threads per rank",
                             "million/s", False),
    "allreduce_us": ("Allreduce of 8 bytes, by ranks", "us", True),
    "barrier_us": ("Barrier, by ranks", "us", True),
    "alltoall_us": ("Alltoall, by bytes of a block", "us", True),
    **{f"halo_{dimensions}d_{size}_{manner}": (
        f"{dimensions}-D halo, {size} bytes per neighbour, {how}, by ranks", unit, True)
       for dimensions in (2, 3) for size in HALO_SIZES
       for manner, how, unit in (
           ("blocking_us", "blocking", "us"),
           ("persistent_us", "persistent", "us"),
           ("overlapped", "overlapped with computation, time over computation", "ratio"))},
    "partitioned_overlap": ("Partitioned: 1 MiB in 16 partitions by 2 threads, time over full overlap, by "
                            "microseconds computed for each", "ratio", True),
    "allocated_overlap": ("The same, received into memory of MPI_Alloc_mem", "ratio", True),
    "send_after_overlap": ("The same with one send behind all", "ratio", True),
    "by_hand_overlap": ("The same by copies into shared memory, without MPI", "ratio", True),
    "partitioned_waited": ("Partitioned, to a receiver that waits from the beginning", "ratio", True),
    "allocated_waited": ("The same, received into memory of MPI_Alloc_mem", "ratio", True),
    "send_after_waited": ("The same with one send behind all", "ratio", True),
    "by_hand_waited": ("The same by copies into shared memory, without MPI", "ratio", True),
    "put_flush_us": ("Put of 8 bytes and flush, allocated window", "us", True),
    "get_flush_us": ("Get of 8 bytes and flush, allocated window", "us", True),
    "fetch_and_op_us": ("Fetch-and-op and flush, two ranks on one word", "us", True),
    "put_gb": ("Puts, each with a flush, allocated window", "GB/s", False),
    "lock_unlock_us": ("Exclusive lock and unlock, nothing between", "us", True),
    "fence_us": ("Fence, nothing between", "us", True),
    "post_wait_us": ("Post, start, complete, wait, nothing between", "us", True),
    "file_write_gb": ("Writes at offsets, by bytes of each", "GB/s of all ranks", False),
    "file_read_gb": ("Reads at offsets, by bytes of each", "GB/s of all ranks", False),
    "file_write_all_gb": ("Collective writes, ranks in turns, by bytes of a block", "GB/s of all ranks", False),
    "file_read_all_gb": ("Collective reads, ranks in turns, by bytes of a block", "GB/s of all ranks", False),
    "file_write_strided_gb": ("The same written by each rank alone", "GB/s of all ranks", False),
    "file_read_strided_gb": ("The same read by each rank alone", "GB/s of all ranks", False),
    "file_shared_us": ("Records of 1 KiB written at the shared pointer, by ranks", "us", True),
    "file_open_us": ("Opening and closing a file, by ranks", "us", True),
    "file_overlap": ("16 MiB written beside computation, time over computation, by ranks", "ratio", True),
    "startup_ms": ("mpiexec to the end of MPI_Finalize, by ranks", "ms", True),
    **{f"session_{between}_{which}_us": (
        f"MPI_Session_init to MPI_Session_finalize, {what}, {when}, by ranks", "us", True)
       for between, what in (("bare", "nothing between"),
                             ("world", "a communicator of mpi://WORLD and a barrier between"))
       for which, when in (("first", "the first of the process"), ("again", "one after the other"),
                           ("beside", "while another is open"))},
    "spawn_ms": ("MPI_Comm_spawn, by processes", "ms", True),
    "meet_us": ("MPI_Comm_accept of a job that connects, and MPI_Comm_disconnect", "us", True),
    "first_meet_us": ("The same of jobs that have not met before", "us", True),
    "rss_mb": ("Resident memory per rank, by ranks", "MB", True),
    "pinned_mb": ("Pinned memory per rank, by ranks", "MB", True),
    "rss_talked_mb": ("Resident memory per rank when all have talked to all, by ranks", "MB", True),
    "pinned_talked_mb": ("Pinned memory per rank when all have talked to all, by ranks", "MB",
                         True),
    "pss_mb": ("Resident memory per rank, shared pages split, by ranks", "MB", True),
    "figure_9a": ("Small & Yuan figure 9 (a): (0,0,60,X,0,0), 30 KB, by X", "units", True),
    "figure_9b": ("Small & Yuan figure 9 (b): (0,20,0,5,5,20), by KB", "units", True),
    "figure_10a": ("Small & Yuan figure 10 (a): (20,20,20,0,0,0), by KB", "units", True),
    "figure_10b": ("Small & Yuan figure 10 (b): (27,0,0,20,20,20), by KB", "units", True),
    "overlap_9a": ("Small & Yuan figure 9 (a): (0,0,60,30,0,0), time over full overlap, by KB",
                   "ratio", True),
    "overlap_9b": ("Small & Yuan figure 9 (b): (0,20,0,5,5,20), time over full overlap, by KB",
                   "ratio", True),
    "overlap_10a": ("Small & Yuan figure 10 (a): (20,20,20,0,0,0), time over full overlap, by KB",
                    "ratio", True),
    "overlap_10b": ("Small & Yuan figure 10 (b): (27,0,0,20,20,20), time over full overlap, by KB",
                    "ratio", True),
}
# Not a peer: Macadam as it would be with another setting.
VARIANTS = ("sender-initiated", "all", "serial", "credit", "ring")
# Full overlap: the computation of the slower side alone.
IDEAL_UNITS = {"figure_9a": 60, "figure_9b": 30, "figure_10a": 60, "figure_10b": 60}


def in_guest(command, seconds, *options):
    """The command that runs `command` in the virtual machine, for so long at most."""
    return [sys.executable, "-B", str(VM), "--timeout", str(seconds), *options, "--",
            *map(str, command)]


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


PROGRAMS = ("pingpong", "rate", "collective", "halo", "partitioned", "startup", "sessions", "dynamic",
            "progress", "onesided", "threads", "users", "crowded", "files")


def compile_with(compiler, folder, programs=PROGRAMS):
    """Builds the programs for a library; `compiler` is a command with its options."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in programs:
        target, files = folder / source, [SOURCES / f"{source}.cc", SOURCES / "bench.h"]
        newest = max(file.stat().st_mtime for file in files)
        if not target.exists() or target.stat().st_mtime < newest:
            subprocess.run([*compiler[:1], "-std=c++20", "-O2", "-pthread", files[0], "-o", target,
                            *compiler[1:]], check=True)
    return folder


class Pace:
    """At what pace the machine goes. The cores of a virtual one may be two threads of one core of its
    host now, and two cores a minute later: a cache line then takes three times as long from one to
    the other, and so do short messages. Or what else the host does slows down one of them, which is
    the first rank's where a library binds it there. Libraries are compared at one pace only."""

    SAME = 1.4  # times, of two looks at one pace
    EVEN = 1.2  # times, of the same work on both cores
    ATTEMPTS = 5

    def __init__(self, build):
        self.machine = build / "bench" / "machine"
        self.unsteady = 0  # starts of all libraries that found no one pace
        self.measured = self.uneven = 0  # ... that did; of these with a core slower than the other

    def ask_machine(self, *sizes):
        """What the machine itself needs: for a line from core to core, for the same work on each, and
        to copy so many bytes."""
        return subprocess.run([self.machine, *sizes], check=True, capture_output=True, text=True).stdout

    def look(self):
        return [float(line.split()[2]) for line in self.ask_machine().splitlines()]

    def is_still(self, began):
        """Whether it is still what look() gave then."""
        return all(max(pair) <= self.SAME * min(pair) for pair in zip(began, self.look()))

    def measure(self, results, all_libraries, measure):
        """measure(results, library) of all in turn, at one pace; again if that has changed meanwhile,
        and not at all if it does so again and again."""
        if len(all_libraries) == 1:  # nothing is compared
            return measure(results, *all_libraries)
        for _ in range(self.ATTEMPTS):
            here, began = Results(results.failures), self.look()
            for library in all_libraries:
                measure(here, library)
                if not self.is_still(began):
                    break
            else:
                _, *cores = began
                self.measured += 1
                self.uneven += max(cores) > self.EVEN * min(cores)
                return results.take(here)
        self.unsteady += 1
        return None


class Results:
    """values[figure, parameter][library]: one value a round, None where it failed."""

    def __init__(self, failures=None):
        self.values, self.failures, self.about = {}, {} if failures is None else failures, {}

    def take(self, other):
        for (figure, parameter), values in other.values.items():
            for library, its in values.items():
                for value in its:
                    self.add(figure, parameter, library, value)

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

    def failure_lines(self):
        return [f"{name} failed in {program} on {ranks} ranks: {error.splitlines()[0]}"
                for (name, program, ranks), error in self.failures.items()]

    def save(self, file, about):
        """Writes every single value; `about` says where they come from."""
        figures = [{"figure": figure, "parameter": parameter, "values": values}
                   for (figure, parameter), values in sorted(self.values.items())]
        failures = [[*run, error] for run, error in self.failures.items()]
        file.write_text(json.dumps({**about, "figures": figures, "failures": failures}, indent=1),
                        encoding="utf8")

    @staticmethod
    def load(file):
        """What save() wrote; the rest is in `about`."""
        results = Results()
        results.about = json.loads(file.read_text(encoding="utf8"))
        for row in results.about["figures"]:
            results.values[row["figure"], row["parameter"]] = row["values"]
        for name, program, ranks, error in results.about["failures"]:
            results.failures[name, program, ranks] = error
        return results

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


def measure_sessions(results, library, ranks):
    """Programs without a world. A figure is that of the slowest rank."""
    for words in (["first", "bare"], ["first", "world"], ["again"], ["beside"]):
        run = (library.name, " ".join(["sessions", *words]), ranks)
        if run in results.failures:
            continue
        if words[0] == "first":
            words = [*words, f"{time.clock_gettime(time.CLOCK_MONOTONIC) + SECONDS_TO_START:.6f}"]
        try:
            lines = [line.split() for line in library.run(ranks, "sessions", *words).splitlines()]
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            results.failures[run] = str(error)
            continue
        for figure in dict.fromkeys(name for name, _ in lines):
            results.add(figure, ranks, library.name,
                        max(float(value) for name, value in lines if name == figure))


def number(value, digits=3):
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 10 ** digits else f"{value:#.{digits}g}".rstrip(".")


def full_overlap(results, figure, parameter):
    """The reference of the progress benchmark."""
    ideal = IDEAL_UNITS[figure]
    ours = results.median(figure, parameter, "Macadam")
    return [("full overlap", ideal, ours / ideal if ours else None)]


def table(results, figure, references_of, digits=3):
    """One table in Markdown: a row a parameter, a column a library. `references_of(results, figure,
    parameter)`: (name, value, ratio of ours to it) of each thing that the machine itself needs."""
    title, unit, less_is_better = FIGURES[figure]
    rows = sorted(key for key, values in results.values.items()
                  if key[0] == figure and any(any(row) for row in values.values()))
    if not rows:
        return ""
    names = []
    for row in rows:
        names += [name for name in results.values[row] if name not in names]
    peers = [name for name in names if name not in ("Macadam", *VARIANTS)]
    header = ["", *names]
    if peers:
        header.append("Macadam : best peer")
    if references_of(results, figure, rows[0][1]):
        header += ["machine", "Macadam : machine"]
    lines = [f"### {title} ({unit}, {'less' if less_is_better else 'more'} is better)", "",
             "| " + " | ".join(header) + " |", "|" + " ---: |" * len(header)]
    for _, parameter in rows:
        cells = [str(parameter)]
        cells += [number(results.median(figure, parameter, name), digits) for name in names]
        if peers:
            best = [(results.median(figure, parameter, peer), peer) for peer in peers]
            best = [pair for pair in best if pair[0] is not None]
            peer = (min if less_is_better else max)(best)[1] if best else None
            cells.append(number(results.ratio(figure, parameter, "Macadam", figure, parameter,
                                              peer)))
        if references := references_of(results, figure, parameter):
            cells += [", ".join(f"{name} {number(value, digits)}" for name, value, _ in references),
                      ", ".join(number(ratio) for _, _, ratio in references)]
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
