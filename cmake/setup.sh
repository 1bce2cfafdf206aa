#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes this machine ready to build and test Macadam: installs the Debian or Ubuntu packages that
# are missing, and does nothing if none is. On another distribution it lists what to install.
# Usage: cmake/setup.sh [--list]   (--list: print the packages and stop)
set -eu

# What is needed, a package and why, one a line.
packages() {
  cat <<LIST
g++                  the compiler, GCC 12 or later
gfortran             MPI in Fortran
cmake                3.25 or later
ninja-build          the build tool
ccache               makes repeated builds fast
clang-format         the check of the code's format
pkg-config           how other programs find the library
python3              generates the entry points from the table
python3-venv         tests with mpi4py and with MPICH, each in an environment of its own
python3-dev          builds mpi4py for its test
libfmt-dev           text
libcli11-dev         command lines
nlohmann-json3-dev   reports
libgtest-dev         unit tests
libstb-dev           pictures, in examples/heat2d
chromium             looks at the page of a report, in a test
libpmix-dev          joins jobs of Slurm and PRRTE
libfabric-dev        the interface to other networks
libfabric1           ... as programs need it
libibverbs-dev       the interface to RDMA adapters
ibverbs-providers    their drivers, soft-RoCE's among them
ibverbs-utils        looks at them, in tests
qemu-system-x86      the virtual machine for tests over soft-RoCE
busybox-static       ... its first programs
kmod                 ... its modules
iproute2             ... its network
LIST
}

if [ "${1:-}" = --list ]; then
  packages
  exit 0
fi

if ! command -v dpkg-query >/dev/null 2>&1; then
  distribution=$(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-this system}" || uname -s)
  missing=
  for tool in c++ cmake ninja python3; do
    command -v $tool >/dev/null 2>&1 || missing="$missing $tool"
  done
  if [ -z "$missing" ]; then
    exit 0 # the configuration names any library that is missing
  fi
  echo "setup: $distribution has no dpkg; please install what corresponds to:"
  packages | sed 's/^/  /'
  echo "setup: commands not found:$missing"
  exit 1
fi

missing=
for package in $(packages | cut -d ' ' -f 1); do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "setup: these packages are missing:$missing"
    echo "setup: there is no sudo here; as root, run: apt-get install$missing"
    exit 1
  fi
  as_root=sudo
fi
echo "setup: installing$missing"
export DEBIAN_FRONTEND=noninteractive
# A list of packages that is out of date is the usual reason for a failure.
install="$as_root apt-get install -y -qq --no-install-recommends"
$install $missing >/dev/null 2>&1 || { $as_root apt-get update -qq && $install $missing; }
