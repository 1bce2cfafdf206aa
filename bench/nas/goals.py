#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The three goals set for the papers' mechanisms, each with its numbers and whether it holds (docs/nas.md):

1. customized protocols: no program more than 2 % slower than with sender-initiated ones, in total; and less
   time in MPI where Table 3 of Small & Yuan has less (BT, SP, CG);
2. a shared receive queue: within 5 % of rings, never behind credits;
3. connections on demand: as fast as static ones once they are there, to 2 %.

    python3 -B bench/nas/goals.py --build build/release --json goals.json   # measures, writes the numbers
    python3 -B bench/nas/goals.py --from goals.json                         # judges them again

Programs run over soft-RoCE in the virtual machine, small, and in the simulator, as large as the papers'; LU's
sweeps, barriers and sums in the simulator alone. What does not hold is told and is no error."""
import argparse
import json
import pathlib
import sys

import jobs
import simulator
import soft_roce

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "sim" / "figures"))
import measure  # noqa: E402
import runs  # noqa: E402

PROGRAMS = ("protocols", "receives", "connections")  # experiments of soft_roce.py and of simulator.py
FASTER = ("bt", "sp", "cg")  # in Table 3
RANKS = 64  # the most in the simulator's patterns
SLOWER, BEHIND_RING, AS_FAST = 1.02, 1.05, 1.02  # the bounds; none is a number of a paper
PARTS = ("soft-roce", "simulated", "patterns")  # of what is measured


def row(what, ratio, most):
    return {"what": what, "ratio": ratio, "most": most, "holds": ratio <= most}


def programs_of(data, experiment):
    """(name, kernel, {setting: numbers}) of each program, over soft-RoCE and in the simulator."""
    for kernel, by in data[experiment].items():
        yield f"{kernel.upper()}, soft-RoCE", kernel, by
    for one in data["simulated"][experiment]:
        yield f"{one['kernel'].upper()}, {one['preset']}, {one['ranks']} ranks", one["kernel"], one["by"]


def customized(data):
    """Against the better of the two sender-initiated rendezvous."""
    for name, kernel, by in programs_of(data, "protocols"):
        ours = by["customized"]
        others = [numbers for setting, numbers in by.items() if setting != "customized"]
        least = {time: min(other[time] for other in others) for time in ("seconds", "mpi_seconds")}
        yield row(f"{name}: total", ours["seconds"] / least["seconds"], SLOWER)
        if kernel in FASTER:
            yield row(f"{name}: in MPI", ours["mpi_seconds"] / least["mpi_seconds"], 1)


def received(data):
    """A shared queue against rings and credits: programs in total, a plane of the wavefront. `mixed` is a
    shared queue itself, and no rival."""
    cases = {name: {setting: numbers["seconds"] for setting, numbers in by.items()}
             for name, _, by in programs_of(data, "receives")}
    for plane in data["wavefront"]:
        cases["wavefront, {ranks} ranks, connected {connections}, {compute_us} us".format(**plane)] = {
            name: plane[name] for name in measure.WAVEFRONT}
    for what, by in cases.items():
        for name, took in by.items():
            if name not in ("shared", "mixed"):
                yield row(f"{what}: to {name}", by["shared"] / took, BEHIND_RING if "ring" in name else 1)


def on_demand(data):
    for name, _, by in programs_of(data, "connections"):
        yield row(name, by["on demand"]["seconds"] / by["all"]["seconds"], AS_FAST)
    for collectives, called, field in (("barriers", "the paper's exchanges", "exchanges_us"),
                                       ("barriers", "barrier", "barrier_us"),
                                       ("allreduces", "allreduce", "allreduce_us")):
        took = {(one["preset"], one["ranks"], one["connections"]): one[field] for one in data[collectives]}
        for preset, ranks, mode in took:
            if mode == "on-demand":
                yield row(f"{called}, {preset}, {ranks} ranks",
                          took[preset, ranks, mode] / took[preset, ranks, "all"], AS_FAST)


GOALS = {"Customized against sender-initiated": customized, "A shared queue against rings and credits": received,
         "On demand against static": on_demand}


def judged(data):
    """{goal: its rows}."""
    return {goal: list(rows(data)) for goal, rows in GOALS.items()}


def text(goals):
    lines = []
    for goal, rows in goals.items():
        failed = sum(not one["holds"] for one in rows)
        verdict = f"holds: {len(rows)} rows" if not failed else f"does not hold: {failed} of {len(rows)} rows"
        lines += [f"**{goal}**: {verdict}", "", "| | ratio | at most | |", "|---|---:|---:|---|"]
        lines += [f"| {one['what']} | {one['ratio']:.3f} | {one['most']:.2f} | "
                  f"{'holds' if one['holds'] else '**does not hold**'} |" for one in rows]
        lines.append("")
    return "\n".join(lines)


def measured(build, parts, times):
    """What `parts` of the data are, each measured."""
    data = {}
    if "soft-roce" in parts:
        for experiment in PROGRAMS:
            print(f"goals: {experiment}, over soft-RoCE", file=sys.stderr, flush=True)
            data[experiment] = soft_roce.measure(build, experiment, jobs.KERNELS, soft_roce.ROUNDS)
    if "simulated" in parts:
        data["simulated"] = {experiment: simulator.measured(build, experiment, jobs.KERNELS, times)
                             for experiment in PROGRAMS}
    if "patterns" in parts:
        programs = runs.Programs(build, 300)
        data.update(wavefront=measure.wavefront(programs, RANKS)["rows"], barriers=measure.barriers(programs, RANKS),
                    allreduces=measure.allreduces(programs, RANKS))
    return data


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--json", type=pathlib.Path, help="write every number")
    parser.add_argument("--from", dest="source", type=pathlib.Path, help="judge the numbers of this file, run nothing")
    parser.add_argument("--parts", default=",".join(PARTS),
                        help="measure some of %(default)s; the rest is what the file of --json has")
    parser.add_argument("--times", type=pathlib.Path, help="folder of compute times, to repeat a run to the digit")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    kept = arguments.source or arguments.json
    data = json.loads(kept.read_text()) if kept and kept.exists() else {}
    try:
        if not arguments.source:
            data.update(measured(build, arguments.parts.split(","), arguments.times or build / "bench/nas/times"))
    except soft_roce.Unavailable as why:
        print(why)
        sys.exit(soft_roce.SKIPPED)
    except (runs.RunFailed, simulator.Failed) as failure:
        sys.exit(f"goals: {failure}")
    if arguments.json:
        runs.save(arguments.json, data)
    print(text(judged(data)))


if __name__ == "__main__":
    main()
