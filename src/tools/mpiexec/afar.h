// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "boot/packet.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace macadam::tools {

// A part of this or another mpiexec: who listens at a socket of a host.
struct Place {
  std::string host, socket;
};

// Asks others what ranks ask of an mpiexec (boot/control.h), wherever they are.
class Afar {
 public:
  // Ends a request: what follows the answer's head, or what has failed.
  using OnAnswer = std::function<void(boot::PacketReader* answer, const base::Error* error)>;
  // A number by which it can be called off until then.
  virtual std::uint64_t ask(const Place& place, const boot::PacketWriter& request,
                            OnAnswer on_answer) = 0;
  virtual void call_off(std::uint64_t asked) = 0;

 protected:
  ~Afar() = default;
};

// An answer as it has come.
using OnPacket = std::function<void(std::vector<std::byte> packet)>;
OnPacket reading(Afar::OnAnswer on_answer);
// ... that nobody could give.
std::vector<std::byte> refusal(const std::string& why);

} // namespace macadam::tools
