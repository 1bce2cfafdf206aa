// SPDX-License-Identifier: BSD-3-Clause
// Whatever takes memory from the program must be known when the call returns. Each test registers
// through the cache and looks whether it still trusts what it holds.
#include "mem/userfault.h"

#include "../support/sanitized.h"
#include "stamped_registrar.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <malloc.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace macadam::mem {
namespace {

constexpr bool own_malloc = test::sanitized; // a sanitizer's gives memory back when it likes

const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
constexpr unsigned longest = 20; // seconds that a child may take

// An address, so that the compiler does not see what happens to the memory there.
const void* pointer(std::uintptr_t address) {
  const volatile std::uintptr_t hidden = address;
  return reinterpret_cast<const void*>(hidden);
}

std::byte* map(std::size_t pages, int protection = PROT_READ | PROT_WRITE, int flags = 0,
               void* at = nullptr) {
  void* const memory =
      mmap(at, pages * page, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  if ((protection & PROT_WRITE) != 0) std::memset(memory, 1, pages * page);
  return static_cast<std::byte*>(memory);
}

// `ended` is what waitpid() tells of a child that returned 0 from its part of the test.
template <class Part>
int in_child(Part part) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(longest);
    _exit(part());
  }
  int ended = -1;
  waitpid(child, &ended, 0);
  return ended;
}

struct Watch : testing::Test {
  void SetUp() override {
    if (!source.why_not().empty()) GTEST_SKIP() << source.why_not();
    alarm(longest); // a caller that nobody lets go on would wait for ever
  }
  void TearDown() override { alarm(0); }

  // Registers it; it stays so after its use.
  void keep(const void* memory, std::size_t bytes) {
    Registration* const registration = cache.acquire(memory, bytes);
    ASSERT_NE(registration, nullptr);
    cache.release(*registration);
    ASSERT_TRUE(kept(memory, bytes));
  }
  bool kept(const void* memory, std::size_t bytes) {
    Registration* const registration = cache.find(memory, bytes);
    if (registration != nullptr) cache.release(*registration);
    return registration != nullptr;
  }

  StampedRegistrar registrar;
  Userfault source;
  RegistrationCache cache{registrar, &source, 1024, std::size_t{1} << 40};
};

TEST_F(Watch, what_happens_elsewhere_changes_nothing) {
  std::byte* const memory = map(16);
  keep(memory + 4 * page, 8 * page);
  munmap(memory, page);
  munmap(memory + 12 * page, 4 * page);
  munmap(map(16), 16 * page);
  mprotect(memory + 4 * page, page, PROT_READ);
  mprotect(memory + 4 * page, page, PROT_READ | PROT_WRITE);
  std::memset(memory + 4 * page, 2, 8 * page);
  EXPECT_TRUE(kept(memory + 4 * page, 8 * page));
  EXPECT_EQ(cache.counters().registrations, 1u);
  munmap(memory, 16 * page);
}

TEST_F(Watch, unmapped) {
  std::byte* const memory = map(16);
  keep(memory, 16 * page);
  munmap(memory, 16 * page);
  EXPECT_FALSE(kept(memory, page));
  EXPECT_EQ(cache.counters().invalidated, 1u);
}

TEST_F(Watch, unmapped_by_a_raw_system_call) {
  std::byte* const memory = map(16);
  keep(memory, 16 * page);
  syscall(SYS_munmap, memory, 16 * page);
  EXPECT_FALSE(kept(memory, page));
}

TEST_F(Watch, a_part_unmapped) {
  std::byte* const memory = map(16);
  keep(memory, 6 * page);
  keep(memory + 8 * page, 4 * page);
  munmap(memory + 5 * page, 2 * page);
  EXPECT_FALSE(kept(memory, page));
  EXPECT_TRUE(kept(memory + 8 * page, 4 * page));
  keep(memory, 5 * page);
  munmap(memory, 16 * page);
  EXPECT_FALSE(kept(memory, page));
  EXPECT_FALSE(kept(memory + 8 * page, page));
}

