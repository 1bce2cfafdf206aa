// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/process.h"

#include "mpi/tool.h"
#include "mpi/window.h"

namespace macadam::mpi {
namespace {

template <class Handle>
std::uintptr_t value(Handle handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

} // namespace

Process* running = nullptr;
Process* standing = nullptr;

Process::Process() : info_env(MPI_INFO_ENV), windows(std::make_unique<Windows>()) {
  for (std::uintptr_t code = 0; code < predefined.size(); ++code) {
    if (auto* type = types.find(reinterpret_cast<MPI_Datatype>(code))) predefined[code] = type;
    if (auto* op = ops.find(reinterpret_cast<MPI_Op>(code))) predefined[code] = op;
  }
  empty_group.constant = MPI_GROUP_EMPTY;
  predefined[value(MPI_GROUP_EMPTY)] = &empty_group;
  predefined[value(MPI_INFO_ENV)] = &info_env;
  for (Errhandler* handler : {&errors_are_fatal, &errors_abort, &errors_return}) {
    predefined[value(handler->constant)] = handler;
  }
}

Process::~Process() = default;

std::uint64_t Process::new_context() {
  // Four contexts a communicator, one for each lane.
  constexpr std::uint32_t most = UINT32_MAX / 4;
  if (contexts_ == most) {
    base::fail(MPI_ERR_OTHER,
               "this rank has led {} new communicators, the most there can be; free "
               "communicators do not give their place back",
               most);
  }
  const auto leader = static_cast<std::uint64_t>(job->rank());
  return leader << 32 | std::uint64_t{contexts_++} * 4;
}

Process& anytime() {
  // Never destroyed: MPI_Finalized may be called as late as in another library's destructor.
  if (standing != nullptr) return *standing;
  static auto* const process = new Process;
  return *process;
}

} // namespace macadam::mpi
