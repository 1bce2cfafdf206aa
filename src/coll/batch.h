// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "coll/comm.h"
#include "coll/task.h"

#include <coroutine>
#include <optional>
#include <span>

namespace macadam::coll {

// What memory is lacking for, in errors.
inline constexpr const char* on_the_way = "for what is on its way between ranks";

// Sends and receives in flight together; co_await waits for all of them, and not at all if they are
// done already. Usable again afterwards. The first error is thrown by co_await, when the others are
// finished too, so that no buffer is written later.
//
// Once a rank is gone, or cannot be reached, others may wait for it and never send: receives of the
// collective that nobody has begun to answer are cancelled, and it fails.
//
// Collectives know what they get: a message of another length than its receive is an error.
class Batch {
 public:
  explicit Batch(const Comm& comm) : comm_(comm) {}
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // This rank goes on to wait for others, so its sends need not be free early: they leave no copy
  // behind.
  void stay() { receives_ = stays_ = true; }

  // Starts one. An error of the start is thrown by co_await as well.
  void send(int to, const Data& data) noexcept;
  void receive(int from, const Data& data) noexcept;
  // This rank's own data, at once; see coll::copy().
  void copy(const Data& from, const Data& to) noexcept;
  // What else has gone wrong, for co_await to throw.
  void note(base::Error&& error) noexcept;

  // If a rank is gone, cancels the receives that nobody has begun to answer.
  void withdraw() noexcept;

  // co_await batch.ended() waits as well, and leaves an error for co_await of the batch: for those
  // that have others under way.
  struct Ended {
    Batch& batch;
    bool await_ready() const noexcept { return batch.await_ready(); }
    void await_suspend(std::coroutine_handle<> waiting) noexcept { batch.await_suspend(waiting); }
    void await_resume() noexcept { batch.receives_ = batch.stays_; }
  };
  [[nodiscard]] Ended ended() noexcept { return {*this}; }
  [[nodiscard]] bool failed() const noexcept { return error_.has_value(); }

  bool await_ready() noexcept {
    if (lost_) [[unlikely]]
      withdraw();
    return active_ == 0;
  }
  void await_suspend(std::coroutine_handle<> waiting) noexcept { waiting_ = waiting; }
  void await_resume() {
    receives_ = stays_;
    if (error_) [[unlikely]]
      throw_error();
  }

 private:
  void add(engine::Request& request);
  void check(const engine::Request& request) noexcept;
  void note_gone(const engine::Peer* peer) noexcept;
  static void on_complete(engine::Request& request, void* batch) noexcept;
  [[noreturn]] void throw_error();

  const Comm& comm_;
  int active_ = 0;
  bool stays_ = false;
  bool receives_ = false; // since the last co_await, or will
  bool lost_ = false;     // a rank is gone: so says an error
  std::coroutine_handle<> waiting_;
  std::optional<base::Error> error_;
};

// Ends when all batches have, so that nothing of any is under way when the first error is thrown.
Task finish(Comm& memory, std::span<Batch> batches);

} // namespace macadam::coll
