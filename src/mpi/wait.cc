// SPDX-License-Identifier: BSD-3-Clause
#include "base/fence.h"
#include "mpi/process.h"
#include "mpi/report.h"
#include "mpi/request.h"

#include <algorithm>
#include <thread>

namespace macadam::mpi {

void Instance::idle(unsigned fruitless, unsigned longest_us) {
  if (const base::Error* const failure = engine->failure()) [[unlikely]]
    throw base::Error(*failure);
  if (process_.job->report_wanted()) [[unlikely]]
    write_hang_report();
  files.collect();
  // The thread that reads and writes files wakes nobody.
  constexpr unsigned file_us = 50;
  if (files.worker.under_way() != 0) longest_us = std::min(longest_us, file_us);
  if (process_.lock.is_mine()) [[unlikely]]
    idle_among_threads(fruitless, longest_us);
  else
    engine->networks().idle(fruitless, longest_us);
}

namespace {

// The send that a request is, or stands for, if it may leave a copy behind.
engine::SendRequest* find_leaving(MPI_Request waited) {
  engine::Request* request = &object(waited);
  if (request->role == engine::Role::persistent) {
    auto& persistent = static_cast<LayerRequest&>(*request);
    request =
        persistent.sort->under_way != nullptr ? persistent.sort->under_way(persistent) : nullptr;
  }
  const bool may_leave = request != nullptr && engine::Engine::may_leave(*request);
  return may_leave ? static_cast<engine::SendRequest*>(request) : nullptr;
}

} // namespace

void Instance::leave(std::span<const MPI_Request> waited, Awaits awaits) {
  const auto ends_or_leaves = [](MPI_Request request) {
    return is_complete(request) || find_leaving(request) != nullptr;
  };
  if (awaits == Awaits::all && !std::ranges::all_of(waited, ends_or_leaves)) return;
  for (const MPI_Request request : waited) {
    engine::SendRequest* const send = is_complete(request) ? nullptr : find_leaving(request);
    if (send == nullptr) continue;
    engine->leave(*send);
    if (awaits == Awaits::any) return;
  }
}

// While other threads have the lock, if they want it.
void Instance::give_turn() {
  const LetGo let_go(process_);
  engine->networks().give_turn();
}

void Instance::write_hang_report() {
  if (process_.trace && process_.job->is_ending()) process_.trace->write();
  process_.job->write_report(hang_report(process_));
}

// Either this thread sees what others left before they found the lock taken, or they find it free.
void Library::post_left_partitions() noexcept {
  base::full_fence();
  while (left_partitions.load() && lock.try_lock()) {
    if (running == this)
      running.load()->instance->engine->partitioned().post_left();
    else
      left_partitions.store(false); // MPI has ended meanwhile
    lock.unlock();
  }
}

void Instance::idle_among_threads(unsigned fruitless, unsigned longest_us) {
  // Another one may finish what this one sleeps for: look again soon.
  constexpr unsigned threads_us = 1'000;
  const bool contended = process_.lock.contended();
  const LetGo let_go(process_);
  if (contended)
    std::this_thread::yield();
  else
    engine->networks().idle(fruitless, process_.thread_multiple ? std::min(longest_us, threads_us)
                                                                : longest_us);
}

} // namespace macadam::mpi
