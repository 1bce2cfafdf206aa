// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"
#include "prove/allocation.h"
#include "prove/job.h"

namespace macadam::torture {

// Stands between a transport and the engine, and tells the job what is delivered before the engine
// is given it.
class Witness final : public engine::Transport, engine::Sink {
 public:
  // Both outlive the witness.
  Witness(engine::Transport& transport, prove::Job& job, int rank, bool notifications)
      : transport_(transport), job_(job), rank_(rank), limits_(transport.limits()) {
    if (!notifications) limits_.notified_put = 0;
  }

  [[nodiscard]] const engine::Limits& limits() const noexcept override { return limits_; }
  [[nodiscard]] bool reaches(engine::Rank peer) const noexcept override {
    return transport_.reaches(peer);
  }
  bool connect_at_start() override { return transport_.connect_at_start(); }
  engine::Link& connect(engine::Rank peer, engine::PeerState& state) override {
    engine::Link& link = transport_.connect(peer, state);
    tell(peer, state);
    return link;
  }
  engine::Posted send(engine::Link& link, const void* header, std::size_t header_bytes,
                      const void* payload, std::size_t payload_bytes) noexcept override {
    return transport_.send(link, header, header_bytes, payload, payload_bytes);
  }
  engine::Posted put(engine::Link& link, const void* local, engine::RemoteMemory target,
                     std::size_t bytes, std::uint64_t cookie) noexcept override {
    return transport_.put(link, local, target, bytes, cookie);
  }
  engine::Posted put_notified(engine::Link& link, const void* local, engine::RemoteMemory target,
                              std::size_t bytes, std::uint64_t cookie,
                              std::uint32_t notification) noexcept override {
    return transport_.put_notified(link, local, target, bytes, cookie, notification);
  }
  engine::Posted get(engine::Link& link, void* local, engine::RemoteMemory target,
                     std::size_t bytes, std::uint64_t cookie) noexcept override {
    return transport_.get(link, local, target, bytes, cookie);
  }
  engine::RemoteMemory register_cached(void* memory, std::size_t bytes) override {
    return transport_.register_cached(memory, bytes);
  }
  void release_cached(engine::RemoteMemory memory) noexcept override {
    transport_.release_cached(memory);
  }
  std::uint64_t issue(engine::Link& link) noexcept override { return transport_.issue(link); }
  bool use(engine::Link& link, std::uint64_t permit) noexcept override {
    return transport_.use(link, permit);
  }
  engine::Revoked revoke(engine::Link& link, std::uint64_t permit) noexcept override {
    return transport_.revoke(link, permit);
  }
  void discard(engine::Link& link, std::uint64_t permit) noexcept override {
    transport_.discard(link, permit);
  }
  void* allocate(std::size_t bytes) override { return transport_.allocate(bytes); }
  [[nodiscard]] std::string why_not_allocated() const override {
    return transport_.why_not_allocated();
  }
  void free(void* memory) noexcept override { transport_.free(memory); }
  bool poll(engine::Sink& sink) noexcept override {
    sink_ = &sink;
    const bool moved = transport_.poll(*this);
    tell([&] { job_.polled(rank_); });
    return moved;
  }
  void abandon(engine::Sink& sink) noexcept override {
    tell([&] { job_.breaks_down(rank_); });
    transport_.abandon(sink);
  }
  bool drain() override { return transport_.drain(); }
  bool idle(unsigned fruitless, unsigned longest_us) override {
    return transport_.idle(fruitless, longest_us);
  }
  void resume() override { transport_.resume(); }
  void wake() override { transport_.wake(); }
  void arm() override { transport_.arm(); }
  [[nodiscard]] unsigned longest_sleep_us() const override { return transport_.longest_sleep_us(); }
  [[nodiscard]] double now() const override { return transport_.now(); }
  void list_counters(base::CounterList& list) const override { transport_.list_counters(list); }
  [[nodiscard]] std::vector<std::string> fallbacks() const override {
    return transport_.fallbacks();
  }
  [[nodiscard]] std::size_t memory_bytes() const override { return transport_.memory_bytes(); }

 private:
  void on_message(engine::Rank source, const std::byte* message,
                  std::size_t bytes) noexcept override {
    tell([&] { job_.sees(rank_, static_cast<int>(source), message, bytes); });
    sink_->on_message(source, message, bytes);
  }
  void on_first_fragment(engine::Rank source, const std::byte* fragment, std::size_t bytes,
                         std::size_t rest) noexcept override {
    tell([&] { job_.sees(rank_, static_cast<int>(source), fragment, bytes + rest); });
    sink_->on_first_fragment(source, fragment, bytes, rest);
  }
  void on_next_fragment(engine::Rank source, const std::byte* fragment,
                        std::size_t bytes) noexcept override {
    sink_->on_next_fragment(source, fragment, bytes);
  }
  void on_put(engine::Rank source, std::uint32_t notification,
              std::size_t bytes) noexcept override {
    tell([&] { job_.sees_notification(rank_, static_cast<int>(source), notification, bytes); });
    sink_->on_put(source, notification, bytes);
  }
  void on_complete(std::uint64_t cookie, bool ok) noexcept override {
    sink_->on_complete(cookie, ok);
  }
  void on_peer(engine::Rank peer, engine::PeerState state) noexcept override {
    tell(peer, state);
    sink_->on_peer(peer, state);
  }
  void on_failure(base::Error&& why) noexcept override { sink_->on_failure(std::move(why)); }
  void tell(engine::Rank peer, engine::PeerState state) {
    if (state == engine::PeerState::failed)
      tell([&] { job_.loses(rank_, static_cast<int>(peer)); });
  }
  // The test, called by the library.
  template <class Tell>
  static void tell(Tell&& tell) {
    const prove::InLibrary test(false);
    tell();
  }

  engine::Transport& transport_;
  prove::Job& job_;
  const int rank_;
  engine::Limits limits_;
  engine::Sink* sink_ = nullptr;
};

} // namespace macadam::torture
