// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <unordered_map>

namespace macadam::net::rdma {

struct Connection;

// Connections by the number of their queue pair, which every completion names. Most completions
// name the same as the one before.
class NumberTable {
 public:
  // Null if there is none.
  [[nodiscard]] Connection* find(std::uint32_t number) {
    if (number == last_number_) [[likely]]
      return last_;
    return look_up(number);
  }
  void set(std::uint32_t number, Connection& connection) {
    forget_last();
    connections_[number] = &connection;
  }
  void erase(std::uint32_t number) {
    forget_last();
    connections_.erase(number);
  }

  [[nodiscard]] auto begin() const { return connections_.begin(); }
  [[nodiscard]] auto end() const { return connections_.end(); }

 private:
  Connection* look_up(std::uint32_t number) {
    const auto found = connections_.find(number);
    if (found == connections_.end()) return nullptr;
    last_number_ = number;
    return last_ = found->second;
  }
  void forget_last() {
    last_number_ = 0; // no queue pair of ours has this number
    last_ = nullptr;
  }

  std::unordered_map<std::uint32_t, Connection*> connections_;
  std::uint32_t last_number_ = 0;
  Connection* last_ = nullptr;
};

} // namespace macadam::net::rdma
