// SPDX-License-Identifier: BSD-3-Clause
#include "mem/userfault.h"

#include "base/error.h"
#include "base/thread.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <memory>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace macadam::mem {
namespace {

// Older headers than the kernel are common.
#ifndef UFFD_USER_MODE_ONLY
constexpr unsigned UFFD_USER_MODE_ONLY = 1;
#endif

constexpr std::uint64_t features =
    UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE;
constexpr unsigned patience = 10'000; // looks at a map that another thread keeps changing

uffdio_range as_kernel_range(const Range& range) {
  return {range.begin, range.end - range.begin};
}

// Calls `visit(mapping, name)` for each mapping of this process, by address, until it returns
// false; false if they cannot be read.
template <class Visit>
bool for_each_mapping(Visit visit) {
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                   std::fclose);
  if (!maps) return false;
  char line[512]; // longer names come in several pieces, of which the later ones do not scan
  while (std::fgets(line, sizeof line, maps.get()) != nullptr) {
    Range mapping;
    int name = 0;
    const int scanned =
        std::sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &mapping.begin, &mapping.end, &name);
    if (scanned == 2 && !visit(mapping, static_cast<const char*>(line + name))) break;
  }
  return true;
}

} // namespace

void Userfault::Log::add(const Range& range) {
  const std::size_t at = added_.load(std::memory_order_relaxed);
  if (at - taken_.load(std::memory_order_acquire) == capacity) {
    overrun_.store(true, std::memory_order_release);
    return;
  }
  ranges_[at % capacity] = range;
  added_.store(at + 1, std::memory_order_release);
}

bool Userfault::Log::take(Range& range) {
  if (overrun_.load(std::memory_order_acquire)) {
    overrun_.store(false, std::memory_order_relaxed); // another overrun is told by `everything` too
    range = everything;
    return true;
  }
  const std::size_t at = taken_.load(std::memory_order_relaxed);
  if (at == added_.load(std::memory_order_acquire)) return false;
  range = ranges_[at % capacity];
  taken_.store(at + 1, std::memory_order_release);
  return true;
}

Userfault::Userfault() {
  if (open()) return;
  const int error = errno;
  why_not_ = fmt::format(
      "userfaultfd, by which the kernel tells that memory goes away, cannot be had ({}); {}",
      std::strerror(error),
      error == EPERM ? "let the container's seccomp filter allow this system call"
                     : "Linux 5.11 or later has it, built with CONFIG_USERFAULTFD");
  if (events_ != -1) close(events_);
  events_ = -1;
}

bool Userfault::open() {
  events_ =
      static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
  if (events_ == -1) return false;
  uffdio_api api = {.api = UFFD_API, .features = features, .ioctls = 0};
  if (ioctl(events_, UFFDIO_API, &api) != 0) return false;
  if (tells_of_changes()) return true;
  errno = EOPNOTSUPP; // for example without write protection on this processor
  return false;
}

// Whether all that this file relies on is so: a page is unmapped, which must raise an event, and as
// long as that is not read, the map must count as changing.
bool Userfault::tells_of_changes() {
  const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const probe = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(probe);
  const bool watched = add_to_kernel({begin, begin + bytes}) && map_state() == 0;
  if (!watched) {
    munmap(probe, bytes);
    return false;
  }
  bool told = false;
  try {
    std::atomic<bool> returned = false;
    std::thread other = base::start_thread("macadam-probe", [&] {
      munmap(probe, bytes); // waits for us
      returned = true;
    });
    pollfd event = {events_, POLLIN, 0};
    while (!told && !returned)
      told = poll(&event, 1, 10) == 1;
    told = told && map_state() == EAGAIN;
    read_batch();
    other.join();
  } catch (const base::Error&) { // no thread: none for the reader either
    forget({begin, begin + bytes});
    munmap(probe, bytes);
  }
  Range gone;
  return log_.take(gone) && gone == Range{begin, begin + bytes} && told && map_state() == 0;
}

Userfault::~Userfault() {
  if (events_ == -1) return;
  if (reader_.joinable()) {
    // Closing alone is not enough: a child of a fork may hold the descriptor open, and then an
    // unmapping of what is still watched would wait for ever for a reader that is no more.
    forget_all();
    const std::uint64_t one = 1;
    while (write(stop_, &one, sizeof one) == -1 && errno == EINTR) {
    }
    reader_.join();
    close(stop_);
  }
  close(events_);
}

