// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/ibverbs/device.h"

#include "base/affinity.h"
#include "net/rdma/ibverbs/clock.h"
#include "net/rdma/ibverbs/progress_thread.h"
#include "net/rdma/ibverbs/queue_pair.h"
#include "net/rdma/ibverbs/surroundings.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sched.h>

namespace macadam::net::rdma::ibverbs {
namespace {

class Region final : public MemoryRegion {
 public:
  explicit Region(Owned<ibv_mr> made) : region_(std::move(made)) {
    local_key = region_->lkey;
    remote_key = region_->rkey;
  }

 private:
  Owned<ibv_mr> region_;
};

class IbverbsDevice final : public Device {
 public:
  IbverbsDevice(const Library& library, OpenPort open, const Gid& gid, std::string why)
      : port_(library, std::move(open), gid), why_(std::move(why)), async_(port_), sync_(port_) {
    // The progress thread reads until there is nothing left.
    const int events = port_.context->async_fd;
    fcntl(events, F_SETFL, fcntl(events, F_GETFL) | O_NONBLOCK);
  }

  [[nodiscard]] const std::string& name() const override { return port_.name; }
  [[nodiscard]] std::string why() const override { return why_; }
  [[nodiscard]] const DeviceLimits& limits() const noexcept override { return port_.limits; }
  [[nodiscard]] const PortAddress& address() const override { return port_.address; }

  std::unique_ptr<MemoryRegion> register_memory(void* memory, std::size_t bytes,
                                                Access access) override;
  std::unique_ptr<CompletionQueue> make_completion_queue(std::uint32_t depth, bool async) override {
    return std::make_unique<IbverbsCompletionQueue>(port_, async ? async_ : sync_, depth);
  }
  std::unique_ptr<SharedReceiveQueue> make_shared_receive_queue(std::uint32_t depth) override {
    return std::make_unique<IbverbsSharedReceiveQueue>(port_, depth);
  }
  std::unique_ptr<QueuePair> make_queue_pair(const QueuePairOptions& options) override {
    return std::make_unique<IbverbsQueuePair>(port_, options);
  }
  std::unique_ptr<AddressHandle> make_address_handle(const PortAddress& to) override {
    return make_address(port_, to);
  }

  void set_event_sink(EventSink* sink) override {
    progress_thread_.reset();
    if (sink != nullptr) progress_thread_.emplace(port_, async_, *sink);
  }
  void wait(unsigned longest_us) override;
  void wake() override;
  void yield() override { sched_yield(); }
  [[nodiscard]] double now() const override { return seconds(); }

