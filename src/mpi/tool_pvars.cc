// SPDX-License-Identifier: BSD-3-Clause
// The tool interface: performance variables. Counters are always on (continuous); a handle that is
// reset or written only shifts what it shows. A watermark is read-only: from a reset on it would
// have to begin at the present level, which the list does not have.
#include "base/error.h"
#include "mpi/calls.h"
#include "mpi/process.h"
#include "mpi/tool.h"

#include <algorithm>
#include <string_view>

namespace macadam::mpi {
namespace {

using base::Counter;

int class_of(const Counter& counter) {
  return counter.is_watermark() ? MPI_T_PVAR_CLASS_HIGHWATERMARK : MPI_T_PVAR_CLASS_COUNTER;
}

void check_session(const Tool& tool, MPI_T_pvar_session session) {
  if (!tool.sessions.contains(session)) {
    base::fail(MPI_T_ERR_INVALID_SESSION, "no such session of performance variables");
  }
}

PvarHandle& variable(Tool& tool, MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  check_session(tool, session);
  const auto found = tool.pvar_handles.find(handle);
  if (found == tool.pvar_handles.end() || found->second->session != session) {
    base::fail(MPI_T_ERR_INVALID_HANDLE,
               "no such handle of a performance variable in this session");
  }
  return *found->second;
}

void check_continuous(Tool& tool, MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  check_session(tool, session);
  if (handle == MPI_T_PVAR_ALL_HANDLES) return; // continuous ones are passed over
  variable(tool, session, handle);
  base::fail(MPI_T_ERR_PVAR_NO_STARTSTOP,
             "the variable is continuous; it cannot be started or stopped");
}

// The same, where it is to be written.
PvarHandle& writable(Tool& tool, MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  PvarHandle& found = variable(tool, session, handle);
  if (found.counter->is_watermark())
    base::fail(MPI_T_ERR_PVAR_NO_WRITE, "{} is read-only; it cannot be written or reset",
               found.counter->name);
  return found;
}

// A message that changes its protocol on the way is taken back from what it was counted as, but
// what tools see of a counter never falls.
std::uint64_t count(PvarHandle& handle) {
  handle.most = std::max(handle.most, handle.counter->total());
  return handle.most;
}

} // namespace

void t_pvar_get_num(Library& self, int* num_pvar) {
  tool(self);
  check_tool_output(num_pvar, "num_pvar");
  *num_pvar = static_cast<int>(self.counters.rows().size());
}

void t_pvar_get_info(Library& self, int pvar_index, char* name, int* name_len, int* verbosity,
                     int* var_class, MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc,
                     int* desc_len, int* bind, int* readonly, int* continuous, int* atomic) {
  tool(self);
  check_tool_index(pvar_index, self.counters.rows().size(), "performance variable");
  const Counter& counter = self.counters.rows()[static_cast<std::size_t>(pvar_index)];
  tool_string(counter.name, name, name_len);
  tool_string(counter.text, desc, desc_len);
  tool_output<int>(verbosity, MPI_T_VERBOSITY_USER_BASIC);
  tool_output(var_class, class_of(counter));
  tool_output(datatype, MPI_UNSIGNED_LONG_LONG);
  tool_output(enumtype, MPI_T_ENUM_NULL);
  tool_output<int>(bind, MPI_T_BIND_NO_OBJECT);
  tool_output(readonly, counter.is_watermark() ? 1 : 0);
  tool_output(continuous, 1);
  tool_output(atomic, counter.is_watermark() ? 0 : 1);
}

void t_pvar_get_index(Library& self, const char* name, int var_class, int* pvar_index) {
  tool(self);
  check_tool_output(name, "name");
  check_tool_output(pvar_index, "pvar_index");
  const auto& rows = self.counters.rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (std::string_view(rows[i].name) == name && class_of(rows[i]) == var_class) {
      *pvar_index = static_cast<int>(i);
      return;
    }
  }
  base::fail(MPI_T_ERR_INVALID_NAME, "there is no performance variable '{}' of class {}", name,
             var_class);
}

void t_pvar_session_create(Library& self, MPI_T_pvar_session* session) {
  Tool& mine = tool(self);
  check_tool_output(session, "session");
  auto made = std::make_unique<char>();
  *session = reinterpret_cast<MPI_T_pvar_session>(made.get());
  mine.sessions[*session] = std::move(made);
}

void t_pvar_session_free(Library& self, MPI_T_pvar_session* session) {
  Tool& mine = tool(self);
  check_tool_output(session, "session");
  check_session(mine, *session);
  std::erase_if(mine.pvar_handles,
                [&](const auto& row) { return row.second->session == *session; });
  mine.sessions.erase(*session);
  *session = MPI_T_PVAR_SESSION_NULL;
}

void t_pvar_handle_alloc(Library& self, MPI_T_pvar_session session, int pvar_index, void*,
                         MPI_T_pvar_handle* handle, int* count) {
  Tool& mine = tool(self);
  check_session(mine, session);
  check_tool_index(pvar_index, self.counters.rows().size(), "performance variable");
  check_tool_output(handle, "handle");
  const Counter& counter = self.counters.rows()[static_cast<std::size_t>(pvar_index)];
  auto made = std::make_unique<PvarHandle>(PvarHandle{&counter, session});
  *handle = reinterpret_cast<MPI_T_pvar_handle>(made.get());
  mine.pvar_handles[*handle] = std::move(made);
  tool_output(count, 1);
}

void t_pvar_handle_free(Library& self, MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
  Tool& mine = tool(self);
  check_tool_output(handle, "handle");
  variable(mine, session, *handle);
  mine.pvar_handles.erase(*handle);
  *handle = MPI_T_PVAR_HANDLE_NULL;
}

void t_pvar_start(Library& self, MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  check_continuous(tool(self), session, handle);
}

void t_pvar_stop(Library& self, MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  check_continuous(tool(self), session, handle);
}

void t_pvar_read(Library& self, MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
  PvarHandle& found = variable(tool(self), session, handle);
  check_tool_output(buf, "buf");
  *static_cast<unsigned long long*>(buf) = count(found) - found.zero;
}

void t_pvar_write(Library& self, MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                  const void* buf) {
  PvarHandle& found = writable(tool(self), session, handle);
  check_tool_output(buf, "buf");
  found.zero = count(found) - *static_cast<const unsigned long long*>(buf);
}

void t_pvar_reset(Library& self, MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  Tool& mine = tool(self);
  if (handle != MPI_T_PVAR_ALL_HANDLES) {
    PvarHandle& found = writable(mine, session, handle);
    found.zero = count(found);
    return;
  }
  check_session(mine, session);
  for (const auto& [key, found] : mine.pvar_handles) {
    if (found->session == session && !found->counter->is_watermark()) found->zero = count(*found);
  }
}

void t_pvar_readreset(Library& self, MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                      void* buf) {
  PvarHandle& found = writable(tool(self), session, handle);
  t_pvar_read(self, session, handle, buf);
  found.zero = count(found);
}

} // namespace macadam::mpi
