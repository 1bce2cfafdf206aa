# SPDX-License-Identifier: BSD-3-Clause
"""What is run for each figure. A function takes the programs and the largest number of ranks, and
gives the figure's data; docs/figures.md tells what they mean."""
import statistics
import sys

RECEIVE = ["ring", "credit", "shared"]


def up_to(largest, numbers):
    return [number for number in numbers if number <= largest]


def say(text):
    print(text, file=sys.stderr, flush=True)


def memory(programs, largest):
    """Sur et al., Figure 9, and the model against runs."""
    preset = "ndr"
    ranks = [2 ** i for i in range(4, 14)] + [16000, 32768, 65536, 131072]
    runs = []
    for receive in RECEIVE:
        for kind, pattern, mode, sizes in (
                ("all connected to all", "start", "all", [16, 64, 256, 512]),
                ("one connected to all", "star", "on-demand", [16, 64, 256, 1024, 4096])):
            for size in up_to(largest, sizes):
                held = programs.simulate(size, pattern, preset=preset, settings={
                    "MACADAM_RDMA_CONNECTIONS": mode, "MACADAM_RDMA_RECEIVE": receive})
                model = programs.model([size], [receive], preset)["bytes"][receive][0]
                most = held["transport_bytes"]["most"]
                runs.append({"receive": receive, "kind": kind, "ranks": size, "held_bytes": most,
                             "connections": held["connections"]["most"], "model_bytes": model,
                             "difference_percent": 100 * (model - most) / most, "run": held["run"]})
                say(f"memory: {receive}, {kind}, {size} ranks: {most:.0f} bytes held, "
                    f"model {runs[-1]['difference_percent']:+.3f} %")
    return {"preset": preset, "model": programs.model(ranks, RECEIVE, preset), "runs": runs,
            "idle": idle_ranks(programs, preset, up_to(largest, [16, 256, 1024, 4096]))}


def idle_ranks(programs, preset, sizes):
    """Bytes for a rank that is known and has never been talked to: what a process holds more in a
    job of more ranks when nobody has said anything."""
    held = []
    for size in sizes:
        run = programs.simulate(size, "start", preset=preset)
        held.append({"ranks": size, "bytes": run["transport_bytes"]["mean"]
                     + run["engine_bytes"]["mean"]})
    for less, more in zip(held, held[1:]):
        more["bytes_per_idle_rank"] = ((more["bytes"] - less["bytes"])
                                       / (more["ranks"] - less["ranks"]))
        say(f"memory: {more['bytes_per_idle_rank']:.2f} bytes per idle rank at {more['ranks']}")
    return held


# Program of Table 2: pattern, parameters, ranks, and how it is run if not as usual. Where everyone
# talks to everyone a run of n ranks makes n * (n - 1) / 2 connections: IS at 4,096 ranks is 18 GB and
# 20 minutes of a processor, with the least that a connection can have. Blocks of alltoall that are
# longer than 256 bytes go the same way, but those of 4,096 ranks are 17 GB themselves.
MANY = [16, 32, 1024, 4096]
SQUARE = [16, 36, 1024, 4096]
FEW = [16, 32, 1024]
LEAN = {"stack_kb": 32, "settings": {
    "MACADAM_RDMA_SEND_DEPTH": "4", "MACADAM_RDMA_SHARED": "32", "MACADAM_RDMA_BUFFERS": "64",
    "MACADAM_PROTOCOLS": "sender", "MACADAM_TAGS_PER_PEER": "0"}}
