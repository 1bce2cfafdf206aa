// SPDX-License-Identifier: BSD-3-Clause
// What the machine itself can do, without any MPI, for the ratios in the tables: the time of one
// cache line from core to core, of the same work on each of two cores, and of a memcpy between two
// mapped buffers.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void bind_to(unsigned core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

// Two threads hand one line back and forth.
double one_way_us() {
  struct alignas(128) Line {
    std::atomic<int> turn{0};
  };
  static Line line;
  constexpr int rounds = 4000, batches = 101;
  std::thread other([] {
    bind_to(1);
    for (int i = 0; i < rounds * batches; ++i) {
      while (line.turn.load(std::memory_order_acquire) != 1) {
      }
      line.turn.store(0, std::memory_order_release);
    }
  });
  bind_to(0);
  std::vector<double> times;
  for (int b = 0; b < batches; ++b) {
    const auto begin = Clock::now();
    for (int i = 0; i < rounds; ++i) {
      line.turn.store(1, std::memory_order_release);
      while (line.turn.load(std::memory_order_acquire) != 0) {
      }
    }
    times.push_back(seconds_since(begin) / rounds / 2 * 1e6);
  }
  other.join();
  return median(times);
}

double copy_us(char* to, const char* from, std::size_t bytes, std::size_t repeats) {
  std::vector<double> times;
  for (int b = 0; b < 101; ++b) {
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < repeats; ++i) {
      std::memcpy(to, from, bytes);
      asm volatile("" : : "r"(to) : "memory"); // every copy counts
    }
    times.push_back(seconds_since(begin) / static_cast<double>(repeats) * 1e6);
  }
  return median(times);
}

// Copies within the nearest cache, on one core while the other does nothing.
double work_us(unsigned core) {
  bind_to(core);
  static char from[8 << 10], to[8 << 10];
  return copy_us(to, from, sizeof from, 100);
}

char* mapped(std::size_t bytes) {
  const int file = memfd_create("bench", 0);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) std::abort();
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) std::abort();
  close(file);
  std::memset(memory, 1, bytes);
  return static_cast<char*>(memory);
}

double memcpy_us(std::size_t bytes) {
  char* const from = mapped(bytes);
  char* const to = mapped(bytes);
  const double us =
      copy_us(to, from, bytes, std::max<std::size_t>(2, (std::size_t{8} << 20) / bytes));
  munmap(from, bytes);
  munmap(to, bytes);
  return us;
}

} // namespace

int main(int argc, char** argv) {
  std::printf("cache_line_us 0 %.9g\n", one_way_us());
  for (const unsigned core : {1U, 0U})
    std::printf("work_us %u %.9g\n", core, work_us(core));
  for (int i = 1; i < argc; ++i) {
    const long bytes = std::atol(argv[i]);
    std::printf("memcpy_us %ld %.9g\n", bytes, memcpy_us(static_cast<std::size_t>(bytes)));
  }
}
