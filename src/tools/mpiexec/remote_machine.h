// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tools/mpiexec/connection.h"
#include "tools/mpiexec/proxy_order.h"
#include "tools/mpiexec/silence.h"

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace macadam::tools {

// A connection of the first mpiexec: with the proxy of a machine, or with a branch (branch.h),
// which has those with the proxies of several.
struct Path {
  // A branch if there are several machines.
  Path(const std::string& host, bool is_here, const RemoteShell& shell, const sigset_t& signal_mask,
       std::vector<std::uint32_t> those);

  Connection connection;
  std::vector<std::uint32_t> machines; // by their places there

  [[nodiscard]] bool is_branch() const { return machines.size() > 1; }
  void send(std::uint32_t place, FrameKind kind, const boot::PacketWriter& body);
};

// A machine of a job as the first mpiexec sees it.
struct RemoteMachine {
  RemoteMachine(std::string host, double silence_seconds)
      : name(std::move(host)), silence(silence_seconds) {}

  std::string name; // as the user has it
  Path* path = nullptr;
  std::uint32_t place = 0; // in the path

  std::optional<ProxyHello> hello; // once it has come
  bool started = false;            // has its order
  bool done = false;               // no rank is left there
  bool lost = false;               // nothing comes from it any more
  bool heard = false;              // its ranks are started, and it is heard
  Silence silence;
  bool answered = false; // has told what its ranks wait for, since they were asked
  bool locates = false;  // ... is asked where ranks are in their programs, and has not told

  void send(FrameKind kind, const boot::PacketWriter& body = {}) const {
    path->send(place, kind, body);
  }
  // Something may come from it.
  [[nodiscard]] bool is_there() const { return !done && !lost; }
};

} // namespace macadam::tools
