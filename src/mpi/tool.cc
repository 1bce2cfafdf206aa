// SPDX-License-Identifier: BSD-3-Clause
// The tool interface: start and end, control variables, enumerations.
#include "mpi/tool.h"

#include "base/error.h"
#include "mpi/calls.h"
#include "mpi/process.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace macadam::mpi {
namespace {

using base::SettingRow;

std::span<const SettingRow> rows() {
  return base::setting_rows();
}

// A setting in the tool interface's types: a number is an MPI_COUNT, a text is MPI_CHARs with a
// null at the end, all else an MPI_INT.
bool is_number(const SettingRow& row) {
  return std::holds_alternative<std::int64_t base::Settings::*>(row.value);
}
bool is_text(const SettingRow& row) {
  return std::holds_alternative<std::string base::Settings::*>(row.value);
}
MPI_Datatype type_of(const SettingRow& row) {
  if (is_text(row)) return MPI_CHAR;
  return is_number(row) ? MPI_COUNT : MPI_INT;
}

// Settings that choose among words have a unit like "automatic|cma|pipeline". Only an MPI_INT may
// have an enumeration.
ToolEnum* enum_of(Tool& tool, const SettingRow& row) {
  if (type_of(row) != MPI_INT || std::strchr(row.unit, '|') == nullptr) return nullptr;
  ToolEnum& found = tool.enums[&row];
  if (found.items.empty()) {
    found.name = row.name;
    std::string_view rest = row.unit;
    for (std::size_t bar = 0; bar != std::string_view::npos;) {
      bar = rest.find('|');
      found.items.emplace_back(rest.substr(0, bar));
      if (bar != std::string_view::npos) rest.remove_prefix(bar + 1);
    }
  }
  return &found;
}

constexpr int text_room = base::longest_text + 1;

const SettingRow& setting(Tool& tool, MPI_T_cvar_handle handle) {
  const auto found = tool.cvar_handles.find(handle);
  if (found == tool.cvar_handles.end()) {
    base::fail(MPI_T_ERR_INVALID_HANDLE, "no such handle of a control variable");
  }
  return *found->second->row;
}

const ToolEnum& enumeration(const Tool& tool, MPI_T_enum handle) {
  for (const auto& [row, found] : tool.enums) {
    if (reinterpret_cast<MPI_T_enum>(const_cast<ToolEnum*>(&found)) == handle) return found;
  }
  base::fail(MPI_T_ERR_INVALID_HANDLE, "no such enumeration");
}

} // namespace

Tool& tool(Library& self) {
  if (!self.tool || self.tool->users == 0) {
    base::fail(MPI_T_ERR_NOT_INITIALIZED, "MPI_T_init_thread must be called first");
  }
  return *self.tool;
}

void tool_string(std::string_view text, char* to, int* length) {
  if (length == nullptr) return;
  if (to != nullptr && *length > 0) to[text.copy(to, static_cast<std::size_t>(*length) - 1)] = '\0';
  *length = static_cast<int>(text.size()) + 1;
}

void check_tool_index(int index, std::size_t size, const char* what) {
  if (index < 0 || static_cast<std::size_t>(index) >= size) {
    base::fail(MPI_T_ERR_INVALID_INDEX, "{} {} does not exist; there are {}", what, index, size);
  }
}

void check_tool_output(const void* to, const char* name) {
  if (to == nullptr) base::fail(MPI_T_ERR_INVALID, "{} is a null pointer", name);
}

void t_init_thread(Library& self, int required, int* provided) {
  if (!self.tool) self.tool = std::make_unique<Tool>();
  ++self.tool->users;
  self.read_settings();
  // These functions take the lock at every level: of those that exist, the lowest that suffices.
  constexpr std::array<int, 3> levels{MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED,
                                      MPI_THREAD_SERIALIZED};
  const auto* const least = std::ranges::lower_bound(levels, required);
  tool_output<int>(provided, least != levels.end() ? *least : MPI_THREAD_MULTIPLE);
}

void t_finalize(Library& self) {
  Tool& mine = tool(self);
  if (--mine.users == 0) self.tool.reset();
}

void t_cvar_get_num(Library& self, int* num_cvar) {
  tool(self);
  check_tool_output(num_cvar, "num_cvar");
  *num_cvar = static_cast<int>(rows().size());
}