# Table 2 of the paper: VIs per process on demand, by ranks. Its alltoall says no size.
PAPER_2 = {
    "Ring": {16: 2, 32: 2}, "Barrier": {16: 4, 32: 5}, "Allreduce": {16: 4, 32: 5},
    "Alltoall, 512 bytes": {16: 15, 32: 31}, "Allgather": {16: 5, 32: 6}, "Bcast": {16: 4, 32: 5},
    "CG": {16: 4.75, 32: 5.78}, "MG": {16: 15, 32: 15}, "IS": {16: 15, 32: 31},
    "SP": {16: 8, 36: 9.83}, "BT": {16: 8, 36: 9.83}, "EP": {16: 4, 32: 4.75},
}
TABLE_2 = {
    "Ring": ("ring", [], MANY),
    "Barrier": ("barrier", [], MANY),
    "Allreduce": ("allreduce", [], MANY),
    "Alltoall, 512 bytes": ("alltoall", ["bytes=512"], FEW),
    "Alltoall, 64 bytes": ("alltoall", [], MANY),
    "Allgather": ("allgather", [], MANY),
    "Bcast": ("bcast", [], MANY),
    "CG": ("cg", [], MANY),
    "MG": ("mg", [], MANY),
    "IS": ("is", ["bytes=1"], MANY, LEAN),
    "SP": ("sp", [], SQUARE),
    "BT": ("bt", [], SQUARE),
    "EP": ("ep", [], MANY),
}


def connections(programs, largest):
    """Wu et al., Table 2 and Figures 4 and 5."""
    return {"rows": connections_of_programs(programs, largest),
            "barriers": barriers(programs, largest), "allreduces": allreduces(programs, largest)}


def connections_of_programs(programs, largest):
    """Table 2."""
    rows = []
    for name, (pattern, parameters, sizes, *options) in TABLE_2.items():
        for size in up_to(largest, sizes):
            result = programs.simulate(size, pattern, *parameters, **dict(*options))
            rows.append({"program": name, "ranks": size, "static": size - 1,
                         "on_demand": result["connections"]["mean"],
                         "most": result["connections"]["most"],
                         "paper": PAPER_2.get(name, {}).get(size), "run": result["run"]})
            say(f"connections: {name}, {size} ranks: {rows[-1]['on_demand']:.2f}")
    return rows


# What Figure 4 (b) says in words: us on 8 ranks of Berkeley VIA. Its other points are only drawn.
PAPER_4 = {("berkeley-via-2002", "on-demand", 8): 161, ("berkeley-via-2002", "all", 8): 196}


def barriers(programs, largest):
    """Figure 4: by MPI_Barrier, which knows who is connected, and by the exchanges that the paper's library
    always does."""
    return of_collectives(programs, largest, ("barrier", "exchanges"), PAPER_4)


def allreduces(programs, largest):
    """Figure 5, a sum of 8 bytes; what the paper has is only drawn."""
    return of_collectives(programs, largest, ("allreduce",), {})


def of_collectives(programs, largest, patterns, paper):
    """The mean time of 1,000 calls after as many that are not measured. Receives are per connection where the
    adapter has no shared queue, as those of 2002."""
    rows = []
    for preset, sizes in (("clan-2002", range(2, 33, 2)), ("berkeley-via-2002", range(2, 9)),
                          ("ndr", [*range(2, 17), 24, 32, 64])):
        receive = {} if preset == "ndr" else {"MACADAM_RDMA_RECEIVE": "credit"}
        for mode in ("all", "on-demand"):
            for size in up_to(largest, sizes):
                took = {}
                for pattern in patterns:
                    result = programs.simulate(size, pattern, "iterations=1000", preset=preset,
                                               settings={"MACADAM_RDMA_CONNECTIONS": mode, **receive, **POLLING})
                    took[f"{pattern}_us"] = result["rows"][0]["time_us"]
                    took[f"{pattern}_partners"] = result["connections"]["mean"]
                rows.append({"preset": preset, "connections": mode, "ranks": size, **took,
                             "paper_us": paper.get((preset, mode, size))})
        say(f"connections: {', '.join(patterns)} on {preset}")
    return rows


def startup(programs, largest):
    """Wu et al., Figure 8: mean virtual time in MPI_Init. Receives are per connection as in theirs:
    the adapters of 2002 have no shared queue."""
    rows = []
    for preset, sizes in (("clan-2002", [2, 4, 8, 12, 16, 20, 24, 28, 32]),
                          ("berkeley-via-2002", [2, 3, 4, 5, 6, 7, 8]),
                          ("ndr", [2, 8, 32, 128])):
        for mode in ("serial", "all", "on-demand"):
            for size in up_to(largest, sizes):
                result = programs.simulate(size, "start", preset=preset,
                                           settings={"MACADAM_RDMA_CONNECTIONS": mode,
                                                     "MACADAM_RDMA_RECEIVE": "credit"})
                rows.append({"preset": preset, "connections": mode, "ranks": size,
                             "init_us": result["init_us"]["mean"]})
    return {"rows": rows}


