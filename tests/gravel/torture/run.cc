// SPDX-License-Identifier: BSD-3-Clause
#include "gravel/torture/run.h"

#include "boot/processes.h"
#include "gravel/driver.h"
#include "net/rdma/transport.h"
#include "sim/device.h"
#include "sim/fiber.h"

#include "fmt/format.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>
#include <string_view>

namespace macadam::gravel::torture {
namespace {

using Kind = Exchange::Kind;
using What = Step::What;
using net::rdma::RdmaTransport;

constexpr std::size_t stack_bytes = 256 << 10;
// A run that has more events or takes longer never comes to its end. A connection to a process that
// is gone takes 20 s to be given up.
constexpr std::uint64_t most_events = 5'000'000;
constexpr sim::Time longest_run = 600'000'000 * sim::microsecond;

constexpr std::uint64_t over_at_once = UINT64_MAX; // for a request that there was no need for

constexpr std::byte untouched{0xA5};  // memory that no exchange may change
constexpr std::byte taken_back{0xEE}; // ... and what its owner has changed when it was free to

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

std::byte content(int exchange, std::size_t at) {
  return static_cast<std::byte>((static_cast<std::size_t>(exchange) * 37 + at % 251 + at / 251) %
                                160);
}

// A wait that polls rings does not sleep, and would take long to simulate: it looks away for longer
// while nothing comes.
sim::Model model_of(const Setup& setup) {
  sim::Model model = setup.model;
  if (setup.settings.rdma_receive == base::ReceiveMode::ring) model.spin_ns = 1e6;
  return model;
}

} // namespace

class Run::Rank final : public boot::Job {
 public:
  Rank(Run& run, int number, std::uint64_t seed)
      : run_(run), number_(number), random_(seed), processor_(run.scheduler_),
        fiber_(stack_bytes, [this] { live(); }),
        memory_(run.setup_.memory_bytes[index(number)], untouched),
        sides_(run.setup_.exchanges.size()), stands_for_(sides_.size()) {
    std::iota(stands_for_.begin(), stands_for_.end(), 0);
    device_.emplace(run.fabric_, processor_);
    processor_.run_in(&fiber_);
  }

  void resume() { fiber_.resume(); }
  [[nodiscard]] bool ended() const { return fiber_.ended(); }
  [[nodiscard]] bool is_dead() const { return dead_; }
  [[nodiscard]] std::string standing() const {
    const auto& steps = run_.setup_.ranks[index(number_)];
    std::string text = fmt::format("\nrank {} at step {}", number_, next_);
    if (next_ < steps.size()) text += ": " + show(run_.setup_, steps[next_]);
    if (!transport_) return text;
    base::CounterList counters;
    transport_->list_counters(counters);
    if (driver_) driver_->core().list_counters(counters);
    for (const base::Counter& counter : counters.rows()) {
      if (*counter.value != 0) text += fmt::format(" {}={}", counter.name, *counter.value);
    }
    return text;
  }

 private:
  // One's own part of an exchange.
  struct Side {
    std::uint64_t posted = 0, asked = 0, fin = 0; // requests
    std::vector<std::uint64_t> moved;             // by fragment
    std::uint64_t buffer = 0;
  };

  // boot::Job
  [[nodiscard]] int rank() const override { return number_; }
  [[nodiscard]] int size() const override { return static_cast<int>(run_.ranks_.size()); }
  [[nodiscard]] boot::Secret secret() const override { return {7, 7, 7}; }
  [[nodiscard]] int cores() const override { return size(); }
  void publish(std::span<const std::byte>) override { endpoint_ = transport_->endpoint(); }
  [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int rank) const override {
    const auto& its = run_.ranks_[index(rank)]->endpoint_;
    if (!its) return std::nullopt;
    return std::as_bytes(std::span(&*its, 1));
  }

