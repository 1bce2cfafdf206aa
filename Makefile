# SPDX-License-Identifier: BSD-3-Clause
# The doors to Macadam; CMake does the work (CMakePresets.json). `make help` lists them.

JOBS ?= $(shell nproc)
NP ?= 4
APP ?=
ARGS ?=
PREFIX ?= /usr/local

release := build/release
mpiexec := $(release)/bin/mpiexec

.PHONY: help run test check prove torture verbs cluster suites bench bench-verbs bench-ofi nas hpl figures gravel-figure install setup configure library
.PHONY: test-format test-release test-address test-thread
.NOTPARALLEL:

help:
	@echo 'make run                     run the heat2d example on 4 ranks and show what MPI did'
	@echo 'make run APP=./prog NP=8     run your program: a binary, or a source in C, C++, Fortran'
	@echo 'make check                   the quick tests, for while you work (under 3 minutes)'
	@echo 'make test                    every test that this machine can run (half an hour)'
	@echo 'make prove                   every interleaving of small programs on the engine (5 minutes)'
	@echo 'make torture                 ten thousand random programs, and as many over a bad RDMA network'
	@echo 'make verbs                   the tests over soft-RoCE, in virtual machines (five to twelve minutes)'
	@echo 'make cluster                 the tests on a cluster of namespaces with Slurm and ssh; needs root'
	@echo 'make suites                  suites of tests that others wrote, fetched and built (two hours)'
	@echo 'make bench                   the figures, side by side with other libraries'
	@echo 'make bench-verbs             the same over soft-RoCE, in a virtual machine'
	@echo 'make bench-ofi               the same over TCP, between two namespaces; needs root'
	@echo 'make nas NPB=folder CLASS=W  your copy of the NAS benchmarks; without NPB kernels of our own'
	@echo 'make hpl                     Linpack on the simulator, by ways to receive'
	@echo 'make figures                 the figures of the papers, on the simulator'
	@echo 'make gravel-figure           the figure of the Gravel paper, over three networks'
	@echo 'make install PREFIX=/opt/x   install the library and its tools'

setup:
	@cmake/setup.sh

configure: setup
	@mkdir -p build
	@cmake --preset release >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }

# What a user's program needs, without the tests.
library: configure
	@cmake --build --preset release -j $(JOBS) --target mpi_abi mpiexec macadam

# ---------------------------------------------------------------- running

ifeq ($(APP),)
run: library
	@cmake --build --preset release -j $(JOBS) --target heat2d
	MACADAM_REPORT=1 $(mpiexec) -n $(NP) $(release)/examples/heat2d \
	  examples/heat2d/pavement.png build/heat2d.png $(ARGS)
	@echo "The picture is $(CURDIR)/build/heat2d.png"
else
fortran := $(filter %.f %.F %.f90 %.F90,$(APP))
program := $(if $(filter %.c %.cc %.cpp %.cxx,$(APP))$(fortran),build/run/$(basename $(notdir $(APP))),$(APP))
run: library
ifneq ($(program),$(APP))
	@mkdir -p build/run
	$(if $(fortran),@cmake --build --preset release -j $(JOBS) --target mpifort_abi)
	$(release)/bin/$(if $(fortran),mpifort,$(if $(filter %.c,$(APP)),mpicc,mpicxx)) -O2 -g $(APP) \
	  -o $(program)
endif
	MACADAM_REPORT=1 $(mpiexec) -n $(NP) $(program) $(ARGS)
endif

# ---------------------------------------------------------------- testing

# Each part runs even if one before it failed; the end is a failure if any was.
test: setup
	@$(MAKE) --no-print-directory -k test-format test-release test-address test-thread

check: configure
	cmake --build --preset release -j $(JOBS) --target tests_unit tests_quick tests_exhaustive
	ctest --preset release -L 'unit|quick|exhaustive' -j $(JOBS)

test-format:
	clang-format --dry-run -Werror \
	  $$(find $(wildcard src sim tests bench examples) -name '*.h' -o -name '*.c' -o -name '*.cc')

test-release: configure
	cmake --build --preset release -j $(JOBS)
	ctest --preset release -LE long -j $(JOBS)

# The sanitizers see the units and the programs that `make check` runs; the thread sanitizer those of
# them that have threads.
test-address:
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS) --target tests_unit tests_quick
	ctest --preset asan -L 'unit|quick' -j $(JOBS)

test-thread:
	cmake --preset tsan
	cmake --build --preset tsan -j $(JOBS) --target tests_threads
	ctest --preset tsan -L threads -j $(JOBS)

