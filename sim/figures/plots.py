# SPDX-License-Identifier: BSD-3-Clause
"""Draws figures from their data: plots.py FOLDER NAME... reads FOLDER/NAME.json and writes
FOLDER/NAME.png. Runs in the environment that figures.py makes."""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402 (the backend is chosen first)

plt.rcParams.update({"savefig.dpi": 90, "font.size": 9, "axes.grid": True, "grid.alpha": 0.3, "axes.spines.top": False,
                     "axes.spines.right": False, "lines.markersize": 4,
                     "legend.frameon": False, "figure.constrained_layout.use": True})
LINES = {"ring": ("C3", "o"), "credit": ("C1", "s"), "shared": ("C0", "^"),
         "serial": ("C3", "o"), "all": ("C1", "s"), "on-demand": ("C0", "^"),
         "sender": ("C3", "o"), "customized": ("C0", "^"), "mixed": ("C2", "D")}


def line(axes, name, x, y, **more):
    colour, marker = LINES[name]
    axes.plot(x, y, **{"color": colour, "marker": marker, "label": name, **more})


def paper(axes, x, y, label="paper"):
    """Points that the paper's text gives."""
    axes.plot(x, y, "k*", markersize=9, label=label, linestyle="none", zorder=5)


def memory(data):
    figure, axes = plt.subplots(figsize=(6, 4))
    for receive, held in data["model"]["bytes"].items():
        line(axes, receive, data["model"]["ranks"], [b / 1e6 for b in held], marker=None,
             label=f"{receive}, model")
        runs = [run for run in data["runs"] if run["receive"] == receive]
        axes.plot([run["ranks"] for run in runs], [run["held_bytes"] / 1e6 for run in runs],
                  LINES[receive][1], color=LINES[receive][0], label=f"{receive}, held in a run")
    paper(axes, [16000, 16000], [14000, 1800], "paper: ring, shared")
    axes.set(xscale="log", yscale="log", xlabel="ranks, all connected",
             ylabel="MB per process for the transport",
             title="Memory by receive mode (Sur et al., Figure 9)")
    axes.legend()
    return figure


def connections(data):
    programs = list(dict.fromkeys(row["program"] for row in data["rows"]))
    presets = list(dict.fromkeys(row["preset"] for row in data["barriers"]))
    figure = plt.figure(figsize=(9.5, 10))
    above, below, last = figure.subfigures(3, 1, height_ratios=[3, 2, 2])
    axes = above.subplots()
    for program in programs:
        rows = [row for row in data["rows"] if row["program"] == program]
        axes.plot([row["ranks"] for row in rows if row["paper"]],
                  [row["paper"] for row in rows if row["paper"]], "x",
                  color=f"C{programs.index(program) % 10}")
        axes.plot([row["ranks"] for row in rows], [row["on_demand"] for row in rows], marker="o",
                  color=f"C{programs.index(program) % 10}", label=program,
                  linestyle="--" if programs.index(program) >= 10 else "-")
    ranks = sorted({row["ranks"] for row in data["rows"]})
    axes.plot(ranks, [r - 1 for r in ranks], "k:", label="static")
    axes.plot([], [], "kx", label="the paper's")
    axes.set(xscale="log", yscale="log", xlabel="ranks", ylabel="mean connections per process",
             title="Connections on demand (Wu et al., Table 2)")
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    for axes, preset in zip(below.subplots(1, len(presets)), presets):
        for mode in ("all", "on-demand"):
            rows = [row for row in data["barriers"]
                    if row["preset"] == preset and row["connections"] == mode]
            line(axes, mode, [row["ranks"] for row in rows], [row["barrier_us"] for row in rows])
            axes.plot([row["ranks"] for row in rows], [row["exchanges_us"] for row in rows], f"{LINES[mode][0]}:",
                      label=f"{mode}, by exchanges")
            axes.plot([row["ranks"] for row in rows if row["paper_us"]],
                      [row["paper_us"] for row in rows if row["paper_us"]], f"{LINES[mode][0]}x",
                      label=f"{mode}, the paper's" if any(row["paper_us"] for row in rows) else None)
        axes.set(title=preset, xlabel="ranks", ylabel="us for a barrier", ylim=(0, None))
        axes.legend(fontsize=7)
    below.suptitle("Barriers (Wu et al., Figure 4)")
    for axes, preset in zip(last.subplots(1, len(presets)), presets):
        for mode in ("all", "on-demand"):
            rows = [row for row in data["allreduces"] if (row["preset"], row["connections"]) == (preset, mode)]
            line(axes, mode, [row["ranks"] for row in rows], [row["allreduce_us"] for row in rows])
        axes.set(title=preset, xlabel="ranks", ylabel="us for a sum of 8 bytes", ylim=(0, None))
    last.suptitle("Sums over all (Wu et al., Figure 5; the text has no numbers, but that both modes are level on cLAN "
                  "and on demand is better on Berkeley VIA)", fontsize=9)
    return figure


