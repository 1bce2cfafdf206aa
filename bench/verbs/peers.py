# SPDX-License-Identifier: BSD-3-Clause
"""Debian's Open MPI and MPICH, both over UCX, for the guest: their packages are unpacked into a
folder that the virtual machine lays over this machine's files; nothing is installed."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Library, compile_with  # noqa: E402

PACKAGES = ["openmpi-bin", "libopenmpi-dev", "mpich", "libmpich-dev"]
LIBRARIES = "usr/lib/x86_64-linux-gnu"
# What guest.py runs. (Debian's libraries lack functions that others of the programs call.)
PROGRAMS = ("pingpong", "rate", "startup", "progress")
# Soft-RoCE's reliable connections, datagrams to set them up, no shared memory. UCX finds no address
# of its own in the route header that soft-RoCE gives it, and would drop every datagram.
UCX = {"UCX_TLS": "rc_verbs,ud_verbs:aux,self", "UCX_NET_DEVICES": "rxe0:1",
       "UCX_UD_VERBS_ETH_DGID_CHECK": "n"}
# Open MPI looks for launchers, networks and collective modules that are not here: minutes of real
# time where instructions are counted. It may start more ranks than there are processors.
OPEN_MPI = {"OMPI_MCA_plm": "isolated", "OMPI_MCA_pml": "ucx", "OMPI_MCA_osc": "ucx",
            "OMPI_MCA_btl": "self", "OMPI_MCA_mtl": "^ofi,psm,psm2",
            "OMPI_MCA_coll": "basic,libnbc,self,tuned,sync", "OMPI_MCA_mpi_yield_when_idle": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def needed_packages():
    """The packages above and what they need, as far as it is not installed here."""
    listed = subprocess.run(["apt-get", "install", "--print-uris", "-qq", "-y",
                             "--no-install-recommends", *PACKAGES],
                            capture_output=True, text=True, check=True).stdout
    return [line.split()[1].split("_")[0] for line in listed.splitlines() if line.startswith("'")]


def fetch(folder):
    """Fills `folder` with the packages' files, unless it is there. OSError or CalledProcessError if
    they cannot be had."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        subprocess.run(["apt-get", "download", "-qq", *needed_packages()], cwd=scratch, check=True,
                       capture_output=True)
        files = pathlib.Path(scratch, "files")
        for package in sorted(pathlib.Path(scratch).glob("*.deb")):
            subprocess.run(["dpkg-deb", "--extract", package, files], check=True)
        # As on the machine below: /lib is /usr/lib.
        for top in ("bin", "sbin", "lib"):
            if (files / top).is_dir():
                shutil.copytree(files / top, files / "usr" / top, symlinks=True, dirs_exist_ok=True)
                shutil.rmtree(files / top)
        os.rename(files, folder)


def compile_programs(layer, folder):
    """The benchmarks' programs, built for each peer below `folder`."""
    at = layer / LIBRARIES
    flags = ["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", f"-L{at}", f"-Wl,-rpath-link,{at}"]
    compile_with(["c++", f"-I{at}/openmpi/include", f"-L{at}/openmpi/lib", *flags, "-lmpi"],
                 folder / "openmpi", PROGRAMS)
    compile_with(["c++", f"-I{layer}/usr/include/x86_64-linux-gnu/mpich", *flags, "-lmpich"],
                 folder / "mpich", PROGRAMS)
    subprocess.run(["c++", "-O2", "-shared", "-fPIC", pathlib.Path(__file__).with_name("yield.cc"),
                    "-o", folder / "yield.so"], check=True)


def libraries(folder):
    """The peers as they are started in the guest."""
    yielding = str(folder / "yield.so")
    return [Library("Open MPI", ["mpirun.openmpi", "-x", f"LD_PRELOAD={yielding}"],
                    folder / "openmpi", {**UCX, **OPEN_MPI}),
            Library("MPICH", ["mpiexec.mpich"], folder / "mpich",
                    {**UCX, "MPIR_CVAR_NOLOCAL": "1", "LD_PRELOAD": yielding})]
