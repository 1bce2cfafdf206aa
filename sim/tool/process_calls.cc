// SPDX-License-Identifier: BSD-3-Clause
// Functions of the C library whose meaning is different in a simulated process: time is virtual, to
// sleep is to compute, and exit() ends one rank. The simulator exports them; programs that it loads
// find them before the C library's. Outside of a rank they do what they always do.
#include "sim/charges.h"
#include "sim/rank.h"

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
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
