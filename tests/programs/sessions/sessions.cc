// SPDX-License-Identifier: BSD-3-Clause
// Sessions: their queries, groups, communicators and errors; before, during and after the world.
#include "sessions/meeting.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <strings.h>

namespace {

using sessions::begin;
using sessions::comm_of;
using sessions::comm_of_session;
using sessions::end;
using sessions::exchange;
using sessions::group_of;

std::string value(MPI_Info info, const char* key) {
  char text[MPI_MAX_INFO_VAL] = "";
  int room = sizeof text, found = 0;
  OK(MPI_Info_get_string(info, key, &room, text, &found));
  return found != 0 ? text : "";
}

// Nothing of this needs a network.
void queries() {
  check::part = "queries";
  MPI_Session session = begin();
  int sets = 0;
  OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets));
  bool has_world = false, has_self = false;
  for (int n = 0; n < sets; ++n) {
    int length = 0;
    OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, nullptr));
    std::string name(static_cast<std::size_t>(length), '?');
    OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, name.data()));
    CHECK_EQUAL(name.size(), static_cast<std::size_t>(length));
    name.pop_back();
    has_world = has_world || strcasecmp(name.c_str(), "mpi://WORLD") == 0;
    has_self = has_self || strcasecmp(name.c_str(), "mpi://SELF") == 0;
    MPI_Info info = MPI_INFO_NULL;
    OK(MPI_Session_get_pset_info(session, name.c_str(), &info));
    MPI_Group group = group_of(session, name.c_str());
    int size = -1;
    OK(MPI_Group_size(group, &size));
    CHECK_EQUAL(value(info, "mpi_size"), std::to_string(size));
    OK(MPI_Info_free(&info));
    OK(MPI_Group_free(&group));
  }
  CHECK(has_world && has_self);
  // What has too little room is cut off, and the length is told.
  std::array<char, 4> little = {'?', '?', '?', '?'};
  int length = 3;
  OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, little.data()));
  CHECK_EQUAL(std::string(little.data()), "mp");
  CHECK(little[3] == '?');
  CHECK(length > 10 || !check::is_macadam()); // MPICH 5.0 leaves it at 3

  MPI_Info info = MPI_INFO_NULL;
  OK(MPI_Session_get_info(session, &info));
  // Which level a session has that asks for none is the implementation's choice.
  if (check::is_macadam()) CHECK_EQUAL(value(info, "thread_level"), "MPI_THREAD_MULTIPLE");
  CHECK_EQUAL(value(info, "mpi_memory_alloc_kinds"), "mpi,system");
  OK(MPI_Info_free(&info));

  MPI_Group world = group_of(session), self = group_of(session, "mpi://SELF"), lower, rest, all;
  OK(MPI_Group_rank(world, &check::rank));
  OK(MPI_Group_size(world, &check::size));
  int compared = -1;
  OK(MPI_Group_incl(world, 1, &check::rank, &lower));
  OK(MPI_Group_compare(lower, self, &compared));
  CHECK_EQUAL(compared, MPI_IDENT);
  OK(MPI_Group_difference(world, self, &rest));
  OK(MPI_Group_union(self, rest, &all));
  OK(MPI_Group_compare(all, world, &compared));
  CHECK(compared != MPI_UNEQUAL);
  for (MPI_Group* group : {&world, &self, &lower, &rest, &all})
    OK(MPI_Group_free(group));
  // Datatypes need none either.
  MPI_Datatype type = MPI_DATATYPE_NULL;
  OK(MPI_Type_contiguous(3, MPI_INT, &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_Type_free(&type));
  int initialized = 1;
  OK(MPI_Initialized(&initialized));
  CHECK(initialized == 0);
  end(session);
}

void fixed_level() {
  check::part = "fixed level";
  MPI_Session first = begin("MPI_THREAD_SERIALIZED"), second = begin("MPI_THREAD_MULTIPLE");
  MPI_Info info = MPI_INFO_NULL;
  OK(MPI_Session_get_info(first, &info));
  CHECK_EQUAL(value(info, "thread_level"), "MPI_THREAD_SERIALIZED");
  OK(MPI_Info_free(&info));
  end(first);
  end(second);
}

