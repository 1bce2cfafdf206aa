// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/device.h"
#include "sim/device.h"
#include "sim/queues.h"
#include "sim/work.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace macadam::sim {

struct SimulatedAddressHandle final : net::rdma::AddressHandle {
  explicit SimulatedAddressHandle(const net::rdma::PortAddress& port) : lid(port.lid) {}
  std::uint32_t lid;
};

// What both kinds of queue pairs have. A run may have millions: they keep nothing twice.
class SimulatedQueuePair : public net::rdma::QueuePair {
 public:
  SimulatedQueuePair(SimulatedDevice& device, std::uint32_t number,
                     const net::rdma::QueuePairOptions& options);
  ~SimulatedQueuePair() override;

  [[nodiscard]] std::uint32_t number() const override { return number_; }
  bool post_receive(std::span<const net::rdma::ReceiveWork> work) override;

  void release_places(std::uint32_t places) { places_ += places; }

 protected:
  std::optional<net::rdma::ReceiveWork> pop_receive();
  void push_receive(const net::rdma::Completion& completion);
  void push_send(const Work& work, net::rdma::WorkStatus status, std::uint32_t released);
  // Checks that the request may be made; throws if not.
  void check(const net::rdma::SendWork& work, std::uint64_t longest) const;
  // Takes the local memory of a request over.
  void take_data(Work& work, const net::rdma::SendWork& from) const;
  // Copies bytes, at least one, the last of them last: a thread may wait for it where they arrive.
  static void place(std::byte* to, const std::byte* from, std::size_t bytes);
  // Copies a request's data to contiguous memory, or from it; false if a key no longer opens them.
  bool gather(const Work& work, std::byte* to) const;
  bool scatter(const Work& work, const std::byte* from) const;

  [[nodiscard]] Scheduler& scheduler() const { return device_.fabric().scheduler(); }

  SimulatedDevice& device_;
  SimulatedCompletionQueue& sent_;
  SimulatedCompletionQueue& received_;
  SimulatedSharedReceiveQueue* shared_;
  std::unique_ptr<ReceiveQueue> receives_; // without a shared queue
  std::uint32_t inline_bytes_;
  std::uint32_t number_;
  std::uint32_t places_; // free ones in the send queue
};

// Unreliable datagrams: each is alone, may be lost, come twice or overtake another.
class DatagramQueuePair final : public SimulatedQueuePair {
 public:
  DatagramQueuePair(SimulatedDevice& device, std::uint32_t number,
                    const net::rdma::QueuePairOptions& options)
      : SimulatedQueuePair(device, number, options), qkey_(options.qkey) {}

  void accept(const net::rdma::QueuePairAddress& remote, const net::rdma::Retries&) override;
  void establish() override;
  void fail() override;
  std::size_t post(std::span<const net::rdma::SendWork> work) override;

 private:
  void send(const net::rdma::SendWork& work);
  void depart(Datagram* datagram);
  void fly(Datagram* datagram, Time arrived);
  void arrive(const Datagram& datagram);
  std::uint32_t qkey_;
  std::uint32_t unsignalled_ = 0; // places that the next signalled request releases
};

// A reliable connection: everything arrives once and in order, or the connection breaks.
class ReliableQueuePair final : public SimulatedQueuePair {
 public:
  ReliableQueuePair(SimulatedDevice& device, std::uint32_t number,
                    const net::rdma::QueuePairOptions& options);
  ~ReliableQueuePair() override;

  void accept(const net::rdma::QueuePairAddress& remote,
              const net::rdma::Retries& retries) override;
  void establish() override;
  void fail() override { break_with(net::rdma::WorkStatus::flushed, nullptr); }
  std::size_t post(std::span<const net::rdma::SendWork> work) override;

 private:
  enum class State : std::uint8_t { made, accepting, established, failed };
  // What became of a request at the other side.
  enum class Outcome : std::uint8_t { done, no_receiver, refused, failed };

  Work* add(const net::rdma::SendWork& from);
  void ring(Time when);
  void pump();
  bool may_start(const Work& work) const;
  void transmit(Work& work);
  void place_first_part(Work& work);
  void arrive(Work& work);
  [[nodiscard]] ReliableQueuePair* responder() const;
  Outcome execute(Work& work, ReliableQueuePair& other);
  Outcome write(Work& work, ReliableQueuePair& other);
  void place_later(Work& work);
  void place_late(Work& work);
  bool place_before(const Work& work, ReliableQueuePair& other);
  Outcome receive(Work& work, ReliableQueuePair& other);
  void answer_read(Work& work, ReliableQueuePair& other);
  void finish_read(Work& work);
  void finish(Work& work);
  void retire();
  void try_again(Work& work, Time delay);
  void on_no_answer(Work& work);
  void on_no_receiver(Work& work);
  void break_with(net::rdma::WorkStatus status, Work* failed);

  // Calls `handler` of this queue pair at `when`, unless it is gone by then.
  template <void (ReliableQueuePair::*Handler)(Work&)>
  void later(Time when, Work& work);

  std::uint32_t remote_lid_ = 0;
  std::uint32_t remote_number_ = 0;
  net::rdma::Retries retries_;
  Work* oldest_ = nullptr; // not finished
  Work* newest_ = nullptr;
  Work* next_ = nullptr; // to be sent
  Time last_arrival_ = 0;
  std::uint32_t epoch_ = 0; // transmissions of an earlier one are void
  std::uint32_t unsignalled_ = 0;
  std::uint16_t reads_ = 0; // reads and atomics under way
  std::uint8_t retries_left_ = 0;
  std::uint8_t not_ready_left_ = 0;
  State state_ = State::made;
  bool rung_ = false;    // pump() comes
  bool stalled_ = false; // waits for the time to send again
};

} // namespace macadam::sim
