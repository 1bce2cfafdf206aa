// SPDX-License-Identifier: BSD-3-Clause
// The library starts and ends a hundred times in one program, by sessions whose communicator has
// messages each time, and nothing grows: memory, mappings, descriptors, threads.
//
//   apart     as each rank comes: some are back before others have left
//   together  all are out of MPI before one comes back, so each time everything begins anew
//   alone     each rank with itself, while others may be in MPI or not
//
// `again PART ROUNDS` does one of them, as often as said.
#include "resources.h"
#include "sessions/meeting.h"

namespace {

// What an instance holds (over RDMA the adapter's descriptors and threads too) is there at the
// first look, and may be at the second; not so all receive buffers, and the simulator's one process
// has those of all ranks. Lives that left as much each would leave ten times this. An address
// sanitizer keeps what was freed, and finds itself what is lost.
#ifdef __SANITIZE_ADDRESS__
constexpr int few_mappings = 24;
constexpr long few_kib = 1 << 20;
#else
constexpr int few_mappings = 4;
constexpr long few_kib = 4096;
#endif

using check::Resources;

void compare(const Resources& before, const Resources& after, int lives, const char* what) {
  std::ostringstream text;
  text << what << ", " << lives << " lives: mappings " << before.mappings << " to "
       << after.mappings << ", descriptors " << before.descriptors << " to " << after.descriptors
       << ", threads " << before.threads << " to " << after.threads << ", resident KiB "
       << before.resident_kib << " to " << after.resident_kib;
  if (check::rank == 0) std::printf("%s\n", text.str().c_str());
  if (after.descriptors > before.descriptors || after.threads > before.threads ||
      after.mappings > before.mappings + few_mappings * check::size ||
      after.resident_kib > before.resident_kib + few_kib * check::size)
    check::fail(__FILE__, __LINE__, text.str());
}

// One life of the library, and what the process has in the midst of it, if that is wanted.
void live(const char* set, Resources* within = nullptr) {
  MPI_Session session = sessions::begin();
  MPI_Group group = sessions::group_of(session, set);
  MPI_Comm comm = sessions::comm_of(group, "again");
  sessions::exchange(comm);
  if (within != nullptr) *within = check::resources();
  OK(MPI_Comm_disconnect(&comm));
  OK(MPI_Group_free(&group));
  sessions::end(session);
}

int rounds = check::times(100, 10);

void repeat(const char* name, const char* set, sessions::Meeting* meeting) {
  check::part = name;
  Resources before;
  for (int round = 0; round < rounds; ++round) {
    if (meeting != nullptr) meeting->wait();
    live(set, round == rounds / 5 ? &before : nullptr); // by then all that is kept is there
  }
  if (meeting != nullptr) meeting->wait();
  compare(before, check::resources(), rounds - rounds / 5, name);
}

} // namespace

int main(int argc, char** argv) {
  // Who meets whom has to be known; that is a life too.
  MPI_Session session = sessions::begin();
  MPI_Comm comm = sessions::comm_of_session(session, "meeting");
  OK(MPI_Comm_rank(comm, &check::rank));
  OK(MPI_Comm_size(comm, &check::size));
  sessions::Meeting meeting(comm);
  OK(MPI_Comm_disconnect(&comm));
  sessions::end(session);

  const std::string only = argc > 1 ? argv[1] : "";
  if (argc > 2) rounds = std::atoi(argv[2]);
  if (only.empty() || only == "apart") repeat("apart", "mpi://WORLD", nullptr);
  meeting.wait();
  if (only.empty() || only == "together") repeat("together", "mpi://WORLD", &meeting);
  meeting.wait();
  if (only.empty() || only == "alone") repeat("alone", "mpi://SELF", nullptr);
  meeting.wait();

  // The world, once, and a session after it.
  check::part = "world";
  OK(MPI_Init(&argc, &argv));
  sessions::exchange(MPI_COMM_WORLD);
  OK(MPI_Finalize());
  live("mpi://WORLD");
  if (check::rank == 0) std::printf("%s: passed on %d ranks\n", argv[0], check::size);
  return 0;
}
