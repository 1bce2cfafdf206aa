// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/board.h"
#include "coll/buffers.h"
#include "coll/comm.h"
#include "coll/machines.h"
#include "coll/neighbors.h"
#include "coll/sequence.h"
#include "coll/task.h"
#include "datatype/op.h"

#include <exception>

namespace macadam::coll {

struct Check;

// What a collective works on. Which members mean something depends on the call; see the functions
// in operations.h. It outlives the operation, and so does everything named here.
struct Arguments {
  Blocks send;
  Blocks receive;
  const datatype::Op* op = nullptr;
  int root = 0;
  bool in_place = false;
  // Intercommunicators only: the local group among itself.
  const engine::Team* inside = nullptr;
  // Neighbourhood collectives only.
  const Edges* sources = nullptr;
  const Edges* destinations = nullptr;
  const Check* check = nullptr; // of checked()
  void* extra = nullptr;        // for coroutines of the layers above
};

// One collective operation: blocking calls keep it on the stack, nonblocking ones behind a request
// handle, persistent ones begin() it again and again.
class Collective : public Comm {
 public:
  using Run = Task (*)(Collective& self);

  Collective(Resources& resources, const engine::Team& t, Run run, const Arguments& a)
      : Comm(resources, t, 0), arguments(a), run_(run) {}
  // The same on a communicator that has boards.
  Collective(Resources& resources, const engine::Team& t, Boards& its, Run run, const Arguments& a)
      : Collective(resources, t, run, a) {
    if (t.shares && t.size() > 1) boards = &its;
  }
  // The same on one that may span several machines.
  Collective(Resources& resources, const engine::Team& t, Boards& its, Machines& levels, Run run,
             const Arguments& a)
      : Collective(resources, t, its, run, a) {
    if (!t.shares && t.size() > 1) machines = &levels;
  }
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  // Starts it (again) with this->tag. Never throws: what goes wrong is in error().
  void begin() noexcept;

  // Whether a board might be made for this one, which has none.
  [[nodiscard]] bool needs_board() const { return boards != nullptr && boards->is_due(tag); }

  // This process's part is done.
  [[nodiscard]] bool complete() const { return complete_; }
  // What went wrong, null if nothing. Valid once complete.
  [[nodiscard]] const std::exception_ptr& error() const { return error_; }
  void rethrow() const {
    if (error_) [[unlikely]]
      std::rethrow_exception(error_);
  }

  const Arguments& arguments;
  // For pages about jobs that hang: which function it is, and which of its communicator's
  // collectives, from 1; 0: a part of another function.
  const char* function = "";
  std::uint32_t number = 0;
  // Called once at the end of each run, maybe inside begin(); may free this.
  void (*continuation)(Collective& self, void* argument) noexcept = nullptr;
  void* argument = nullptr;

 private:
  friend class Sequence;
  void finish() noexcept;

  Run run_;
  bool complete_ = true;
  Task task_;
  std::exception_ptr error_;
  Sequence* sequence_ = nullptr;
  Collective* next_ = nullptr; // waits for our tag
};

} // namespace macadam::coll
