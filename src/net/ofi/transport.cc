// SPDX-License-Identifier: BSD-3-Clause
#include "net/ofi/transport.h"

#include "base/copy.h"
#include "base/error.h"
#include "engine/wire.h"
#include "net/ofi/listening.h"
#include "net/ofi/token.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <sched.h>
#include <span>
#include <utility>

namespace macadam::net::ofi {
namespace {

constexpr std::size_t header_room = 64; // the engine's longest header
static_assert(engine::wire::longest_control <= header_room);
constexpr std::size_t line = 64; // bytes
// Messages up to this length are put together on the stack, if the provider takes them so.
constexpr std::size_t most_injected = 512;
// Receives that wait for messages of all peers. What comes faster waits in the provider. The next
// message always comes into the buffer that was read longest ago, so long ones have fewer: all
// together stay in a second-level cache (half a round trip of 64 KiB over TCP: 19 us, else 24).
constexpr std::size_t most_receives = 128, fewest_receives = 8;
constexpr std::size_t receive_bytes = 1 << 20;
constexpr std::size_t hybrid_bytes = 64 << 10; // of a copy left behind for a receiver
constexpr std::size_t tcp_eager = 128 << 10;   // bytes
// From so many bytes on a message leaves from the user's memory: what a copy costs more than a
// completion.
constexpr std::size_t uncopied_bytes = 8 << 10;
constexpr unsigned spinning_polls = 64; // of a wait before it yields, if it has a core for itself
// What a network moves at once is not asked of libfabric: a segment of Ethernet or more.
constexpr std::size_t packet_bytes = 4096;
// Seconds in which a lost connection may come back; and one to a peer of which only the network can
// tell whether it is there.
constexpr double longest_refusal = 5;
constexpr double longest_refusal_unwatched = 1;
// Between two looks whether anybody listens where a peer was: each may take some milliseconds.
constexpr double time_between_looks = 0.1;
// Seconds in which the peer may connect, if both were about to.
constexpr double time_to_connect = 0.02;
// How long a sleep lasts: while something is to be tried again, or the provider cannot wake us; and
// else, as a peer that ends is not always told by the network.
constexpr unsigned short_sleep_us = 1'000;
constexpr unsigned long_sleep_us = 200'000;

// Unless the user says: over TCP a message that is copied costs less than the packets that spare
// the copies, and a receive takes memory only as it is filled. What stands above TCP has limits of
// its own.
std::size_t eager_bytes(const base::Settings& settings, const ProviderLimits& provider) {
  const bool is_default = settings.rdma_eager == base::Settings{}.rdma_eager;
  if (is_default && provider.bare_tcp) return tcp_eager;
  return static_cast<std::size_t>(settings.rdma_eager);
}

engine::Limits make_limits(const base::Settings& settings, const ProviderLimits& provider,
                           bool oversubscribed) {
  const std::size_t eager = eager_bytes(settings, provider);
  return {.name = "ofi",
          .message = header_room + eager,
          .eager = eager,
          .hybrid = settings.rdma_hybrid >= 0 ? static_cast<std::size_t>(settings.rdma_hybrid)
                                              : std::max(eager, hybrid_bytes),
          .uncopied =
              provider.bare_tcp && provider.gathers && provider.ordered ? uncopied_bytes : SIZE_MAX,
          .packet = packet_bytes,
          .cheap_copy = eager,
          .notified_put = SIZE_MAX,
          .orders_puts = provider.ordered,
          .orders_writes = provider.ordered,
          .atomics = true,
          .connects = true,
          .messages_by = !provider.tcp ? engine::MessagesBy::adapter
                         : settings.network == base::NetworkChoice::ofi
                             ? engine::MessagesBy::tcp_alone
                             : engine::MessagesBy::tcp,
          .polls_before_idle = oversubscribed ? 0 : spinning_polls};
}

// Of another network, it has no magic.
wire::Endpoint read_endpoint(std::span<const std::byte> published) {
  wire::Endpoint endpoint;
  endpoint.magic = 0;
  if (published.size() == sizeof endpoint)
    std::memcpy(&endpoint, published.data(), sizeof endpoint);
  return endpoint;
}

} // namespace

OfiTransport::OfiTransport(const boot::Processes& processes, const base::Settings& settings,
                           const Wish& wish, mem::InvalidationSource* invalidation,
                           engine::Transport* sleeper)
    : processes_(processes), sleeper_(sleeper), rank_(processes.own()),
      fabric_(load_library(), wish),
      limits_(make_limits(settings, fabric_.limits(), processes.job().oversubscribed())),
      window_(fabric_.limits().bare_tcp ? wire::window_of_tcp : wire::window),
      inject_bytes_(std::min(most_injected, fabric_.limits().inject)),
      yielding_(settings.spin, processes.job().oversubscribed()),
      waiting_(fabric_.descriptor(), fabric_.limits().wakes, *this, sleeper),
      pool_(fabric_, mem::round_up(sizeof(wire::Header) + limits_.message, line),
            static_cast<std::size_t>(settings.rdma_buffers)),
      heap_(fabric_),
      cache_(fabric_, fabric_.limits().pins && settings.rdma_cache != 0 ? invalidation : nullptr,
             mem::most_registrations, static_cast<std::size_t>(settings.rdma_cache)) {
  notes_.push_back("ofi: libfabric's provider is " + fabric_.name());
  if (!fabric_.limits().wakes)
    notes_.push_back("ofi: the provider is not known to wake who sleeps: waits look every ms");
  if (fabric_.limits().pins && invalidation != nullptr && !invalidation->why_not().empty())
    notes_.push_back("ofi: user memory is registered for each transfer and does not stay so: " +
                     invalidation->why_not());
  self_.rank = rank_;
  std::array<mem::Buffer*, most_receives> buffers;
  const auto all = static_cast<std::size_t>(settings.rdma_buffers);
  const std::size_t wanted =
      std::min(std::clamp(receive_bytes / pool_.buffer_bytes(), fewest_receives, most_receives),
               all - std::min(all, std::max<std::size_t>(all / 4, 1))); // the rest is for sends
  const std::size_t taken = pool_.take(std::span(buffers).first(wanted), wanted);
  if (taken == 0) {
    base::fail(MPI_ERR_OTHER,
               "libfabric: {} message buffers are not enough for receives and sends, at least 2 "
               "are needed; raise MACADAM_RDMA_BUFFERS",
               all);
  }
  for (mem::Buffer* const buffer : std::span(buffers).first(taken)) {
    Operation* const operation = operations_.make();
    operation->buffer = buffer;
    post_receive(*operation);
  }
  if (sleeper_ != nullptr) sleeper_->sleep_sooner();
  waiting_.start();
}

// The provider lets go of all memory first.
OfiTransport::~OfiTransport() {
  waiting_.stop();
  fabric_.close();
}

// Made at the first use of a peer, or at its first message.
Route& OfiTransport::route_to(Rank peer) {
  std::unique_ptr<Route>& route = routes_[peer];
  if (route == nullptr) {
    route = std::make_unique<Route>();
    route->rank = peer;
    route->credits = window_;
    const boot::ProcessName theirs = processes_.name(peer);
    const boot::ProcessName ours = processes_.own_name();
    route->token = token_of(processes_.secret(peer), ours, theirs);
    route->their_token = token_of(processes_.secret(rank_), theirs, ours);
    ++counters_.routes;
    if (!early_.empty()) chores_ = true; // one may be its
  }
  return *route;
}

engine::Link& OfiTransport::connect(Rank peer, engine::PeerState& state) {
  const std::scoped_lock guard(lock_);
  if (peer == rank_) {
    state = engine::PeerState::connected;
    return self_;
  }
  Route& route = route_to(peer);
  if (route.state == Route::State::unknown) open(route);
  route.wanted = true;
  switch (route.state) {
  case Route::State::open:
    state = engine::PeerState::connected;
    break;
  case Route::State::broken:
    state = engine::PeerState::failed;
    break;
  case Route::State::unknown:
  case Route::State::waiting:
    state = engine::PeerState::connecting;
    if (!std::exchange(route.promised, true)) unpublished_.push_back(&route);
    chores_ = true;
    break;
  }
  return route;
}

// A connection that was there is lost by the end of the process, too.
std::string OfiTransport::why_failed(const engine::Link& link) const {
  const std::scoped_lock guard(lock_);
  const auto& route = static_cast<const Route&>(link);
  if (route.reason == nullptr || (route.talked && has_ended(processes_.life(route.rank))))
    return {};
  return processes_.describe_unreached(route.rank, route.talked, *route.reason);
}

// TCP's provider loses a connection that both sides make at once, if the object that it keeps it in
// was another peer's, of a job that has ended (seen with 2.5). So one of the two waits for the
// other's first message, for a while.
bool OfiTransport::gives_way(Route& route) {
  if (!fabric_.limits().bare_tcp || !processes_.has_met() || route.talked ||
      processes_.own_name() < processes_.name(route.rank))
    return false;
  const double time = now();
  if (route.open_at == 0) route.open_at = time + time_to_connect;
  return time < route.open_at;
}

// If its address is published. Throws base::Error if it is none, or never will be.
void OfiTransport::open(Route& route) {
  route.state = Route::State::waiting;
  const auto published = processes_.endpoint(route.rank);
  if (!published) {
    if (const auto why = processes_.why_never(route.rank))
      base::fail(MPI_ERR_OTHER, "libfabric: rank {} cannot be reached: {}", route.rank, *why);
    return;
  }
  if (gives_way(route)) return;
  try {
    route.address = fabric_.insert(read_endpoint(*published));
  } catch (const base::Error& error) {
    base::fail(error.error_class, "rank {} on {} cannot be reached: {}", route.rank,
               processes_.host_of(route.rank), error.text);
  }
  route.state = Route::State::open;
}

// The same where nothing may be thrown: true if it is open.
bool OfiTransport::try_open(Route& route) {
  try {
    if (route.state < Route::State::open) open(route);
  } catch (const base::Error& error) {
    note_failure(route, error.text);
  }
  return route.state == Route::State::open;
}

// No room now, or not connected any more; or broken, as the engine has been told or will be.
Posted OfiTransport::refuse(Route& route) {
  if (route.state == Route::State::broken) return Posted::done;
  ++counters_.busy;
  refused_ = true;
  return Posted::busy;
}

// To be called in a catch block: the next poll() tells the sink.
Posted OfiTransport::break_down() noexcept {
  breakdown_.note();
  chores_ = true;
  return Posted::busy;
}

void OfiTransport::note_failure(Route& route, std::string reason) {
  if (std::ranges::find(breaking_, &route) != breaking_.end() ||
      route.state == Route::State::broken)
    return;
  notes_.push_back(fmt::format("ofi: rank {} is not reached any more: {}", route.rank, reason));
  route.reason = std::make_unique<const std::string>(std::move(reason));
  breaking_.push_back(&route);
  chores_ = true;
}

OfiTransport::Operation* OfiTransport::begin(Operation::Kind kind, Route& route) {
  Operation* const operation = operations_.make();
  operation->kind = kind;
  operation->route = &route;
  return operation;
}

void OfiTransport::end(Operation& operation) {
  if (operation.buffer != nullptr) pool_.give(operation.buffer);
  operations_.free(&operation);
}

bool OfiTransport::is_taken(long result, Operation& operation) {
  Route& route = *operation.route;
  if (result == 0) [[likely]] {
    ++route.under_way;
    route.refused_since = 0;
    return true;
  }
  end(operation);
  if (result != -FI_EAGAIN)
    note_failure(route, fabric_.text_of(result));
  else if (route.under_way == 0)
    note_refusal(route);
  return false;
}

// The provider has nothing of ours for this peer, and takes nothing: it has lost the connection, or
// has never had one. It tries for ever to make another.
void OfiTransport::note_refusal(Route& route) {
  const double time = now();
  if (route.refused_since == 0) route.refused_since = time;
  const bool watched = processes_.life(route.rank) != boot::Life::unknown;
  const double longest = watched ? longest_refusal : longest_refusal_unwatched;
  if (time - route.refused_since <= longest) return;
  if (route.talked)
    return note_failure(
        route, fmt::format("its connection was lost, and there is no other in {} s", longest));
  // One that was never reached may compute, or be stopped.
  route.refused_since = time;
  if (watched || !fabric_.limits().tcp || time < look_again_at_) return;
  look_again_at_ = time + time_between_looks;
  const auto published = processes_.endpoint(route.rank);
  if (published && nobody_listens(read_endpoint(*published)))
    note_failure(route, "nobody listens at its address: its process has ended");
}

// A short message is copied by the provider, a longer one to a buffer; of one that is `uncopied`
// the header alone. Each has a completion, as drain() has to know.
Posted OfiTransport::post_message(Route& route, wire::Kind kind, const void* header,
                                  std::size_t header_bytes, const void* payload,
                                  std::size_t payload_bytes, Transfer* uncopied) {
  const std::size_t bytes = sizeof(wire::Header) + header_bytes + payload_bytes;
  if (bytes > pool_.buffer_bytes()) [[unlikely]]
    base::fail(MPI_ERR_INTERN, "libfabric: a message of {} bytes, at most {} are taken", bytes,
               pool_.buffer_bytes());
  std::array<std::byte, most_injected> injected;
  const bool is_short = bytes <= inject_bytes_;
  Operation* const operation = begin(Operation::Kind::send, route);
  operation->transfer = uncopied;
  std::byte* at = injected.data();
  std::array<void*, 2> descriptors = {};
  if (!is_short) {
    mem::Buffer* const buffer = pool_.take();
    operation->buffer = buffer;
    if (buffer == nullptr) {
      end(*operation);
      return refuse(route);
    }
    at = buffer->memory;
    descriptors[0] = static_cast<const Region&>(*buffer->arena->region).descriptor();
  }
  const std::size_t copied = uncopied == nullptr ? payload_bytes : 0;
  const std::array<iovec, 2> blocks = {iovec{at, bytes - payload_bytes + copied},
                                       iovec{const_cast<void*>(payload), payload_bytes - copied}};
  const wire::Header own = {processes_.own_name(), wire::Header::seal_of(route.token, kind),
                            route.taken, route.next_to_send};
  std::memcpy(at, &own, sizeof own);
  base::copy(at + sizeof own, header, header_bytes);
  base::copy(at + sizeof own + header_bytes, payload, copied);
  fi_msg message = {};
  message.msg_iov = blocks.data();
  message.desc = descriptors.data();
  message.iov_count = uncopied == nullptr ? 1 : 2;
  message.addr = route.address;
  message.context = &operation->room;
  // A stream delivers what it has taken; asked for more, TCP's provider has the peer answer.
  const std::uint64_t whole_flags = fabric_.limits().stream ? 0 : FI_TRANSMIT_COMPLETE;
  const std::uint64_t flags = FI_COMPLETION | (is_short ? FI_INJECT : whole_flags);
  if (!is_taken(fi_sendmsg(fabric_.endpoint(), &message, flags), *operation)) return refuse(route);
  route.taken = 0;
  if (wire::takes_credit(kind)) --route.credits;
  if (wire::is_numbered(kind)) route.next_to_send = wire::number_after(route.next_to_send);
  ++counters_.sent;
  if (is_short) ++counters_.injected;
  return Posted::done;
}

Posted OfiTransport::send(engine::Link& link, const void* header, std::size_t header_bytes,
                          const void* payload, std::size_t payload_bytes) noexcept try {
  const std::scoped_lock guard(lock_);
  if (is_self(link)) [[unlikely]] {
    chores_ = true;
    to_self_.send(header, header_bytes, payload, payload_bytes);
    return Posted::done;
  }
  auto& route = static_cast<Route&>(link);
  if (!can_send(route)) [[unlikely]]
    return refuse(route);
  return post_message(route, wire::Kind::message, header, header_bytes, payload, payload_bytes);
} catch (...) {
  return break_down();
}

Posted OfiTransport::send_uncopied(engine::Link& link, const void* header, std::size_t header_bytes,
                                   const void* payload, std::size_t payload_bytes,
                                   std::uint64_t cookie) noexcept try {
  const std::scoped_lock guard(lock_);
  if (is_self(link)) return send(link, header, header_bytes, payload, payload_bytes);
  auto& route = static_cast<Route&>(link);
  if (!can_send(route)) return refuse(route);
  const auto give_back = [this](Transfer* unused) { transfers_.free(unused); };
  std::unique_ptr<Transfer, decltype(give_back)> transfer(transfers_.make(), give_back);
  transfer->route = &route;
  transfer->cookie = cookie;
  transfer->under_way = 1;
  const Posted posted = post_message(route, wire::Kind::message, header, header_bytes, payload,
                                     payload_bytes, transfer.get());
  if (posted != Posted::done) return posted;
  route.transfers.push_back(*transfer.release());
  return Posted::pending;
} catch (...) {
  return break_down();
}

bool OfiTransport::forget(Rank first, Rank processes) {
  const std::scoped_lock guard(lock_);
  for (const auto& [rank, route] : routes_) {
    if (rank - first >= processes) continue;
    if (route->under_way != 0 || !route->transfers.empty()) return false;
  }
  std::erase_if(routes_, [&](const auto& row) {
    Route& route = *row.second;
    if (row.first - first >= processes) return false;
    std::erase(unpublished_, &route);
    std::erase(breaking_, &route);
    std::erase(answering_, &route);
    if (last_source_ == &route) last_source_ = nullptr;
    if (route.address != FI_ADDR_NOTAVAIL) fabric_.remove(route.address);
    return true;
  });
  // What came late is not of the next meeting.
  const std::uint32_t job = processes_.name(first).job;
  std::erase_if(early_, [&](const KeptMessage& early) { return early.header.source.job == job; });
  return true;
}

bool OfiTransport::drain() {
  const std::scoped_lock guard(lock_);
  return to_self_.empty() && answering_.empty() &&
         std::ranges::all_of(routes_, [](const auto& row) {
           const Route& route = *row.second;
           return route.state != Route::State::open ||
                  (route.under_way == 0 && route.unposted.empty());
         });
}

// First yields, then has a poll() prepare the sleep, then sleeps: what came before that poll() is
// found by it, and what comes after ends the sleep.
bool OfiTransport::idle(unsigned fruitless, unsigned longest_us) {
  if (yielding_.is_blind(fruitless)) [[likely]] {
    sched_yield();
    return false;
  }
  const double time = now();
  if (pool_.grown()) {
    const std::scoped_lock guard(lock_);
    pool_.trim(time);
  }
  if (yielding_.goes_on(fruitless, time)) {
    sched_yield();
    return false;
  }
  if (!armed_.exchange(false, std::memory_order_acquire)) {
    arm();
    return true;
  }
  waiting_.sleep(std::min(longest_us, longest_sleep_us()));
  return false;
}

unsigned OfiTransport::longest_sleep_us() const {
  return hurried_.load(std::memory_order_relaxed) || !fabric_.limits().wakes ? short_sleep_us
                                                                             : long_sleep_us;
}

double OfiTransport::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::size_t OfiTransport::memory_bytes() const {
  const std::scoped_lock guard(lock_);
  return sizeof(OfiTransport) + pool_.bytes() + heap_.bytes() + operations_.bytes() +
         transfers_.bytes() + routes_.size() * sizeof(Route);
}

void OfiTransport::list_counters(base::CounterList& list) const {
  const auto add = [&](const char* name, const char* text, const std::uint64_t& value) {
    list.add("ofi", name, text, value);
  };
  add("ofi_peers", "processes that were talked to over libfabric", counters_.routes);
  add("ofi_broken", "peers that could not be reached any more", counters_.broken);
  add("ofi_sent", "messages sent over libfabric", counters_.sent);
  add("ofi_injected", "messages that the provider copied", counters_.injected);
  add("ofi_busy", "operations that found no room at first", counters_.busy);
  add("ofi_puts", "writes of data by libfabric", counters_.puts);
  add("ofi_gets", "reads of data by libfabric", counters_.gets);
  add("ofi_atomics", "atomics asked of peers", counters_.atomics);
  add("ofi_served", "atomics of peers that were done here", counters_.served);
  add("ofi_strangers", "messages that were not of this job and were dropped", counters_.strangers);
  add("ofi_sleeps", "sleeps that a wait has prepared", counters_.sleeps);
  const mem::RegistrationCounters& cache = cache_.counters();
  add("ofi_registrations", "regions of user memory registered", cache.registrations);
}

} // namespace macadam::net::ofi
