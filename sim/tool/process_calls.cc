// SPDX-License-Identifier: BSD-3-Clause
// Functions of the C library whose meaning is different in a simulated process: time is virtual, to
// sleep is to compute, who waits for another process lets it go on, exit() ends one rank, and a
// rank has a program, a parent and a folder. The simulator exports them; programs that it loads
// find them before the C library's. Outside of a rank they do what they always do.
#include "sim/charges.h"
#include "sim/rank.h"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

using macadam::sim::Away;
using macadam::sim::Rank;
using macadam::sim::Time;

constexpr Time second = 1'000'000 * macadam::sim::microsecond;

timespec as_timespec(Time time) {
  return {time / second, time % second / macadam::sim::nanosecond};
}

bool is_of_time(clockid_t clock) {
  return clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// All ranks are on one thread, so none may block in the kernel before the one that it waits for has
// written. `place`: of the program's call.
void await_input(int descriptor, const void* place) {
  Rank* rank = Rank::current();
  if (rank == nullptr) return;
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || (flags & O_NONBLOCK) != 0) return;
  const Away away(place);
  pollfd input{descriptor, POLLIN, 0};
  while (::poll(&input, 1, 0) == 0)
    rank->nap();
}

} // namespace

#pragma GCC visibility push(default)
extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  Rank* rank = Rank::current();
  if (rank == nullptr || !is_of_time(clock))
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  const Away away(__builtin_return_address(0));
  rank->tick();
  *time = as_timespec(rank->now());
  return 0;
}

int gettimeofday(timeval* __restrict time, void* __restrict) noexcept {
  timespec precise;
  const int result = ::clock_gettime(CLOCK_REALTIME, &precise);
  *time = {precise.tv_sec, precise.tv_nsec / 1000};
  return result;
}

int nanosleep(const timespec* duration, timespec* left) {
  Rank* rank = Rank::current();
  if (rank == nullptr) return static_cast<int>(::syscall(SYS_nanosleep, duration, left));
  const Away away(__builtin_return_address(0));
  rank->compute(duration->tv_sec * second + duration->tv_nsec * macadam::sim::nanosecond);
  return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  Rank* rank = Rank::current();
  if (rank == nullptr)
    return static_cast<int>(::syscall(SYS_clock_nanosleep, clock, flags, time, left));
  const Away away(__builtin_return_address(0));
  const Time given = time->tv_sec * second + time->tv_nsec * macadam::sim::nanosecond;
  const Time duration = flags == TIMER_ABSTIME ? given - rank->now() : given;
  if (duration > 0) rank->compute(duration);
  return 0;
}

int usleep(useconds_t microseconds) {
  const timespec duration{microseconds / 1'000'000, microseconds % 1'000'000 * 1000L};
  return ::nanosleep(&duration, nullptr);
}

unsigned sleep(unsigned seconds) {
  const timespec duration{seconds, 0};
  ::nanosleep(&duration, nullptr);
  return 0;
}

int sched_yield() noexcept {
  if (Rank* rank = Rank::current()) {
    const Away away(__builtin_return_address(0));
    rank->tick();
    return 0;
  }
  return static_cast<int>(::syscall(SYS_sched_yield));
}

ssize_t read(int descriptor, void* bytes, std::size_t size) {
  await_input(descriptor, __builtin_return_address(0));
  return ::syscall(SYS_read, descriptor, bytes, size);
}

ssize_t recv(int descriptor, void* bytes, std::size_t size, int flags) {
  if ((flags & MSG_DONTWAIT) == 0) await_input(descriptor, __builtin_return_address(0));
  return ::recvfrom(descriptor, bytes, size, flags, nullptr, nullptr);
}

int accept(int descriptor, sockaddr* __restrict address, socklen_t* __restrict length) {
  await_input(descriptor, __builtin_return_address(0));
  return static_cast<int>(::syscall(SYS_accept, descriptor, address, length));
}

// As a rank's program finds its own file, which may be loaded from a copy.
ssize_t readlink(const char* __restrict path, char* __restrict text, std::size_t size) noexcept {
  const Rank* rank = Rank::current();
  if (rank == nullptr || rank->executable.empty() || std::strcmp(path, "/proc/self/exe") != 0)
    return ::syscall(SYS_readlink, path, text, size);
  return static_cast<ssize_t>(rank->executable.copy(text, size));
}

// The simulator has started all ranks.
pid_t getppid() noexcept {
  return static_cast<pid_t>(::syscall(Rank::current() != nullptr ? SYS_getpid : SYS_getppid));
}

int chdir(const char* path) noexcept {
  if (Rank* rank = Rank::current()) return rank->enter_folder(path) ? 0 : -1;
  return static_cast<int>(::syscall(SYS_chdir, path));
}

[[noreturn]] void exit(int code) noexcept {
  if (Rank* rank = Rank::current()) rank->exit(code);
  next<void(int)>("exit")(code);
  __builtin_unreachable();
}

int pthread_create(pthread_t* __restrict thread, const pthread_attr_t* __restrict attributes,
                   void* (*start)(void*), void* __restrict argument) noexcept {
  if (Rank::current() != nullptr) {
    std::fputs("macadam simulate: a simulated rank cannot start threads; all ranks share one\n",
               stderr);
    return EAGAIN;
  }
  return next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create")(
      thread, attributes, start, argument);
}

} // extern "C"
#pragma GCC visibility pop
