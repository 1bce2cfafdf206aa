// SPDX-License-Identifier: BSD-3-Clause
// Puts and gets are nonblocking: however many there are, none waits for the target to come to MPI.
// Here it comes when the origin has said, by memory that both share, that it is through.
#include "one_node.h"

#include <atomic>
#include <chrono>

namespace {

constexpr std::size_t column = 300'000; // integers, each apart from the next
constexpr std::size_t few = 5'000;      // puts of one
constexpr std::size_t block = 200'000;  // in one piece
constexpr std::size_t room = 2 * column + few + block;

// A word of rank 0 that both see.
class Word {
 public:
  Word() {
    const MPI_Aint bytes = check::rank == 0 ? sizeof(int) : 0;
    OK(MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &word_, &win_));
    MPI_Aint size;
    int unit;
    OK(MPI_Win_shared_query(win_, 0, &size, &unit, &word_));
    if (check::rank == 0) *word_ = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  Word(const Word&) = delete;
  Word& operator=(const Word&) = delete;
  ~Word() { OK(MPI_Win_free(&win_)); }

  void set(int value) { std::atomic_ref(*word_).store(value); }
  void await(int value) { // without MPI
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::atomic_ref(*word_).load() != value && std::chrono::steady_clock::now() < end) {
    }
    CHECK_EQUAL(std::atomic_ref(*word_).load(), value);
  }

 private:
  int* word_ = nullptr;
  MPI_Win win_ = MPI_WIN_NULL;
};

// Of `data`, which is as long as the target's memory.
template <class Operation>
void access_all(MPI_Win win, std::vector<int>& data, Operation&& operation) {
  MPI_Datatype apart;
  OK(MPI_Type_vector(column, 1, 2, MPI_INT, &apart));
  OK(MPI_Type_commit(&apart));
  OK(operation(data.data(), 1, apart, 1, 0, 1, apart, win));
  OK(MPI_Type_free(&apart));
  std::size_t at = 2 * column;
  for (std::size_t i = 0; i < few; ++i, ++at)
    OK(operation(data.data() + at, 1, MPI_INT, 1, static_cast<MPI_Aint>(at), 1, MPI_INT, win));
  OK(operation(data.data() + at, block, MPI_INT, 1, static_cast<MPI_Aint>(at), block, MPI_INT,
               win));
}

void check_all(const std::vector<int>& found) {
  for (std::size_t i = 0; i < room; ++i)
    CHECK_EQUAL(found[i], i < 2 * column && i % 2 == 1 ? -1 : static_cast<int>(i));
}

void in_fences(bool puts) {
  std::vector<int> memory(room, -1), data(room, -1);
  std::vector<int>& source = puts ? data : memory;
  for (std::size_t i = 0; i < room; ++i)
    if (i >= 2 * column || i % 2 == 0) source[i] = static_cast<int>(i);
  Word word;
  MPI_Win win;
  OK(MPI_Win_create(memory.data(), room * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                    &win));
  OK(MPI_Win_fence(0, win));
  if (check::rank == 0) {
    if (puts)
      access_all(win, data, MPI_Put);
    else
      access_all(win, data, MPI_Get);
    word.set(1);
  } else {
    word.await(1);
  }
  OK(MPI_Win_fence(0, win));
  if (puts && check::rank == 1) check_all(memory);
  if (!puts && check::rank == 0) check_all(data);
  OK(MPI_Win_free(&win));
}

void puts_do_not_wait() {
  if (check::one_node()) in_fences(true);
}

void gets_do_not_wait() {
  if (check::one_node()) in_fences(false);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(
      argc, argv, {{"puts_do_not_wait", puts_do_not_wait}, {"gets_do_not_wait", gets_do_not_wait}});
}
