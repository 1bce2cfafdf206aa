// SPDX-License-Identifier: BSD-3-Clause
#include "sim/fiber.h"

#include "base/error.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define MACADAM_ADDRESS_SANITIZER 1
#else
#define MACADAM_ADDRESS_SANITIZER 0
#endif

namespace macadam::sim {
namespace {

thread_local Fiber* running = nullptr;

// The beginning of the runtime's record of exceptions (Itanium C++ ABI, section 2.2.2): a fiber
// that waits inside a catch block keeps its own.
struct ExceptionGlobals {
  void* caught;
  unsigned uncaught;
};

// Since Linux 6.13 a page can be forbidden inside a mapping (MADV_GUARD_INSTALL, which not all C
// libraries know), so that stacks side by side are one; elsewhere it makes a mapping of its own.
bool forbid(void* memory, std::size_t bytes) {
  constexpr int guard_install = 102;
  return ::madvise(memory, bytes, guard_install) == 0 || ::mprotect(memory, bytes, PROT_NONE) == 0;
}

} // namespace

Fiber::Fiber(std::size_t stack_bytes, std::function<void()> body) : body_(std::move(body)) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  mapped_bytes_ = (stack_bytes + page - 1) / page * page + page;
  void* memory = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED || !forbid(memory, page)) {
    const int error = errno;
    if (memory != MAP_FAILED) ::munmap(memory, mapped_bytes_);
    base::fail(MPI_ERR_NO_MEM,
               "a stack of {} bytes cannot be mapped: {}; simulate fewer ranks, or raise the "
               "number of mappings a process may have (sysctl vm.max_map_count)",
               stack_bytes, std::strerror(error));
  }
  mapping_ = static_cast<std::byte*>(memory);
  stack_ = mapping_ + page;
  ::getcontext(&beginning_);
  beginning_.uc_stack.ss_sp = stack_;
  beginning_.uc_stack.ss_size = mapped_bytes_ - page;
  beginning_.uc_link = nullptr;
  ::makecontext(&beginning_, &Fiber::enter, 0);
}

Fiber::~Fiber() {
#if MACADAM_ADDRESS_SANITIZER
  // What was not unwound is marked as in use; the next stack may come to lie here.
  __asan_unpoison_memory_region(mapping_, mapped_bytes_);
#endif
  ::munmap(mapping_, mapped_bytes_);
}

Fiber* Fiber::current() {
  return running;
}

void Fiber::enter() {
  Fiber& self = *running;
#if MACADAM_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(nullptr, &self.outer_stack_, &self.outer_bytes_);
#endif
  self.body_();
  leave();
}

// Each in a function of its own, as GCC demands. The address sanitizer would clean the stack up
// that is left; it is told of switches as such.
[[noreturn, gnu::noinline, gnu::no_sanitize("address")]] void Fiber::leap(Place& to) {
  __builtin_longjmp(to.data(), 1);
}

[[gnu::noinline, gnu::no_sanitize("address")]] void Fiber::jump(Place& from, Place& to) {
  if (__builtin_setjmp(from.data()) == 0) leap(to);
}

[[gnu::noinline, gnu::no_sanitize("address")]] void Fiber::begin(Place& from) {
  begun_ = true;
  if (__builtin_setjmp(from.data()) == 0) ::setcontext(&beginning_);
}

void Fiber::switch_in() {
  auto* exceptions = reinterpret_cast<ExceptionGlobals*>(abi::__cxa_get_globals());
  const ThreadState outer{exceptions->caught, exceptions->uncaught, errno};
  exceptions->caught = state_.caught_exceptions;
  exceptions->uncaught = state_.uncaught_exceptions;
  errno = state_.error_number;
#if MACADAM_ADDRESS_SANITIZER
  void* outer_fake = nullptr;
  __sanitizer_start_switch_fiber(&outer_fake, stack_,
                                 static_cast<std::size_t>(mapping_ + mapped_bytes_ - stack_));
#endif
  if (begun_)
    jump(there_, here_);
  else
    begin(there_);
#if MACADAM_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(outer_fake, nullptr, nullptr);
#endif
  state_ = {exceptions->caught, exceptions->uncaught, errno};
  exceptions->caught = outer.caught_exceptions;
  exceptions->uncaught = outer.uncaught_exceptions;
  errno = outer.error_number;
}

void Fiber::switch_out([[maybe_unused]] bool for_good) {
#if MACADAM_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_stack_, outer_stack_, outer_bytes_);
#endif
  jump(here_, there_);
#if MACADAM_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(fake_stack_, &outer_stack_, &outer_bytes_);
#endif
}

void Fiber::resume() {
  if (running != nullptr) base::fail(MPI_ERR_INTERN, "a fiber resumes another one");
  if (ended_) base::fail(MPI_ERR_INTERN, "a fiber that has ended is resumed");
  running = this;
  switching_in();
  switch_in();
  switching_out();
  running = nullptr;
}

void Fiber::suspend() {
  running->switch_out(false);
}

void Fiber::leave() {
  running->ended_ = true;
  running->switch_out(true);
  __builtin_unreachable(); // an ended fiber is not resumed
}

std::size_t Fiber::touched_bytes() const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident(mapped_bytes_ / page);
  if (::mincore(mapping_, mapped_bytes_, resident.data()) != 0) return 0;
  std::size_t bytes = 0;
  for (const unsigned char each : resident)
    bytes += (each & 1) * page;
  return bytes;
}

} // namespace macadam::sim
