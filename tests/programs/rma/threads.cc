// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE: threads of each rank access the same window, and windows of their own, at
// once.
#include "threads.h"
#include "rma/window.h"

#include <algorithm>
#include <complex>
#include <thread>

namespace {

using rma::Kind;

using check::in_threads;
using check::threads;

// All count in one word of rank 0, each writes and reads a place of its own in the next rank.
void one_window() {
  rma::for_each_kind([](Kind kind) {
    rma::Window<std::int64_t> win(kind, 1 + threads);
    const int rounds = check::times(300, 12);
    OK(MPI_Win_lock_all(0, win));
    in_threads([&](int t) {
      const std::int64_t one = 1;
      std::int64_t old = -1, found = -1;
      for (std::int64_t i = 0; i < rounds; ++i) {
        OK(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, win));
        OK(MPI_Put(&i, 1, MPI_INT64_T, rma::right(), 1 + t, 1, MPI_INT64_T, win));
        OK(MPI_Win_flush(rma::right(), win));
        OK(MPI_Get(&found, 1, MPI_INT64_T, rma::right(), 1 + t, 1, MPI_INT64_T, win));
        OK(MPI_Win_flush(rma::right(), win));
        CHECK_EQUAL(found, i);
      }
    });
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (check::rank == 0) CHECK_EQUAL(win[0], std::int64_t{rounds} * threads * check::size);
    OK(MPI_Barrier(MPI_COMM_WORLD));
  });
}

// Elements that no processor changes in one step: real and imaginary part grow together.
void wide_elements() {
  rma::for_each_kind([](Kind kind) {
    using Complex = std::complex<double>;
    constexpr int count = 100;
    rma::Window<Complex> win(kind, count);
    const int rounds = check::times(100, 5);
    OK(MPI_Win_lock_all(0, win));
    in_threads([&](int t) {
      const std::vector<Complex> ours(count, Complex(t, 2 * t));
      std::vector<Complex> old(count);
      for (int i = 0; i < rounds; ++i) {
        OK(MPI_Get_accumulate(ours.data(), count, MPI_C_DOUBLE_COMPLEX, old.data(), count,
                              MPI_C_DOUBLE_COMPLEX, 0, 0, count, MPI_C_DOUBLE_COMPLEX, MPI_SUM,
                              win));
        for (const Complex& each : old)
          CHECK_EQUAL(each.imag(), 2 * each.real());
      }
    });
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const double sum = threads * (threads - 1) / 2.0 * rounds * check::size;
    for (std::size_t i = 0; check::rank == 0 && i < count; ++i)
      CHECK_EQUAL(win[i].real(), sum);
    OK(MPI_Barrier(MPI_COMM_WORLD));
  });
}

// Each thread has a window of its own, whose epochs of every kind wait for those of other ranks.
void a_window_each() {
  std::vector<MPI_Comm> comms(threads);
  for (MPI_Comm& comm : comms)
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  in_threads([&](int t) {
    int* memory = nullptr;
    MPI_Win win;
    OK(MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL,
                        comms[static_cast<std::size_t>(t)], &memory, &win));
    const int rounds = check::times(50, 10);
    const int one = 1;
    memory[0] = memory[1] = 0;
    for (int i = 0; i < rounds; ++i) {
      const int value = 100 * i + t;
      OK(MPI_Win_fence(0, win));
      OK(MPI_Put(&value, 1, MPI_INT, rma::right(), 0, 1, MPI_INT, win));
      OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
      CHECK_EQUAL(memory[0], value);
      int before = 0;
      OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
      OK(MPI_Get(&before, 1, MPI_INT, 0, 1, 1, MPI_INT, win));
      OK(MPI_Win_flush(0, win));
      before += one;
      OK(MPI_Put(&before, 1, MPI_INT, 0, 1, 1, MPI_INT, win));
      OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    if (check::rank == 0) CHECK_EQUAL(memory[1], rounds * check::size);
    OK(MPI_Win_free(&win));
  });
  for (MPI_Comm& comm : comms)
    OK(MPI_Comm_free(&comm));
}

// One thread ends the exposure epoch while another ends the access epoch: each waits for its own.
// Every second rank writes, to one that waits already.
void two_ends() {
  constexpr int puts = 1000, bytes = (64 << 10) + 1; // long ones, more than are sent at once
  const std::size_t room = std::size_t{puts} * bytes;
  rma::Window<unsigned char> win(Kind::created, room);
  MPI_Group all, origins, targets;
  const int left = rma::left(), right = rma::right();
  OK(MPI_Win_get_group(win, &all));
  OK(MPI_Group_incl(all, 1, &left, &origins));
  OK(MPI_Group_incl(all, 1, &right, &targets));
  std::vector<unsigned char> data(bytes);
  for (int round = 1; round <= check::times(12, 2); ++round) {
    const auto wait = [&] {
      OK(MPI_Win_wait(win));
      const auto written = std::count(win.data(), win.data() + room, round);
      CHECK_EQUAL(static_cast<std::size_t>(written), left % 2 == 0 ? room : 0);
    };
    OK(MPI_Win_post(origins, 0, win));
    OK(MPI_Win_start(targets, 0, win));
    if (check::rank % 2 == 0) {
      std::fill(data.begin(), data.end(), static_cast<unsigned char>(round));
      for (int i = 0; i < puts; ++i)
        OK(MPI_Put(data.data(), bytes, MPI_BYTE, right, MPI_Aint{i} * bytes, bytes, MPI_BYTE, win));
      check::sleep_ms(5);
      std::thread waiting(wait);
      std::this_thread::yield();
      OK(MPI_Win_complete(win));
      waiting.join();
    } else {
      std::thread completing([&] { OK(MPI_Win_complete(win)); });
      wait();
      completing.join();
    }
  }
  for (MPI_Group* const group : {&all, &origins, &targets})
    OK(MPI_Group_free(group));
}

} // namespace

int main(int argc, char** argv) {
  check::start_with_threads(argc, argv);
  return check::run_parts(argc, argv,
                          {{"one_window", one_window},
                           {"wide_elements", wide_elements},
                           {"a_window_each", a_window_each},
                           {"two_ends", two_ends}});
}
