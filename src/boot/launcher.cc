// SPDX-License-Identifier: BSD-3-Clause
#include "boot/launcher.h"

#include "base/error.h"

#include <fmt/format.h>

#include <cstdlib>

namespace macadam::boot {
namespace {

// A variable that a launcher sets for the processes it starts, what its number means, and how
// Macadam can join a job of it. The ones that also stand in the environment of a batch script
// (SLURM_NTASKS) say nothing about this process.
struct Sign {
  const char* variable;
  const char* launcher;
  enum { size, rank } meaning;
  const char* missing;
  const char* remedy; // besides mpiexec
};

constexpr const char* no_server =
    "it offers neither a PMIx nor a PMI-2 server (PMIX_NAMESPACE and PMI_FD are not set)";
constexpr const char* no_descriptor =
    "it speaks PMI, and the descriptor of its server is not here (PMI_FD); a process between them "
    "may have closed it";

constexpr Sign signs[] = {
    {"SLURM_STEP_NUM_TASKS", "Slurm (srun)", Sign::size, no_server,
     "start it with srun --mpi=pmix or --mpi=pmi2, "},
    {"FLUX_JOB_SIZE", "Flux (flux run)", Sign::size, no_server,
     "start it with flux run -o pmi=pmix, "},
    {"JSM_NAMESPACE_SIZE", "jsrun", Sign::size, no_server, ""},
    {"OMPI_COMM_WORLD_SIZE", "Open MPI (mpirun)", Sign::size, no_server,
     "start it with the mpirun of Open MPI 5, "},
    {"MV2_COMM_WORLD_SIZE", "MVAPICH2 (mpirun_rsh)", Sign::size, no_descriptor, ""},
    {"PMI_SIZE", "a PMI launcher (mpiexec of MPICH or Intel MPI)", Sign::size, no_descriptor, ""},
    {"PALS_RANKID", "PALS (aprun, mpiexec of HPE Cray)", Sign::rank, no_server, ""},
    {"PMIX_RANK", "a PMIx launcher (prterun)", Sign::rank, no_server, ""},
};

} // namespace

std::string check_seconds(const std::string& text) {
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  return *end == 0 && seconds > 0 ? "" : "\"" + text + "\" is no number of seconds above 0";
}

double timeout_of_environment() {
  const char* const text = std::getenv(timeout_variable);
  if (text == nullptr || *text == 0) return 0;
  if (const std::string trouble = check_seconds(text); !trouble.empty())
    base::fail(MPI_ERR_ARG, "{}: {}", timeout_variable, trouble);
  return std::strtod(text, nullptr);
}

std::string refuse_foreign_launcher() {
  for (const Sign& sign : signs) {
    const char* text = std::getenv(sign.variable);
    if (!text) continue;
    const long number = std::strtol(text, nullptr, 10);
    // A rank does not tell the size; but there is no rank 1 in a job of one.
    if (number < (sign.meaning == Sign::size ? 2 : 1)) continue;
    return fmt::format(
        "this program was started as one of several by {} ({}={}), and cannot join that job: {}; "
        "each process would run alone; {}start it with Macadam's mpiexec, or unset {} to run it "
        "alone on purpose",
        sign.launcher, sign.variable, text, sign.missing, sign.remedy, sign.variable);
  }
  return {};
}

} // namespace macadam::boot
