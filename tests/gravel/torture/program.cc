// SPDX-License-Identifier: BSD-3-Clause
// Programs that come to an end whatever the network does: they are written down in one order of all
// calls in which no wait is for something later, and each rank gets its own part of that order.
#include "gravel/torture/program.h"

#include "fmt/format.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <tuple>

namespace macadam::gravel::torture {
namespace {

using Kind = Exchange::Kind;
using What = Step::What;
using macadam::torture::one_of;

std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

// The announcements from one rank to another in one ledger that nobody has taken out.
struct Posted {
  int exchange;
  What kind; // of the call that has posted it
  int position;
};
struct Ring {
  std::vector<Posted> untaken; // in the order of posting
  int posted = 0;
  bool promised = false; // some, which may come before older ones
};

class Author {
 public:
  Author(Random& random, Setup& setup, int ranks) : random_(random), setup_(setup) {
    setup.ranks.resize(index(ranks));
    setup.memory_bytes.resize(index(ranks), 16);
  }

  void write(int exchanges) {
    int begun = 0;
    const int most_open = 1 + random_.pick(12);
    while (begun < exchanges || !open_.empty()) {
      if (begun < exchanges && static_cast<int>(open_.size()) < most_open &&
          (open_.empty() || random_.chance(40))) {
        if (any_source_ && !gathering() && random_.chance(15))
          begun += begin_gather();
        else if (promises_ && random_.chance(20))
          begun += begin_promised();
        else
          begun += begin_one();
      } else {
        advance();
      }
    }
  }

  bool any_source_ = true, promises_ = true;

 private:
  // An exchange, or several to one consumer that takes them as they come, of which some calls are
  // still to be written: these must follow each other.
  struct Open {
    std::deque<std::pair<int, Step>> calls; // rank and step
    bool gather = false;
    std::size_t takes_at = 0; // of a gather: calls left when the consumer takes, all in a row
  };

  [[nodiscard]] bool gathering() const {
    return std::any_of(open_.begin(), open_.end(), [](const Open& o) { return o.gather; });
  }
  int random_rank() { return random_.pick(static_cast<int>(setup_.ranks.size())); }

  std::size_t random_bytes() {
    return one_of<std::size_t>(random_, {0, 1, 3, 64, 100, 1000, 5000, 20000, 70000});
  }

  int make(Kind kind, int producer, int consumer, int tag, std::size_t bytes) {
    Exchange made{kind, producer, consumer, tag, bytes, 0, 0, {}};
    const auto place = [&](int rank) {
      std::size_t& end = setup_.memory_bytes[index(rank)];
      const std::size_t at = end + random_.choose(9);
      end = at + made.bytes + 1; // a byte that nobody may touch
      return at;
    };
    made.from = place(producer);
    made.to = place(consumer);
    cut(made);
    setup_.exchanges.push_back(made);
    return static_cast<int>(setup_.exchanges.size()) - 1;
  }

  void cut(Exchange& exchange) {
    const std::size_t count = random_.chance(50) ? 1 : 1 + random_.choose(6);
    std::vector<std::size_t> ends{exchange.bytes};
    for (std::size_t i = 1; i < count; ++i)
      ends.push_back(random_.choose(static_cast<unsigned>(exchange.bytes) + 1));
    std::sort(ends.begin(), ends.end());
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      exchange.fragments.push_back({begin, end - begin, random_.chance(40)});
      begin = end;
    }
    for (std::size_t i = exchange.fragments.size(); i > 1; --i)
      std::swap(exchange.fragments[i - 1],
                exchange.fragments[random_.choose(static_cast<unsigned>(i))]);
  }

  // Moves the data and tells; the waits for the own requests are the caller's.
  void move(Open& open, int who, int exchange) {
    const auto count = static_cast<int>(setup_.exchanges[index(exchange)].fragments.size());
    for (int fragment = 0; fragment < count; ++fragment)
      open.calls.push_back({who, {What::move, exchange, fragment}});
    const auto waits = [&](int fragment) {
      if (setup_.exchanges[index(exchange)].fragments[index(fragment)].own_request)
        open.calls.push_back({who, {What::wait_moved, exchange, fragment}});
    };
    const int before = random_.pick(count + 1); // these are waited for before the FIN
    for (int fragment = 0; fragment < before; ++fragment)
      waits(fragment);
    open.calls.push_back({who, {What::fin, exchange}});
    for (int fragment = count; fragment-- > before;)
      waits(fragment);
  }

  int begin_one() {
    const Kind kind =
        one_of(random_, {Kind::consumer_write, Kind::producer_write, Kind::producer_read});
    const int producer = random_rank(), consumer = random_rank();
    const int tag = random_.pick(3);
    return begin(make(kind, producer, consumer, tag, random_bytes()));
  }

