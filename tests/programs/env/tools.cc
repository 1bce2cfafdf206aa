// SPDX-License-Identifier: BSD-3-Clause
// The tool interface: control and performance variables can be listed and read, before MPI_Init
// and after it; their errors are returned as MPI_T codes.
#include "check.h"

namespace {

void control_variables() {
  int count = 0;
  OK(MPI_T_cvar_get_num(&count));
  CHECK(count > 0);
  for (int i = 0; i < count; ++i) {
    char name[256], text[1024];
    int name_length = sizeof name, text_length = sizeof text, verbosity = 0, bind = 0, scope = 0;
    MPI_Datatype type;
    MPI_T_enum choices;
    OK(MPI_T_cvar_get_info(i, name, &name_length, &verbosity, &type, &choices, text, &text_length,
                           &bind, &scope));
    CHECK_EQUAL(name_length, static_cast<int>(std::strlen(name)) + 1);
    int index = -1;
    OK(MPI_T_cvar_get_index(name, &index));
    CHECK_EQUAL(index, i);
    if (bind != MPI_T_BIND_NO_OBJECT || !check::is_macadam()) continue;
    MPI_T_cvar_handle handle;
    int elements = 0;
    char value[4096];
    OK(MPI_T_cvar_handle_alloc(i, nullptr, &handle, &elements));
    CHECK(type == MPI_CHAR ? elements > 1 : elements == 1);
    OK(MPI_T_cvar_read(handle, value));
    OK(MPI_T_cvar_handle_free(&handle));
    CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
  }
}

void performance_variables() {
  int count = 0;
  OK(MPI_T_pvar_get_num(&count));
  for (int i = 0; i < count; ++i) {
    char name[256], text[1024];
    int name_length = sizeof name, text_length = sizeof text;
    int verbosity, kind, bind, readonly, continuous, atomic, index = -1;
    MPI_Datatype type;
    MPI_T_enum choices;
    OK(MPI_T_pvar_get_info(i, name, &name_length, &verbosity, &kind, &type, &choices, text,
                           &text_length, &bind, &readonly, &continuous, &atomic));
    OK(MPI_T_pvar_get_index(name, kind, &index));
    CHECK_EQUAL(index, i);
  }
}

void categories() {
  int count = 0;
  OK(MPI_T_category_get_num(&count));
  for (int i = 0; i < count; ++i) {
    char name[256], text[1024];
    int name_length = sizeof name, text_length = sizeof text, cvars, pvars, inner;
    OK(MPI_T_category_get_info(i, name, &name_length, text, &text_length, &cvars, &pvars, &inner));
    std::vector<int> members(static_cast<std::size_t>(cvars) + 1);
    OK(MPI_T_category_get_cvars(i, cvars, members.data()));
  }
}

void errors_are_tool_codes() {
  int index = 0;
  CHECK_EQUAL(MPI_T_cvar_get_index("no such variable", &index), MPI_T_ERR_INVALID_NAME);
  CHECK_EQUAL(MPI_T_pvar_get_index("no such variable", MPI_T_PVAR_CLASS_COUNTER, &index),
              MPI_T_ERR_INVALID_NAME);
  int count = 0;
  OK(MPI_T_cvar_get_num(&count));
  MPI_T_cvar_handle handle;
  CHECK_EQUAL(MPI_T_cvar_handle_alloc(count, nullptr, &handle, &index), MPI_T_ERR_INVALID_INDEX);
}

} // namespace

int main(int argc, char** argv) {
  int provided = 0, count = 0;
  if (MPI_T_cvar_get_num(&count) != MPI_T_ERR_NOT_INITIALIZED) return 1;
  OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
  control_variables();
  OK(MPI_Init(&argc, &argv));
  const int code = check::run_parts(argc, argv,
                                    {{"control_variables", control_variables},
                                     {"performance_variables", performance_variables},
                                     {"categories", categories},
                                     {"errors_are_tool_codes", errors_are_tool_codes}});
  control_variables(); // still there after MPI_Finalize
  OK(MPI_T_finalize());
  return code;
}
