// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/afar.h"

#include "boot/control.h"

#include <optional>
#include <utility>

namespace macadam::tools {

OnPacket reading(Afar::OnAnswer on_answer) {
  return [on_answer = std::move(on_answer)](std::vector<std::byte> packet) {
    boot::PacketReader reader(std::move(packet));
    std::optional<base::Error> error;
    try {
      const auto head = reader.value<boot::AnswerHead>();
      if (head.error_class == MPI_SUCCESS) return on_answer(&reader, nullptr);
      const bool is_gone = head.error_class == boot::nobody_there;
      error.emplace(is_gone ? MPI_ERR_OTHER : head.error_class, reader.text());
    } catch (...) {
      error = base::caught("for an answer of another mpiexec");
    }
    on_answer(nullptr, &*error);
  };
}

std::vector<std::byte> refusal(const std::string& why) {
  boot::PacketWriter packet;
  packet.value(boot::AnswerHead{.error_class = boot::nobody_there});
  packet.text(why);
  return packet.bytes();
}

} // namespace macadam::tools