int handled = 0;
void note(MPI_Session* session, int* code, ...) {
  CHECK(*session != MPI_SESSION_NULL);
  handled = check::error_class(*code);
}

void errors() {
  check::part = "errors";
  MPI_Session session = begin();
  MPI_Info info = MPI_INFO_NULL;
  int length = 0;
  FAILS(MPI_ERR_ARG, MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 99, &length, nullptr));
  FAILS(MPI_ERR_ARG, MPI_Session_get_pset_info(session, "mpi://NOBODY", &info));
  MPI_Group group = MPI_GROUP_EMPTY;
  FAILS(MPI_ERR_ARG, MPI_Group_from_session_pset(session, "mpi://NOBODY", &group));
  CHECK(group == MPI_GROUP_NULL);
  // The handler that the call was given answers, as there is no communicator yet.
  MPI_Comm comm = MPI_COMM_NULL;
  const std::string long_tag(MPI_MAX_STRINGTAG_LEN, 'x');
  group = group_of(session);
  FAILS(MPI_ERR_ARG, MPI_Comm_create_from_group(group, long_tag.c_str(), MPI_INFO_NULL,
                                                MPI_ERRORS_RETURN, &comm));
  CHECK(comm == MPI_COMM_NULL);
  FAILS(MPI_ERR_GROUP,
        MPI_Comm_create_from_group(MPI_GROUP_NULL, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  CHECK(comm == MPI_COMM_NULL);
  if (check::size > 1) {
    const int other = (check::rank + 1) % check::size;
    MPI_Group without = MPI_GROUP_NULL;
    OK(MPI_Group_incl(group, 1, &other, &without));
    FAILS(MPI_ERR_GROUP,
          MPI_Comm_create_from_group(without, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&without));
  }
  OK(MPI_Group_free(&group));

  MPI_Errhandler handler = MPI_ERRHANDLER_NULL, got = MPI_ERRHANDLER_NULL;
  OK(MPI_Session_create_errhandler(note, &handler));
  OK(MPI_Session_set_errhandler(session, handler));
  OK(MPI_Session_get_errhandler(session, &got));
  CHECK(got == handler);
  OK(MPI_Errhandler_free(&got));
  OK(MPI_Errhandler_free(&handler));
  FAILS(MPI_ERR_ARG, MPI_Session_get_pset_info(session, "mpi://NOBODY", &info));
  CHECK_EQUAL(handled, MPI_ERR_ARG);
  OK(MPI_Session_call_errhandler(session, MPI_ERR_OTHER));
  CHECK_EQUAL(handled, MPI_ERR_OTHER);
  end(session);
}

int of_comm = 0;
void note_of_comm(MPI_Comm*, int* code, ...) {
  of_comm = check::error_class(*code);
}

// Of the constructors, whose errors go to the handler that they are given, which the communicator
// has from then on.
void errors_of_constructors() {
  check::part = "errors of constructors";
  MPI_Session session = begin();
  MPI_Group all = group_of(session), self = group_of(session, "mpi://SELF");
  MPI_Group others = MPI_GROUP_NULL; // each call has one thing wrong, and the groups are disjoint
  OK(MPI_Group_difference(all, self, &others));
  const std::string long_tag(MPI_MAX_STRINGTAG_LEN, 'x');
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL, got = MPI_ERRHANDLER_NULL;
  OK(MPI_Comm_create_errhandler(note_of_comm, &handler));
  const auto refused = [&](int expected, int code) {
    CHECK_EQUAL(of_comm, expected);
    FAILS(expected, code);
    CHECK(comm == MPI_COMM_NULL);
    of_comm = 0;
  };
  const auto create = [&](MPI_Group group, const char* tag) {
    return MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, handler, &comm);
  };
  const auto connect = [&](MPI_Group local, int leader, MPI_Group remote, int remote_leader,
                           const char* tag = "x") {
    return MPI_Intercomm_create_from_groups(local, leader, remote, remote_leader, tag,
                                            MPI_INFO_NULL, handler, &comm);
  };
  refused(MPI_ERR_ARG, create(all, long_tag.c_str()));
  refused(MPI_ERR_ARG, create(all, nullptr));
  refused(MPI_ERR_GROUP, create(MPI_GROUP_NULL, "x"));
  refused(MPI_ERR_ARG, connect(self, 0, others, 0, long_tag.c_str()));
  refused(MPI_ERR_GROUP, connect(MPI_GROUP_NULL, 0, self, 0));
  refused(MPI_ERR_GROUP, connect(MPI_GROUP_EMPTY, 0, self, 0));
  refused(MPI_ERR_RANK, connect(self, -1, others, 0));
  refused(MPI_ERR_RANK, connect(self, 1, others, 0));
  refused(MPI_ERR_RANK, connect(self, 0, others, check::size - 1)); // this process leads
  refused(MPI_ERR_GROUP, connect(self, 0, self, 0));                // not disjoint
  refused(MPI_ERR_GROUP, connect(all, 0, all, 0));
  // What is wrong with the leader's arguments alone, all of its group hear.
  const int last = check::size - 1;
  const bool leads = check::rank == last || !check::is_macadam();
  refused(MPI_ERR_GROUP, connect(all, last, leads ? MPI_GROUP_NULL : self, 0));
  // What was refused is out of the way of what follows.
  OK(MPI_Comm_create_from_group(all, "x", MPI_INFO_NULL, handler, &comm));
  OK(MPI_Comm_get_errhandler(comm, &got));
  CHECK(got == handler);
  exchange(comm);
  OK(MPI_Comm_free(&comm));
  OK(MPI_Errhandler_free(&got));
  OK(MPI_Errhandler_free(&handler));
  for (MPI_Group* group : {&all, &self, &others})
    OK(MPI_Group_free(group));
  end(session);
}