# Planes of LU's sweeps, so many that what is registered at the start does not show. Sur et al.'s nodes
# have 16 ranks; where all are connected, as in their library, and where those are that talk.
def wavefront(programs, largest, iterations=40):
    """Sur et al., Figure 11, as far as receiving goes: the sweeps of LU by receive mode."""
    rows = []
    for size in up_to(largest, [16, 64]):
        for mode in ("on-demand", "all"):
            for compute in (0, 5, 20):
                row = {"ranks": size, "connections": mode, "compute_us": compute}
                for name, settings in WAVEFRONT.items():
                    result = programs.simulate(
                        size, "wavefront", f"compute_us={compute}", f"iterations={iterations}",
                        preset="infinihost-2006",
                        settings={"MACADAM_RDMA_CONNECTIONS": mode, **settings})
                    row[name] = result["rows"][0]["plane_us"]
                rows.append(row)
                say(f"wavefront: {row}")
    return {"preset": "infinihost-2006", "rows": rows}


WAVEFRONT = {"shared": {}, "ring": {"MACADAM_RDMA_RECEIVE": "ring"}, "mixed": {"MACADAM_RDMA_RECEIVE": "mixed"},
             **{f"credit, {window}": {"MACADAM_RDMA_RECEIVE": "credit",
                                      "MACADAM_RDMA_WINDOW": str(window)} for window in (10, 32)}}

# Of the burst pattern: in MPI_Waitall; by how much the progress thread lengthens the computation; the
# receiver's whole time, computation and Waitall; the sender's.
BURST_TIMES = ["waitall_us", "taken_us", "total_us", "sender_us"]
BURST_LATER = range(0, 640, 80)  # us


def burst(programs, _):
    """Sur et al., Figure 10. Runs of each length, of two bursts: what the first has taken of the pool
    stays registered, so the second finds it easier. A sender that is refused tries again after 640 us, so
    the end of the computation comes at different times between two tries, and means are taken."""
    bursts = [50, 100, 150, 200, 250, 300, 400, 500, 600, 700, 800, 900, 1000]
    rows = []
    for watermark in (300, 0):
        for messages in bursts:
            results = [programs.simulate(2, "burst", f"bursts={messages}:{messages}", f"compute_us={10000 + later}",
                                         preset="infinihost-2006",
                                         settings={"MACADAM_RDMA_WATERMARK": str(watermark)})["rows"]
                       for later in BURST_LATER]
            for which, of_all in zip(("first", "second"), zip(*results), strict=True):
                mean = {name: statistics.mean(row[name] for row in of_all) for name in BURST_TIMES}
                mean["total_us"] -= statistics.mean(BURST_LATER)
                rows.append({"watermark": watermark, "messages": messages, "burst": which, **mean})
        say(f"burst: watermark {watermark}, {bursts[-1]} messages: {rows[-1]}")
    return {"preset": "infinihost-2006", "rows": rows}


# Small & Yuan, section 5: thresholds, and the rendezvous for a sender that is early.
THRESHOLDS = {"MACADAM_RDMA_EAGER": "12K", "MACADAM_RDMA_HYBRID": "40K",
              "MACADAM_RENDEZVOUS": "write"}
KB = 1 << 10


