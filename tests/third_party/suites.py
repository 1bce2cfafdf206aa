#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Other people's suites of tests, unmodified, on the library just built: fetched, built with our
compiler wrappers, run, counted (docs/suites.md). Failures are told apart: a test wants more ranks than
it is given, or what the standard does not have, or it fails for any other reason."""
import argparse
import collections.abc
import dataclasses
import hashlib
import inspect
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tarfile
import time
import xml.etree.ElementTree

import mpi4py_environment
from mpi4py_environment import MPI4PY
from sources import Debian, PyPI, Unavailable, fetch

PASSED, RANKS, FOREIGN, FAILED, SKIPPED = VERDICTS = (
    "passed", "more ranks", "not standard", "failed", "skipped")
# What programs say that are given fewer ranks than they are written for.
FEW_RANKS = re.compile(r"(?i)number of processors must divide|"
                       r"(?:at least|exactly|requires?|needs?) \d+ (?:mpi )?(?:process|rank|task)")
BUILD_LIMIT = 3600  # seconds


class Stopped(Exception):
    """A suite that cannot be built, or that has no time left."""


class Place:
    """A suite's folder, the library under test, and the time that is left."""

    def __init__(self, name, arguments, minutes):
        self.folder = arguments.folder / name
        self.downloads = arguments.folder / "downloads"
        self.library = arguments.build.resolve()
        self.ranks = arguments.ranks
        self.end = time.monotonic() + 60 * minutes
        path = f"{self.library / 'bin'}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path}
        cache = "ccache " if shutil.which("ccache") else ""
        self.compilers = {"MACADAM_CC": cache + "cc", "MACADAM_CXX": cache + "c++"}

    def tool(self, name):
        return self.library / "bin" / name

    def call(self, *command, seconds, cwd=None, check=False, **environment):
        """(exit code, output) of a command, which is ended with all its children at its limit or the
        suite's; the log has both."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise Stopped("the suite's time is over")
        command = [str(word) for word in command]
        with subprocess.Popen(command, cwd=cwd or self.folder, env={**self.environment, **environment},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, errors="replace",
                              start_new_session=True) as process:
            try:
                output, code = process.communicate(timeout=min(seconds, left))[0], process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, code = process.communicate()[0] + "\nended: it took too long", 124
        with open(self.folder / "log.txt", "a", encoding="utf-8") as log:
            log.write(f"+ {' '.join(command)}\n{output}\nexit code {code}\n")
        if check and code != 0:
            raise Stopped(f"{command[0]}: exit code {code}: {output[-2000:]}")
        return code, output

    def build(self, *command, cwd=None, **environment):
        self.call(*command, seconds=BUILD_LIMIT, cwd=cwd, check=True, **self.compilers, **environment)

    def job(self, ranks, seconds, *program, cwd=None):
        """A program under mpiexec, which says at the limit what every rank waited for."""
        return self.call(self.tool("mpiexec"), "-timeout", seconds, "-n", ranks, *program,
                         seconds=seconds + 20, cwd=cwd)

    def unpack(self, source, wanted=""):
        """Unpacks the files of `source` whose paths have `wanted` in them, a regular expression, and
        answers with its top folder."""
        with tarfile.open(fetch(source, self.downloads)) as archive:
            for member in archive:
                if re.search(wanted, member.name):
                    archive.extract(member, self.folder, filter="fully_trusted")
        return self.folder / member.name.split("/")[0]

    def algebra(self):
        """The folder with BLAS and LAPACK, unpacked here and not installed."""
        root = self.folder / "algebra"
        for package in ALGEBRA:
            self.build("dpkg", "-x", fetch(package, self.downloads), root)
        return root / "usr/lib/x86_64-linux-gnu"


def judge(passed, output):
    """Whether a test passed, or why it did not."""
    if passed:
        return PASSED
    return RANKS if FEW_RANKS.search(output) else FAILED


# ---------------------------------------------------------------- mpi4py

def build_mpi4py(place):
    return mpi4py_environment.prepare(place.folder / "environment", place.tool("mpicc"), place.downloads)


def run_mpi4py(place):
    """Each module on 1, 2 and 4 ranks is a job. A test passes if it does on all ranks."""
    python, tests = build_mpi4py(place)
    for ranks in (1, 2, 4):
        for module in sorted(path.stem for path in tests.glob("test_*.py")):
            command = ("-l", python, "-B", tests / "main.py",
                       "-i", f"{module}\\.py$")
            _, output = place.job(ranks, 240, *command, cwd=tests)
            pages = ["".join(re.findall(rf"(?m)^\[{rank}\] (.*\n)", output)) for rank in range(ranks)]
            counts = [int(found[1]) for page in pages if (found := re.search(r"Ran (\d+) tests?", page))]
            if len(counts) != ranks:  # the first failure tells why
                output += place.job(ranks, 60, *command, "-f", cwd=tests)[1]
                yield f"{module}, {ranks} ranks: the whole", judge(False, output), output
                continue
            bad = {}
            for block in (block for page in pages for block in re.split(r"={60,}\n", page)[1:]):
                bad.setdefault(re.match(r"(?:ERROR|FAIL): (.*)", block)[1], []).append(block)
            for test, blocks in bad.items():
                worst = next((block for block in blocks if judge(False, block) == FAILED), blocks[0])
                yield f"{module}, {ranks} ranks: {test}", judge(False, worst), worst
            skipped = max((int(count) for count in re.findall(r"skipped=(\d+)", output)), default=0)
            for index in range(max(counts) - len(bad)):
                yield f"{module}, {ranks} ranks: {index}", SKIPPED if index < skipped else PASSED, ""


# ---------------------------------------------------------------- MPICH's test/mpi

MPICH = Debian("mpich", "4.0.2-3", "mpich_4.0.2.orig.tar.xz",
               "b27039f964afeb6b8a3e009c56b441cbe368c26d6d6476ad3bb7190996875860")
# Tests that hold handles in integers, use what MPI 3.0 removed or MPICH alone has, want sends to be
# cancelled or one rank's mistake to be noticed by others, know no MPI 5, take the world's error handler
# for that of duplicates and windows, or do in Fortran what the interfaces of the module forbid.
NOT_STANDARD = (
    "nonblocking[23]|pack_external|typecntsf|allctypesf(90)?|hindex1f(90)?|get_elem_u|adderr|qmpi_test|"
    "scancel_unmatch|i?(scatter|allgather|alltoall)length|i?reduceop|baseenvf(90)?|"
    "comm_(create|create_group|split|split_type)_nullarg|keyvalmis|"
    "tst_fileview|aintf|alltoallvf90|split_typef90|vw_inplacef90|nonblocking_inpf90|f90/profile/profile1f90|"
    "cartsuball|errors/topo/cartsmall|dims5|rma/win_info|errors/coll/reduce_local|(all)?reducelength|gatherlength|"
    "mt_improbe_i?sendrecv(_huge)?|nonblocking_pready|connect_timeout_no_accept")


def build_mpich(place):
    """Only what all tests share; its driver builds each."""
    source = place.unpack(MPICH, "^[^/]*/test/mpi/") / "test/mpi"
    place.build("./configure", f"--with-mpi={place.library}", f"MPIEXEC={place.tool('mpiexec')}",
                "--enable-strictmpi", "--disable-cxx", "--disable-perftest", "--enable-threads=multiple",
                "CFLAGS=-O1", cwd=source)


def run_mpich(place):
    source = place.folder / "mpich-4.0.2/test/mpi"
    code, _ = place.call("./runtests", "-tests=testlist", f"-srcdir={source}", f"-maxnp={place.ranks}",
                         "-timelimitarg=-usize 32 -timeout %d", "-tapfile=summary.tap", seconds=3 * 3600,
                         cwd=source, MPITEST_TIMEOUT="60", MPITEST_CLEANUP="0", **place.compilers)
    report = (source / "summary.tap").read_text(errors="replace")
    for block in re.split(r"(?m)^(?=(?:not )?ok )", report)[1:]:
        first = block.splitlines()[0]
        name = re.search(r"- (.*?)\s*(?:#|$)", first)[1]
        if "# SKIP" in first:
            yield name, SKIPPED, ""
            continue
        program = name.removeprefix("./").split()[0]
        verdict = judge(first.startswith("ok"), block)
        if verdict in (FAILED, RANKS) and re.search(f"\\b({NOT_STANDARD})$", program):
            verdict = FOREIGN
        yield name, verdict, block
    if code == 124:
        raise Stopped("the suite's time is over")


# ---------------------------------------------------------------- Boost.MPI

BOOST = Debian("boost1.81", "1.81.0-5+deb12u1", "boost1.81_1.81.0.orig.tar.xz",
               "449afecf5ef98edc0a46826cde6af98d1fb95c2e92962fa8c9e3eb1e8a2928ec")
BOOST_RANKS = "1 2 7 8 13 17"  # where its list of tests names none
COMPILE = ("mpicxx", "-O0", "-w", "-Iinclude", "-c")


def build_boost(place):
    top = place.unpack(BOOST, "/include/boost/|/libs/(mpi|serialization)/")
    for headers in sorted(top.glob("libs/**/include/boost")):
        shutil.copytree(headers, place.folder / "include/boost", dirs_exist_ok=True)
    objects = []
    for library in ("serialization", "mpi"):
        for source in sorted(top.glob(f"libs/{library}/src/*.cpp")):
            objects.append(f"{library}_{source.stem}.o")
            place.build(*COMPILE, source, "-o", objects[-1])
    place.build("ar", "rc", "libboost.a", *objects)
    for name, source, _ in boost_tests(place):
        place.call(*COMPILE, source, "-o", f"{name}.o", seconds=BUILD_LIMIT, **place.compilers)
        place.call("mpicxx", f"{name}.o", "-L.", "-lboost", "-o", name, seconds=BUILD_LIMIT)


def boost_tests(place):
    """Name, source, and numbers of ranks of each test that its list has."""
    tests = next(place.folder.glob("boost*/libs/mpi/test"))
    for name, source, ranks in re.findall(r"\[ mpi-test (\S+)\s*(?::\s*(\S*?)\s*:\s*:\s*([\d ]+))?\]",
                                          (tests / "Jamfile.v2").read_text()):
        counts = [int(count) for count in (ranks or BOOST_RANKS).split()]
        yield name, tests / (source or f"{name}.cpp"), counts


def run_boost(place):
    for name, _, wanted in boost_tests(place):
        for ranks in sorted({min(count, place.ranks) for count in wanted}):
            code, output = place.job(ranks, 60, place.folder / name)
            verdict = judge(code == 0, output)
            if verdict == FAILED and ranks < min(wanted):
                verdict = RANKS  # though it does not say so
            yield f"{name}, {ranks} ranks", verdict, output


# ---------------------------------------------------------------- HPCC

HPCC = Debian("hpcc", "1.5.0-3", "hpcc_1.5.0.orig.tar.gz",
              "0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8")
ALGEBRA = (Debian("libblas-dev", "3.11.0-2", "libblas-dev_3.11.0-2_amd64.deb",
                  "2092339c55a2dcaff498754cb40076862fbd737aef756f2d6c10eca0c021dee3", binary=True),
           Debian("liblapack-dev", "3.11.0-2", "liblapack-dev_3.11.0-2_amd64.deb",
                  "b880ddeaf2982a8cf572925ae1728ec6310da3930db1e65c708e010694295bfd", binary=True))


def build_hpcc(place):
    top = place.unpack(HPCC)
    flags = "-O2 -w -DAdd_ -DF77_INTEGER=int -DStringSunStyle"
    values = {"SHELL": "/bin/sh", "CD": "cd", "CP": "cp", "LN_S": "ln -s", "MKDIR": "mkdir -p",
              "RM": "rm -f", "TOUCH": "touch", "ARCH": "macadam", "TOPdir": "../../..",
              "INCdir": "$(TOPdir)/include", "BINdir": "$(TOPdir)/bin/$(ARCH)",
              "LIBdir": "$(TOPdir)/lib/$(ARCH)", "HPLlib": "$(LIBdir)/libhpl.a",
              "LAlib": f"-L{place.algebra() / 'blas'} -lblas -lgfortran",
              "HPL_DEFS": "-I$(INCdir) -I$(INCdir)/$(ARCH)", "HPL_LIBS": "$(HPLlib) $(LAlib) -lm",
              "CC": "mpicc", "CCNOOPT": "$(HPL_DEFS) -O0 -w", "CCFLAGS": f"$(HPL_DEFS) {flags}",
              "LINKER": "mpicc", "LINKFLAGS": flags, "ARCHIVER": "ar", "ARFLAGS": "r", "RANLIB": "echo"}
    (top / "hpl/Make.macadam").write_text("".join(f"{key} = {value}\n" for key, value in values.items()))
    place.build("make", "arch=macadam", cwd=top)


def run_hpcc(place):
    """Its own input, on 4 ranks: each line of the report that says how a check came out."""
    top = next(place.folder.glob("hpcc-*"))
    shutil.copy(top / "_hpccinf.txt", top / "hpccinf.txt")
    report = top / "hpccoutf.txt"
    report.unlink(missing_ok=True)
    code, output = place.job(4, 900, "./hpcc", cwd=top)
    text = report.read_text(errors="replace") if report.exists() else ""
    section = "hpcc"
    for line in text.splitlines():
        section = (re.match(r"Begin of (.*) section", line) or ("", section))[1]
        checked = re.search(r"\b(PASSED|FAILED)\b|Found (\d+) errors|^Success=(\d)", line)
        if checked:
            passed = "PASSED" in checked[0] or checked[2] == "0" or checked[3] == "1"
            yield f"{section}: {line.strip()}", judge(passed, output), line
    yield "the whole", judge(code == 0 and "End of HPC Challenge" in text, output), output


# ---------------------------------------------------------------- FFTW

FFTW = Debian("fftw3", "3.3.10-1", "fftw3_3.3.10.orig.tar.gz",
              "56c932549852cddcfafdab3820b0200c7742675be92179e59e6215b340e26467")


def build_fftw(place):
    top = place.unpack(FFTW)
    place.build("./configure", "--enable-mpi", "--enable-threads", "--disable-fortran", "--disable-doc",
                "MPICC=mpicc", "CFLAGS=-O1", cwd=top)
    place.build("make", "-j1", cwd=top)


def run_fftw(place):
    """The rounds of its `make check`: ten random problems on so many ranks, one with threads too."""
    top = next(place.folder.glob("fftw-*"))
    check = ("perl", "-w", "../tests/check.pl", "--verbose", "--random", "--maxsize=10000", "-c=10")
    for ranks, options in ((1, []), (2, []), (3, []), (4, []), (3, ["--nthreads=2"])):
        bench = f"{place.tool('mpiexec')} -timeout 120 -n {ranks} {top}/mpi/mpi-bench"
        code, output = place.call(*check, *options, "--mpi", bench, seconds=600, cwd=top / "mpi")
        passed = code == 0 and "FAILED" not in output
        yield f"check, {ranks} ranks {' '.join(options)}".rstrip(), judge(passed, output), output


# ---------------------------------------------------------------- PnetCDF

PNETCDF = Debian("pnetcdf", "1.12.3-1", "pnetcdf_1.12.3.orig.tar.xz",
                 "8f54023ffbbd3c8137e5422b44e32324113d5690f1da0cb7ecd5842c2de850a9")


def build_pnetcdf(place):
    """Its source has no configure: that takes autoconf, automake, libtool and m4."""
    top = place.unpack(PNETCDF)
    place.build("autoreconf", "-i", cwd=top)
    place.build("./configure", "--disable-fortran", "--disable-cxx", "MPICC=mpicc", "SEQ_CC=cc",
                "CFLAGS=-O1", cwd=top)
    place.build("make", "-j1", cwd=top)


def run_pnetcdf(place):
    """What `make check` and `make ptest` run: each program on one rank, and those for it on 4."""
    top = next(place.folder.glob("pnetcdf-*"))
    launcher = f"TESTMPIRUN={place.tool('mpiexec')} -timeout 100 -n NP"
    _, output = place.call("make", "-k", "check", launcher, cwd=top, seconds=1800, **place.compilers)
    for verdict, name in re.findall(r"(?m)^(PASS|FAIL|XFAIL|ERROR): ([\w.]+)$", output):
        yield f"{name}, 1 rank", judge(verdict in ("PASS", "XFAIL"), output), ""
    code, output = place.call("make", "-k", "ptest", launcher, cwd=top, seconds=1800, **place.compilers)
    for line in re.findall(r"(?m)^(?:\*\*\* TESTING|PASS:|FAIL:).*$", output):
        passed = line.startswith("PASS") or line.endswith("pass")
        verdict = SKIPPED if line.endswith("skip") else judge(passed, line)
        yield f"{line.split('--')[0].strip()}, 4 ranks", verdict, line
    yield "parallel tests, 4 ranks", judge(code == 0, output), output


# ---------------------------------------------------------------- HDF5

HDF5 = Debian("hdf5", "1.10.8+repack1-1", "hdf5_1.10.8+repack1.orig.tar.gz",
              "7b38e58ff83b13fd8959a90b13bf896bc318ba096c940ab0847abf3ad41a0b31")
# Of its `testpar`, in this order; left out are those that compute for minutes (t_cache, t_cache_image,
# t_bigio), want a compression library (t_filters_parallel) or end by MPI_Abort (t_pflush1).
HDF5_TESTS = ("t_mpi", "testphdf5", "t_pread", "t_init_term", "t_pshutdown", "t_prestart", "t_shapesame")


def build_hdf5(place):
    top = place.unpack(HDF5)
    place.build("./configure", "--enable-parallel", "--disable-hl", "--disable-fortran",
                "--enable-build-mode=production", "CC=mpicc", "CFLAGS=-O1 -w", cwd=top)
    for folder, targets in (("src", ["all"]), ("test", ["libh5test.la"]), ("testpar", HDF5_TESTS)):
        place.build("make", "-j1", *targets, cwd=top / folder)


def run_hdf5(place):
    folder = next(place.folder.glob("hdf5-*")) / "testpar"
    for name in HDF5_TESTS:
        code, output = place.job(4, 300, f"./{name}", cwd=folder)
        yield f"{name}, 4 ranks", judge(code == 0, output), output


# ---------------------------------------------------------------- ScaLAPACK and the BLACS

SCALAPACK = Debian("scalapack", "2.2.1-2", "scalapack_2.2.1.orig.tar.gz",
                   "4aede775fdb28fa44b331875730bcd5bab130caaec225fadeccf424c8fcb55aa")


def build_scalapack(place):
    top = place.unpack(SCALAPACK)
    algebra = place.algebra()
    place.build("cmake", "-S", top, "-B", "build", "-DCMAKE_C_COMPILER=mpicc",
                "-DCMAKE_Fortran_COMPILER=mpifort", f"-DMPIEXEC_EXECUTABLE={place.tool('mpiexec')}",
                "-DCMAKE_C_FLAGS=-O1 -w", "-DCMAKE_Fortran_FLAGS=-O1 -w -std=legacy",
                f"-DLAPACK_LIBRARIES={algebra}/lapack/liblapack.a;{algebra}/blas/libblas.a")
    place.build("cmake", "--build", "build", "-j", "1")


def run_scalapack(place):
    place.call("ctest", "--test-dir", "build", "--timeout", "300", "--output-junit", "results.xml",
               seconds=3600)
    for case in xml.etree.ElementTree.parse(place.folder / "build/results.xml").iter("testcase"):
        output = case.findtext("system-out") or ""
        yield case.get("name"), judge(case.get("status") == "run", output), output


# ---------------------------------------------------------------- all of them


@dataclasses.dataclass(frozen=True)
class Suite:
    source: Debian | PyPI  # the pinned file
    build: collections.abc.Callable
    run: collections.abc.Callable
    minutes: int  # limit for building and running


SUITES = {
    "mpi4py": Suite(MPI4PY, build_mpi4py, run_mpi4py, 60),
    "mpich": Suite(MPICH, build_mpich, run_mpich, 120),
    "boost": Suite(BOOST, build_boost, run_boost, 60),
    "hpcc": Suite(HPCC, build_hpcc, run_hpcc, 30),
    "fftw": Suite(FFTW, build_fftw, run_fftw, 40),
    "pnetcdf": Suite(PNETCDF, build_pnetcdf, run_pnetcdf, 30),
    "hdf5": Suite(HDF5, build_hdf5, run_hdf5, 60),
    "scalapack": Suite(SCALAPACK, build_scalapack, run_scalapack, 90),
}


def prepare(place, suite):
    """Builds a suite, anew if the header or how it is built has changed since."""
    recipe = hashlib.sha256((place.library / "include/mpi.h").read_bytes())
    recipe.update(f"{place.library} {inspect.getsource(suite.build)}".encode())
    mark = place.folder / "built"
    if mark.exists() and mark.read_text() == recipe.hexdigest():
        return
    shutil.rmtree(place.folder, ignore_errors=True)
    place.folder.mkdir(parents=True)
    suite.build(place)
    mark.write_text(recipe.hexdigest())


def execute(name, suite, arguments):
    """{verdict: {test: the end of its output}}; why it stopped, if it did."""
    place = Place(name, arguments, suite.minutes)
    results, why = {verdict: {} for verdict in VERDICTS}, ""
    try:
        prepare(place, suite)
        for test, verdict, output in suite.run(place):
            while any(test in tests for tests in results.values()):
                test += "'"  # the same program with other arguments
            results[verdict][test] = output[-3000:] if verdict in (FAILED, RANKS) else ""
    except Unavailable as error:
        why = f"cannot be had: {error}"
    except (Stopped, SystemExit) as error:
        why = f"stopped: {error}"
    return results, why


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", help=f"which, of {', '.join(SUITES)}; all if none is named")
    parser.add_argument("--build", type=pathlib.Path, default="build/release", help="the library's")
    parser.add_argument("--folder", type=pathlib.Path, default="build/suites", help="where to work")
    parser.add_argument("--ranks", type=int, default=4, help="at most")
    arguments = parser.parse_args()
    arguments.folder = arguments.folder.resolve()
    unknown = set(arguments.suites) - set(SUITES)
    if unknown:
        parser.error(f"no suites: {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    os.nice(10)
    table = [f"| suite | version | {' | '.join(VERDICTS)} |", f"|---|---|{'---|' * len(VERDICTS)}"]
    for name in arguments.suites or SUITES:
        suite = SUITES[name]
        results, why = execute(name, suite, arguments)
        (arguments.folder / f"{name}.json").write_text(json.dumps({"why": why, **results}, indent=1))
        counts = {verdict: len(results[verdict]) for verdict in VERDICTS}
        table.append(f"| `{name}` | {suite.source.version} | {' | '.join(map(str, counts.values()))} |")
        found = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        print(f"{name} {suite.source.version}: {found}", flush=True)
        for line in [f"failed: {test}" for test in results[FAILED]] + [why[-600:]] * bool(why):
            print("  " + line, flush=True)
    print("\n".join(table))


if __name__ == "__main__":
    main()