TEST_F(Watch, the_same_address_used_again) {
  std::byte* memory = map(16);
  int again = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t born = registrar.now();
    Registration* const registration = cache.acquire(memory, 16 * page);
    EXPECT_GT(StampedRegistrar::time_of(*registration), born) << "stale after " << i;
    cache.release(*registration);
    munmap(memory, 16 * page);
    std::byte* const next = map(16, PROT_READ | PROT_WRITE, 0, memory);
    again += next == memory;
    memory = next;
  }
  EXPECT_GT(again, 10) << "the test needs the same address";
  munmap(memory, 16 * page);
}

TEST_F(Watch, mapped_over) {
  std::byte* const memory = map(16);
  keep(memory, 16 * page);
  map(1, PROT_READ | PROT_WRITE, MAP_FIXED, memory + 9 * page);
  EXPECT_FALSE(kept(memory, page));
  keep(memory, 16 * page);
  munmap(memory, 16 * page);
  EXPECT_FALSE(kept(memory, page));
}

TEST_F(Watch, moved) {
  std::byte* const memory = map(17);
  mprotect(memory + 16 * page, page, PROT_NONE); // it cannot grow in its place
  keep(memory, 16 * page);
  auto* const moved = static_cast<std::byte*>(mremap(memory, 16 * page, 64 * page, MREMAP_MAYMOVE));
  ASSERT_NE(moved, memory);
  EXPECT_FALSE(kept(memory, page));
  EXPECT_FALSE(kept(moved, page));
  keep(moved, 64 * page);
  munmap(moved, 64 * page);
  EXPECT_FALSE(kept(moved, page));
  munmap(memory + 16 * page, page);
}

TEST_F(Watch, a_mapping_of_which_a_part_is_kept_can_be_moved) {
  std::byte* const memory = map(16);
  std::byte* const place = map(32);
  keep(memory + 3 * page, 5 * page);
  ASSERT_EQ(mremap(memory, 16 * page, 32 * page, MREMAP_MAYMOVE | MREMAP_FIXED, place), place);
  EXPECT_FALSE(kept(memory + 3 * page, page));
  keep(place + 7 * page, 2 * page);
  munmap(place + 3 * page, page);
  EXPECT_TRUE(kept(place + 7 * page, page));
  munmap(place, 32 * page);
  EXPECT_FALSE(kept(place + 7 * page, page));
}