// Made with the first watch(): most processes register nothing.
bool Userfault::start_reader() {
  if (reader_.joinable()) return true;
  if (events_ == -1) return false;
  stop_ = eventfd(0, EFD_CLOEXEC);
  if (stop_ == -1) return false;
  try {
    reader_ = base::start_thread("macadam-faults", [this] { read_events(); });
  } catch (const base::Error&) {
    close(stop_);
  }
  return reader_.joinable();
}

// Whole mappings are watched, and stay so: a part of one would be a mapping of its own for the
// kernel, and mremap refuses memory that lies in several.
bool Userfault::watch(const Range& range) {
  if (range.begin >= known_.begin && range.end <= known_.end) return true;
  if (!start_reader()) return false;
  bool all = true;
  const bool read = for_each_mapping([&](const Range& mapping, const char* name) {
    if (mapping.end <= range.begin) return true;
    if (mapping.begin >= range.end) return false;
    // Detaching a segment of System V shared memory (shmdt) raises no event. Without huge pages
    // the kernel refuses to watch it anyway.
    all = std::strncmp(name, "/SYSV", 5) != 0 && add_to_kernel(mapping);
    if (all) known_ = mapping;
    return all;
  });
  return read && all;
}

bool Userfault::add_to_kernel(const Range& mapping) const {
  uffdio_register request = {
      .range = as_kernel_range(mapping), .mode = UFFDIO_REGISTER_MODE_WP, .ioctls = 0};
  return ioctl(events_, UFFDIO_REGISTER, &request) == 0;
}

void Userfault::forget(const Range& mapping) const {
  uffdio_range request = as_kernel_range(mapping);
  ioctl(events_, UFFDIO_UNREGISTER, &request);
}

// Before Linux 6.17 the kernel forgot without asking whose watch it is, so we ask: it refuses to
// add what the program watches by a userfaultfd of its own.
void Userfault::forget_all() const {
  for_each_mapping([this](const Range& mapping, const char*) {
    if (add_to_kernel(mapping)) forget(mapping);
    return true;
  });
}

bool Userfault::take(Range& gone) {
  if (!reader_.joinable()) return false; // nothing was ever watched
  // Memory that another thread unmaps may be given out again before that thread's event is read,
  // even before it can be read. As long, the map counts as changing.
  int state = map_state();
  for (unsigned looks = 0; state == EAGAIN && looks < patience; ++looks) {
    sched_yield();
    state = map_state();
  }
  while (reading_.load(std::memory_order_seq_cst)) // not before the map was looked at
    sched_yield();
  // It may not settle, or the program may have closed our descriptor.
  if (state != 0)
    gone = everything;
  else if (!log_.take(gone))
    return false;
  known_ = {};
  return true;
}

// EAGAIN while a change of the map has begun whose event is not read; else 0.
int Userfault::map_state() const {
  // The kernel protects no memory while the map changes, and looks at that first. The request is
  // one that it refuses otherwise, as part of a page cannot be protected: the cheapest answer.
  uffdio_writeprotect request = {.range = {.start = 0, .len = 1}, .mode = 0};
  ioctl(events_, UFFDIO_WRITEPROTECT, &request);
  return errno == EINVAL ? 0 : errno;
}

void Userfault::read_events() {
  pollfd ends[] = {{events_, POLLIN, 0}, {stop_, POLLIN, 0}};
  while (ends[1].revents == 0) {
    if (poll(ends, 2, -1) == -1 || ends[0].revents == 0) continue;
    // First said, then read: the read lets the callers go on.
    reading_.store(true, std::memory_order_seq_cst);
    const bool open = read_batch();
    reading_.store(false, std::memory_order_release);
    if (!open) return;
  }
}

// False if there can be no more: the program has closed our descriptor.
bool Userfault::read_batch() {
  std::array<uffd_msg, 16> batch;
  const ssize_t bytes = read(events_, batch.data(), sizeof batch);
  if (bytes < 0) return errno == EAGAIN || errno == EINTR;
  const auto count = static_cast<std::size_t>(bytes) / sizeof(uffd_msg);
  for (std::size_t i = 0; i < count; ++i) {
    if (batch[i].event == UFFD_EVENT_REMAP) {
      const auto& moved = batch[i].arg.remap;
      log_.add({moved.from, moved.from + moved.len}); // the watch goes along: no harm
    } else if (batch[i].event == UFFD_EVENT_UNMAP || batch[i].event == UFFD_EVENT_REMOVE) {
      log_.add({batch[i].arg.remove.start, batch[i].arg.remove.end});
    }
  }
  return count != 0;
}

} // namespace macadam::mem