# Wu et al., section 5.6, tells the order of the curves, which are drawn only.
STARTUP_WORDS = {"clan-2002": "serial \"much higher\",\non-demand below all", "berkeley-via-2002": "on-demand below all"}


def startup(data):
    presets = list(dict.fromkeys(row["preset"] for row in data["rows"]))
    figure, all_axes = plt.subplots(1, len(presets), figsize=(3.2 * len(presets), 3.2))
    for axes, preset in zip(all_axes, presets):
        for mode in ("serial", "all", "on-demand"):
            rows = [row for row in data["rows"]
                    if row["preset"] == preset and row["connections"] == mode]
            line(axes, mode, [row["ranks"] for row in rows],
                 [row["init_us"] / 1e3 for row in rows])
        axes.set(title=preset, xlabel="ranks", ylabel="ms in MPI_Init", ylim=(0, None))
        if preset in STARTUP_WORDS:
            axes.text(0.05, 0.5, f"the paper, in words:\n{STARTUP_WORDS[preset]}", transform=axes.transAxes, fontsize=7)
    all_axes[0].legend()
    figure.suptitle("Start-up (Wu et al., Figure 8)")
    return figure


# Sur et al., section 5.4: LU on 16 processes, all of them connected, over a shared queue: rings "almost exactly the
# same", credits 20 % worse. What a plane computes it does not say.
PAPER_LU = {"ring": 1.0, "credit": 1.2}


def wavefront(data):
    kinds = list(dict.fromkeys((row["ranks"], row["connections"]) for row in data["rows"]))
    figure, all_axes = plt.subplots(1, len(kinds), figsize=(3.2 * len(kinds), 3.2))
    for axes, (ranks, connections_made) in zip(all_axes, kinds):
        rows = [row for row in data["rows"]
                if (row["ranks"], row["connections"]) == (ranks, connections_made)]
        computed = [row["compute_us"] for row in rows]
        for name in ("ring", "mixed", "credit, 10", "credit, 32"):
            receive = name.split(",")[0]
            line(axes, receive, computed, [row[name] / row["shared"] for row in rows], label=name,
                 linestyle=":" if name.endswith("10") else "-")
        axes.axhline(1, color=LINES["shared"][0], label="shared")
        if (ranks, connections_made) == (16, "all"):
            for receive, ratio in PAPER_LU.items():
                axes.axhline(ratio, color=LINES[receive][0], linestyle=":", linewidth=1)
                paper(axes, [max(computed)], [ratio], f"paper: LU, {receive}")
            axes.legend(fontsize=7)
        axes.set(title=f"{ranks} ranks, connected {connections_made}", xlabel="us computed a plane",
                 ylabel="time of a plane over that of shared")
    all_axes[0].legend()
    figure.suptitle("A wavefront by receive mode (Sur et al., Figure 11)")
    return figure


def burst(data):
    figure, all_axes = plt.subplots(1, 3, figsize=(12, 3.5))
    for axes, field, title in zip(all_axes, ("waitall_us", "taken_us", "sender_us"),
                                  ("in MPI_Waitall", "taken from the computation", "of the sender")):
        for watermark, which, style in ((300, "first", "C0^-"), (300, "second", "C0^:"),
                                        (0, "first", "C3o-"), (0, "second", "C3o:")):
            rows = [row for row in data["rows"]
                    if (row["watermark"], row["burst"]) == (watermark, which)]
            axes.plot([row["messages"] for row in rows], [row[field] for row in rows], style,
                      label=(f"watermark {watermark}" if watermark else "no watermark")
                      + f", {which} burst")
        axes.set(xlabel="messages in the burst", ylabel="us", ylim=(0, None), title=title)
    all_axes[0].axvline(250, color="k", linestyle=":", label="the paper's curves part here")
    all_axes[0].legend()
    figure.suptitle("A burst while the receiver computes (Sur et al., Figure 10)")
    return figure


