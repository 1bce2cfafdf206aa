// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/comm.h"

#include <coroutine>
#include <exception>
#include <utility>

namespace macadam::coll {

class Collective;

// A coroutine of a collective. It runs at once, up to the first message that it must wait for; to
// co_await it waits for its end and rethrows what it threw. Its first parameter is the Comm (or the
// Collective), whose pool holds its frame; arguments passed by reference must outlive it.
class [[nodiscard]] Task {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  // A task that has not ended is abandoned, not freed: the network may still write its memory.
  ~Task();

  [[nodiscard]] bool done() const { return handle_.done(); }
  // What it threw, once done.
  [[nodiscard]] const std::exception_ptr& error() const;
  // Called when the task, which is not done, ends.
  void on_end(void (*call)(Collective&), Collective& argument);

  bool await_ready() const noexcept { return done(); }
  void await_suspend(std::coroutine_handle<> caller) noexcept;
  void await_resume() const {
    if (error()) [[unlikely]]
      std::rethrow_exception(error());
  }

 private:
  explicit Task(Handle handle) : handle_(handle) {}
  Handle handle_;
};

struct Task::promise_type {
  // Resumes whoever waits. Nested calls instead of symmetric transfer: tasks start eagerly, so the
  // depth of the stack is that of the nesting, and the frame may be freed by the caller meanwhile.
  struct AtEnd {
    bool await_ready() const noexcept { return false; }
    void await_suspend(Handle ended) const noexcept {
      promise_type& promise = ended.promise();
      if (promise.caller)
        promise.caller.resume();
      else if (promise.call != nullptr)
        promise.call(*promise.argument);
    }
    void await_resume() const noexcept {}
  };

  Task get_return_object() { return Task(Handle::from_promise(*this)); }
  std::suspend_never initial_suspend() const noexcept { return {}; }
  AtEnd final_suspend() const noexcept { return {}; }
  void return_void() const {}
  void unhandled_exception() { error = std::current_exception(); }

  template <class... Arguments>
  static void* operator new(std::size_t bytes, Comm& comm, const Arguments&...) {
    return comm.shared->frames.take(bytes);
  }
  static void operator delete(void* frame, std::size_t) { FramePool::give(frame); }

  std::coroutine_handle<> caller;
  void (*call)(Collective&) = nullptr;
  Collective* argument = nullptr;
  std::exception_ptr error;
};

inline Task::~Task() {
  if (handle_ && handle_.done()) handle_.destroy();
}
inline const std::exception_ptr& Task::error() const {
  return handle_.promise().error;
}
inline void Task::on_end(void (*call)(Collective&), Collective& argument) {
  handle_.promise().call = call;
  handle_.promise().argument = &argument;
}
inline void Task::await_suspend(std::coroutine_handle<> caller) noexcept {
  handle_.promise().caller = caller;
}

} // namespace macadam::coll
