// SPDX-License-Identifier: BSD-3-Clause
// Threads that map, unmap, move and give back memory all the time, at addresses that the kernel
// hands from one to the other, while all register theirs through one cache, under one lock as in
// the library. No registration may be older than the memory that it stands for.
#include "mem/userfault.h"

#include "stamped_registrar.h"

#include <gtest/gtest.h>

#include <array>
#include <mutex>
#include <random>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace macadam::mem {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr int rounds = 1'000;
#else
constexpr int rounds = 3'000;
#endif
constexpr unsigned longest = 120; // seconds
constexpr std::size_t pieces_of_a_thread = 4;

const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

struct Shared {
  StampedRegistrar registrar;
  Userfault source;
  RegistrationCache cache{registrar, &source, 64, std::size_t{1} << 30};
  std::mutex library;
};

struct Piece {
  std::byte* memory = nullptr;
  std::size_t pages = 0;
  std::uint64_t born = 0;
};

class Worker {
 public:
  Worker(Shared& shared, unsigned seed) : shared_(shared), random_(seed) {}

  void run() {
    for (int round = 0; round < rounds && !failed_; ++round)
      change(pieces_[below(pieces_.size())]);
    for (Piece& piece : pieces_)
      if (piece.memory != nullptr) munmap(piece.memory, piece.pages * page);
  }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  void change(Piece& piece) {
    switch (piece.memory == nullptr ? 0 : below(6)) {
    case 0:
      if (piece.memory != nullptr) munmap(piece.memory, piece.pages * page);
      piece.pages = 1 + below(4);
      piece.memory = mapped(mmap(nullptr, piece.pages * page, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      break;
    case 1: {
      std::size_t pages = 1 + below(8);
      if (pages == piece.pages) ++pages; // else nothing happens
      piece.memory = mapped(mremap(piece.memory, piece.pages * page, pages * page, MREMAP_MAYMOVE));
      piece.pages = pages;
      break;
    }
    case 2:
      madvise(piece.memory, piece.pages * page, MADV_DONTNEED);
      break;
    default:
      return use(piece); // nothing has changed
    }
    piece.born = shared_.registrar.now();
    use(piece);
  }

  void use(const Piece& piece) {
    const std::scoped_lock lock(shared_.library);
    Registration* const registration = shared_.cache.acquire(piece.memory, piece.pages * page);
    ASSERT_NE(registration, nullptr);
    failed_ = failed_ || StampedRegistrar::time_of(*registration) < piece.born;
    shared_.cache.release(*registration);
  }

  static std::byte* mapped(void* memory) {
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return static_cast<std::byte*>(memory);
  }

  Shared& shared_;
  std::mt19937 random_;
  std::array<Piece, pieces_of_a_thread> pieces_;
  bool failed_ = false;
};

TEST(UserfaultThreads, no_registration_is_older_than_its_memory) {
  Shared shared;
  if (!shared.source.why_not().empty()) GTEST_SKIP() << shared.source.why_not();
  alarm(longest); // a caller that nobody lets go on would wait for ever
  std::vector<Worker> workers;
  for (unsigned seed = 1; seed <= 4; ++seed)
    workers.emplace_back(shared, seed);
  std::vector<std::thread> threads;
  for (Worker& worker : workers)
    threads.emplace_back([&worker] { worker.run(); });
  for (std::thread& thread : threads)
    thread.join();
  alarm(0);
  for (const Worker& worker : workers)
    EXPECT_FALSE(worker.failed()) << "a stale registration was returned";
  EXPECT_GT(shared.cache.counters().hits, 0u);
  EXPECT_GT(shared.cache.counters().invalidated, 0u);
}

} // namespace
} // namespace macadam::mem