void t_cvar_get_info(Library& self, int cvar_index, char* name, int* name_len, int* verbosity,
                     MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len,
                     int* bind, int* scope) {
  Tool& mine = tool(self);
  check_tool_index(cvar_index, rows().size(), "control variable");
  const SettingRow& row = rows()[static_cast<std::size_t>(cvar_index)];
  tool_string(row.name, name, name_len);
  tool_string(row.help, desc, desc_len);
  tool_output<int>(verbosity, MPI_T_VERBOSITY_USER_BASIC);
  tool_output(datatype, type_of(row));
  tool_output(enumtype, reinterpret_cast<MPI_T_enum>(enum_of(mine, row)));
  tool_output<int>(bind, MPI_T_BIND_NO_OBJECT);
  const bool local = row.changeable == base::Changeable::always;
  tool_output<int>(scope, local ? MPI_T_SCOPE_LOCAL : MPI_T_SCOPE_ALL_EQ);
}

void t_cvar_get_index(Library& self, const char* name, int* cvar_index) {
  tool(self);
  check_tool_output(name, "name");
  check_tool_output(cvar_index, "cvar_index");
  const auto found = std::ranges::find(rows(), std::string_view(name), &SettingRow::name);
  if (found == rows().end()) {
    base::fail(MPI_T_ERR_INVALID_NAME, "there is no control variable '{}'", name);
  }
  *cvar_index = static_cast<int>(found - rows().begin());
}

void t_cvar_handle_alloc(Library& self, int cvar_index, void*, MPI_T_cvar_handle* handle,
                         int* count) {
  Tool& mine = tool(self);
  check_tool_index(cvar_index, rows().size(), "control variable");
  check_tool_output(handle, "handle");
  auto made =
      std::make_unique<CvarHandle>(CvarHandle{&rows()[static_cast<std::size_t>(cvar_index)]});
  *handle = reinterpret_cast<MPI_T_cvar_handle>(made.get());
  mine.cvar_handles[*handle] = std::move(made);
  tool_output(count, is_text(*mine.cvar_handles[*handle]->row) ? text_room : 1);
}

void t_cvar_handle_free(Library& self, MPI_T_cvar_handle* handle) {
  Tool& mine = tool(self);
  check_tool_output(handle, "handle");
  setting(mine, *handle);
  mine.cvar_handles.erase(*handle);
  *handle = MPI_T_CVAR_HANDLE_NULL;
}

void t_cvar_read(Library& self, MPI_T_cvar_handle handle, void* buf) {
  const SettingRow& row = setting(tool(self), handle);
  check_tool_output(buf, "buf");
  std::visit(
      [&](auto member) {
        const auto& value = self.settings.*member;
        if constexpr (std::is_same_v<decltype(value), const std::string&>) {
          static_cast<char*>(buf)[value.copy(static_cast<char*>(buf), base::longest_text)] = '\0';
        } else if (is_number(row)) {
          *static_cast<MPI_Count*>(buf) = static_cast<MPI_Count>(value);
        } else {
          *static_cast<int*>(buf) = static_cast<int>(value);
        }
      },
      row.value);
}

void t_cvar_write(Library& self, MPI_T_cvar_handle handle, const void* buf) {
  Tool& mine = tool(self);
  const SettingRow& row = setting(mine, handle);
  check_tool_output(buf, "buf");
  const bool running_too = row.changeable == base::Changeable::always;
  if (self.settings_used && !(running_too && self.users > 0)) {
    base::fail(MPI_T_ERR_CVAR_SET_NOT_NOW, "{} can be set before MPI_{} only", row.name,
               running_too ? "Finalize" : "Init");
  }
  // As text, so that a value is checked in one place, as if it came from the environment.
  std::string text;
  if (is_text(row)) {
    const auto* const from = static_cast<const char*>(buf);
    text.assign(from, strnlen(from, text_room));
  } else if (is_number(row)) {
    text = std::to_string(*static_cast<const MPI_Count*>(buf));
  } else if (const ToolEnum* choices = enum_of(mine, row)) {
    const int value = *static_cast<const int*>(buf);
    check_tool_index(value, choices->items.size(), "choice");
    text = choices->items[static_cast<std::size_t>(value)];
  } else {
    text = *static_cast<const int*>(buf) != 0 ? "yes" : "no";
  }
  base::set(self.settings, row, text);
}

void t_enum_get_info(Library& self, MPI_T_enum enumtype, int* num, char* name, int* name_len) {
  const ToolEnum& found = enumeration(tool(self), enumtype);
  tool_output(num, static_cast<int>(found.items.size()));
  tool_string(found.name, name, name_len);
}

void t_enum_get_item(Library& self, MPI_T_enum enumtype, int index, int* value, char* name,
                     int* name_len) {
  const ToolEnum& found = enumeration(tool(self), enumtype);
  if (index < 0 || static_cast<std::size_t>(index) >= found.items.size()) {
    base::fail(MPI_T_ERR_INVALID_ITEM, "item {} does not exist; there are {}", index,
               found.items.size());
  }
  tool_output(value, index);
  tool_string(found.items[static_cast<std::size_t>(index)], name, name_len);
}

} // namespace macadam::mpi
