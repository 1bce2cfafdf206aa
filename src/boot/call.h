// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/descriptor.h"
#include "base/error.h"
#include "boot/control.h"
#include "boot/packet.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace macadam::boot {

// A request to an mpiexec, on a connection of its own (control.h), as the caller has it. Moving on
// is left to done(); destroying it calls the operation off.
class Call {
 public:
  struct Whom {
    std::string socket;
    // What it means that nobody is there, or not any more, or that the answer is late.
    int error_class = MPI_ERR_OTHER;
    std::string sentence;
  };
  Call(Whom whom, PacketWriter request, std::optional<double> longest = {});
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  [[nodiscard]] bool done() noexcept;
  // Waits until done() for some seconds: for what mpiexec answers at once. Throws what has failed.
  PacketReader wait();
  // Once it is done: what follows the answer's head. Throws what has failed.
  PacketReader take();
  // ... the descriptor that came with it, for the caller to close; -1: none.
  [[nodiscard]] bool has_descriptor() const { return descriptor_.is_open(); }
  int take_descriptor() { return descriptor_.release(); }
  // What mpiexec has said besides, before its answer or, for as long as this is kept, after it
  // (control.h): the rest of the packet, whose descriptor is the call's until the next one.
  std::optional<PacketReader> take_introduction();
  // Says that the answer has been taken, and what it brings is wanted.
  void confirm() const noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Stage { connecting, sending, waiting, over };

  void advance();
  void connect();
  void send();
  void receive();
  void read(Packet packet);
  void give_up_waiting();
  [[noreturn]] void fail_as_gone() const;

  Whom whom_;
  PacketWriter request_;
  std::optional<Clock::time_point> deadline_;
  double longest_ = 0; // seconds
  base::Descriptor socket_;
  Stage stage_ = Stage::connecting;
  PacketReader answer_;
  base::Descriptor descriptor_;
  std::optional<PacketReader> introduction_;
  std::optional<base::Error> error_;
};

// A Call whose answer `read` makes into what was asked for.
template <class Result>
class Called final : public Pending<Result> {
 public:
  using Read = std::function<Result(Call& call, PacketReader answer)>;
  Called(Call::Whom whom, PacketWriter request, std::optional<double> longest, Read read)
      : call_(std::move(whom), std::move(request), longest), read_(std::move(read)) {}
  [[nodiscard]] bool done() noexcept override { return call_.done(); }
  Result take() override { return read_(call_, call_.take()); }
  void keep() noexcept override { call_.confirm(); }

 private:
  Call call_;
  Read read_;
};

// What is known at once.
template <class Result>
class Known final : public Pending<Result> {
 public:
  explicit Known(Result result) : result_(std::move(result)) {}
  [[nodiscard]] bool done() noexcept override { return true; }
  Result take() override { return std::move(result_); }

 private:
  Result result_;
};

// What has failed before it began.
template <class Result>
class Refused final : public Pending<Result> {
 public:
  explicit Refused(base::Error error) : error_(std::move(error)) {}
  [[nodiscard]] bool done() noexcept override { return true; }
  Result take() override { throw error_; }

 private:
  base::Error error_;
};

} // namespace macadam::boot
