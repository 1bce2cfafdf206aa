// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/counters.h"
#include "base/error.h"
#include "base/object.h"
#include "base/settings.h"
#include "boot/job.h"
#include "datatype/op.h"
#include "datatype/type.h"
#include "engine/engine.h"

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace macadam::mpi {

struct Communicator;

// Everything one MPI process is: its place in the job, its engine, MPI's objects. One in a program;
// many in the simulator, where the scheduler sets `running` before it runs a rank.
class Process {
 public:
  enum class Phase : std::uint8_t { before_init, initialized, finalized };

  Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  // The object behind a handle of the standard ABI: a predefined one by its constant, any other by
  // its address. Null if it is none of this kind (MPI_*_NULL, freed, another kind).
  template <class T>
  [[nodiscard]] T* find(const void* handle, base::ObjectKind kind) const {
    const auto value = reinterpret_cast<std::uintptr_t>(handle);
    base::Object* object;
    if (value < predefined.size()) {
      object = predefined[value];
      if (object == nullptr) [[unlikely]] return nullptr;
    } else {
      if (value % alignof(base::Object*) != 0) [[unlikely]] return nullptr;
      object = reinterpret_cast<base::Object*>(value);
    }
    return object->kind == kind ? static_cast<T*>(object) : nullptr;
  }

  // Waits until `done()` is true, making progress. `done` is called under the lock.
  template <class Done>
  void wait_until(Done&& done) {
    if (done()) return;
    unsigned fruitless = 0;
    bool idled = false;
    for (;;) {
      if (engine->progress()) fruitless = 0;
      if (done()) break;
      if (fruitless++ >= polls_before_idle) {
        idle(fruitless - polls_before_idle);
        idled = true;
      }
    }
    if (idled) engine->transport().resume();
  }

  // One turn of a wait that found nothing: answers a request for the hang report, gives the lock to
  // other threads, sleeps by the transport's rules. Out of line: mpi/wait.cc.
  void idle(unsigned fruitless);

  Phase phase = Phase::before_init;
  bool thread_multiple = false;  // then `lock` is taken at every entry
  std::mutex lock;
  const char* function = "";  // the entry point being waited in, for the hang report

  // Objects behind the constants of the ABI, by value; those of communicators exist while initialized.
  std::array<base::Object*, 0x400> predefined = {};

  datatype::PredefinedTypes types;
  datatype::PredefinedOps ops;

  base::Settings settings;
  base::CounterList counters;
  std::unique_ptr<boot::Job> job;
  std::unique_ptr<engine::Transport> transport;
  std::unique_ptr<engine::Engine> engine;
  Communicator* world = nullptr;
  Communicator* self = nullptr;

 private:
  static constexpr unsigned polls_before_idle = 32;
};

// The process between MPI_Init and MPI_Finalize, else null: what every entry point looks at first.
extern Process* running;

// The process for functions that may be called at any time; made at the first use.
Process& anytime();

}  // namespace macadam::mpi
