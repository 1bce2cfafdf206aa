# SPDX-License-Identifier: BSD-3-Clause
"""Whole programs in the simulator, on the papers' networks and numbers of ranks. What a program computes
takes time: measured once on this machine, times the preset's factor, written to a file, and repeated from it
by every run (docs/simulator.md), so that settings are compared on the same computation."""
import json
import pathlib
import subprocess
import sys

import jobs

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "sim" / "figures"))
import measure  # noqa: E402
from runs import environment_with  # noqa: E402
from runs import save  # noqa: E402, F401 (for those who import this)

SECONDS = 900  # for one run
STACK = 4096  # KiB of a rank
PRESET = {"protocols": "ddr-2009", "receives": "infinihost-2006", "cLAN": "clan-2002",
          "Berkeley VIA": "berkeley-via-2002"}
# Class A is the papers'; a few of its iterations, which are all alike. Our FT has no class A, and our BT and SP
# cannot divide its 64 points among 9 ranks.
SIZES = {"bt": ("A", "iterations=4"), "sp": ("A", "iterations=8"), "cg": ("A", "iterations=3"),
         "lu": ("A", "iterations=8"), "mg": ("A",), "ft": ("W",), "is": ("A", "iterations=4")}
# The adapters of 2002 have no shared queue; the libraries of then did not sleep.
OF_2002 = {"RDMA_RECEIVE": "credit", "SPIN": "10000"}
THRESHOLDS = {name.removeprefix("MACADAM_"): value for name, value in measure.THRESHOLDS.items()}
CUSTOMIZED = {"customized": THRESHOLDS, "sender, write": {**THRESHOLDS, "PROTOCOLS": "sender"},
              "sender, read": {**THRESHOLDS, "PROTOCOLS": "sender", "RENDEZVOUS": "read"}}
RECEIVE = {name: {key.removeprefix("MACADAM_"): value for key, value in settings.items()}
           for name, settings in measure.WAVEFRONT.items()}
CONNECTIONS = {"on demand": OF_2002, "all": {**OF_2002, "RDMA_CONNECTIONS": "all"}}
# experiment: [(kernel, ranks, preset)], settings
EXPERIMENTS = {
    "protocols": ([(kernel, ranks, PRESET["protocols"]) for kernel, sizes in
                   (("bt", (16,)), ("sp", (16,)), ("cg", (8, 16))) for ranks in sizes], CUSTOMIZED),
    "receives": ([(kernel, 16, PRESET["receives"]) for kernel in ("bt", "lu", "sp", "cg", "ft", "is", "mg")],
                 {name: {"RDMA_CONNECTIONS": "all", **settings} for name, settings in RECEIVE.items()}),
    "connections": ([*((kernel, 16, PRESET["cLAN"]) for kernel in ("cg", "mg", "is", "sp", "bt")),
                     *((kernel, ranks, PRESET["Berkeley VIA"]) for kernel, ranks in (
                         ("is", 8), ("cg", 8), ("cg", 4), ("is", 4), ("bt", 4), ("sp", 4)))], CONNECTIONS),
}
# Class A. Small & Yuan, Table 3: the improvement in communication time, per cent. Wu et al., Table 3: on
# demand over static polling. Sur et al., section 5.4, in words: credits over a shared queue.
PAPER = {
    "protocols": {("bt", 16): 126, ("cg", 8): 17, ("cg", 16): 0, ("sp", 16): 50},
    "receives": {"lu": 1.20, "sp": 1.05},
    "connections": {
        ("clan-2002", "cg", 16): 4.56 / 4.47, ("clan-2002", "mg", 16): 4.57 / 4.70,
        ("clan-2002", "is", 16): 1.51 / 1.50, ("clan-2002", "sp", 16): 100.61 / 100.47,
        ("clan-2002", "bt", 16): 183.46 / 183.04, ("berkeley-via-2002", "is", 8): 1.98 / 1.99,
        ("berkeley-via-2002", "cg", 8): 6.36 / 6.44, ("berkeley-via-2002", "cg", 4): 10.76 / 10.96,
        ("berkeley-via-2002", "is", 4): 3.70 / 3.69, ("berkeley-via-2002", "bt", 4): 552.13 / 552.10,
        ("berkeley-via-2002", "sp", 4): 419.45 / 420.14},
}


class Failed(Exception):
    """A run that did not end, or not well."""


