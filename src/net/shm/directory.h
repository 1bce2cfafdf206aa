// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace macadam::net::shm {

using engine::Rank;

// Memory that one process owns and its peers map: the bytes [offset, offset + capacity) of `fd`,
// sparse and zero at first. The Directory owns `fd`.
struct SharedMemory {
  int fd = -1;
  std::uint64_t offset = 0;   // a multiple of the page size
  std::uint64_t capacity = 0; // bytes
};

// What start-up knows of a process.
enum class Life : std::uint8_t {
  running,
  over,   // it has ended, in good order perhaps: a peer that waits for it finds out
  failed, // it has ended before its time
};

// Who the processes of this job on this host are, and how to reach their memory. Start-up provides
// it; the transport keeps a reference.
class Directory {
 public:
  virtual ~Directory() = default;

  [[nodiscard]] virtual Rank rank() const = 0;           // this process
  [[nodiscard]] virtual Rank size() const = 0;           // of the job: ranks are 0 to size() - 1
  [[nodiscard]] virtual unsigned local_size() const = 0; // processes on this host
  [[nodiscard]] virtual bool is_local(Rank) const { return true; } // on this host
  // The processes on this host are numbered from 0: this one's number, and the rank of one.
  [[nodiscard]] virtual unsigned local_index() const { return rank(); }
  [[nodiscard]] virtual Rank neighbour(unsigned index) const { return index; }
  [[nodiscard]] virtual unsigned cores() const = 0; // hardware threads they share

  // This process's memory; asked for again before each mapping, as the program may have closed the
  // descriptor meanwhile. Only if local_size() > 1. Throws base::Error.
  virtual SharedMemory own_segment() = 0;
  // Called once, when own_segment() is laid out and peers may map it.
  virtual void publish() = 0;
  // Promises memory to this process, to be taken when it is touched. Empty, or why there is not as
  // much, with the remedy.
  virtual std::string promise(std::uint64_t /*bytes*/) { return {}; }
  virtual void withdraw(std::uint64_t /*bytes*/) {}
  // A peer's memory; waits until the peer has published. Throws base::Error if it never will.
  virtual SharedMemory open_segment(Rank peer) = 0;
  // The process id of a peer that has published.
  [[nodiscard]] virtual pid_t pid(Rank peer) const = 0;
  // Of a rank on this host.
  [[nodiscard]] virtual Life life(Rank) const { return Life::running; }
  // How many processes on this host have failed so far. Asked now and then by a wait in vain.
  [[nodiscard]] virtual unsigned failures() const { return 0; }
};

} // namespace macadam::net::shm
