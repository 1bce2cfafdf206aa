#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures Macadam over libfabric's TCP beside MPICH, Open MPI, Intel MPI and a plain TCP ping-pong.

    sudo python3 bench/ofi/run.py --build build/release --markdown ofi.md

Two machines made of namespaces with a virtual Ethernet between them (tests/cluster), ranks started by
each library's own mpiexec over ssh. All take turns in every round; a value is the median over the
rounds, a ratio the median of the ratios within a round. Exit code 77 where there is no such cluster."""
import argparse
import os
import pathlib
import platform
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from harness import FIGURES, Library, Results, full_overlap, IDEAL_UNITS, processor, table, versions  # noqa: E402
from peers import add_options, libraries  # noqa: E402

CLUSTER = HERE.parents[1] / "tests" / "cluster" / "run.py"
HOSTS = ("node0", "node1")
SERVER, PORT = "10.99.0.2", 5201  # tests/cluster/settings.py: node1
SIZES = ("8", "4096", "65536", "1048576")
ALLTOALL = ("8", "1024", "16384")
REFERENCE = "plain TCP"


class OnTwoMachines(Library):
    """A library whose ranks are half on either machine. `hosts(ranks of each)` are the launcher's words."""

    def __init__(self, library, hosts, environment=()):
        super().__init__(library.name, library.launcher, library.programs,
                         {**library.environment, **dict(environment)})
        self.hosts, self.words = hosts, list(library.launcher)

    def run(self, ranks, program, *arguments):
        self.launcher = [*self.words, *self.hosts(max(ranks // 2, 1))]
        return super().run(ranks, program, *arguments)


def with_slots(option):
    return lambda each: [option, ",".join(f"{host}:{each}" for host in HOSTS)]


def hydra(each):
    return ["-launcher", "ssh", "-iface", "eth0", "-hosts", ",".join(HOSTS), "-ppn", str(each)]


# What each library is told: where, and which network. Open MPI chooses by itself.
WAYS = {
    "Macadam": (with_slots("-host"), {"MACADAM_NETWORK": "automatic"}),
    "MPICH": (hydra, {"FI_PROVIDER": "tcp"}),
    "Open MPI": (with_slots("--host"), {"OMPI_ALLOW_RUN_AS_ROOT": "1",
                                        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}),
    "Intel MPI": (hydra, {"I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp", "I_MPI_HYDRA_IFACE": "eth0"}),
}


def plain_tcp(results, build):
    program = build / "bench" / "plain_tcp"
    server = subprocess.Popen(["ssh", HOSTS[1], program, "listen", SERVER, str(PORT), *SIZES])
    try:
        done = subprocess.run([program, "connect", SERVER, str(PORT), *SIZES], check=True,
                              capture_output=True, text=True, timeout=60)
        results.add_lines(REFERENCE, done.stdout)
    finally:
        server.kill()
        server.wait()


def measure_round(results, all_libraries, arguments):
    if "pingpong" in arguments.only:
        plain_tcp(results, arguments.build)
    for library in all_libraries:
        if "pingpong" in arguments.only:
            results.measure(library, 2, "pingpong", *SIZES)
        if "rate" in arguments.only:
            results.measure(library, 2, "rate", *SIZES)
        if "progress" in arguments.only:
            results.measure(library, 2, "progress", str(arguments.unit))
        if "alltoall" in arguments.only:
            results.measure(library, 8, "collective", *ALLTOALL)


def references(results, figure, parameter):
    if figure in IDEAL_UNITS:
        return full_overlap(results, figure, parameter)
    if figure != "half_round_trip_us":
        return []
    return [(REFERENCE, results.median(figure, parameter, REFERENCE),
             results.ratio(figure, parameter, "Macadam", figure, parameter, REFERENCE))]


def without_reference(results):
    """The plain ping-pong is no peer: it has a column of its own."""
    for values in results.values.values():
        yield values.pop(REFERENCE, None), values


def report(results, all_libraries, arguments):
    plain = {key: values[REFERENCE] for key, values in results.values.items() if REFERENCE in values}

    def beside(_, figure, parameter):
        full = Results()
        full.values = {key: {**values, **({REFERENCE: plain[key]} if key in plain else {})}
                       for key, values in results.values.items()}
        return references(full, figure, parameter)

    for _ in without_reference(results):
        pass
    text = [f"{processor()}, {os.cpu_count()} cores, Linux {platform.release()}; two namespaces, a virtual "
            f"Ethernet; medians of {arguments.rounds} rounds in which all take turns.", ""]
    text += [f"- {name}: {version}" for name, version in versions(results, all_libraries).items()]
    text += ["", *filter(None, (table(results, figure, beside) for figure in FIGURES))]
    text += results.failure_lines()
    text = "\n".join(text).rstrip() + "\n"
    print(text, end="")
    if arguments.markdown:
        arguments.markdown.write_text(text, encoding="utf8")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    everything = "pingpong,rate,progress,alltoall"
    add_options(parser, everything)
    parser.add_argument("--cluster", type=pathlib.Path, help="where the cluster's packages are kept")
    parser.add_argument("--libfabric", type=pathlib.Path, metavar="FOLDER",
                        help="where Macadam finds another libfabric.so.1 than the system's")
    parser.add_argument("--timeout", type=int, default=1200, metavar="SECONDS")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    return arguments


def main():
    arguments = parse()
    # Outside: peers are fetched, for which the machines have no network.
    found = libraries(arguments.build, arguments.peers, arguments.venvs)
    if not arguments.inside:
        folder = ["--folder", arguments.cluster] if arguments.cluster else []
        os.execv(sys.executable, [str(word) for word in (
            sys.executable, "-B", CLUSTER, "--nodes", len(HOSTS), "--timeout", arguments.timeout, *folder, "--",
            sys.executable, "-B", __file__, "--inside", *sys.argv[1:])])
    if arguments.libfabric:
        WAYS["Macadam"][1]["LD_LIBRARY_PATH"] = str(arguments.libfabric.resolve())
    all_libraries = [OnTwoMachines(library, *WAYS[library.name]) for library in found]
    results = Results()
    for turn in range(arguments.rounds):
        print(f"bench: round {turn + 1} of {arguments.rounds}", file=sys.stderr)
        measure_round(results, all_libraries, arguments)
    report(results, all_libraries, arguments)
    sys.exit(1 if any(name == "Macadam" for name, _, _ in results.failures) else 0)


if __name__ == "__main__":
    main()
