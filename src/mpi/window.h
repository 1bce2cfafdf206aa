// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "base/object.h"
#include "base/slab.h"
#include "mpi/hints.h"
#include "mpi/request.h"
#include "rma/window.h"

#include <mpi.h>

#include <memory>
#include <string>

namespace macadam::mpi {

class Attributes;
class Process;
struct Communicator;
struct Errhandler;

// How the one-sided layer of this process waits.
class ProcessWaiting final : public rma::Waiting {
 public:
  explicit ProcessWaiting(Process& self) : self_(self) {}
  void look() override;

 private:
  void wait(bool (*done)(void*), void* argument, For what) override;
  Process& self_;
};

// A window: MPI's side of it, around rma::Window.
struct Window : base::Object, base::ListNode<> {
  // `comm` is a communicator of its own, whose reference it takes over.
  Window(Process& self, Communicator& comm, int flavor);
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window();

  [[nodiscard]] MPI_Win handle() const {
    return reinterpret_cast<MPI_Win>(const_cast<Window*>(this));
  }

  Communicator* comm; // of the same ranks, for the window alone
  int ranks;
  ProcessWaiting waiting;
  rma::Window rma;

  // What the attributes show.
  int flavor; // MPI_WIN_FLAVOR_*
  int model = MPI_WIN_UNIFIED;
  void* base = nullptr;
  MPI_Aint size = 0;
  int unit = 1;

  void* allocated = nullptr; // memory of the library; null: the user's, or another rank's
  Errhandler* errhandler = nullptr;
  std::unique_ptr<Attributes> attributes;
  Hints hints;
  std::string name;
};

// MPI_Rput and its like.
struct AccessRequest final : LayerRequest, rma::Operation {
  AccessRequest(Process& self, Window& window);

  Process& process;

 private:
  void finished(bool ok) override;
};

// The windows of a process.
struct Windows {
  base::Slab<Window> all;
  base::List<Window> live;
  base::Slab<AccessRequest> accesses;
  rma::Counters counters;
};

} // namespace macadam::mpi
