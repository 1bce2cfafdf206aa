// SPDX-License-Identifier: BSD-3-Clause
// What the programs on sessions share: a place to meet outside of MPI, and communicators of a
// session.
#pragma once

#include "check.h"

#include <atomic>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace sessions {

// Where the ranks of a job wait for each other while none of them is in MPI.
class Meeting {
 public:
  // Collective over `comm`, of all ranks of the job.
  explicit Meeting(MPI_Comm comm) {
    OK(MPI_Comm_size(comm, &ranks_));
    int rank = -1, creator = getpid();
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Bcast(&creator, 1, MPI_INT, 0, comm));
    const std::string path = "/dev/shm/macadam-meeting-" + std::to_string(creator);
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
    void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED);
    close(fd);
    arrived_ = static_cast<std::atomic<int>*>(memory);
    OK(MPI_Barrier(comm));
    if (rank == 0) unlink(path.c_str());
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  ~Meeting() { munmap(arrived_, 4096); }

  void wait() {
    meetings_ += ranks_;
    arrived_->fetch_add(1);
    while (arrived_->load() < meetings_)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

 private:
  std::atomic<int>* arrived_;
  int ranks_ = 0;
  int meetings_ = 0;
};

inline MPI_Session begin(const char* level = nullptr) {
  MPI_Info info = MPI_INFO_NULL;
  if (level != nullptr) {
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "thread_level", level));
  }
  MPI_Session session = MPI_SESSION_NULL;
  OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
  CHECK(session != MPI_SESSION_NULL);
  if (level != nullptr) OK(MPI_Info_free(&info));
  return session;
}

inline void end(MPI_Session session) {
  OK(MPI_Session_finalize(&session));
  CHECK(session == MPI_SESSION_NULL);
}

inline MPI_Group group_of(MPI_Session session, const char* set = "mpi://WORLD") {
  MPI_Group group = MPI_GROUP_NULL;
  OK(MPI_Group_from_session_pset(session, set, &group));
  CHECK(group != MPI_GROUP_NULL);
  return group;
}

inline MPI_Comm comm_of(MPI_Group group, const char* tag) {
  MPI_Comm comm = MPI_COMM_NULL;
  OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  CHECK(comm != MPI_COMM_NULL);
  return comm;
}

// Not of the same name: in other ABIs all handles are ints.
inline MPI_Comm comm_of_session(MPI_Session session, const char* tag) {
  MPI_Group group = group_of(session);
  MPI_Comm comm = comm_of(group, tag);
  OK(MPI_Group_free(&group));
  return comm;
}

// Messages of several sizes around a ring, and a reduction.
inline void exchange(MPI_Comm comm) {
  int rank = -1, size = 0;
  OK(MPI_Comm_rank(comm, &rank));
  OK(MPI_Comm_size(comm, &size));
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  for (const int bytes : {8, 5000, 300000}) {
    const auto sent = check::message(static_cast<std::size_t>(bytes), static_cast<unsigned>(rank));
    std::vector<unsigned char> got(sent.size());
    OK(MPI_Sendrecv(sent.data(), bytes, MPI_BYTE, to, 1, got.data(), bytes, MPI_BYTE, from, 1, comm,
                    MPI_STATUS_IGNORE));
    HOLDS(got.data(), bytes, static_cast<unsigned>(from));
  }
  int sum = 0;
  OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK_EQUAL(sum, size * (size - 1) / 2);
}

} // namespace sessions
