// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/board.h"
#include "coll/machines.h"
#include "coll/task.h"

#include <coroutine>
#include <exception>

namespace macadam::coll {

// Collectives on two levels, each of algorithms that know one: among the ranks of a machine, on
// their board where they have one, and across machines. Short data go through a leader, the first
// rank of each machine; of longer ones each rank of a machine carries a slice, so that the memory
// of the machine is gone through in parallel. Long data go in segments (Segments): while one is
// between machines, those beside it are collected and dealt out inside of them.

// Before anything else on the team inside a machine.
inline Task prepare(Comm& inside) {
  if (inside.boards != nullptr && inside.boards->is_due(inside.tag)) co_await make_board(inside);
}

// Ends when a task has, whatever it threw.
struct Ended {
  Task& task;
  [[nodiscard]] bool await_ready() const noexcept { return task.done(); }
  void await_suspend(std::coroutine_handle<> caller) const noexcept { task.await_suspend(caller); }
  void await_resume() const noexcept {}
};

// Ends when both tasks have. Neither is left at work on memory that its caller gives back.
inline Task both(Comm& /*memory*/, Task& one, Task& other) {
  co_await Ended{one};
  co_await Ended{other};
  for (const Task* const task : {&one, &other})
    if (task->error()) std::rethrow_exception(task->error());
}

inline Task nothing(Comm& /*memory*/) {
  co_return;
}

} // namespace macadam::coll
