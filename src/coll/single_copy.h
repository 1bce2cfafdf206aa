// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/buffers.h"
#include "coll/comm.h"
#include "coll/task.h"
#include "engine/engine.h"

#include <coroutine>
#include <cstddef>
#include <cstdint>

namespace macadam::coll {

// Data between the memory of this rank and that of another one of its machine, copied once, by this
// rank alone (Transport::read(), write()): by the kernel, or by the processor where the memory is
// mapped. For ranks that have a board on which all can do so (Board::single_copy()), that is, on a
// network that has room at once and where a write that is done has landed.
//
// If a rank of the team fails, others may copy from or to its buffers, or those of ranks that have
// noticed, for as long as it takes the job to end.

// A user's blocks as others find them, which they may do for as long as this object lives.
class Exposed {
 public:
  // Of blocks with gaps nothing is shown.
  Exposed(const Comm& comm, const Blocks& blocks);
  Exposed(const Exposed&) = delete;
  Exposed& operator=(const Exposed&) = delete;
  ~Exposed();

  // Not shown: its address is 0.
  [[nodiscard]] engine::RemoteMemory memory() const { return memory_; }

 private:
  engine::Transport& network_;
  engine::RemoteMemory memory_;
};

enum class Direction : std::uint8_t { read, write };

// Copies `bytes` bytes between `ours` and the memory of rank `peer`. Throws MPI_ERR_OTHER if that
// is not there (any more), or MPI_ERR_PROC_ABORTED if a rank of the job has failed.
class [[nodiscard]] SingleCopy final : engine::MemoryWaiter {
 public:
  SingleCopy(const Comm& comm, Direction direction, int peer, void* ours,
             engine::RemoteMemory theirs, std::size_t bytes);

  [[nodiscard]] bool await_ready() const noexcept { return posted_ != engine::Posted::pending; }
  void await_suspend(std::coroutine_handle<> waiting) noexcept { waiting_ = waiting; }
  void await_resume() const {
    if (posted_ != engine::Posted::done) [[unlikely]]
      throw_lost();
  }

 private:
  void on_done(bool ok) noexcept override;
  [[noreturn]] void throw_lost() const;

  const Comm& comm_;
  const int peer_;
  std::coroutine_handle<> waiting_;
  engine::Posted posted_;
  bool refused_ = false;
};

// The same for a block of any type, whose bytes are at `offset` there. Data with gaps are packed in
// pieces.
Task copy_once(Comm& comm, Direction direction, int peer, Data ours, engine::RemoteMemory theirs,
               std::size_t offset);

} // namespace macadam::coll
