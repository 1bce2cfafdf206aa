// SPDX-License-Identifier: BSD-3-Clause
#include "boot/launcher.h"

#include <fmt/format.h>

#include <cstdlib>

namespace macadam::boot {
namespace {

// A variable that a launcher sets for the processes it starts, and what its number means. The ones
// that also stand in the environment of a batch script (SLURM_NTASKS) say nothing about this
// process.
struct Sign {
  const char* variable;
  const char* launcher;
  enum { size, rank } meaning;
};

constexpr Sign signs[] = {
    {"SLURM_STEP_NUM_TASKS", "Slurm (srun)", Sign::size},
    {"PMI_SIZE", "a PMI launcher (mpiexec of MPICH or Intel MPI)", Sign::size},
    {"OMPI_COMM_WORLD_SIZE", "Open MPI (mpirun)", Sign::size},
    {"MV2_COMM_WORLD_SIZE", "MVAPICH2 (mpirun_rsh)", Sign::size},
    {"PALS_RANKID", "PALS (aprun, mpiexec of HPE Cray)", Sign::rank},
    {"PMIX_RANK", "a PMIx launcher (prterun)", Sign::rank},
};

} // namespace

std::string refuse_foreign_launcher() {
  for (const Sign& sign : signs) {
    const char* text = std::getenv(sign.variable);
    if (!text) continue;
    const long number = std::strtol(text, nullptr, 10);
    // A rank does not tell the size; but there is no rank 1 in a job of one.
    if (number < (sign.meaning == Sign::size ? 2 : 1)) continue;
    return fmt::format(
        "this program was started as one of several by {} ({}={}), but Macadam can not join such a "
        "job and each process would run alone; start it with Macadam's mpiexec, or unset "
        "{} to run it alone on purpose",
        sign.launcher, sign.variable, text, sign.variable);
  }
  return {};
}

} // namespace macadam::boot