  // Writes with one size and tag, to buffers that the consumer promises. The producer may take them
  // long before they are posted.
  int begin_promised() {
    const int producer = random_rank(), consumer = random_rank(), tag = 200 + promised_++;
    const std::size_t bytes = random_bytes();
    const int count = 1 + random_.pick(12);
    rings_[{consumer, producer, true}].promised = true;
    for (int i = 0; i < count; ++i) {
      const int e = make(Kind::consumer_write, producer, consumer, tag, bytes);
      if (i == 0) setup_.ranks[index(consumer)].push_back({What::promise, e, count});
      begin(e);
    }
    return count;
  }

  int begin(int e) {
    const Kind kind = setup_.exchanges[index(e)].kind;
    const int producer = setup_.exchanges[index(e)].producer;
    const int consumer = setup_.exchanges[index(e)].consumer;
    Open open;
    const bool read = kind == Kind::producer_read;
    if (kind == Kind::producer_write) {
      open.calls.push_back({producer, {What::post_request, e}});
      open.calls.push_back({consumer, {What::take_request, e}});
    }
    open.calls.push_back(read ? std::pair{producer, Step{What::post_send, e}}
                              : std::pair{consumer, Step{What::post_receive, e}});
    open.calls.push_back(read ? std::pair{consumer, Step{What::take_send, e}}
                              : std::pair{producer, Step{What::take_receive, e}});
    move(open, read ? consumer : producer, e);
    if (kind == Kind::producer_write) open.calls.push_back({producer, {What::wait_request, e}});
    open.calls.push_back({read ? consumer : producer, {What::wait_fin, e}});
    open.calls.push_back({read ? producer : consumer, {What::wait_posted, e}});
    if (random_.chance(50)) std::swap(open.calls.back(), *std::prev(open.calls.end(), 2));
    open_.push_back(std::move(open));
    return 1;
  }

  // A producer-initiated write from each of some ranks, which the consumer takes from any source.
  int begin_gather() {
    const int consumer = random_rank();
    const int tag = 100 + gathers_++;
    Open open;
    open.gather = true;
    std::vector<int> members;
    for (int producer = 0; producer < static_cast<int>(setup_.ranks.size()); ++producer) {
      if (random_.chance(30)) continue;
      const int e = make(Kind::producer_write, producer, consumer, tag, random_bytes());
      members.push_back(e);
      open.calls.push_back({producer, {What::post_request, e}});
    }
    const std::size_t posts = open.calls.size();
    for (const int e : members) {
      open.calls.push_back({consumer, {What::take_any, e}});
      open.calls.push_back({consumer, {What::post_receive, e}});
    }
    for (const int e : members) {
      const int producer = setup_.exchanges[index(e)].producer;
      open.calls.push_back({producer, {What::take_receive, e}});
      move(open, producer, e);
      open.calls.push_back({producer, {What::wait_request, e}});
      open.calls.push_back({producer, {What::wait_fin, e}});
    }
    for (const int e : members)
      open.calls.push_back({consumer, {What::wait_posted, e}});
    open.takes_at = open.calls.size() - posts;
    if (!members.empty()) open_.push_back(std::move(open));
    return static_cast<int>(members.size());
  }

