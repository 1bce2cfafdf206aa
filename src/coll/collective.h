// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/buffers.h"
#include "coll/comm.h"
#include "coll/task.h"
#include "datatype/op.h"
#include "engine/request.h"

#include <array>
#include <cstdint>
#include <exception>

namespace macadam::coll {

// What a collective works on. Which members mean something depends on the call; see the functions
// in operations.h. Everything named here outlives the operation.
struct Arguments {
  Blocks send;
  Blocks receive;
  const datatype::Op* op = nullptr;
  int root = 0;
  bool in_place = false;
};

class Sequence;

// One collective operation: blocking calls keep it on the stack, nonblocking ones behind a request
// handle, persistent ones begin() it again and again. Complete (engine::Request) when this process's
// part is done; `status.error` is then the class of what error() holds.
class Collective : public engine::Request, public Comm {
 public:
  using Run = Task (*)(Collective& self);

  Collective(Resources& resources, const engine::Team& t, Run run, const Arguments& a)
      : engine::Request(engine::Role::collective), Comm(resources, t, 0), arguments(a), run_(run) {
    complete = true;
  }
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  // Starts it (again) with this->tag. Never throws: what goes wrong is in error().
  void begin() noexcept;
  // What went wrong, null if nothing.
  [[nodiscard]] const std::exception_ptr& error() const { return error_; }
  void rethrow() const {
    if (error_) [[unlikely]] std::rethrow_exception(error_);
  }

  Arguments arguments;

 private:
  friend class Sequence;
  void finish();

  Run run_;
  Task task_;
  std::exception_ptr error_;
  Sequence* sequence_ = nullptr;
  Collective* next_ = nullptr;  // waits for our tag
};

// Gives the collectives of one communicator their tags, in the order in which they are called, which
// is the same on all ranks. Tags are few, so that the ordinals of section 4.1 (engine/peer.h) stay
// few: a collective waits until the earlier one with its tag is complete here.
class Sequence {
 public:
  // Starts `collective` when its tag is free: mostly now.
  void start(Collective& collective) noexcept;
  // A tag for a persistent collective, its own for as long as the communicator lives, since
  // processes may start persistent collectives in different orders.
  [[nodiscard]] std::int32_t own_tag() { return next_own_++; }

 private:
  friend class Collective;
  static constexpr std::uint32_t tags = 8;

  std::uint32_t started_ = 0;
  std::int32_t next_own_ = tags;
  std::array<Collective*, tags> last_ = {};  // the latest with this tag, if not complete
};

}  // namespace macadam::coll
