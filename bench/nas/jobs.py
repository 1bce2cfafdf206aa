# SPDX-License-Identifier: BSD-3-Clause
"""What the scripts here share: the command of a kernel, and what its run has printed."""
import re

KERNELS = ("cg", "lu", "mg", "sp", "bt", "ft", "is")
PROTOCOLS = ("eager_sent", "hybrid_sent", "send_rndv_read", "send_rndv_write", "recv_rndv")


def command(build, kernel, ranks, *arguments, settings=()):
    """`settings`: the names and values of MACADAM_..., without that."""
    words = [f"MACADAM_{name}={value}" for name, value in dict(settings).items()]
    return ["env", "MACADAM_REPORT=1", *words, str(build / "bin" / "mpiexec"), "-n", str(ranks),
            str(build / "bench" / "nas" / kernel), *map(str, arguments)]


def line_in(output):
    """{name: value} of a kernel's line, None if there is none."""
    found = re.search(r"^nas (kernel=.*)", output, re.M)
    return dict(word.split("=") for word in found[1].split()) if found else None


def counters_in(output):
    """{name: value} of the report's whole numbers, for the whole job."""
    return {name: int(value) for name, value in re.findall(r"^    (\w+) +(\d+) +\S+ +\S+  ", output, re.M)}


def messages(counters):
    return sum(counters.get(name, 0) for name in PROTOCOLS)


def number(value):
    """As the tables have it: three digits."""
    return f"{value:.0f}" if value >= 1000 else f"{value:#.3g}".rstrip(".")
