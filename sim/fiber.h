// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <ucontext.h>

namespace macadam::sim {

// A function that can stop in the middle and go on later, with a stack of its own. All fibers run
// on the thread that resumes them, one at a time. A fiber is begun by ucontext; from then on it is
// switched by the compiler's setjmp and longjmp, as ucontext's own switch is a system call.
class Fiber {
 public:
  // The stack is mapped at once and takes memory as it is touched; behind its end is a page that
  // nobody may touch, so an overflow stops the program there. Throws base::Error when the system
  // has no address space or no mappings left.
  Fiber(std::size_t stack_bytes, std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  virtual ~Fiber(); // what its stack holds is not unwound

  // Runs it until it suspends itself or ends. Not from inside a fiber.
  void resume();
  [[nodiscard]] bool ended() const { return ended_; }

  // The fiber that runs, null outside of any.
  static Fiber* current();
  // Stops the running fiber; returns when it is resumed.
  static void suspend();
  // Ends the running fiber where it is: for exit() inside a simulated program.
  [[noreturn]] static void leave();

  // Whether an address is where nobody may write: the stack was too small.
  [[nodiscard]] bool guards(const void* address) const {
    return address >= mapping_ && address < stack_;
  }
  // Bytes of the stack that have been touched, for the memory report.
  [[nodiscard]] std::size_t touched_bytes() const;

 private:
  // Called by resume() before the fiber runs and after it has stopped.
  virtual void switching_in() {}
  virtual void switching_out() {}

  // What the C++ runtime and the C library keep per thread, but belongs to the fiber.
  struct ThreadState {
    void* caught_exceptions = nullptr;
    unsigned uncaught_exceptions = 0;
    int error_number = 0;
  };
  using Place = std::array<void*, 5>; // of __builtin_setjmp
  static void enter();
  [[noreturn]] static void leap(Place& to);
  static void jump(Place& from, Place& to);
  void begin(Place& from);
  void switch_in();
  void switch_out(bool for_good);

  std::function<void()> body_;
  std::byte* mapping_;
  std::size_t mapped_bytes_;
  std::byte* stack_; // behind the guard page
  ucontext_t beginning_;
  Place here_;  // where the fiber stands
  Place there_; // where resume() was called
  ThreadState state_;
  void* fake_stack_ = nullptr; // of the address sanitizer
  const void* outer_stack_ = nullptr;
  std::size_t outer_bytes_ = 0;
  bool begun_ = false;
  bool ended_ = false;
};

} // namespace macadam::sim