# Every order of calls and packets of some hundred thousand small programs (docs/proof.md).
prove: configure
	@cmake --build --preset release -j $(JOBS) --target prove proof_boards_test proof_door_test proof_meeting_test
	$(release)/tests/prove/proof_boards_test --gtest_brief=1
	$(release)/tests/prove/proof_door_test --gtest_brief=1
	$(release)/tests/prove/proof_meeting_test --gtest_brief=1
	$(release)/tests/prove/prove $(ARGS)

# Ten thousand random programs in random orders, and as many over RDMA on devices that misbehave, of
# MPI and of Gravel.
SEEDS ?= 10000
torture: configure
	@cmake --build --preset release -j $(JOBS) --target proof_random_test torture_test gravel_torture_test
	MACADAM_SEEDS=$(SEEDS) $(release)/tests/prove/proof_random_test --gtest_brief=1
	MACADAM_SEEDS=$(SEEDS) MACADAM_JOBS=$(JOBS) $(release)/tests/torture/torture_test --gtest_brief=1
	MACADAM_SEEDS=$(SEEDS) MACADAM_JOBS=$(JOBS) $(release)/tests/gravel/torture/gravel_torture_test --gtest_brief=1

# The first line says why, where this machine cannot run the virtual one.
verbs: configure
	@python3 -B tests/vm/run.py -- true || [ $$? = 77 ]
	@cmake --build --preset release -j $(JOBS) --target tests_verbs
	ctest --preset release -L verbs -j $(JOBS)

# The first line says why, where this machine cannot make the machines or the user is not root.
cluster: configure
	@python3 -B tests/cluster/run.py -- true || [ $$? = 77 ]
	@cmake --build --preset release -j $(JOBS) --target tests_cluster
	ctest --preset release -L cluster

# Suites of other projects, unmodified (docs/suites.md). SUITES='boost fftw' for some, ARGS='--ranks 8'.
SUITES ?=
suites: library
	@! command -v gfortran >/dev/null || cmake --build --preset release -j $(JOBS) --target mpifort_abi
	python3 -B tests/third_party/suites.py $(SUITES) --build $(release) $(ARGS)

# ---------------------------------------------------------------- measuring, installing

bench: library
	@cmake --build --preset release -j $(JOBS) --target bench_programs
	python3 bench/run.py --build $(release)

bench-ofi: library
	@cmake --build --preset release -j $(JOBS) --target bench_programs
	python3 bench/ofi/run.py --build $(release)

bench-verbs: library
	@cmake --build --preset release -j $(JOBS) --target bench_programs
	python3 -B bench/verbs/run.py --build $(release) $(ARGS)

# NPB 3.4 with MPI, from a folder, or our kernels with its communication (docs/nas.md). KERNELS=cg,lu
# for some, ARGS='--over soft-roce' for the virtual machine, ARGS='--over simulator' for the papers' networks.
NPB ?=
CLASS ?= S
KERNELS ?= cg,lu,mg,sp,bt,ft,is
nas: library
	@cmake --build --preset release -j $(JOBS) --target nas_kernels mpifort_abi $(if $(findstring simulator,$(ARGS)),nas_modules)
	python3 -B bench/nas/run.py --build $(release) --class $(CLASS) --ranks $(NP) --kernels $(KERNELS) \
	  $(if $(NPB),--npb $(NPB)) $(ARGS)

# Linpack, fetched from Debian (docs/nas.md). ARGS='--over soft-roce' for the virtual machine.
hpl: library
	@cmake --build --preset release -j $(JOBS) --target macadam-simulate
	python3 -B bench/hpl/run.py --build $(release) $(ARGS)

# The papers' figures on the simulator (docs/figures.md). FIGURE=burst for one, ARGS='--largest 1024'.
FIGURE ?= all
figures: configure
	@cmake --build --preset release -j $(JOBS) --target macadam macadam-simulate bench_one_sided_module
	python3 -B sim/figures/figures.py $(FIGURE) --build $(release) $(ARGS)

# Figure 4 of the Gravel paper (docs/gravel.md). ARGS='--over simulator' for one network.
gravel-figure: library
	@cmake --build --preset release -j $(JOBS) --target gravel_patterns macadam-simulate
	python3 -B bench/gravel/figure.py --build $(release) $(ARGS)

install: setup
	cmake --preset release -B build/install -DMACADAM_TESTS=OFF
	cmake --build build/install -j $(JOBS)
	cmake --install build/install --prefix $(PREFIX)