// Of MPI_Session_init the handler is the one that it is given; with no session to blame it is that
// of MPI_COMM_SELF, if there is a world.
void errors_of_sessions() {
  check::part = "errors of sessions";
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Info info = MPI_INFO_NULL;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_MANY"));
  if (check::is_macadam())
    FAILS(MPI_ERR_INFO_VALUE, MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
  CHECK(session == MPI_SESSION_NULL);
  OK(MPI_Info_free(&info));
  int begun = 0, ended = 0, count = 0;
  OK(MPI_Initialized(&begun));
  OK(MPI_Finalized(&ended));
  if (begun == 0 || ended != 0) return;
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_SESSION, MPI_Session_finalize(&session));
  FAILS(MPI_ERR_SESSION, MPI_Session_get_info(MPI_SESSION_NULL, &info));
  FAILS(MPI_ERR_SESSION, MPI_Session_get_num_psets(MPI_SESSION_NULL, MPI_INFO_NULL, &count));
  FAILS(MPI_ERR_SESSION, MPI_Session_set_errhandler(MPI_SESSION_NULL, MPI_ERRORS_RETURN));
  if (check::is_macadam()) { // handlers that were made for something else
    MPI_Errhandler of_sessions = MPI_ERRHANDLER_NULL, of_comms = MPI_ERRHANDLER_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Group self = MPI_GROUP_NULL;
    OK(MPI_Comm_group(MPI_COMM_SELF, &self));
    OK(MPI_Session_create_errhandler(note, &of_sessions));
    OK(MPI_Comm_create_errhandler(note_of_comm, &of_comms));
    FAILS(MPI_ERR_ERRHANDLER, MPI_Session_init(MPI_INFO_NULL, of_comms, &session));
    CHECK(session == MPI_SESSION_NULL);
    FAILS(MPI_ERR_ERRHANDLER,
          MPI_Comm_create_from_group(self, "x", MPI_INFO_NULL, of_sessions, &comm));
    FAILS(MPI_ERR_ERRHANDLER, MPI_Intercomm_create_from_groups(self, 0, self, 0, "x", MPI_INFO_NULL,
                                                               of_sessions, &comm));
    CHECK(comm == MPI_COMM_NULL);
    CHECK(handled != MPI_ERR_ERRHANDLER && of_comm != MPI_ERR_ERRHANDLER);
    OK(MPI_Errhandler_free(&of_sessions));
    OK(MPI_Errhandler_free(&of_comms));
    OK(MPI_Group_free(&self));
  }
  session = begin();
  const MPI_Session over = session;
  end(session);
  if (check::is_macadam()) FAILS(MPI_ERR_SESSION, MPI_Session_get_info(over, &info));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
}

