// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tools/mpiexec/proxy.h"
#include "tools/mpiexec/proxy_order.h"
#include "tools/mpiexec/remote_mpiexec.h"

#include <optional>
#include <string>
#include <utility>

namespace macadam::tools {

// A machine of a job as the first mpiexec sees it: the proxy there, and what is known of it.
struct RemoteMachine {
  RemoteMachine(const std::string& name, bool is_here, RemoteShell shell, const sigset_t& mask)
      : proxy(name, {proxy_word, "ranks", {}, is_here}, std::move(shell), mask) {}

  [[nodiscard]] const std::string& name() const { return proxy.name(); }
  FrameStream& stream() { return proxy.stream(); }
  [[nodiscard]] std::string explain_loss() { return proxy.explain_loss(hello.has_value()); }

  RemoteMpiexec proxy;
  std::optional<ProxyHello> hello; // once it has come
  bool started = false;            // has its order
  bool done = false;               // no rank is left there
  bool lost = false;               // nothing comes from it any more
  bool heard = false;              // its ranks are started, and it is heard
  int silent_beats = 0;
  bool answered = false; // has told what its ranks wait for, since they were asked
};

} // namespace macadam::tools