  void live() {
    try {
      start();
      const auto& steps = run_.setup_.ranks[index(number_)];
      for (; next_ < steps.size() && run_.wrong_.empty(); ++next_) {
        if (number_ == run_.setup_.mortal && next_ == run_.setup_.dies_at) return die();
        pass_time();
        call(steps[next_]);
      }
      if (number_ == run_.setup_.mortal) return die();
      if (run_.wrong_.empty()) finish();
    } catch (const std::exception& error) {
      say(error.what());
    }
  }

  // As gravel_init(): nobody goes on before all have told where they are.
  void start() {
    processes_.emplace(*this);
    transport_ = std::make_unique<RdmaTransport>(*device_, *processes_, run_.setup_.settings,
                                                 nullptr, nullptr, false);
    transport_->set_message_cost(run_.setup_.copies ? 1 : 0);
    publish({});
    const auto ledgers_of = [this](gravel::Rank peer) { return run_.ranks_[peer]->ledgers_; };
    driver_.emplace(engine::Networks(*transport_), *this, ledgers_of, run_.setup_.slots);
    ledgers_ = driver_->core().ledgers(0);
    ready_ = true;
    while (!std::all_of(run_.ranks_.begin(), run_.ranks_.end(),
                        [](const auto& other) { return other->ready_; }))
      device_->compute(10 * sim::microsecond);
    driver_->core().register_memory(memory_.data(), memory_.size());
  }

  // As gravel_finalize(), which waits for nobody else; nor for the network to give up a connection
  // to one who ended before.
  void finish() {
    Core& core = driver_->core();
    const std::string left = core.unfinished();
    if (!left.empty()) return say("is left with " + left);
    core.unregister_memory(memory_.data()); // throws if in use
    const std::size_t unanswered = given_up();
    driver_->leave();
    run_.seen_.given_up += given_up() - unanswered;
    base::CounterList counters;
    core.list_counters(counters);
    for (const base::Counter& counter : counters.rows()) {
      if (std::string_view(counter.name) == "ledger_full") run_.seen_.ledger_full += *counter.value;
      if (std::string_view(counter.name) == "copied") run_.seen_.copied += *counter.value;
    }
    driver_.reset();
    compute(random_.pick(50)); // others may still write to the ledgers, which are gone
    const RdmaTransport::InUse now = transport_->in_use();
    // Buffers of sends may wait for acknowledgements of those who have left. So may the look
    // whether a peer is there (Core::probe), where a put is under way until it is complete.
    const bool looks = !run_.setup_.model.orders_arrivals;
    if ((now.transfers != 0 && !looks) || now.registrations != 0)
      say(fmt::format("keeps {} transfers, {} registrations", now.transfers, now.registrations));
    leave();
  }

  // Connections that have failed since nobody answered.
  [[nodiscard]] std::size_t given_up() const {
    const std::vector<std::string> told = transport_->fallbacks();
    return static_cast<std::size_t>(std::count_if(told.begin(), told.end(), [](const auto& line) {
      return line.find("does not answer") != std::string::npos;
    }));
  }

  // Whatever is under way.
  void die() {
    dead_ = true;
    driver_.reset();
    leave();
  }
  void leave() {
    transport_.reset();
    if (device_->queue_pair_count() != 0 || device_->regions.count() != 0)
      say(fmt::format("leaves {} queue pairs, {} regions", device_->queue_pair_count(),
                      device_->regions.count()));
    device_.reset();
  }

