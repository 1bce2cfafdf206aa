// SPDX-License-Identifier: BSD-3-Clause
// Buffers whose memory is given back between messages and replaced by other memory at the same
// address: a network that registers memory and keeps it so must not use what was there before.
#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr std::size_t bytes = 300'000; // long enough to go from buffer to buffer
constexpr std::size_t mapped = 1 << 20;
constexpr int rounds = 8;

using Memory = unsigned char*;

Memory map(void* at = nullptr, int flags = 0) {
  void* const memory =
      mmap(at, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  CHECK(memory != MAP_FAILED);
  return static_cast<Memory>(memory);
}

// A message there and one back, the receiver sometimes early and sometimes late.
void exchange(Memory memory, int round, std::size_t length = bytes) {
  for (const int sender : {0, 1}) {
    const auto seed = static_cast<std::uint64_t>(2 * round + sender);
    if (check::rank == sender) {
      check::fill(memory, length, seed);
      if (round % 2) check::compute_ms(0.5);
      OK(MPI_Send(memory, static_cast<int>(length), MPI_BYTE, 1 - sender, 1, MPI_COMM_WORLD));
    } else {
      std::memset(memory, 0xEE, length);
      if (round % 2 == 0) check::compute_ms(0.5);
      OK(MPI_Recv(memory, static_cast<int>(length), MPI_BYTE, sender, 1, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
      HOLDS(memory, length, seed);
    }
  }
}

void unmapped() {
  Memory memory = map();
  for (int round = 0; round < rounds; ++round) {
    exchange(memory, round);
    munmap(memory, mapped);
    memory = map(memory); // most often the same address
  }
  munmap(memory, mapped);
}

void a_part_unmapped() {
  const Memory memory = map();
  for (int round = 0; round < rounds; ++round) {
    exchange(memory, round);
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const Memory part = memory + page * static_cast<std::size_t>(1 + round);
    CHECK(mmap(part, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0) == part);
  }
  munmap(memory, mapped);
}

void mapped_over() {
  const Memory memory = map();
  for (int round = 0; round < rounds; ++round) {
    exchange(memory, round);
    CHECK(map(memory, MAP_FIXED) == memory);
  }
  munmap(memory, mapped);
}

void moved() {
  Memory memory = map();
  for (int round = 0; round < rounds; ++round) {
    exchange(memory, round);
    // Other memory takes its place, and it goes elsewhere.
    const Memory place = map();
    CHECK(mremap(memory, mapped, mapped, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
    const Memory other = map(memory);
    exchange(other, round);
    exchange(place, round);
    munmap(other, mapped);
    memory = place;
  }
  munmap(memory, mapped);
}

void given_back() {
  const Memory memory = map();
  for (int round = 0; round < rounds; ++round) {
    exchange(memory, round);
    CHECK(madvise(memory, mapped, round % 3 == 0 ? MADV_FREE : MADV_DONTNEED) == 0);
  }
  munmap(memory, mapped);
}

void freed() {
  for (int round = 0; round < rounds; ++round) {
    // 40 MB are longer than what malloc ever keeps for itself.
    const std::size_t room = round % 2 ? bytes : std::size_t{40} << 20;
    const Memory memory = static_cast<Memory>(std::malloc(room));
    CHECK(memory != nullptr);
    exchange(memory, round);
    std::free(memory);
  }
}

void shared_memory() {
  for (int round = 0; round < rounds; ++round) {
    const int file = memfd_create("memory", MFD_CLOEXEC);
    CHECK(ftruncate(file, mapped) == 0);
    void* const memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(memory != MAP_FAILED);
    close(file);
    exchange(static_cast<Memory>(memory), round);
    munmap(memory, mapped);
  }
}

void variables() {
  static unsigned char in_program[bytes];
  unsigned char on_stack[100'000];
  for (int round = 0; round < rounds; ++round) {
    exchange(in_program, round);
    exchange(on_stack, round, sizeof on_stack);
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"unmapped", unmapped},
                     {"a_part_unmapped", a_part_unmapped},
                     {"mapped_over", mapped_over},
                     {"moved", moved},
                     {"given_back", given_back},
                     {"freed", freed},
                     {"shared_memory", shared_memory},
                     {"variables", variables}});
}
