// SPDX-License-Identifier: BSD-3-Clause
// The tool interface: categories, and events, of which there are none.
#include "base/error.h"
#include "mpi/calls.h"
#include "mpi/process.h"
#include "mpi/tool.h"

#include <algorithm>
#include <string>

namespace macadam::mpi {
namespace {

// Category 0 holds the settings; the others are the groups of counters, in order of appearance.
std::vector<std::string> categories(const Library& self) {
  std::vector<std::string> names = {"settings"};
  for (const base::Counter& counter : self.counters.rows()) {
    if (std::ranges::find(names, counter.group) == names.end()) names.emplace_back(counter.group);
  }
  return names;
}

// A category's control variables, and its performance variables.
std::vector<int> cvars_in(int category) {
  std::vector<int> indices;
  if (category != 0) return indices;
  for (std::size_t i = 0; i < base::setting_rows().size(); ++i)
    indices.push_back(static_cast<int>(i));
  return indices;
}
std::vector<int> pvars_in(const Library& self, const std::string& category) {
  std::vector<int> indices;
  const auto& rows = self.counters.rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].group == category) indices.push_back(static_cast<int>(i));
  }
  return indices;
}

std::string checked_category(Library& self, int index) {
  tool(self);
  const std::vector<std::string> names = categories(self);
  check_tool_index(index, names.size(), "category");
  return names[static_cast<std::size_t>(index)];
}

void copy_indices(const std::vector<int>& from, int len, int to[]) {
  const auto room = static_cast<std::size_t>(std::max(len, 0));
  if (room > 0) check_tool_output(to, "indices");
  std::copy_n(from.begin(), std::min(room, from.size()), to);
}

[[noreturn]] void no_event_handle() {
  base::fail(MPI_T_ERR_INVALID_HANDLE, "no such handle: this library has no events");
}

} // namespace

void t_category_get_num(Library& self, int* num_cat) {
  tool(self);
  check_tool_output(num_cat, "num_cat");
  *num_cat = static_cast<int>(categories(self).size());
}

void t_category_get_info(Library& self, int cat_index, char* name, int* name_len, char* desc,
                         int* desc_len, int* num_cvars, int* num_pvars, int* num_categories) {
  const std::string category = checked_category(self, cat_index);
  tool_string(category, name, name_len);
  tool_string(cat_index == 0 ? "settings of the library" : "counters of " + category, desc,
              desc_len);
  tool_output(num_cvars, static_cast<int>(cvars_in(cat_index).size()));
  tool_output(num_pvars, static_cast<int>(pvars_in(self, category).size()));
  tool_output(num_categories, 0);
}

void t_category_get_index(Library& self, const char* name, int* cat_index) {
  tool(self);
  check_tool_output(name, "name");
  check_tool_output(cat_index, "cat_index");
  const std::vector<std::string> names = categories(self);
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) base::fail(MPI_T_ERR_INVALID_NAME, "there is no category '{}'", name);
  *cat_index = static_cast<int>(found - names.begin());
}

void t_category_get_cvars(Library& self, int cat_index, int len, int indices[]) {
  checked_category(self, cat_index);
  copy_indices(cvars_in(cat_index), len, indices);
}

void t_category_get_pvars(Library& self, int cat_index, int len, int indices[]) {
  copy_indices(pvars_in(self, checked_category(self, cat_index)), len, indices);
}

void t_category_get_categories(Library& self, int cat_index, int, int[]) {
  checked_category(self, cat_index); // none holds another
}

void t_category_changed(Library& self, int* update_number) {
  tool(self);
  check_tool_output(update_number, "update_number");
  *update_number = static_cast<int>(self.counters.rows().size()); // instances and networks add some
}

void t_category_get_num_events(Library& self, int cat_index, int* num_events) {
  checked_category(self, cat_index);
  check_tool_output(num_events, "num_events");
  *num_events = 0;
}

void t_category_get_events(Library& self, int cat_index, int, int[]) {
  checked_category(self, cat_index);
}

// --- Events and their sources ------------------------------------------------------------------

void t_event_get_num(Library& self, int* num_events) {
  tool(self);
  check_tool_output(num_events, "num_events");
  *num_events = 0;
}

void t_event_get_index(Library& self, const char* name, int*) {
  tool(self);
  check_tool_output(name, "name");
  base::fail(MPI_T_ERR_INVALID_NAME, "there is no event type '{}'", name);
}

void t_event_get_info(Library& self, int event_index, char*, int*, int*, MPI_Datatype[], MPI_Aint[],
                      int*, MPI_T_enum*, MPI_Info*, char*, int*, int*) {
  tool(self);
  check_tool_index(event_index, 0, "event type");
}

void t_event_handle_alloc(Library& self, int event_index, void*, MPI_Info,
                          MPI_T_event_registration*) {
  tool(self);
  check_tool_index(event_index, 0, "event type");
}

void t_event_handle_free(Library& self, MPI_T_event_registration, void*,
                         MPI_T_event_free_cb_function*) {
  tool(self);
  no_event_handle();
}
void t_event_handle_get_info(Library& self, MPI_T_event_registration, MPI_Info*) {
  tool(self);
  no_event_handle();
}
void t_event_handle_set_info(Library& self, MPI_T_event_registration, MPI_Info) {
  tool(self);
  no_event_handle();
}
void t_event_register_callback(Library& self, MPI_T_event_registration, MPI_T_cb_safety, MPI_Info,
                               void*, MPI_T_event_cb_function*) {
  tool(self);
  no_event_handle();
}
void t_event_callback_get_info(Library& self, MPI_T_event_registration, MPI_T_cb_safety,
                               MPI_Info*) {
  tool(self);
  no_event_handle();
}
void t_event_callback_set_info(Library& self, MPI_T_event_registration, MPI_T_cb_safety, MPI_Info) {
  tool(self);
  no_event_handle();
}
void t_event_set_dropped_handler(Library& self, MPI_T_event_registration,
                                 MPI_T_event_dropped_cb_function*) {
  tool(self);
  no_event_handle();
}
void t_event_read(Library& self, MPI_T_event_instance, int, void*) {
  tool(self);
  no_event_handle();
}
void t_event_copy(Library& self, MPI_T_event_instance, void*) {
  tool(self);
  no_event_handle();
}
void t_event_get_timestamp(Library& self, MPI_T_event_instance, MPI_Count*) {
  tool(self);
  no_event_handle();
}
void t_event_get_source(Library& self, MPI_T_event_instance, int*) {
  tool(self);
  no_event_handle();
}

void t_source_get_num(Library& self, int* num_sources) {
  tool(self);
  check_tool_output(num_sources, "num_sources");
  *num_sources = 0;
}

void t_source_get_info(Library& self, int source_index, char*, int*, char*, int*,
                       MPI_T_source_order*, MPI_Count*, MPI_Count*, MPI_Info*) {
  tool(self);
  check_tool_index(source_index, 0, "event source");
}

void t_source_get_timestamp(Library& self, int source_index, MPI_Count*) {
  tool(self);
  check_tool_index(source_index, 0, "event source");
}

} // namespace macadam::mpi