# Small & Yuan, section 5: the round trips of 16 KB, and the formulas of section 5.2 with one unit of 18 us
# and 90 us for 100 KB.
def us(kb):
    return 90 * kb / 100


def same(x):
    return x


PROTOCOL_POINTS = {
    "7": [(lambda x: [16, 16], lambda x: [67, 55], "paper: MVAPICH, customized")],
    "9a": [(same, lambda xs: [60 * 18 for x in xs], "paper: customized"),
           (same, lambda xs: [(60 + x) * 18 + us(30) for x in xs], "paper: MVAPICH")],
    "9b": [(same, lambda xs: [30 * 18 for x in xs], "paper: customized"),
           (same, lambda xs: [40 * 18 + us(x) for x in xs], "paper: MVAPICH")],
    "10a": [(same, lambda xs: [40 * 18 + max(20 * 18, us(x)) for x in xs], "paper: customized"),
            (same, lambda xs: [60 * 18 + us(x) for x in xs], "paper: MVAPICH")],
    "10b": [(same, lambda xs: [47 * 18 + max(13 * 18, us(x)) for x in xs], "paper: customized"),
            (same, lambda xs: [60 * 18 + us(x) for x in xs], "paper: MVAPICH")]}


def protocols(data):
    titles = {"7": ("7: ping-pong", "KB", "round trip, us"),
              "9a": ("9 (a): (0,0,60,X,0,0), 30 KB", "X", "iteration, us"),
              "9b": ("9 (b): (0,20,0,5,5,20)", "KB", "iteration, us"),
              "10a": ("10 (a): (20,20,20,0,0,0)", "KB", "iteration, us"),
              "10b": ("10 (b): (27,0,0,20,20,20)", "KB", "iteration, us")}
    figure, all_axes = plt.subplots(2, 3, figsize=(10, 6))
    for axes, (name, (title, x, y)) in zip(all_axes.flat, titles.items()):
        values = data["figures"][name]
        for which in ("sender", "customized"):
            line(axes, which, values["x"], values[which])
        for x_of, y_of, label in PROTOCOL_POINTS.get(name, []):
            paper(axes, x_of(values["x"]), y_of(values["x"]), label)
            axes.legend(fontsize=7)
        axes.set(title=title, xlabel=x, ylabel=y, ylim=(0, None))
    all_axes.flat[0].legend()
    all_axes.flat[-1].axis("off")
    figure.suptitle("Protocols (Small & Yuan, Figures 7, 9 and 10)")
    return figure


# Jiang et al.: of small messages, the peaks (where they are read at the largest), empty epochs.
ONE_SIDED_POINTS = {"pingpong_us": ([4, 4], [12.6, 15.6]), "put_mb_per_s": ([262144] * 2, [865, 748]),
                    "origins_mb_per_s": ([7, 7], [920, 895]), "epoch_us": ([0, 1], [14.78, 16.52])}


def one_sided(data, network="a model of InfiniBand of 2004"):
    panels = [("pingpong_us", "Ping-pong", "us one way", "bytes"),
              ("bidirectional_us", "Bi-directional", "us", "bytes"),
              ("put_mb_per_s", "Put", "MB/s", "bytes"),
              ("get_mb_per_s", "Get", "MB/s", "bytes"),
              ("overlap_us", "Put of 64 KB, the origin computes", "us for an epoch", "us computed"),
              ("skew_us", "Get of 64 KB, the target computes", "us for an epoch", "us computed"),
              ("origins_mb_per_s", "Several origins", "MB/s at the target", "origins"),
              ("epoch_us", "Empty epochs", "us", None)]
    two_sided = {"put_mb_per_s": "two_sided_mb_per_s", "get_mb_per_s": "two_sided_mb_per_s"}
    figure, all_axes = plt.subplots(2, 4, figsize=(13, 6))
    for axes, (field, title, unit, over) in zip(all_axes.flat, panels):
        axes.set(title=title, ylabel=unit)
        if over is None:
            axes.bar(list(data["by"]), [each[field]["0"] for each in data["by"].values()],
                     color=["C0", "C3"], width=0.5)
            paper(axes, [0, 1], ONE_SIDED_POINTS[field][1])
            axes.legend()
            continue
        for name, colour in (("RDMA", "C0"), ("messages", "C3")):
            values = data["by"][name][field]
            axes.plot([int(x) for x in values], list(values.values()), f"{colour}o-", label=name)
        other = data["by"]["RDMA"].get(two_sided.get(field, f"two_sided_{field}"))
        if other:
            axes.plot([int(x) for x in other], list(other.values()), "k:", label="send and receive")
        if field in ONE_SIDED_POINTS:
            paper(axes, *ONE_SIDED_POINTS[field])
        axes.set(xlabel=over)
        if over == "bytes":
            axes.set(xscale="log")
        if field in ("pingpong_us", "bidirectional_us"):
            axes.set(yscale="log")
        else:
            axes.set(ylim=(0, None))
        axes.legend()
    figure.suptitle(f"One-sided communication (Jiang et al.) on {network}")
    return figure


