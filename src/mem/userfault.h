// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mem/invalidation.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <string>
#include <thread>

namespace macadam::mem {

// Learns from the kernel which memory goes away, through userfaultfd(2): nothing is hooked or
// patched, so it does not matter who unmaps, the C library and raw system calls included
// (docs/registration.md).
//
// Mappings are registered for write protection, and never write-protected: no access ever faults.
// What they give is events. A thread that calls munmap, mremap, madvise, brk or mmap over watched
// memory waits inside the kernel until our reader thread has read the event; so when the call
// returns, it is known. The reader allocates nothing and takes no lock: the thread that waits for
// it may hold any.
class Userfault final : public InvalidationSource {
 public:
  // Never throws: see why_not().
  Userfault();
  Userfault(const Userfault&) = delete;
  Userfault& operator=(const Userfault&) = delete;
  ~Userfault() override;

  bool watch(const Range& range) override;
  bool take(Range& gone) override;
  [[nodiscard]] std::string why_not() const override { return why_not_; }

 private:
  // What the reader writes down and take() reads: a queue of one writer and one reader, without
  // lock, as a signal may interrupt take() and its handler give memory back.
  class Log {
   public:
    void add(const Range& range);
    bool take(Range& range);

   private:
    static constexpr std::size_t capacity = 256;
    std::array<Range, capacity> ranges_;
    std::atomic<std::size_t> added_ = 0;
    std::atomic<std::size_t> taken_ = 0;
    std::atomic<bool> overrun_ = false;
  };

  bool open();
  bool tells_of_changes();
  bool start_reader();
  void read_events();
  bool read_batch();
  int map_state() const;
  bool add_to_kernel(const Range& mapping) const;
  void forget(const Range& mapping) const;
  void forget_all() const;

  int events_ = -1; // the userfaultfd
  int stop_ = -1;   // eventfd that ends the reader
  Range known_;     // a mapping that is watched, as long as nothing is told to have gone
  std::string why_not_;
  std::thread reader_; // from the first watch() on
  Log log_;
  std::atomic<bool> reading_ = false; // an event may have been read that is not in the log yet
};

} // namespace macadam::mem
