// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/counters.h"
#include "base/settings.h"

#include <mpi.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace macadam::mpi {

class Library;

// The values of a setting with choices, behind MPI_T_enum.
struct ToolEnum {
  std::string name;
  std::vector<std::string> items; // their values are 0, 1, ...
};

struct CvarHandle {
  const base::SettingRow* row;
};

struct PvarHandle {
  const base::Counter* counter;
  MPI_T_pvar_session session;
  std::uint64_t zero = 0; // value of the counter that this handle shows as 0
  std::uint64_t most = 0; // of the counter, as far as this handle has seen
};

// The tool interface (MPI_T): control variables are the settings, performance variables the
// counters, categories the counters' groups. Errors are thrown as base::Error with MPI_T_ERR_*
// codes.
struct Tool {
  int users = 0; // MPI_T_init_thread without MPI_T_finalize
  std::map<const base::SettingRow*, ToolEnum> enums;
  std::map<MPI_T_cvar_handle, std::unique_ptr<CvarHandle>> cvar_handles;
  std::map<MPI_T_pvar_handle, std::unique_ptr<PvarHandle>> pvar_handles;
  std::map<MPI_T_pvar_session, std::unique_ptr<char>> sessions;
};

// Refuses every call before MPI_T_init_thread.
Tool& tool(Library& self);

// Returns a string as the tool interface does: at most *length characters with the null, and then
// its whole length with the null in *length. Either address may be null.
void tool_string(std::string_view text, char* to, int* length);

// *to = value, where the caller wants it.
template <class T>
void tool_output(T* to, T value) {
  if (to != nullptr) *to = value;
}

// Throws MPI_T_ERR_INVALID_INDEX unless 0 <= index < size.
void check_tool_index(int index, std::size_t size, const char* what);
// Throws MPI_T_ERR_INVALID for a null address of a result that cannot be left out.
void check_tool_output(const void* to, const char* name);

} // namespace macadam::mpi