def protocols(programs, _):
    """Small & Yuan, Figures 7, 9 and 10."""
    figures = {}
    for which in ("customized", "sender"):
        settings = {**THRESHOLDS, "MACADAM_PROTOCOLS": which}

        def run(figure, pattern, field, sizes, *parameters, settings=settings, which=which):
            result = programs.simulate(2, pattern, "bytes=" + ":".join(map(str, sizes)),
                                       *parameters, preset="ddr-2009", settings=settings)
            figures.setdefault(figure, {}).setdefault(which, []).extend(
                row[field] for row in result["rows"])

        run("7", "pingpong", "round_trip_us", [kb * KB for kb in (16, 32, 64, 128, 256)])
        for late in (10, 20, 30, 40, 50):
            run("9a", "progress", "iteration_us", [30 * KB], f"comp=0:0:60:{late}:0:0")
        run("9b", "progress", "iteration_us", [kb * KB for kb in (16, 20, 24, 28, 32, 36, 40)],
            "comp=0:20:0:5:5:20")
        large = [kb * KB for kb in (100, 200, 300, 400, 500, 600, 700, 800)]
        run("10a", "progress", "iteration_us", large, "comp=20:20:20:0:0:0")
        run("10b", "progress", "iteration_us", large, "comp=27:0:0:20:20:20")
    for figure, x in (("7", [16, 32, 64, 128, 256]), ("9a", [10, 20, 30, 40, 50]),
                      ("9b", [16, 20, 24, 28, 32, 36, 40]),
                      ("10a", [100, 200, 300, 400, 500, 600, 700, 800]),
                      ("10b", [100, 200, 300, 400, 500, 600, 700, 800])):
        assert all(len(figures[figure][which]) == len(x) for which in ("customized", "sender"))
        figures[figure]["x"] = x
    return {"preset": "ddr-2009", "figures": figures}


def scale(programs, largest):
    """Start-up, one halo exchange and one allreduce of very many ranks in one process."""
    rows = []
    for size in up_to(largest, [256, 1024, 4096, 16384]):
        result = programs.simulate(size, "halo")
        halo, allreduce = (row["time_us"] for row in result["rows"])
        rows.append({"ranks": size, "init_us": result["init_us"]["mean"], "halo_us": halo,
                     "allreduce_us": allreduce, "connections": result["connections"]["mean"],
                     "run": result["run"]})
        say(f"scale: {size} ranks: {result['run']}")
    return {"preset": "ndr", "rows": rows}


# Waits that do not sleep, as those of MPI libraries did not when Jiang et al. measured.
POLLING = {"MACADAM_SPIN": "10000"}  # us
# Jiang et al.: by what a one-sided call is done. Receives are per connection, as the adapter of then
# has no shared queue.
ONE_SIDED_SETTINGS = {"MACADAM_RDMA_RECEIVE": "credit", **POLLING}
ONE_SIDED_EXPERIMENTS = ["latency", "bandwidth", "synchronization", "overlap", "skew", "origins"]
# The rendezvous of then moved data by the sender's write; by a read of the receiver's only from 2006 on.
ONE_SIDED = {"RDMA": {},
             "messages": {"MACADAM_PROTOCOLS": "sender", "MACADAM_RENDEZVOUS": "write"}}


def one_sided_by(run, experiment, largest=8):
    """All figures of an experiment of bench/one_sided; `run(experiment, ranks)` gives those of one
    run, {figure: {parameter: value}}."""
    found = {}
    for ranks in up_to(largest, range(2, 9)) if experiment == "origins" else [2]:
        for figure, values in run(experiment, ranks).items():
            found.setdefault(figure, {}).update(values)
    return found


def one_sided(programs, largest):
    """Jiang et al., section "Experimental Results"."""
    preset, by = "infinihost-2004", {}
    for name, settings in ONE_SIDED.items():
        def run(experiment, ranks, settings=settings):
            return programs.one_sided(experiment, ranks, preset=preset,
                                      settings={**ONE_SIDED_SETTINGS, **settings})
        by[name] = {}
        for experiment in ONE_SIDED_EXPERIMENTS:
            by[name].update(one_sided_by(run, experiment, largest))
        say(f"one_sided: by {name}: empty epochs {by[name]['epoch_us']['0']:.2f} us")
    return {"preset": preset, "by": by}


FIGURES = {"one_sided": one_sided, "burst": burst, "protocols": protocols, "startup": startup,
           "wavefront": wavefront, "memory": memory, "connections": connections,
           "scale": scale}