  // What a program does between its calls.
  void pass_time() {
    switch (random_.pick(10)) {
    case 0:
    case 1:
      return compute(random_.pick(20));
    case 2:
      return compute(random_.pick(500));
    case 3:
      if (random_.chance(20)) compute(10'000);
      return;
    case 4:
      if (random_.chance(30)) register_more();
      return;
    default:
      return;
    }
  }
  void compute(int microseconds) {
    const bool slow = run_.setup_.faults.slow_rank == number_;
    device_->compute((slow ? 10 : 1) * microseconds * sim::microsecond);
  }

  // Other arrays come and go. A device that has no room for them may say so; nothing else changes.
  void register_more() {
    Core& core = driver_->core();
    try {
      if (extra_.empty()) {
        extra_.resize(8192 * (1 + random_.choose(4)));
        core.register_memory(extra_.data(), extra_.size());
      } else {
        core.unregister_memory(extra_.data());
        extra_ = {};
      }
    } catch (const base::Error& error) {
      extra_ = {};
      ++run_.seen_.refused;
      if (error.error_class != MPI_ERR_NO_MEM || !run_.setup_.scarce) throw;
    }
  }

  void call(const Step& step) {
    const bool consumes = step.what == What::take_any || step.what == What::post_receive ||
                          step.what == What::wait_posted;
    const int exchange = consumes ? stands_for_[index(step.exchange)] : step.exchange;
    const Exchange& e = run_.setup_.exchanges[index(exchange)];
    const int peer = e.producer == number_ ? e.consumer : e.producer;
    try {
      perform(step, exchange);
    } catch (const Error& error) {
      const bool of_peer = error.code == Code::peer || error.code == Code::transfer;
      if (!of_peer || !may_fail(peer)) throw;
      ++run_.seen_.failures;
    }
  }
  [[nodiscard]] bool may_fail(int peer) const {
    return run_.setup_.breaks || run_.ranks_[index(peer)]->is_dead();
  }

  void perform(const Step& step, int exchange) {
    const Exchange& e = run_.setup_.exchanges[index(exchange)];
    Side& side = sides_[index(exchange)];
    Core& core = driver_->core();
    switch (step.what) {
    case What::post_request:
      side.asked = core.post_send_request(e.consumer, e.bytes, e.tag);
      return driver_->push();
    case What::promise:
      core.promise_receive_buffers(e.producer, e.bytes, e.tag,
                                   static_cast<std::uint64_t>(step.fragment));
      return driver_->push();
    case What::post_receive:
      side.posted = core.post_receive_buffer(e.producer, at(e.to), e.bytes, e.tag);
      return driver_->push();
    case What::post_send:
      fill(exchange);
      side.posted = core.post_send_buffer(e.consumer, at(e.from), e.bytes, e.tag);
      return driver_->push();
    case What::take_request:
    case What::take_any:
      return take_request(step, exchange);
    case What::take_receive:
      return take_buffer(step, exchange, e.consumer);
    case What::take_send:
      return take_buffer(step, exchange, e.producer);
    case What::move:
      return move(exchange, index(step.fragment));
    case What::fin:
      if (side.buffer == 0) return;
      side.fin = core.send_fin(side.buffer);
      if (side.fin == 0) side.fin = over_at_once;
      return driver_->push();
    case What::wait_moved:
      if (!wait(side.moved, index(step.fragment))) return;
      return check_moved(exchange, index(step.fragment));
    case What::wait_fin:
      if (!wait(side.fin)) return;
      for (std::size_t fragment = 0; fragment < e.fragments.size(); ++fragment) {
        if (!e.fragments[fragment].own_request) check_moved(exchange, fragment);
      }
      return;
    case What::wait_request:
      static_cast<void>(wait(side.asked));
      return;
    case What::wait_posted:
      if (!wait(side.posted)) return;
      if (e.kind == Kind::producer_read) return take_back(e.from, e.bytes);
      check(exchange, 0, e.bytes);
      take_back(e.to, e.bytes);
      ++run_.seen_.finished;
      return;
    }
  }

  std::byte* at(std::size_t place) { return memory_.data() + place; }

  // The producer computes.
  void fill(int exchange) {
    const Exchange& e = run_.setup_.exchanges[index(exchange)];
    for (std::size_t i = 0; i < e.bytes; ++i)
      memory_[e.from + i] = content(exchange, i);
  }
  void take_back(std::size_t place, std::size_t bytes) {
    std::fill_n(memory_.begin() + static_cast<std::ptrdiff_t>(place), bytes, taken_back);
  }

  // Waits as gravel_wait_...() does, or tests a few times first.
  template <class Done>
  void await(int on, Done&& done) {
    for (int tests = random_.chance(30) ? random_.pick(20) : 0; tests > 0; --tests) {
      if (done()) return;
      driver_->core().progress();
      compute(random_.pick(5));
    }
    driver_->wait(on, done);
  }

  void take_request(const Step& step, int exchange) {
    const Exchange& expected = run_.setup_.exchanges[index(exchange)];
    const int source = step.what == What::take_any ? any_source : expected.producer;
    const int tag = step.any_tag ? any_tag : expected.tag;
    std::optional<SendRequest> found;
    await(source, [&] {
      if (!found) found = driver_->core().take_send_request(source, tag);
      return found.has_value();
    });
    if (step.what == What::take_any) exchange = stand_for(step.exchange, *found);
    if (exchange < 0) return;
    const Exchange& e = run_.setup_.exchanges[index(exchange)];
    if (found->tag != e.tag || found->bytes != e.bytes ||
        static_cast<int>(found->producer) != e.producer)
      say(fmt::format("has found a request of {} bytes, tag {}, of rank {}", found->bytes,
                      found->tag, found->producer));
  }
  // The place of an exchange that was taken from any source is that of the one that came.
  int stand_for(int place, const SendRequest& found) {
    const auto& all = run_.setup_.exchanges;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].tag != found.tag || all[i].consumer != number_ ||
          all[i].producer != static_cast<int>(found.producer))
        continue;
      const auto other = std::find(stands_for_.begin(), stands_for_.end(), static_cast<int>(i));
      std::swap(*other, stands_for_[index(place)]);
      return static_cast<int>(i);
    }
    say(fmt::format("has found a request of rank {} that it has not sent", found.producer));
    return -1;
  }

  void take_buffer(const Step& step, int exchange, int source) {
    const Exchange& e = run_.setup_.exchanges[index(exchange)];
    const int tag = step.any_tag ? any_tag : e.tag;
    Core& core = driver_->core();
    std::optional<BufferId> found;
    await(source, [&] {
      if (!found)
        found = step.what == What::take_receive ? core.take_receive_buffer(source, tag)
                                                : core.take_send_buffer(source, tag);
      return found.has_value();
    });
    const Buffer& buffer = core.buffer(*found);
    if (buffer.tag != e.tag || buffer.bytes != e.bytes)
      say(fmt::format("has found a buffer of {} bytes, tag {}", buffer.bytes, buffer.tag));
    Side& side = sides_[index(exchange)];
    side.buffer = *found;
    side.moved.resize(e.fragments.size());
    if (step.what == What::take_receive) fill(exchange);
  }

  void move(int exchange, std::size_t which) {
    const Exchange& e = run_.setup_.exchanges[index(exchange)];
    const Fragment& fragment = e.fragments[which];
    Side& side = sides_[index(exchange)];
    if (side.buffer == 0) return;
    Core& core = driver_->core();
    const bool get = e.kind == Kind::producer_read;
    const auto asked = fragment.own_request ? Core::Asked::yes : Core::Asked::no;
    const std::uint64_t request = get ? core.get(side.buffer, at(e.to + fragment.offset),
                                                 fragment.bytes, fragment.offset, asked)
                                      : core.put(side.buffer, at(e.from + fragment.offset),
                                                 fragment.bytes, fragment.offset, asked);
    if (fragment.own_request) side.moved[which] = request;
    driver_->push();
  }

  // False if there is nothing to wait for, as the call that should have begun it has failed.
  bool wait(std::uint64_t& request) {
    if (request == 0) return false;
    Core& core = driver_->core();
    const std::uint64_t id = std::exchange(request, 0);
    if (id == over_at_once) return true;
    Request& its = core.request(id);
    await(static_cast<int>(its.peer->rank), [&] { return its.complete; });
    core.finish(its);
    return true;
  }
  bool wait(std::vector<std::uint64_t>& requests, std::size_t which) {
    return which < requests.size() && wait(requests[which]);
  }

  // A fragment is over: what was put may be changed, what was got is there.
  void check_moved(int exchange, std::size_t which) {
    const Exchange& e = run_.setup_.exchanges[index(exchange)];
    const Fragment& fragment = e.fragments[which];
    if (e.kind == Kind::producer_read) {
      check(exchange, fragment.offset, fragment.bytes);
      take_back(e.to + fragment.offset, fragment.bytes);
      run_.seen_.finished += which == 0 ? 1 : 0;
    } else {
      take_back(e.from + fragment.offset, fragment.bytes);
    }
  }

  void check(int exchange, std::size_t offset, std::size_t bytes) {
    const Exchange& e = run_.setup_.exchanges[index(exchange)];
    for (std::size_t i = offset; i < offset + bytes; ++i) {
      if (memory_[e.to + i] == content(exchange, i)) continue;
      return say(fmt::format("byte {} of exchange {} is {:#x}, not {:#x}", i, exchange,
                             static_cast<unsigned>(memory_[e.to + i]),
                             static_cast<unsigned>(content(exchange, i))));
    }
    if (memory_[e.to + e.bytes] != untouched)
      say(fmt::format("the byte behind exchange {} was changed", exchange));
  }

  void say(const std::string& what) {
    run_.say(fmt::format("rank {}, step {}: {}", number_, next_, what));
  }

  Run& run_;
  const int number_;
  Random random_;
  sim::Processor processor_;
  sim::Fiber fiber_; // early: objects on its stack may be linked in the others
  std::optional<sim::SimulatedDevice> device_;
  std::vector<std::byte> memory_, extra_;
  std::optional<boot::Processes> processes_;
  std::optional<net::rdma::wire::Endpoint> endpoint_; // published
  std::unique_ptr<RdmaTransport> transport_;
  std::optional<Driver> driver_;
  RemoteMemory ledgers_;
  bool ready_ = false;
  bool dead_ = false;
  std::size_t next_ = 0;
  std::vector<Side> sides_;     // by exchange
  std::vector<int> stands_for_; // for a consumer, the exchange of a place in its program
};