TEST_F(Watch, a_part_moved_and_its_place_left_mapped) {
  std::byte* const memory = map(16);
  keep(memory, 16 * page);
  void* const moved =
      mremap(memory + 4 * page, 4 * page, 4 * page, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
  ASSERT_NE(moved, MAP_FAILED);
  EXPECT_FALSE(kept(memory, page));
  munmap(moved, 4 * page);
  munmap(memory, 16 * page);
}

TEST_F(Watch, other_memory_moved_over_it) {
  std::byte* const memory = map(16);
  std::byte* const other = map(4);
  keep(memory, 16 * page);
  keep(other, 4 * page);
  ASSERT_EQ(mremap(other, 4 * page, 4 * page, MREMAP_MAYMOVE | MREMAP_FIXED, memory + page),
            memory + page);
  EXPECT_FALSE(kept(memory, page));
  EXPECT_FALSE(kept(other, page));
  keep(memory, 16 * page);
  munmap(memory + page, page);
  EXPECT_FALSE(kept(memory, page));
  munmap(memory, 16 * page);
}

TEST_F(Watch, grown_and_shrunk_in_its_place) {
  std::byte* const memory = map(16);
  keep(memory, 8 * page);
  munmap(memory + 8 * page, 8 * page);
  ASSERT_EQ(mremap(memory, 8 * page, 16 * page, 0), memory);
  EXPECT_TRUE(kept(memory, 8 * page));
  ASSERT_EQ(mremap(memory, 16 * page, 8 * page, 0), memory);
  EXPECT_TRUE(kept(memory, 8 * page));
  ASSERT_EQ(mremap(memory, 8 * page, 4 * page, 0), memory);
  EXPECT_FALSE(kept(memory, page));
  munmap(memory, 4 * page);
}

TEST_F(Watch, given_back_by_advice) {
  std::byte* const memory = map(16);
  for (const int advice : {MADV_DONTNEED, MADV_FREE}) {
    keep(memory, 16 * page);
    ASSERT_EQ(madvise(memory + 3 * page, page, advice), 0);
    EXPECT_FALSE(kept(memory, page)) << advice;
  }
  munmap(memory, 16 * page);
}

TEST_F(Watch, shared_memory) {
  const int file = memfd_create("macadam test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(16 * page)), 0);
  void* const memory = mmap(nullptr, 16 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(memory, MAP_FAILED);
  keep(memory, 16 * page);
  ASSERT_EQ(madvise(memory, page, MADV_REMOVE), 0);
  EXPECT_FALSE(kept(memory, page));
  keep(memory, 16 * page);
  munmap(memory, 16 * page);
  EXPECT_FALSE(kept(memory, page));
  close(file);
}

TEST_F(Watch, freed_large) {
  if (own_malloc) GTEST_SKIP() << "the sanitizer keeps freed memory";
  const std::size_t bytes = 64 << 20; // longer than what malloc ever keeps
  auto* memory = static_cast<std::byte*>(std::calloc(bytes, 1));
  keep(memory, bytes);
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  std::free(memory);
  memory = static_cast<std::byte*>(std::calloc(bytes, 1));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory), address) << "the test needs the same address";
  EXPECT_FALSE(kept(memory, bytes));
  std::free(memory);
}

TEST_F(Watch, freed_small_and_trimmed) {
  if (own_malloc) GTEST_SKIP() << "the sanitizer keeps freed memory";
  std::vector<std::byte*> blocks; // on the heap of brk, the last ones at its top
  for (int i = 0; i < 100; ++i)
    blocks.push_back(static_cast<std::byte*>(std::calloc(100'000, 1)));
  keep(blocks[98], 100'000);
  const auto address = reinterpret_cast<std::uintptr_t>(blocks[98]);
  std::free(blocks[98]);
  EXPECT_TRUE(kept(pointer(address), 100'000)) << "it is malloc's still";
  for (int i = 0; i < 100; ++i)
    if (i != 98) std::free(blocks[static_cast<std::size_t>(i)]);
  malloc_trim(0);
  EXPECT_FALSE(kept(pointer(address), 100'000));
}

TEST_F(Watch, huge_pages) {
  const std::size_t huge = 2 << 20;
  void* const memory = mmap(nullptr, 2 * huge, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "this machine has no huge pages set aside";
  auto* const bytes = static_cast<std::byte*>(memory);
  keep(bytes, page);
  keep(bytes + 2 * page, page); // in the same huge page
  Registration* const neighbour = cache.acquire(bytes + page, page);
  cache.release(*neighbour);
  ASSERT_EQ(madvise(bytes, huge, MADV_DONTNEED), 0);
  EXPECT_FALSE(kept(bytes, page));
  EXPECT_FALSE(kept(bytes + 2 * page, page));
  keep(bytes + huge, huge);
  munmap(bytes, 2 * huge);
  EXPECT_FALSE(kept(bytes + huge, page));
}

TEST_F(Watch, segments_of_system_v_do_not_stay) {
  for (const int flags : {0, SHM_HUGETLB}) {
    const int segment = shmget(IPC_PRIVATE, 2 << 20, 0600 | IPC_CREAT | flags);
    if (segment == -1 && flags != 0) continue; // no huge pages
    void* const memory = shmat(segment, nullptr, 0);
    shmctl(segment, IPC_RMID, nullptr);
    ASSERT_NE(memory, reinterpret_cast<void*>(-1));
    cache.release(*cache.acquire(memory, 2 << 20)); // detaching it would not be told
    EXPECT_FALSE(kept(memory, page));
    shmdt(memory);
  }
}

TEST_F(Watch, files_do_not_stay) {
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  void* const memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  ASSERT_NE(memory, MAP_FAILED);
  close(file);
  cache.release(*cache.acquire(memory, page));
  EXPECT_FALSE(kept(memory, page));
  munmap(memory, page);
}

TEST_F(Watch, the_program_s_own_userfaultfd_keeps_its_memory) {
  std::byte* const memory = map(4, PROT_READ | PROT_WRITE);
  madvise(memory, 4 * page, MADV_DONTNEED);
  const int own = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
  uffdio_api api = {.api = UFFD_API, .features = 0, .ioctls = 0};
  ASSERT_EQ(ioctl(own, UFFDIO_API, &api), 0);
  uffdio_register request = {.range = {reinterpret_cast<std::uintptr_t>(memory), 4 * page},
                             .mode = UFFDIO_REGISTER_MODE_MISSING,
                             .ioctls = 0};
  ASSERT_EQ(ioctl(own, UFFDIO_REGISTER, &request), 0);
  cache.release(*cache.acquire(memory, 4 * page));
  EXPECT_FALSE(kept(memory, page));
  {
    Userfault other; // that ends looks at all memory
    std::byte* const some = map(1);
    EXPECT_TRUE(other.watch(
        {reinterpret_cast<std::uintptr_t>(some), reinterpret_cast<std::uintptr_t>(some) + page}));
    munmap(some, page);
  }
  uffdio_zeropage zero = {.range = request.range, .mode = 0, .zeropage = 0};
  EXPECT_EQ(ioctl(own, UFFDIO_ZEROPAGE, &zero), 0) << "its watch is gone";
  close(own);
  munmap(memory, 4 * page);
}

TEST_F(Watch, a_child_of_a_fork_has_its_own_memory) {
  std::byte* const memory = map(16);
  keep(memory, 16 * page);
  EXPECT_EQ(in_child([&] {
              const bool ok = munmap(memory, 8 * page) == 0 &&
                              madvise(memory + 8 * page, page, MADV_DONTNEED) == 0;
              return ok ? 0 : 1;
            }),
            0);
  EXPECT_TRUE(kept(memory, 16 * page));
  munmap(memory, 16 * page);
  EXPECT_FALSE(kept(memory, page));
}

TEST_F(Watch, an_exec_and_an_exit_wait_for_nobody) {
  std::byte* const memory = map(16);
  keep(memory, 16 * page);
  EXPECT_EQ(in_child([] { return execl("/bin/true", "true", nullptr); }), 0);
  EXPECT_TRUE(kept(memory, page));
  // With a source of its own, a reader and watched memory.
  EXPECT_EQ(in_child([] {
              static StampedRegistrar its_registrar;
              static Userfault its_source;
              static RegistrationCache its_cache(its_registrar, &its_source, 10, 1 << 30);
              its_cache.release(*its_cache.acquire(map(16), 16 * page));
              return its_source.why_not().empty() ? 0 : 1;
            }),
            0);
  munmap(memory, 16 * page);
}

// What was watched can be unmapped when the reader is gone, though a child holds the descriptor.
TEST(Userfault, its_end_leaves_nothing_watched) {
  alarm(longest);
  std::byte* memory = nullptr;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t child = -1;
  {
    StampedRegistrar registrar;
    Userfault source;
    if (!source.why_not().empty()) GTEST_SKIP() << source.why_not();
    RegistrationCache cache(registrar, &source, 10, 1 << 30);
    // The watch grows with the memory. Another thread (a sanitizer's) may take the place first.
    void* grown = MAP_FAILED;
    for (int tries = 0; grown == MAP_FAILED && tries < 100; ++tries) {
      memory = map(32);
      cache.release(*cache.acquire(memory, 16 * page));
      munmap(memory + 16 * page, 16 * page);
      grown = mremap(memory, 16 * page, 32 * page, 0);
    }
    ASSERT_EQ(grown, memory);
    child = fork();
    if (child == 0) {
      close(ends[1]);
      char byte = 0;
      _exit(static_cast<int>(read(ends[0], &byte, 1))); // until the parent is done
    }
  }
  munmap(memory + 24 * page, 8 * page);
  munmap(memory, 24 * page);
  close(ends[1]);
  int ended = -1;
  waitpid(child, &ended, 0);
  EXPECT_EQ(ended, 0);
  close(ends[0]);
  alarm(0);
}

TEST_F(Watch, more_than_can_be_written_down) {
  std::vector<std::byte*> pieces;
  for (int i = 0; i < 400; ++i) {
    pieces.push_back(map(2));
    keep(pieces.back(), page);
  }
  std::byte* const other = map(2);
  keep(other, page);
  for (std::byte* const piece : pieces)
    munmap(piece, 2 * page);
  for (std::byte* const piece : pieces)
    EXPECT_FALSE(kept(piece, page));
  keep(other, page); // whatever was thought of it
  EXPECT_TRUE(kept(other, page));
  munmap(other, 2 * page);
}

TEST_F(Watch, a_closed_descriptor_ends_all_trust) {
  std::byte* const memory = map(16);
  keep(memory, 16 * page);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone).string().find("userfaultfd") !=
        std::string::npos)
      close(std::stoi(entry.path().filename()));
  }
  EXPECT_FALSE(kept(memory, 16 * page));
  cache.release(*cache.acquire(memory, 16 * page));
  EXPECT_FALSE(kept(memory, 16 * page));
  munmap(memory, 16 * page);
}

// A handler may give memory back in the middle of a look-up.
namespace handler {
std::array<std::byte*, 100> pieces;
std::size_t left = 0;

void unmap_next(int) {
  if (left != 0) munmap(pieces[--left], 2 * page);
}
} // namespace handler

TEST_F(Watch, a_signal_handler_unmaps) {
  for (std::byte*& piece : handler::pieces) {
    piece = map(2);
    keep(piece, page);
  }
  handler::left = handler::pieces.size();
  struct sigaction action = {};
  action.sa_handler = handler::unmap_next;
  struct sigaction before = {};
  sigaction(SIGVTALRM, &action, &before);
  const itimerval often = {{0, 1000}, {0, 1000}};
  const itimerval never = {};
  setitimer(ITIMER_VIRTUAL, &often, nullptr);
  std::byte* const memory = map(1);
  while (const std::size_t left = *static_cast<volatile std::size_t*>(&handler::left)) {
    cache.find(handler::pieces[left - 1], page);
    cache.find(memory, page);
  }
  setitimer(ITIMER_VIRTUAL, &never, nullptr);
  sigaction(SIGVTALRM, &before, nullptr);
  EXPECT_FALSE(kept(handler::pieces[0], page));
  munmap(memory, page);
}

// In a container whose seccomp filter forbids the system call.
TEST(Userfault, is_forbidden) {
  EXPECT_EQ(in_child([] {
              constexpr auto number = static_cast<unsigned>(SYS_userfaultfd);
              std::array<sock_filter, 4> filter = {
                  sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                  sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                  sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                  sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
              const sock_fprog program = {filter.size(), filter.data()};
              if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 1;
              if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 2;
              StampedRegistrar registrar;
              Userfault source;
              if (source.why_not().find("seccomp") == std::string::npos) return 3;
              RegistrationCache cache(registrar, &source, 10, 1 << 30);
              std::byte* const memory = map(2);
              Registration* const used = cache.acquire(memory, page);
              if (used == nullptr || cache.find(memory, page) != used) return 4;
              cache.release(*used);
              cache.release(*used);
              cache.collect();
              return cache.entries() == 0 && cache.find(memory, page) == nullptr ? 0 : 5;
            }),
            0);
}

} // namespace
} // namespace macadam::mem