void several() {
  check::part = "several at once";
  MPI_Session one = begin(), two = begin();
  MPI_Comm first = comm_of_session(one, "first"), second = comm_of_session(two, "second");
  exchange(first);
  exchange(second);
  // A communicator outlives neither, but the other session goes on.
  OK(MPI_Comm_free(&first));
  end(one);
  exchange(second);
  MPI_Comm copy = MPI_COMM_NULL;
  OK(MPI_Comm_dup(second, &copy));
  exchange(copy);
  OK(MPI_Comm_free(&copy));
  OK(MPI_Comm_disconnect(&second));
  end(two);
}

// The even and the odd processes, as this one sees them.
struct Sides {
  explicit Sides(MPI_Group all) {
    int evens[1][3] = {{0, check::size - 1, 2}}, odds[1][3] = {{1, check::size - 1, 2}};
    const bool is_even = check::rank % 2 == 0;
    OK(MPI_Group_range_incl(all, 1, is_even ? evens : odds, &mine));
    OK(MPI_Group_range_incl(all, 1, is_even ? odds : evens, &theirs));
    OK(MPI_Group_size(mine, &my_size));
    OK(MPI_Group_size(theirs, &their_size));
  }
  Sides(const Sides&) = delete;
  Sides& operator=(const Sides&) = delete;
  ~Sides() {
    OK(MPI_Group_free(&mine));
    OK(MPI_Group_free(&theirs));
  }

  [[nodiscard]] MPI_Comm connect(const char* tag) const {
    MPI_Comm inter = MPI_COMM_NULL;
    int rank = -1;
    OK(MPI_Group_rank(mine, &rank));
    const bool leads = rank == my_size - 1 || !check::is_macadam(); // MPICH wants all from all
    OK(MPI_Intercomm_create_from_groups(mine, my_size - 1, leads ? theirs : MPI_GROUP_NULL,
                                        leads ? their_size - 1 : -1, tag, MPI_INFO_NULL,
                                        MPI_ERRORS_RETURN, &inter));
    CHECK(inter != MPI_COMM_NULL);
    return inter;
  }

  MPI_Group mine = MPI_GROUP_NULL, theirs = MPI_GROUP_NULL;
  int my_size = 0, their_size = 0;
};

void intercommunicators() {
  check::part = "intercommunicators";
  if (check::size < 2) return;
  MPI_Session session = begin();
  MPI_Group all = group_of(session);
  {
    const Sides sides(all);
    MPI_Comm inter = sides.connect("inter"), merged = MPI_COMM_NULL;
    int remote = -1, sum = 0;
    OK(MPI_Comm_remote_size(inter, &remote));
    CHECK_EQUAL(remote, sides.their_size);
    const int one = 1;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter));
    CHECK_EQUAL(sum, remote);
    OK(MPI_Intercomm_merge(inter, check::rank % 2, &merged));
    exchange(merged);
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_free(&inter));
  }
  OK(MPI_Group_free(&all));
  end(session);
}