  // Writes down the next call of an exchange, if it may be made now.
  void advance() {
    const std::size_t which = random_.choose(static_cast<unsigned>(open_.size()));
    Open& open = open_[which];
    if (open.gather && open.calls.size() == open.takes_at) {
      if (!may_take_all(open)) return;
      // In a row: which of the announcements comes first is seen by all of them alike.
      while (open.calls.front().second.what == What::take_any ||
             open.calls.front().second.what == What::post_receive)
        write_next(open);
      return;
    }
    if (takes(open.calls.front().second.what) && !may_take(open.calls.front().second)) return;
    write_next(open);
    if (!open.calls.empty()) return;
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void write_next(Open& open) {
    auto [rank, step] = open.calls.front();
    open.calls.pop_front();
    if (posts(step.what)) {
      Ring& ring = ring_of(step);
      ring.untaken.push_back({step.exchange, step.what, ring.posted++});
    } else if (takes(step.what) || step.what == What::take_any) {
      Ring& ring = ring_of(step);
      const auto found = find(ring, step);
      // The oldest of its kind is what comes, if any tag will do.
      const bool oldest = std::none_of(ring.untaken.begin(), found,
                                       [&](const Posted& p) { return p.kind == found->kind; });
      step.any_tag = oldest && !ring.promised && step.what != What::take_any && random_.chance(20);
      ring.untaken.erase(found);
    }
    setup_.ranks[index(rank)].push_back(step);
  }

  static bool posts(What what) {
    return what == What::post_request || what == What::post_receive || what == What::post_send;
  }
  static bool takes(What what) {
    return what == What::take_request || what == What::take_receive || what == What::take_send;
  }
  static What posted_by(What taken) {
    return taken == What::take_receive ? What::post_receive
           : taken == What::take_send  ? What::post_send
                                       : What::post_request;
  }
  Ring& ring_of(const Step& step) {
    const Exchange& e = setup_.exchanges[index(step.exchange)];
    const bool receive_info = step.what == What::post_receive || step.what == What::take_receive;
    return receive_info ? rings_[{e.consumer, e.producer, true}]
                        : rings_[{e.producer, e.consumer, false}];
  }
  static std::vector<Posted>::iterator find(Ring& ring, const Step& step) {
    return std::find_if(ring.untaken.begin(), ring.untaken.end(), [&](const Posted& p) {
      return p.exchange == step.exchange && p.kind == posted_by(step.what);
    });
  }
  // It is the oldest that fits, and not behind more entries than the ledger holds.
  bool may_take(const Step& step) {
    Ring& ring = ring_of(step);
    const auto found = find(ring, step);
    const int tag = setup_.exchanges[index(step.exchange)].tag;
    const bool older = std::any_of(ring.untaken.begin(), found, [&](const Posted& p) {
      return p.kind == found->kind && setup_.exchanges[index(p.exchange)].tag == tag;
    });
    return !older &&
           found->position - ring.untaken.front().position < static_cast<int>(setup_.slots);
  }
  bool may_take_all(const Open& open) {
    return std::all_of(open.calls.begin(), open.calls.end(), [&](const auto& call) {
      return call.second.what != What::take_any || may_take(call.second);
    });
  }

  Random& random_;
  Setup& setup_;
  std::vector<Open> open_;
  int gathers_ = 0, promised_ = 0;
  std::map<std::tuple<int, int, bool>, Ring> rings_; // by writer, reader, whether receive-info
};

constexpr std::array what_names{"post_request", "take_request", "take_any",   "promise",
                                "post_receive", "take_receive", "post_send",  "take_send",
                                "move",         "fin",          "wait_moved", "wait_fin",
                                "wait_request", "wait_posted"};
constexpr std::array kind_names{"consumer_write", "producer_write", "producer_read"};

} // namespace

Setup random_setup(std::uint64_t seed, bool promises) {
  Random random(seed);
  Setup setup;
  const int ranks = 1 + random.pick(6);
  macadam::torture::set_limits(random, ranks, setup.settings);
  setup.settings.rdma_connections = base::ConnectMode::on_demand; // as libgravel
  setup.scarce = macadam::torture::set_device(random, setup);
  macadam::torture::set_faults(random, ranks, setup);
  setup.slots = one_of(random, {1u, 2u, 4u, 16u});
  if (promises) setup.copies = random.chance(75);
  Author author(random, setup, ranks);
  const bool dies = ranks > 1 && random.chance(20);
  author.promises_ = promises;
  // A wait for any source ends with an error only if all are gone.
  author.any_source_ = !dies && !setup.breaks;
  author.write(5 + random.pick(40));
  if (dies) {
    // Where connections must take turns, one to who never answers may be put off again and again.
    setup.settings.rdma_queue_pairs = base::Settings{}.rdma_queue_pairs;
    setup.mortal = random.pick(ranks);
    setup.dies_at =
        random.choose(static_cast<unsigned>(setup.ranks[index(setup.mortal)].size()) + 1);
  }
  macadam::torture::set_order(random, setup);
  return setup;
}

std::string show(const Setup& setup, const Step& step) {
  const Exchange& e = setup.exchanges[index(step.exchange)];
  return fmt::format(
      "{}{} of {} ({}, {} to {}, tag {}, {} bytes{})",
      what_names[static_cast<std::size_t>(step.what)], step.any_tag ? " (any tag)" : "",
      step.exchange, kind_names[static_cast<std::size_t>(e.kind)], e.producer, e.consumer, e.tag,
      e.bytes, e.fragments.size() == 1 ? "" : fmt::format(" in {}", e.fragments.size()));
}

std::string show(const Setup& setup) {
  std::string text = macadam::torture::show(static_cast<const Network&>(setup));
  text += fmt::format("slots: {}, copies: {}, scarce: {}, mortal: {} at step {}\n", setup.slots,
                      setup.copies, setup.scarce, setup.mortal, setup.dies_at);
  for (std::size_t rank = 0; rank < setup.ranks.size(); ++rank) {
    text += fmt::format("rank {}:\n", rank);
    for (std::size_t i = 0; i < setup.ranks[rank].size(); ++i)
      text += fmt::format("  {}: {}\n", i, show(setup, setup.ranks[rank][i]));
  }
  return text;
}

} // namespace macadam::gravel::torture
