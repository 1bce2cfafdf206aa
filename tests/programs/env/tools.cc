// SPDX-License-Identifier: BSD-3-Clause
// The tool interface: control and performance variables can be listed and read, before MPI_Init
// and after it, by any thread; some can be written meanwhile; their errors are returned as MPI_T
// codes.
#include "counter.h"
#include "one_node.h"

#include <functional>
#include <memory>

namespace {

using check::Variable;

// A level that exists, whatever is asked for.
void levels() {
  for (const int required : {-1, 0, 1, 12345, static_cast<int>(MPI_THREAD_SERIALIZED)}) {
    int provided = -1;
    OK(MPI_T_init_thread(required, &provided));
    OK(MPI_T_finalize());
    CHECK(provided == MPI_THREAD_SINGLE || provided == MPI_THREAD_FUNNELED ||
          provided == MPI_THREAD_SERIALIZED || provided == MPI_THREAD_MULTIPLE);
    if (check::is_macadam()) CHECK(provided >= required || provided == MPI_THREAD_MULTIPLE);
  }
}

// Rank 0 sends to rank 1, which is late.
void exchange(MPI_Comm comm, const std::function<void()>& look) {
  std::vector<char> data(1000);
  if (check::rank == 0) {
    OK(MPI_Send(data.data(), 1000, MPI_CHAR, 1, 5, comm));
    OK(MPI_Send(nullptr, 0, MPI_CHAR, 1, 6, comm));
    OK(MPI_Recv(nullptr, 0, MPI_CHAR, 1, 7, comm, MPI_STATUS_IGNORE));
  } else if (check::rank == 1) {
    OK(MPI_Recv(nullptr, 0, MPI_CHAR, 0, 6, comm, MPI_STATUS_IGNORE));
    look();
    OK(MPI_Recv(data.data(), 1000, MPI_CHAR, 0, 5, comm, MPI_STATUS_IGNORE));
    OK(MPI_Send(nullptr, 0, MPI_CHAR, 0, 7, comm));
  }
}

// What was held at most is known of the whole life of the process: no reset makes it less.
void watermarks() {
  if (!check::is_macadam()) return;
  const Variable most("unexpected_bytes_most", MPI_T_PVAR_CLASS_HIGHWATERMARK);
  OK(MPI_T_pvar_reset(most.session, MPI_T_PVAR_ALL_HANDLES));
  unsigned long long value = 0;
  CHECK_EQUAL(MPI_T_pvar_reset(most.session, most.handle), MPI_T_ERR_PVAR_NO_WRITE);
  CHECK_EQUAL(MPI_T_pvar_write(most.session, most.handle, &value), MPI_T_ERR_PVAR_NO_WRITE);
  CHECK_EQUAL(MPI_T_pvar_readreset(most.session, most.handle, &value), MPI_T_ERR_PVAR_NO_WRITE);
  if (check::size < 2) return;
  exchange(MPI_COMM_WORLD, [&] {
    CHECK(most.read() >= 1000);
    OK(MPI_T_pvar_reset(most.session, MPI_T_PVAR_ALL_HANDLES));
    CHECK(most.read() >= 1000);
  });
}

// A handle goes on counting where MPI starts again, as it does on one machine.
std::unique_ptr<Variable> sent;
unsigned long long counted = 0;

void counts_at_first() {
  if (!check::is_macadam() || check::size < 2 || !check::one_node()) return;
  for (int i = 0; i < 50; ++i) // more than it takes to start again
    exchange(MPI_COMM_WORLD, [] {});
  sent = std::make_unique<Variable>("eager_sent", MPI_T_PVAR_CLASS_COUNTER);
  OK(MPI_T_pvar_reset(sent->session, MPI_T_PVAR_ALL_HANDLES));
  exchange(MPI_COMM_WORLD, [] {});
  counted = sent->read();
  CHECK(counted >= (check::rank < 2 ? 1 : 0));
}

void counts_on() {
  if (!sent) return;
  const unsigned long long at_end = sent->read();
  CHECK(at_end >= counted);
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
  OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
  OK(MPI_Comm_create_from_group(group, "again", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
  exchange(comm, [] {});
  CHECK(sent->read() >= at_end + (check::rank < 2 ? 1 : 0));
  CHECK(sent->read() < at_end + 1000);
  OK(MPI_Comm_free(&comm));
  OK(MPI_Group_free(&group));
  OK(MPI_Session_finalize(&session));
  sent.reset();
}

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
    CHECK(type == MPI_INT || choices == MPI_T_ENUM_NULL);
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

int write(const char* name, MPI_Count value) {
  int index = 0, count = 0;
  MPI_T_cvar_handle handle;
  OK(MPI_T_cvar_get_index(name, &index));
  OK(MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count));
  const int code = MPI_T_cvar_write(handle, &value);
  OK(MPI_T_cvar_handle_free(&handle));
  return code;
}

// What every look asks for can be changed while MPI runs, and what start has built on cannot.
void changes_under_way() {
  if (!check::is_macadam()) return;
  CHECK_EQUAL(write("shm_queue", 1 << 20), MPI_T_ERR_CVAR_SET_NOT_NOW);
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  const std::vector<char> data(4096);
  OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
  OK(write("buffered", 1024));
  FAILS(MPI_ERR_BUFFER, MPI_Bsend(data.data(), 4096, MPI_CHAR, 0, 0, MPI_COMM_SELF));
  OK(write("buffered", 1 << 20));
  OK(MPI_Bsend(data.data(), 4096, MPI_CHAR, 0, 0, MPI_COMM_SELF));
  std::vector<char> received(4096);
  OK(MPI_Recv(received.data(), 4096, MPI_CHAR, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  void* buffer = nullptr;
  int size = 0;
  OK(MPI_Buffer_detach(&buffer, &size));
}

// Tools have threads of their own, whatever level the program asks for.
void threads_of_tools() {
  if (!check::is_macadam()) return;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 2000; ++round) {
        int index = 0, count = 0;
        MPI_T_cvar_handle handle;
        OK(MPI_T_cvar_get_index("spin", &index));
        OK(MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count));
        MPI_Count value = 0;
        OK(MPI_T_cvar_read(handle, &value));
        OK(MPI_T_cvar_handle_free(&handle));
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

} // namespace

int main(int argc, char** argv) {
  int provided = 0, count = 0;
  if (MPI_T_cvar_get_num(&count) != MPI_T_ERR_NOT_INITIALIZED) return 1;
  OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided)); // as tools do, before MPI_Init
  CHECK_EQUAL(provided, MPI_THREAD_MULTIPLE);
  levels();
  control_variables();
  threads_of_tools();
  OK(MPI_Init(&argc, &argv));
  const int code = check::run_parts(argc, argv,
                                    {{"control_variables", control_variables},
                                     {"performance_variables", performance_variables},
                                     {"watermarks", watermarks},
                                     {"counts_at_first", counts_at_first},
                                     {"categories", categories},
                                     {"changes_under_way", changes_under_way},
                                     {"threads_of_tools", threads_of_tools},
                                     {"errors_are_tool_codes", errors_are_tool_codes}});
  control_variables(); // still there after MPI_Finalize
  counts_on();
  OK(MPI_T_finalize());
  return code;
}
