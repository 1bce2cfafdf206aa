// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"
#include "prove/allocation.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace macadam::prove {

// What a transport calls is the library.
class LibrarySink final : public engine::Sink {
 public:
  explicit LibrarySink(engine::Sink& sink) : sink_(sink) {}
  void on_message(engine::Rank source, const std::byte* message,
                  std::size_t bytes) noexcept override {
    const InLibrary library;
    sink_.on_message(source, message, bytes);
  }
  void on_put(engine::Rank source, std::uint32_t notification,
              std::size_t bytes) noexcept override {
    const InLibrary library;
    sink_.on_put(source, notification, bytes);
  }
  void on_first_fragment(engine::Rank source, const std::byte* fragment, std::size_t bytes,
                         std::size_t rest) noexcept override {
    const InLibrary library;
    sink_.on_first_fragment(source, fragment, bytes, rest);
  }
  void on_next_fragment(engine::Rank source, const std::byte* fragment,
                        std::size_t bytes) noexcept override {
    const InLibrary library;
    sink_.on_next_fragment(source, fragment, bytes);
  }
  void on_complete(std::uint64_t cookie, bool ok) noexcept override {
    const InLibrary library;
    sink_.on_complete(cookie, ok);
  }
  void on_peer(engine::Rank peer, engine::PeerState state) noexcept override {
    const InLibrary library;
    sink_.on_peer(peer, state);
  }
  void on_failure(base::Error&& why) noexcept override {
    const InLibrary library;
    sink_.on_failure(std::move(why));
  }

 private:
  engine::Sink& sink_;
};

} // namespace macadam::prove
