// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "boot/job_memory.h"
#include "tools/mpiexec/afar.h"
#include "tools/mpiexec/control_server.h"
#include "tools/mpiexec/head.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace macadam::tools {

// The parts of an mpiexec on several machines ask each other what ranks ask of an mpiexec
// (boot/control.h), packet for packet, through the head. So nothing listens to a network, and what
// a rank may ask is the same everywhere; only descriptors do not travel.
class Relay {
 public:
  using Id = ControlServer::Id;
  using Machine = std::uint32_t; // index
  // All outlive the object; `first` is the memory of the first job.
  Relay(ControlServer& server, Head& head, const boot::JobMemory& first)
      : server_(server), head_(head), first_(first) {}

  // Throws `error_class` if mpiexec has no ranks there.
  [[nodiscard]] Machine find(std::string_view host, int error_class) const;
  [[nodiscard]] std::vector<std::string> hosts() const;
  [[nodiscard]] Machine own() const { return first_.header().node; }

  // Passes on what a client has asked for. A new job gets a `number` on the way, if it is wanted.
  void pass_on(Id client, Machine machine, const boot::PacketWriter& request,
               std::uint32_t number = 0);
  // The same for another mpiexec; the head says which part is to ask it.
  void pass_outside(Id client, const Place& place, const boot::PacketWriter& request);
  // Requests of this part's own.
  std::uint64_t ask(Machine machine, const boot::PacketWriter& request, OnPacket on_answer);
  std::uint64_t ask_outside(const Place& place, const boot::PacketWriter& request,
                            OnPacket on_answer);
  void call_off(std::uint64_t asked);
  // This part has a link with another mpiexec, or has it no more.
  void tell_linked(const std::string& mpiexec, bool linked);
  // A client has confirmed an answer, or has gone. False if nothing of its was passed on.
  bool on_confirmed(Id client) { return end(client, FrameKind::confirmed); }
  bool on_gone(Id client) { return end(client, FrameKind::called_off); }
  void answer(const ControlServer::Origin& origin, const std::vector<std::byte>& packet,
              ControlServer::Then then);
  void tell_ended(const boot::Secret& job);

  // What has come from another machine. `on_ended` is told of jobs that have.
  void take(Frame frame, const std::function<void(const boot::Secret&)>& on_ended);
  // The number that the request which has come last has been given.
  [[nodiscard]] std::uint32_t number() const { return number_; }

 private:
  void send(Id id, Machine machine, std::string_view request, std::uint32_t number);
  void send_outside(Id id, const Place& place, std::string_view request);
  void send_end(Id id, Machine machine, FrameKind how);
  bool end(Id client, FrameKind how);
  void on_answer(std::uint64_t id, bool awaits, const std::string& packet);

  ControlServer& server_;
  Head& head_;
  const boot::JobMemory& first_;
  std::map<Id, Machine> passed_on_; // clients whose answers are awaited, or to be confirmed
  struct Asked {
    Machine machine;
    OnPacket on_answer;
  };
  std::map<std::uint64_t, Asked> asked_;
  std::uint64_t last_asked_ = std::uint64_t{1} << 63; // above all ids of clients
  std::uint32_t number_ = 0;
};

} // namespace macadam::tools
