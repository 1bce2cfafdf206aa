// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/copy.h"
#include "engine/transport.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace macadam::engine {

// What a process sends to itself, for networks that connect to others only: messages, and the
// notifications of puts whose data are in place. What cannot be kept throws, and leaves nothing.
class SelfQueue {
 public:
  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }

  void send(const void* header, std::size_t header_bytes, const void* payload,
            std::size_t payload_bytes) {
    std::vector<std::byte> copy(header_bytes + payload_bytes);
    base::copy(copy.data(), header, header_bytes);
    base::copy(copy.data() + header_bytes, payload, payload_bytes);
    items_.push_back({std::move(copy), 0, 0});
  }

  void notify(std::uint32_t notification, std::size_t put_bytes) {
    items_.push_back({{}, notification, put_bytes});
  }

  // Only what is there now: an answer to oneself waits for the next poll.
  bool deliver(Rank self, Sink& sink) {
    for (std::size_t count = items_.size(); count > 0; --count) {
      const Item item = std::move(items_.front());
      items_.pop_front();
      if (item.notification != 0)
        sink.on_put(self, item.notification, item.put_bytes);
      else
        sink.on_message(self, item.message.data(), item.message.size());
    }
    return true;
  }

 private:
  struct Item {
    std::vector<std::byte> message;
    std::uint32_t notification; // 0: a message
    std::size_t put_bytes;
  };
  std::deque<Item> items_;
};

} // namespace macadam::engine
