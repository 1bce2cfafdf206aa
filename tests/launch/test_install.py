# SPDX-License-Identifier: BSD-3-Clause
"""An installed tree: the compiler wrappers, pkg-config, CMake's FindMPI and our CMake package. The
same programs are built in every way, and the wrappers of the build tree are tried as well."""
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

BUILD = pathlib.Path(os.environ["BUILD_FOLDER"])
CMAKE = os.environ["CMAKE"]

C_SOURCE = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int size, sum = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return sum == size ? 0 : 1;
}
"""
CXX_SOURCE = C_SOURCE.replace("<stdio.h>", "<vector>").replace("int size,", "std::vector<int> v; int size,")

FORTRAN_SOURCE = """\
program user
  use mpi_f08
  implicit none
  integer :: ranks, total(6)
  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  total = 1
  call MPI_Allreduce(MPI_IN_PLACE, total(1:6:2), 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (any(total(1:6:2) /= ranks)) error stop 1
end program
"""
FORTRAN_LISTS = """
cmake_minimum_required(VERSION 3.20)
project(user Fortran)
find_package({package} REQUIRED)
add_executable(fortran_user user.f90)
target_link_libraries(fortran_user {target})
"""

FIND_MPI = """
cmake_minimum_required(VERSION 3.20)
project(user C CXX)
find_package(MPI REQUIRED)
if(NOT MPIEXEC_EXECUTABLE STREQUAL "{prefix}/bin/mpiexec")
  message(FATAL_ERROR "FindMPI found ${{MPIEXEC_EXECUTABLE}}")
endif()
add_executable(c_user user.c)
target_link_libraries(c_user MPI::MPI_C)
add_executable(cxx_user user.cc)
target_link_libraries(cxx_user MPI::MPI_CXX)
"""
FIND_MACADAM = """
cmake_minimum_required(VERSION 3.20)
project(user C CXX)
find_package(Macadam {version} REQUIRED)
add_executable(c_user user.c)
target_link_libraries(c_user Macadam::mpi)
add_executable(cxx_user user.cc)
target_link_libraries(cxx_user Macadam::mpi)
file(GENERATE OUTPUT mpiexec.txt CONTENT "${{Macadam_MPIEXEC}}")
"""
FIND_GRAVEL = """
cmake_minimum_required(VERSION 3.20)
project(user C CXX)
find_package(Macadam REQUIRED)
add_executable(gravel_user "{source}")
target_link_libraries(gravel_user Macadam::gravel Macadam::mpi)
"""


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            timeout=120, **options)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: status {result.returncode}\n"
                             f"{result.stdout}{result.stderr}")
    return result.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        first = pathlib.Path(cls.folder.name).resolve() / "first"
        run(CMAKE, "--install", BUILD, "--prefix", first)
        # Everything must find itself wherever the tree is moved, with a space in the path.
        cls.prefix = first.parent / "moved tree"
        first.rename(cls.prefix)
        cls.work = cls.prefix.parent / "work"
        cls.work.mkdir()
        (cls.work / "user.c").write_text(C_SOURCE)
        (cls.work / "user.cc").write_text(CXX_SOURCE)
        cls.clean = {k: v for k, v in os.environ.items()
                     if k not in ("LD_LIBRARY_PATH", "MACADAM_CC", "MACADAM_CXX", "MPI_HOME",
                                  "MPICH_CC", "OMPI_CC")}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_program(self, program, mpiexec=None):
        run(mpiexec or self.prefix / "bin/mpiexec", "-n", 3, program, env=self.clean)

    def test_files(self):
        files = {str(p.relative_to(self.prefix)) for p in self.prefix.rglob("*")}
        for name in ("bin/mpicc", "bin/mpicxx", "bin/mpiexec", "bin/mpirun", "bin/macadam",
                     "include/mpi.h"):
            self.assertIn(name, files)
        for pattern in ("lib*/**/libmpi_abi.so", "lib*/**/libmpi_abi.so.1",
                        "lib*/**/pkgconfig/macadam.pc", "lib*/**/cmake/Macadam/MacadamConfig.cmake"):
            self.assertEqual(len(list(self.prefix.glob(pattern))), 1, pattern)

    def test_every_file_is_in_the_documents(self):
        page = (pathlib.Path(__file__).parents[2] / "docs/install.md").read_text()
        table = page.partition("| file |")[2].partition("\n\n")[0]
        known = [name for row in table.splitlines() for name in
                 re.findall(r"`((?:bin|lib|include|share)/[^`]+)`", row.split("|")[1] if row else "")]
        found = {re.sub(r"^lib[^/]*/(?:[a-z0-9_]+-linux-[a-z]+/)?", "lib/",
                        str(file.relative_to(self.prefix)))
                 for file in self.prefix.rglob("*") if not file.is_dir()}
        for name in found:
            self.assertTrue(any(fnmatch.fnmatch(name, pattern) for pattern in known), name)

    def test_mpich_abi(self):
        """It finds the library behind it, wherever the tree is."""
        program = ("import ctypes, os\nmpi, rank = ctypes.CDLL('libmpi.so.12'), ctypes.c_int()\n"
                   "mpi.MPI_Init(None, None)\n"
                   "assert mpi.MPI_Comm_rank(0x44000000, ctypes.byref(rank)) == 0\n"
                   "os.write(1, b'rank %d\\n' % rank.value)\nmpi.MPI_Finalize()")
        stranger = self.work / "stranger"  # another MPI's library of the standard ABI
        stranger.mkdir()
        (stranger / "libmpi_abi.so.1").write_bytes(b"no library")
        output = run(self.prefix / "bin/mpiexec", "-abi", "mpich", "-n", 2, sys.executable, "-c", program,
                     env={**self.clean, "LD_LIBRARY_PATH": str(stranger)})
        self.assertEqual(sorted(output.splitlines()), ["rank 0", "rank 1"])

    def test_wrappers(self):
        for prefix in (self.prefix, BUILD):
            for wrapper, source in (("mpicc", "user.c"), ("mpicxx", "user.cc")):
                program = self.work / f"{wrapper}.out"
                run(prefix / "bin" / wrapper, source, "-o", program, cwd=self.work)
                self.run_program(program, prefix / "bin/mpiexec")
                self.run_program(program, prefix / "bin/mpirun")
                run(prefix / "bin" / wrapper, "-c", source, "-o", "user.o", cwd=self.work)
                run(prefix / "bin" / wrapper, "user.o", "-o", program, cwd=self.work)
                self.run_program(program, prefix / "bin/mpiexec")

    def test_the_header_has_no_useless_casts(self):
        """Statuses of all languages have the names for profiling too."""
        (self.work / "casts.cc").write_text("#include <mpi.h>\n"
                                            "int words(const MPI_Status* from, MPI_Fint* to) { return PMPI_Status_c2f(from, to); }\n"
                                            "int same(const MPI_F08_status* from, MPI_Status* to) { return PMPI_Status_f082c(from, to); }\n")
        run(self.prefix / "bin/mpicxx", "-Wuseless-cast", "-Werror", "-c", "casts.cc", cwd=self.work)

    def test_tune(self):
        """It runs a program of its own, which must find the library where it is now."""
        page = run(self.prefix / "bin/macadam", "tune", "--quick", "--print", env=self.clean)
        self.assertRegex(page, r"(?m)^shm_eager = \d+$")

    def test_wrapper_through_a_link(self):
        link = self.work / "linked-mpicc"
        link.symlink_to(self.prefix / "bin/mpicc")
        run(link, "user.c", "-o", "linked.out", cwd=self.work)
        self.run_program(self.work / "linked.out")

    def test_wrappers_show(self):
        mpicc = self.prefix / "bin/mpicc"
        shown = run(mpicc, "-show", "a b.c", "-o", "c")
        self.assertIn(f'-I"{self.prefix}/include"', shown)
        self.assertIn('"a b.c" -o c', shown)
        self.assertIn("-lmpi_abi", shown)
        self.assertNotIn("-lmpi_abi", run(mpicc, "-show", "-c", "a.c"))
        self.assertIn("-I", run(mpicc, "-compile_info"))
        self.assertNotIn("-lmpi_abi", run(mpicc, "-compile_info"))
        self.assertIn("-lmpi_abi", run(mpicc, "-link_info"))
        self.assertEqual(run(mpicc, "-showme", "a.c"), run(mpicc, "-show", "a.c"))
        # Of Open MPI's, these two are without the compiler.
        self.assertEqual(run(mpicc, "-showme:compile"), f'-I"{self.prefix}/include"\n')
        self.assertRegex(run(mpicc, "-showme:link"), r"^-L.* -lmpi_abi\n$")
        self.assertEqual(run(mpicc, "-showme:incdirs"), f"{self.prefix}/include\n")
        self.assertEqual(run(mpicc, "--showme:libs"), "mpi_abi\n")
        self.assertTrue(run(mpicc, "-compile_info").startswith(run(mpicc, "-showme:command")[:-1]))
        result = subprocess.run([mpicc, "-showme:yes", "a.c"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("unknown option -showme:yes", result.stderr)
        self.assertTrue(run(mpicc, "-cc=/opt/other cc", "-show", "a.c").startswith("/opt/other cc -I"))
        result = subprocess.run([mpicc, "-config=old", "a.c"], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (2, "mpicc: no option -config=old here; there "
                         "is one library, linked as a shared one\n"))
        # What is shown works when pasted into a shell.
        subprocess.run(["sh", "-c", run(mpicc, "-show", "user.c", "-o", "shown.out")], check=True,
                       cwd=self.work)
        self.run_program(self.work / "shown.out")

    def test_wrappers_show_odd_words(self):
        """What a shell would read otherwise."""
        for word in ("-DX=\"it's\"", "$HOME", "`date`", "back\\slash", "two  spaces", "*"):
            shown = run(self.prefix / "bin/mpicc", "-show", "-c", word)
            read_back = run("sh", "-c", f"printf '%s\\n' {shown}").splitlines()
            self.assertEqual(read_back[-1], word)

    def test_wrappers_without_anything_to_compile(self):
        for option in ("--version", "-v", "-dumpversion"):
            run(self.prefix / "bin/mpicc", option)

    def test_other_compiler(self):
        variables = {}
        for name, compiler in (("OMPI_CC", "third"), ("MPICH_CC", "second"),
                               ("MACADAM_CC", "another -m64")):
            variables[name] = compiler  # the last is the first
            shown = run(self.prefix / "bin/mpicc", "-show", "a.c", env={**self.clean, **variables})
            self.assertTrue(shown.startswith(f"{compiler} -I"), shown)
        shown = run(self.prefix / "bin/mpicxx", "-show", "a.cc",
                    env={**self.clean, "MACADAM_CXX": "another"})
        self.assertTrue(shown.startswith("another "), shown)

    @unittest.skipUnless((BUILD / "bin/mpifort").exists(), "built without a Fortran compiler")
    def test_fortran(self):
        """The wrapper of both trees, FindMPI, our package, and pkg-config."""
        (self.work / "user.f90").write_text(FORTRAN_SOURCE)
        program = self.work / "fortran.out"
        for prefix in (self.prefix, BUILD):
            run(prefix / "bin/mpifort", "user.f90", "-o", program, cwd=self.work)
            self.run_program(program, prefix / "bin/mpiexec")
        shown = run(self.prefix / "bin/mpifort", "-show", "user.f90")
        self.assertIn("-lmpifort_abi -lmpi_abi", shown)
        self.assertTrue((self.prefix / "include/mpif.h").exists())
        for package, target, where in (("MPI", "MPI::MPI_Fortran", f"-DMPI_HOME={self.prefix}"),
                                       ("Macadam", "Macadam::mpifort",
                                        f"-DCMAKE_PREFIX_PATH={self.prefix}")):
            folder = self.work / f"fortran-{package}"
            folder.mkdir()
            shutil.copy(self.work / "user.f90", folder)
            lists = FORTRAN_LISTS.format(package=package, target=target)
            if package == "Macadam":  # its other targets are for C
                lists = lists.replace("user Fortran", "user C Fortran")
            (folder / "CMakeLists.txt").write_text(lists)
            run(CMAKE, "-S", folder, "-B", folder / "build", where, env=self.clean)
            run(CMAKE, "--build", folder / "build", env=self.clean)
            self.run_program(folder / "build/fortran_user")
        if shutil.which("pkg-config"):
            flags = run("pkg-config", "--cflags", "--libs", "macadam-fortran",
                        env={**self.clean, "PKG_CONFIG_PATH":
                             str(next(self.prefix.glob("lib*/**/pkgconfig")))})
            compiler = shown.split()[0]
            subprocess.run(["sh", "-c", f"{compiler} user.f90 -o pc-fortran.out {flags}"], check=True,
                           cwd=self.work)
            run(self.prefix / "bin/mpiexec", "-n", 2, self.work / "pc-fortran.out", env=self.clean)

    def run_gravel(self, program, **environment):
        output = run(self.prefix / "bin/mpiexec", "-n", 2, program,
                     env={**self.clean, **environment})
        self.assertRegex(output, "ranks, .* 0 wrong")

    def test_gravel(self):
        """Its installed examples, built by the wrappers, our package and pkg-config."""
        examples = self.prefix / "share/macadam/examples/gravel"
        builds = [("mpicc", "pipeline.c")]
        if (self.prefix / "bin/mpifort").exists():
            builds += [("mpifort", "pipeline.f90"), ("mpifort", "fixed_form.f")]
        for wrapper, source in builds:
            program = self.work / f"{source}.out"
            run(self.prefix / "bin" / wrapper, examples / source, "-o", program, "-lgravel",
                cwd=self.work)
            self.run_gravel(program)
        folder = self.work / "gravel"
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(FIND_GRAVEL.format(source=examples / "pipeline.c"))
        run(CMAKE, "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}",
            env=self.clean)
        run(CMAKE, "--build", folder / "build", env=self.clean)
        self.run_gravel(folder / "build/gravel_user")
        if shutil.which("pkg-config"):
            flags = run("pkg-config", "--cflags", "--libs", "gravel", "macadam",
                        env={**self.clean, "PKG_CONFIG_PATH":
                             str(next(self.prefix.glob("lib*/**/pkgconfig")))})
            subprocess.run(["sh", "-c", f"cc '{examples}/pipeline.c' -o pc-gravel.out {flags}"],
                           check=True, cwd=self.work)
            self.run_gravel(self.work / "pc-gravel.out")

    @unittest.skipUnless(shutil.which("pkg-config"), "there is no pkg-config")
    def test_pkg_config(self):
        folder = next(self.prefix.glob("lib*/**/pkgconfig"))
        flags = run("pkg-config", "--cflags", "--libs", "macadam",
                    env={**self.clean, "PKG_CONFIG_PATH": str(folder)})
        subprocess.run(["sh", "-c", f"cc user.c -o pc.out {flags}"], check=True, cwd=self.work)
        run(self.prefix / "bin/mpiexec", "-n", 2, self.work / "pc.out", env=self.clean)

    def test_first_hour(self):
        """Every command of docs/first-hour.md, in its order, in one shell's environment; the files that
        it shows are there. A comment behind a command names what it needs."""
        page = (pathlib.Path(__file__).parents[2] / "docs/first-hour.md").read_text()
        folder = self.work / "first-hour"
        folder.mkdir()
        prefix = self.work / "macadam"  # without a space, which $(pkg-config) does not stand
        prefix.symlink_to(self.prefix)
        blocks = re.split(r"\n((?:    [^\n]*\n|\n(?=    ))+)", page)
        commands = []
        for before, block in zip(blocks[::2], blocks[1::2]):
            lines = textwrap.dedent(block).splitlines()
            name = re.search(r"^`([^`\n]+)`[^\n]*:\s*$", before.strip().rsplit("\n\n")[-1])
            if name:
                end = next((i for i, line in enumerate(lines) if line.startswith("$ ")), len(lines))
                (folder / name[1]).write_text("\n".join(lines[:end]) + "\n")
                lines = lines[end:]
            commands += [line[2:] for line in lines if line.startswith("$ ")]
        self.assertGreater(len(commands), 25)
        for name in ("hello.c", "hello.f90", "hello.py", "CMakeLists.txt", "hang.c"):
            self.assertTrue((folder / name).exists(), name)
        tried, exports = 0, ""
        for command in commands:
            command = command.replace("/opt/macadam", str(prefix))
            if command.startswith("export"):
                exports += command + "\n"
                continue
            needed = {"gdb": ["gdb"], "valgrind": ["valgrind"]}.get(
                command.partition("    # ")[2], [])
            if "mpifort" in command or "hello-f" in command:
                needed = ["gfortran"]
            if "pkg-config" in command or "hello-pc" in command:
                needed = ["pkg-config"]
            if not all(shutil.which(program) for program in needed):
                continue
            result = subprocess.run(["bash", "-c", exports + command], capture_output=True, text=True,
                                    cwd=folder, env=self.clean, timeout=120)
            self.assertEqual(result.returncode, 124 if "# exits with 124" in command else 0,
                             f"{command}\n{result.stdout}{result.stderr}")
            tried += 1
        self.assertGreater(tried, 15)

    def build_with_cmake(self, name, lists, *options):
        folder = self.work / name
        folder.mkdir()
        for source in ("user.c", "user.cc"):
            shutil.copy(self.work / source, folder)
        (folder / "CMakeLists.txt").write_text(lists)
        run(CMAKE, "-S", folder, "-B", folder / "build", *options, env=self.clean)
        run(CMAKE, "--build", folder / "build", env=self.clean)
        self.run_program(folder / "build/c_user")
        self.run_program(folder / "build/cxx_user")
        return folder / "build"

    def test_find_mpi(self):
        self.build_with_cmake("find-mpi", FIND_MPI.format(prefix=self.prefix),
                              f"-DMPI_HOME={self.prefix}")

    def test_find_macadam(self):
        version = run(self.prefix / "bin/mpiexec", "--version").split()[-1]
        build = self.build_with_cmake("find-macadam", FIND_MACADAM.format(version=version),
                                      f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.run_program(build / "c_user", (build / "mpiexec.txt").read_text())


if __name__ == "__main__":
    unittest.main()
