// SPDX-License-Identifier: BSD-3-Clause
// Memory that gets have read is free to be written as soon as the epoch of those gets has ended for
// its owner: when it has waited for their completion, or has the lock after them. Whatever the
// network does in what order, gets have what was there before.
#include "rma/window.h"

#include <algorithm>

namespace {

using rma::Kind;
using Bytes = std::vector<unsigned char>;
using Window = rma::Window<unsigned char>;

const std::size_t bytes = check::light() ? 100'000 : 1'000'000;
constexpr int rounds = 4;
constexpr unsigned char later = 100; // what the owner, rank 0, writes afterwards

// What is read: all of the memory, or every second piece of so many bytes.
class Read {
 public:
  explicit Read(int piece) : piece_(piece) {
    if (piece == 0)
      OK(MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type_));
    else
      OK(MPI_Type_vector(static_cast<int>(bytes) / piece / 2, piece, 2 * piece, MPI_BYTE, &type_));
    OK(MPI_Type_commit(&type_));
  }
  Read(const Read&) = delete;
  Read& operator=(const Read&) = delete;
  ~Read() { OK(MPI_Type_free(&type_)); }

  void get(MPI_Win window) {
    std::ranges::fill(found_, 0);
    OK(MPI_Get(found_.data(), 1, type_, 0, 0, 1, type_, window));
  }
  // How many bytes are not `value`.
  [[nodiscard]] std::size_t others_than(unsigned char value) const {
    std::size_t count = 0;
    const auto piece = static_cast<std::size_t>(piece_);
    for (std::size_t i = 0; i < bytes / 1000 * 1000; ++i)
      if ((piece == 0 || i % (2 * piece) < piece) && found_[i] != value) ++count;
    return count;
  }
  [[nodiscard]] unsigned char first() const { return found_[0]; }

 private:
  int piece_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  Bytes found_ = Bytes(bytes);
};

void write(const Window& window, unsigned char value) {
  std::fill_n(window.data(), bytes, value);
}

void complete_and_wait(Kind kind, Read& read) {
  Window window(kind, bytes);
  MPI_Group all = MPI_GROUP_NULL, owner = MPI_GROUP_NULL, readers = MPI_GROUP_NULL;
  const int zero = 0;
  OK(MPI_Win_get_group(window, &all));
  OK(MPI_Group_incl(all, 1, &zero, &owner));
  OK(MPI_Group_excl(all, 1, &zero, &readers));
  for (int round = 1; round <= rounds; ++round) {
    if (check::rank == 0) {
      write(window, static_cast<unsigned char>(round));
      OK(MPI_Win_post(readers, 0, window));
      OK(MPI_Win_wait(window));
      write(window, later);
    } else {
      OK(MPI_Win_start(owner, 0, window));
      read.get(window);
      OK(MPI_Win_complete(window));
      CHECK_EQUAL(read.others_than(static_cast<unsigned char>(round)), 0U);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  for (MPI_Group* const group : {&all, &owner, &readers})
    OK(MPI_Group_free(group));
}

void unlock_and_lock(Kind kind, Read& read, int lock) {
  Window window(kind, bytes);
  for (int round = 1; round <= rounds; ++round) {
    if (check::rank == 0) {
      OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window));
      write(window, static_cast<unsigned char>(round));
      OK(MPI_Win_unlock(0, window));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (check::rank == 0) {
      OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window));
      write(window, later);
      OK(MPI_Win_unlock(0, window));
    } else {
      OK(MPI_Win_lock(lock, 0, 0, window));
      read.get(window);
      OK(MPI_Win_unlock(0, window));
      const unsigned char first = read.first();
      CHECK(first == later || first == round);
      CHECK_EQUAL(read.others_than(first), 0U);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
}

template <class Test>
void each_way(Test test) {
  for (const int piece : {0, 50, 500}) {
    Read read(piece);
    test(Kind::created, read);
    test(Kind::allocated, read);
  }
}

void completes() {
  each_way(complete_and_wait);
}
void shared_locks() {
  each_way([](Kind kind, Read& read) { unlock_and_lock(kind, read, MPI_LOCK_SHARED); });
}
void exclusive_locks() {
  each_way([](Kind kind, Read& read) { unlock_and_lock(kind, read, MPI_LOCK_EXCLUSIVE); });
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"completes", completes},
                     {"shared_locks", shared_locks},
                     {"exclusive_locks", exclusive_locks}});
}
