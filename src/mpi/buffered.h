// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "engine/engine.h"
#include "mpi/request.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>

namespace macadam::mpi {

// MPI_Buffer_iflush: complete when the buffered sends that were begun before it are.
struct Flush : LayerRequest {
  Flush(Process& process_of, std::uint64_t last_send);

  Process& process;
  std::uint64_t last;
};

// The buffer of buffered sends that was attached to the process or to a communicator, and the sends
// whose copies are in it. Either the user's memory or, for MPI_BUFFER_AUTOMATIC, memory of the
// library up to the setting `buffered`. Must be drained before it is destroyed.
class BufferedSends {
 public:
  BufferedSends() = default;
  BufferedSends(const BufferedSends&) = delete;
  BufferedSends& operator=(const BufferedSends&) = delete;

  [[nodiscard]] bool attached() const { return attached_; }
  // Throws MPI_ERR_BUFFER if one is attached already. The memory stays the caller's.
  void attach(Process& self, void* memory, std::size_t bytes);
  // Waits until it is empty, then gives the buffer back as attach() got it; null and 0 without one.
  void detach(void** memory, MPI_Count* bytes);

  // Sends a copy of the data. Throws MPI_ERR_BUFFER if there is no room.
  void send(engine::Peer& peer, const engine::Envelope& envelope, const engine::Data& data);

  // Waits until the copies of all sends begun so far have left.
  void flush();
  // The same as a request: null if there is nothing to wait for.
  Flush* start_flush(Process& self);

 private:
  // A copy that has not left.
  struct Copy;
  using Copies = std::list<Copy>; // ordered by place
  struct Copy : base::ListNode<> {
    BufferedSends* owner = nullptr;
    Copies::iterator self; // its place in the list
    std::byte* place = nullptr;
    std::size_t bytes = 0;
    std::uint64_t number = 0; // sends are numbered in the order of their calls
  };

  Copies::iterator reserve(std::size_t bytes);
  Copies::iterator find_room(std::size_t bytes);
  void remove(Copies::iterator copy);
  void sent(Copies::iterator copy);
  [[nodiscard]] bool gone(std::uint64_t up_to) const {
    return begun_.empty() || begun_.front().number > up_to;
  }

  Process* process_ = nullptr;
  void* memory_ = nullptr; // as attached
  std::size_t bytes_ = 0;
  bool attached_ = false;
  bool automatic_ = false;
  std::size_t used_ = 0; // bytes of copies
  std::uint64_t sends_ = 0;
  Copies copies_;
  Copies spare_;                                 // list nodes for reuse
  base::List<Copy> begun_;                       // the copies, in the order of their sends
  std::byte* tail_ = nullptr;                    // where the last copy made ends,
  Copies::iterator behind_tail_ = copies_.end(); // ... and the one behind it
  std::deque<Flush*> flushes_;                   // in the order of their calls
};

// The buffer that buffered sends on `comm` use: its own, else its session's, else the process's.
BufferedSends& buffer_for(Process& self, Communicator& comm);

// Waits for the sends of an attached buffer and detaches it, as MPI_Comm_free, MPI_Session_finalize
// and MPI_Finalize do.
void drain(BufferedSends& buffer);

} // namespace macadam::mpi
