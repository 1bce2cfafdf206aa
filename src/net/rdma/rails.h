// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "net/rdma/completion_queues.h"
#include "net/rdma/connection.h"
#include "net/rdma/device.h"
#include "net/rdma/model.h"
#include "net/rdma/wire.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace macadam::net::rdma {

// Memory that both ports of a process reach. Its remote key has that of the second port above that
// of the first.
class RailRegion final : public MemoryRegion {
 public:
  RailRegion(std::unique_ptr<MemoryRegion> first, std::unique_ptr<MemoryRegion> second)
      : first_(std::move(first)), second_(std::move(second)) {
    local_key = first_->local_key;
    second_local_key = second_->local_key;
    remote_key = second_->remote_key << 32 | static_cast<std::uint32_t>(first_->remote_key);
  }
  std::uint32_t second_local_key = 0;

 private:
  std::unique_ptr<MemoryRegion> first_;
  std::unique_ptr<MemoryRegion> second_;
};

// The second port of a process, by which the second half of long puts and gets goes (transport's
// split.cc). Each connection has a queue pair there too, made, connected and ended with the first
// one; nothing is ever received on it. Without one, because the peer has no second port or there
// are no more queue pairs, all goes by the first port. A peer that only the first port reaches
// cannot be connected to: that two ports are on the same network is for who chooses them.
class Rails final : public mem::Registrar, EventSink {
 public:
  // `least`: what is shorter is not split. Both devices outlive this.
  Rails(Device& first, Device& second, std::uint32_t send_depth, std::size_t least)
      : first_(first), second_(second), send_depth_(send_depth), least_(least),
        queues_(second, send_depth + receives, true) {}
  Rails(const Rails&) = delete;
  Rails& operator=(const Rails&) = delete;
  ~Rails() { stop(); }

  // What happens on the second port's thread: something has completed; a connection, known by the
  // number of its first queue pair, or all (all_queue_pairs), cannot be used any more.
  struct Events {
    std::function<void()> completed;
    std::function<void(std::uint32_t number, const std::string& reason)> failed;
  };
  void start(Events events);
  void stop() { second_.set_event_sink(nullptr); }

  [[nodiscard]] const std::string& name() const override { return first_.name(); }
  [[nodiscard]] const std::string& second_name() const { return second_.name(); }
  std::unique_ptr<MemoryRegion> register_memory(void* memory, std::size_t bytes,
                                                Access access) override;
  [[nodiscard]] std::size_t least() const { return least_; }
  [[nodiscard]] std::size_t bytes(const model::Driver& driver) const;

  // For the connector, under its lock. The queue pair beside that of a connection; where it is;
  // what the peer has said of its own (of number 0: it has none), to which it is connected.
  void make(Connection& connection);
  [[nodiscard]] wire::Endpoint endpoint(const Connection& connection) const;
  void pair(const Connection& connection, const wire::Endpoint& theirs, const Retries& retries);
  void fail(const Connection& connection);
  void drop(const Connection& connection);

  // For the application's thread, of connections that are open.
  struct Half {
    Connection* connection = nullptr;
    std::unique_ptr<QueuePair> queue_pair;
    CompletionQueue* completions = nullptr; // reserved for it
    std::uint32_t first_number = 0;         // of the queue pair beside it
    std::uint32_t under_way = 0;            // requests, all signalled
    std::uint32_t gets = 0;                 // split ones that are not complete
    bool connected = false;
    bool small_puts = false;          // were posted that no Transfer stands for ...
    std::uint32_t small_puts_end = 0; // ... the last of them before this sequence
  };
  void open(const Connection& connection);
  void close(const Connection& connection);
  void end(); // of all, before their queue pairs go
  [[nodiscard]] Half* find(const Connection& connection) const {
    const auto found = open_.find(&connection);
    return found == open_.end() ? nullptr : found->second;
  }
  [[nodiscard]] Half* find(std::uint32_t number) const {
    const auto found = by_number_.find(number);
    return found == by_number_.end() ? nullptr : found->second;
  }
  [[nodiscard]] std::uint32_t room(const Half& half) const { return send_depth_ - half.under_way; }
  void note_small_put(const Connection& connection) {
    Half* const half = find(connection);
    if (half == nullptr) return;
    half->small_puts = true;
    half->small_puts_end = connection.sends.posted;
  }
  // Posts a request, for which there is room.
  void post(Half& half, const SendWork& work);
  // A split put or get is complete as a whole, or its connection has failed.
  void finished(const Connection& connection, bool is_get) {
    if (Half* const half = find(connection); half != nullptr && is_get) --half->gets;
  }
  void completed(Half& half) {
    --half.under_way;
    --under_way_;
  }
  [[nodiscard]] bool idle() const { return under_way_ == 0; }
  [[nodiscard]] CompletionQueues& queues() { return queues_; }
  // Gets of which the second half is not there yet. (Puts are among those of their connection that
  // others must not pass.)
  base::List<Transfer> gets;

 private:
  static constexpr std::uint32_t receives = 1; // the least that a queue pair may have

  void on_limit(SharedReceiveQueue&) noexcept override {}
  void on_completions(CompletionQueue&) noexcept override { events_.completed(); }
  void on_failure(std::uint32_t queue_pair, const std::string& reason) noexcept override;

  Device& first_;
  Device& second_;
  const std::uint32_t send_depth_;
  const std::size_t least_;
  CompletionQueues queues_;
  Events events_;

  mutable std::mutex lock_; // of the table; taken inside the connector's lock
  std::unordered_map<const Connection*, std::unique_ptr<Half>> halves_;

  // The application thread's.
  std::unordered_map<const Connection*, Half*> open_;
  std::unordered_map<std::uint32_t, Half*> by_number_;
  std::uint32_t under_way_ = 0; // of all
};

} // namespace macadam::net::rdma