class Simulator:
    """A module on `ranks` of a preset, with the times of `times`/`name`.`ranks`.times; they are measured if
    there is no such file."""

    def __init__(self, build, module, ranks, preset, times, name, arguments, seconds=SECONDS):
        self.command = [build / "bin" / "macadam-simulate", "-q", "-n", ranks, "-p", preset, "--stack", STACK]
        self.module, self.arguments, self.seconds = module, arguments, seconds
        self.file = times / f"{name}.{ranks}.times"
        if not self.file.exists():
            times.mkdir(parents=True, exist_ok=True)
            begun = self.file.with_suffix(".begun")  # a run that fails leaves no times behind
            self._run(["--measure", begun], {"RDMA_RECEIVE": "credit"})
            begun.rename(self.file)

    def output(self, settings):
        """What a run prints that repeats the times; `settings`: those of MACADAM_..., without that."""
        return self._run(["--repeat", self.file], settings)

    def _run(self, options, settings):
        command = list(map(str, [*self.command, *options, self.module, *self.arguments]))
        variables = {"MACADAM_REPORT": "1", **{f"MACADAM_{name}": str(value) for name, value in settings.items()}}
        shown = " ".join([*(f"{name}={value}" for name, value in variables.items()), *command])
        try:
            done = subprocess.run(command, env=environment_with(variables), capture_output=True, text=True,
                                  timeout=self.seconds, check=False)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"{shown}: not done after {self.seconds} s") from late
        if done.returncode != 0:
            raise Failed(f"{shown}: ended with {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
        return done.stdout + done.stderr


def paper(experiment, kernel, ranks, preset):
    """The paper's number for a row, None where it has none."""
    key = {"protocols": (kernel, ranks), "receives": kernel}.get(experiment, (preset, kernel, ranks))
    return PAPER[experiment].get(key)


def measured(build, experiment, kernels, times):
    """[{kernel, ranks, preset, by: {setting: {name: number}}, paper}]"""
    programs, settings = EXPERIMENTS[experiment]
    rows = []
    for kernel, ranks, preset in programs:
        if kernel not in kernels:
            continue
        run = Simulator(build, build / "bench" / "nas" / f"{kernel}.so", ranks, preset, times, kernel, SIZES[kernel])
        by = {}
        for name, values in settings.items():
            output = run.output(values)
            line = jobs.line_in(output)
            if not line or line["verified"] != "yes":
                raise Failed(f"nas: {kernel}, {name}: it did not come to a verified end\n{output[-2000:]}")
            by[name] = {**{key: float(line[key]) for key in ("seconds", "mpi_seconds")}, **jobs.counters_in(output)}
        rows.append({"kernel": kernel, "ranks": ranks, "preset": preset, "by": by,
                     "paper": paper(experiment, kernel, ranks, preset)})
        print(f"nas: {experiment}: {kernel}, {ranks} ranks on {preset}", file=sys.stderr, flush=True)
    return rows


def protocols_table(rows):
    """As Table 3 of Small & Yuan: how much more sender-initiated takes, and who was early."""
    lines = ["| class A, ranks | total, ms | in MPI, ms | write: total | write: in MPI | theirs, in MPI | "
             "read: total | read: in MPI | sender early | receiver early | both |", "|---" + "|---:" * 10 + "|"]
    for row in rows:
        ours = row["by"]["customized"]
        more = {(name, what): f"{(row['by'][f'sender, {name}'][what] / ours[what] - 1) * 100:+.1f} %"
                for name in ("write", "read") for what in ("seconds", "mpi_seconds")}
        cells = [f"{row['kernel'].upper()}, {row['ranks']}", jobs.number(1e3 * ours["seconds"]),
                 jobs.number(1e3 * ours["mpi_seconds"]), more["write", "seconds"], more["write", "mpi_seconds"],
                 f"+{row['paper']} %", more["read", "seconds"], more["read", "mpi_seconds"],
                 *(str(ours.get(name, 0)) for name in ("sender_early", "receiver_early", "both"))]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def receives_table(rows):
    """As Figures 11 and 12 of Sur et al.: total time over that with a shared queue."""
    others = [name for name in RECEIVE if name != "shared"]
    lines = ["| 16 ranks | shared: total, ms | in MPI, ms | " + " | ".join(others) + " | theirs, credit |",
             "|---" + "|---:" * (3 + len(others)) + "|"]
    for row in rows:
        ours = row["by"]["shared"]
        cells = [f"{row['kernel'].upper()}, class {SIZES[row['kernel']][0]}", jobs.number(1e3 * ours["seconds"]),
                 jobs.number(1e3 * ours["mpi_seconds"])]
        cells += [f"{row['by'][name]['seconds'] / ours['seconds']:.4f}" for name in others]
        lines.append("| " + " | ".join([*cells, f"{row['paper']:.2f}" if row["paper"] else "drawn only"]) + " |")
    return lines


def connections_table(rows):
    """As Figures 6 and 7 and Table 3 of Wu et al."""
    lines = ["| network | kernel, ranks | partners on demand | all: total, ms | in MPI, ms | on demand: all | theirs |",
             "|---|---" + "|---:" * 5 + "|"]
    for row in rows:
        ours, other = row["by"]["on demand"], row["by"]["all"]
        cells = [f"`{row['preset']}`", f"{row['kernel'].upper()}, {row['ranks']}",
                 f"{ours['connections'] / row['ranks']:.2f}", jobs.number(1e3 * other["seconds"]),
                 jobs.number(1e3 * other["mpi_seconds"]), f"{ours['seconds'] / other['seconds']:.4f}",
                 f"{row['paper']:.3f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


TABLES = {"protocols": protocols_table, "receives": receives_table, "connections": connections_table}


def over_first(title, results, what, unit):
    """A table of {row: {setting: numbers}}: `what` of the first setting, and the others' over it."""
    first, *others = next(iter(results.values()))
    lines = [f"{title}:", "", f"| | {first}, {unit} | " + " | ".join(others) + " |",
             "|---" + "|---:" * (1 + len(others)) + "|"]
    for row, by in results.items():
        cells = [str(row), jobs.number(by[first][what]),
                 *(f"{by[name][what] / by[first][what]:.4f}" for name in others)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def run(build, experiments, kernels, times, file):
    """Measures, prints, and writes every number to `file`; keeps what is there of other experiments."""
    data = json.loads(file.read_text(encoding="utf8")) if file and file.exists() else {}
    for experiment in experiments:
        data[experiment] = measured(build, experiment, kernels, times)
        lines = TABLES[experiment](data[experiment])
        print("\n".join([f"{experiment.capitalize()}, in the simulator:", "", *lines, ""]), flush=True)
        if file:
            save(file, data)