Run::Run(const Setup& setup, std::uint64_t seed)
    : setup_(setup), scheduler_(seed, setup.faults.shuffle ? sim::Scheduler::Ties::shuffled
                                                           : sim::Scheduler::Ties::in_order),
      fabric_(scheduler_, model_of(setup), setup.faults, seed) {
  for (std::size_t rank = 0; rank < setup.ranks.size(); ++rank)
    ranks_.push_back(std::make_unique<Rank>(*this, static_cast<int>(rank), seed + (rank << 32)));
}

Run::~Run() = default;

void Run::say(std::string what) {
  if (wrong_.empty()) wrong_ = std::move(what);
}

std::string Run::execute() {
  for (const auto& rank : ranks_) {
    const double late = fabric_.random().fraction() * setup_.model.start_spread_ns;
    scheduler_.at(sim::from_ns(late), [its = rank.get()] { its->resume(); });
  }
  const auto all_ended = [&] {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& r) { return r->ended(); });
  };
  while (wrong_.empty() && !all_ended()) {
    if (scheduler_.now() > longest_run || scheduler_.events() > most_events || !scheduler_.step())
      say("the program does not come to its end");
  }
  // Where connections take turns, one may be half closed when its peer ends.
  const bool take_turns = setup_.settings.rdma_queue_pairs != base::Settings().rdma_queue_pairs;
  if (seen_.given_up != 0 && setup_.mortal < 0 && !setup_.breaks && !take_turns)
    say("a rank waited at its end for one who had ended");
  return wrong_.empty() ? "" : wrong_ + where_it_stands();
}

// For a failure: how far each rank has come, and what it has counted.
std::string Run::where_it_stands() const {
  std::string text = fmt::format(" (after {} s)", sim::seconds(scheduler_.now()));
  for (const auto& rank : ranks_)
    text += rank->standing();
  return text;
}

} // namespace macadam::gravel::torture