// Communicators of the same group, made by several threads at once in any order: their string tags
// alone tell them apart.
void threads() {
  check::part = "threads";
  MPI_Session session = begin("MPI_THREAD_MULTIPLE");
  MPI_Group group = group_of(session);
  constexpr int count = 4;
  for (int round = 0; round < check::times(10, 2); ++round) {
    std::array<MPI_Comm, count> comms;
    std::vector<std::thread> makers;
    for (int i = 0; i < count; ++i)
      makers.emplace_back([&, i] {
        const auto which = static_cast<std::size_t>((i + check::rank) % count);
        comms[which] = comm_of(group, ("thread " + std::to_string(which)).c_str());
      });
    for (std::thread& maker : makers)
      maker.join();
    for (std::size_t i = 0; i < count; ++i) {
      int number = check::rank == 0 ? static_cast<int>(i) : -1;
      OK(MPI_Bcast(&number, 1, MPI_INT, 0, comms[i]));
      CHECK_EQUAL(number, static_cast<int>(i));
    }
    for (MPI_Comm& comm : comms)
      OK(MPI_Comm_free(&comm));
  }
  OK(MPI_Group_free(&group));
  end(session);
}

// The same with intercommunicators, while other threads make communicators of all.
void threads_between_groups() {
  check::part = "threads between groups";
  if (check::size < 2) return;
  MPI_Session session = begin("MPI_THREAD_MULTIPLE");
  MPI_Group group = group_of(session);
  constexpr int count = 4;
  for (int round = 0; round < check::times(10, 2); ++round) {
    const Sides sides(group);
    std::array<MPI_Comm, count> inters, comms;
    std::vector<std::thread> makers;
    for (int i = 0; i < count; ++i) {
      const auto which = static_cast<std::size_t>((i + check::rank) % count);
      makers.emplace_back([&, which] {
        inters[which] = sides.connect(("between " + std::to_string(which)).c_str());
      });
      makers.emplace_back(
          [&, which] { comms[which] = comm_of(group, ("all " + std::to_string(which)).c_str()); });
    }
    for (std::thread& maker : makers)
      maker.join();
    for (std::size_t i = 0; i < count; ++i) {
      const int number = static_cast<int>(i);
      int sum = 0, largest = -1;
      OK(MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, inters[i]));
      CHECK_EQUAL(sum, number * sides.their_size);
      OK(MPI_Allreduce(&number, &largest, 1, MPI_INT, MPI_MAX, comms[i]));
      CHECK_EQUAL(largest, number);
      OK(MPI_Comm_free(&inters[i]));
      OK(MPI_Comm_free(&comms[i]));
    }
  }
  OK(MPI_Group_free(&group));
  end(session);
}