def one_sided_soft_roce(data):
    return one_sided(data, "soft-RoCE, in a guest whose time is a count of instructions")


def programs(data):
    """Whole programs (bench/nas/simulator.py), and Linpack."""
    figure, (above, below) = plt.subplots(2, 2, figsize=(11, 7))

    def bars(axes, rows, of, theirs):
        names = list(of(rows[0]))
        width = 0.8 / len(names)
        for at, name in enumerate(names):
            axes.bar([x + at * width for x in range(len(rows))], [of(row)[name] for row in rows], width, label=name)
        known = [(x + 0.4 - width / 2, theirs(row)) for x, row in enumerate(rows) if theirs(row) is not None]
        if known:
            paper(axes, *zip(*known))
        axes.set_xticks([x + 0.4 - width / 2 for x in range(len(rows))],
                        [f"{row['kernel'].upper()}\n{row['ranks']}" for row in rows], fontsize=7)
        axes.legend(fontsize=7)

    def over(what, first):
        return lambda row: {name: row["by"][name][what] / row["by"][first][what]
                            for name in row["by"] if name != first}

    bars(above[0], data["protocols"], over("mpi_seconds", "customized"),
         lambda row: 1 + row["paper"] / 100)
    above[0].set(title="Time in MPI over that of customized\n(Small & Yuan, Table 3)")
    bars(above[1], data["receives"], over("seconds", "shared"), lambda row: row["paper"])
    above[1].set(title="Total over that of shared (Sur et al., Figures 11, 12)", ylim=(0.9, None))
    bars(below[0], data["connections"], lambda row: {
        "on demand": row["by"]["on demand"]["seconds"] / row["by"]["all"]["seconds"]}, lambda row: row["paper"])
    below[0].set(title="On demand over all, total (Wu et al., Table 3):\ncLAN, 16 ranks; Berkeley VIA, 8 and 4",
                 ylim=(0.9, 1.1))
    linpack = data["hpl"]["simulator"]
    sizes = list(linpack)
    for name in linpack[sizes[0]]:
        line(below[1], name.split(",")[0], [int(size) for size in sizes],
             [linpack[size][name]["gflops"] for size in sizes], label=name,
             linestyle=":" if name.endswith("10") else "-")
    below[1].set(title="Linpack, 16 ranks (Sur et al., Figure 13; its text has\n\"10 % better than ring\" for some sizes)",
                 xlabel="N", ylabel="Gflop/s", ylim=(0, None))
    below[1].legend(fontsize=7)
    for axes in (above[0], above[1], below[0]):
        axes.axhline(1, color="k", linewidth=0.8)
    return figure


def scale(data):
    figure, (virtual, real) = plt.subplots(1, 2, figsize=(8, 3.3))
    ranks = [row["ranks"] for row in data["rows"]]
    for field, label in (("init_us", "MPI_Init"), ("halo_us", "halo exchange"),
                         ("allreduce_us", "allreduce")):
        virtual.plot(ranks, [row[field] for row in data["rows"]], marker="o", label=label)
    virtual.set(xscale="log", yscale="log", xlabel="ranks", ylabel="virtual us")
    virtual.legend()
    real.plot(ranks, [row["run"]["processor_s"] for row in data["rows"]], "C0o-",
              label="processor time, s")
    real.plot(ranks, [row["run"]["most_resident_bytes"] / 1e9 for row in data["rows"]], "C1s-",
              label="memory, GB")
    real.set(xscale="log", yscale="log", xlabel="ranks", title="what the run takes")
    real.legend()
    return figure


def main(folder, *names):
    for name in names:
        data = json.loads((folder / f"{name}.json").read_text())
        figure = globals()[name](data)
        # Without the program's version the same data give the same file for longer.
        figure.savefig(folder / f"{name}.png", metadata={"Software": None})
        print(folder / f"{name}.png")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), *sys.argv[2:])