 private:
  Port port_;
  const std::string why_; // this port
  CompletionChannel async_;
  CompletionChannel sync_;
  const base::Event wake_;
  // wake() rings only for a sleeper: it tells first and then looks who sleeps, wait() the other way
  // round, so that one of the two sees the other.
  std::atomic<bool> woken_ = false;
  std::atomic<int> sleepers_ = 0;
  std::optional<ProgressThread> progress_thread_;
};

std::unique_ptr<MemoryRegion> IbverbsDevice::register_memory(void* memory, std::size_t bytes,
                                                             Access access) {
  int rights = IBV_ACCESS_LOCAL_WRITE;
  if (access == Access::remote) rights |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  if (access == Access::remote && port_.limits.atomics) rights |= IBV_ACCESS_REMOTE_ATOMIC;
  const auto& verbs = port_.library;
  Owned<ibv_mr> made(verbs.reg_mr(port_.domain.get(), memory, bytes, rights), verbs.dereg_mr);
  int error = errno;
  if (made == nullptr && error == EFAULT) {
    // Memory that the program itself may not write, such as constants: it can still be sent.
    made.reset(verbs.reg_mr(port_.domain.get(), memory, bytes, IBV_ACCESS_REMOTE_READ));
    error = errno;
  }
  if (made == nullptr)
    port_.refuse_object(fmt::format("registration of {} bytes at {}", bytes, fmt::ptr(memory)),
                        error);
  return std::make_unique<Region>(std::move(made));
}

void IbverbsDevice::wait(unsigned longest_us) {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  if (!woken_.exchange(false, std::memory_order_seq_cst)) {
    std::array<pollfd, 2> watched = {pollfd{sync_.descriptor(), POLLIN, 0},
                                     {wake_.descriptor(), POLLIN, 0}};
    const timespec longest{static_cast<time_t>(longest_us / 1'000'000),
                           static_cast<long>(longest_us % 1'000'000) * 1000};
    ppoll(watched.data(), watched.size(), &longest, nullptr);
    if (watched[0].revents != 0) {
      while (sync_.take() != nullptr) {
      }
    }
    if (watched[1].revents != 0) {
      wake_.clear();
      woken_.store(false, std::memory_order_relaxed);
    }
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void IbverbsDevice::wake() {
  woken_.store(true, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) wake_.ring();
}

std::vector<PortFacts> facts_of(const std::vector<OpenPort>& ports) {
  std::vector<PortFacts> facts;
  for (const OpenPort& port : ports)
    facts.push_back(port.facts);
  return facts;
}

Seat own_seat(int local_rank, int local_ranks) {
  Seat seat = read_seat(static_cast<unsigned>(local_rank), base::usable_threads());
  seat.local_ranks = static_cast<unsigned>(local_ranks);
  return seat;
}

std::string why_of(const PortChoice& choice) {
  if (choice.why_alone.empty()) return choice.why;
  return fmt::format("{}; long data go by it alone: {}", choice.why, choice.why_alone);
}

// Ports of one adapter have its events in common, and each device reads all that come: so the
// second opens the adapter for itself. It is in the list again, unless it has just gone.
OpenPort open_again(const Library& library, const OpenPort& port) {
  std::vector<OpenPort> ports = list_ports(library);
  const auto again = std::ranges::find(ports, port.facts.name(),
                                       [](const OpenPort& each) { return each.facts.name(); });
  return again == ports.end() || again->context == nullptr ? port : std::move(*again);
}

} // namespace

std::unique_ptr<Device> open_device(const std::string& request, int local_rank) {
  return open_ports(request, local_rank, 0).first;
}

Ports open_ports(const std::string& request, int local_rank, int local_ranks) {
  const std::vector<PortRequest> wanted = parse_port_requests(request);
  const Library library = load_library();
  // No ibv_fork_init: it takes registered memory out of the children of a fork, and splits
  // mappings, which mremap then refuses. Since Linux 5.12 the kernel copies pinned pages for the
  // child.
  std::vector<OpenPort> ports = list_ports(library);
  const PortChoice choice = choose_port(facts_of(ports), wanted, own_seat(local_rank, local_ranks));
  Ports opened;
  OpenPort first = std::move(ports[choice.port]);
  if (choice.second) {
    OpenPort second = std::move(ports[*choice.second]);
    if (second.context == first.context) second = open_again(library, second);
    opened.second = std::make_unique<IbverbsDevice>(library, std::move(second), choice.second_gid,
                                                    choice.others[*choice.second]);
  }
  opened.first = std::make_unique<IbverbsDevice>(library, std::move(first), choice.gid,
                                                 choice.several ? why_of(choice) : std::string());
  return opened;
}

Survey survey(const std::string& request) {
  Survey found;
  try {
    const std::vector<PortRequest> wanted = parse_port_requests(request);
    const Library library = load_library();
    std::vector<OpenPort> ports = list_ports(library);
    for (const OpenPort& port : ports) {
      const Verdict verdict = judge(port.facts, wanted);
      found.ports.push_back({port.facts, verdict.refusal, verdict.gid, false, false, {}});
    }
    const PortChoice choice = choose_port(facts_of(ports), wanted, own_seat(0, 1));
    for (std::size_t i = 0; i < ports.size(); ++i)
      found.ports[i].remark = i == choice.port ? choice.why : choice.others[i];
    found.ports[choice.port].chosen = true;
    if (choice.second) found.ports[*choice.second].second = true;
    found.limits = Port(library, std::move(ports[choice.port]), choice.gid).limits;
  } catch (const base::Error& error) {
    found.trouble = error.text;
  }
  return found;
}

} // namespace macadam::net::rdma::ibverbs