void buffers() {
  check::part = "buffers";
  MPI_Session session = begin();
  MPI_Comm comm = comm_of_session(session, "buffers");
  std::vector<char> buffer(4096 + MPI_BSEND_OVERHEAD);
  if (check::is_macadam()) {
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(buffer.data(), 1, MPI_BYTE, check::rank, 1, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Session_attach_buffer(session, nullptr, 100));
  }
  OK(MPI_Session_attach_buffer(session, buffer.data(), static_cast<int>(buffer.size())));
  const int again = MPI_Session_attach_buffer(session, buffer.data(), 100);
  CHECK_EQUAL(check::error_class(again), check::is_macadam() ? MPI_ERR_BUFFER : MPI_ERR_OTHER);
  const auto sent = check::message(4096, 5);
  OK(MPI_Bsend(sent.data(), 4096, MPI_BYTE, check::rank, 1, comm));
  std::vector<unsigned char> got(4096);
  OK(MPI_Recv(got.data(), 4096, MPI_BYTE, check::rank, 1, comm, MPI_STATUS_IGNORE));
  HOLDS(got.data(), 4096, 5);
  // Communicators of groups that are derived from the session's use it too. (MPICH 5.0 asserts that
  // all groups are of one session.)
  MPI_Group all = group_of(session), united = MPI_GROUP_NULL;
  OK(MPI_Group_union(check::is_macadam() ? MPI_GROUP_EMPTY : all, all, &united));
  MPI_Comm of_union = comm_of(united, "union");
  OK(MPI_Bsend(sent.data(), 4096, MPI_BYTE, check::rank, 1, of_union));
  OK(MPI_Recv(got.data(), 4096, MPI_BYTE, check::rank, 1, of_union, MPI_STATUS_IGNORE));
  OK(MPI_Comm_free(&of_union));
  OK(MPI_Group_free(&united));
  OK(MPI_Group_free(&all));
  OK(MPI_Session_flush_buffer(session));
  MPI_Request request = MPI_REQUEST_NULL;
  OK(MPI_Session_iflush_buffer(session, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  void* back = nullptr;
  int bytes = 0;
  OK(MPI_Session_detach_buffer(session, &back, &bytes));
  CHECK(back == buffer.data() && bytes == static_cast<int>(buffer.size()));
  OK(MPI_Comm_free(&comm));
  end(session);
}

// The last session takes the process's buffer with it, on however many ranks.
void buffer_of_the_process() {
  check::part = "buffer of the process";
  if (!check::is_macadam()) return;
  std::vector<char> buffer(1000);
  for (int life = 0; life < 2; ++life) {
    MPI_Session session = begin();
    MPI_Comm comm = comm_of_session(session, "buffer of the process");
    OK(MPI_Buffer_attach(buffer.data(), 1000));
    OK(MPI_Comm_free(&comm));
    end(session);
  }
}

// A thread may look at the clock while another begins and ends all that MPI has.
void clock() {
  check::part = "clock";
  std::atomic<bool> over = false;
  std::thread looks([&] {
    double last = MPI_Wtime();
    while (!over) {
      const double now = MPI_Wtime();
      CHECK(now >= last);
      last = now;
    }
  });
  for (int life = 0; life < check::times(20, 3); ++life) {
    MPI_Session session = begin();
    MPI_Comm comm = comm_of_session(session, "clock");
    OK(MPI_Comm_free(&comm));
    end(session);
  }
  over = true;
  looks.join();
}

struct Part {
  const char* name;
  void (*run)();
};
constexpr Part parts[] = {
    {"errors", errors},
    {"errors_of_constructors", errors_of_constructors},
    {"errors_of_sessions", errors_of_sessions},
    {"several", several},
    {"intercommunicators", intercommunicators},
    {"threads", threads},
    {"threads_between_groups", threads_between_groups},
    {"buffers", buffers},
    {"clock", clock},
};

void all() {
  for (const Part& each : parts)
    each.run();
}

// `sessions PART...`: these alone, for libraries that cannot do all.
void only(int count, char** names) {
  for (int i = 0; i < count; ++i) {
    const auto* const found = std::find_if(std::begin(parts), std::end(parts), [&](const Part& p) {
      return std::string(p.name) == names[i];
    });
    CHECK(found != std::end(parts));
    found->run();
  }
}

void around_the_world(int* argc, char*** argv) {
  all();
  // A session goes on across the world's beginning and end.
  check::part = "across the world";
  MPI_Session session = begin();
  MPI_Comm comm = comm_of_session(session, "across");
  exchange(comm);
  int provided = -1;
  OK(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided));
  CHECK_EQUAL(provided, MPI_THREAD_MULTIPLE);
  exchange(MPI_COMM_WORLD);
  exchange(comm);
  all();
  check::part = "across the end";
  OK(MPI_Finalize());
  exchange(comm);
  OK(MPI_Comm_disconnect(&comm));
  end(session);
  all();
}

} // namespace

int main(int argc, char** argv) {
  queries();
  fixed_level();
  buffer_of_the_process();
  if (argc > 1)
    only(argc - 1, argv + 1);
  else
    around_the_world(&argc, &argv);
  if (check::rank == 0) std::printf("%s: passed on %d ranks\n", argv[0], check::size);
  return 0;
}
