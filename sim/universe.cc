// SPDX-License-Identifier: BSD-3-Clause
#include "sim/universe.h"

#include "base/error.h"
#include "boot/joined_socket.h"
#include "sim/rank.h"

#include <algorithm>
#include <cstring>

namespace macadam::sim {
namespace {

using Asked = Exchange::Asked;
using Question = Exchange::Question;

// An answer that is on its way.
template <class Result>
class Answer final : public boot::Pending<Result> {
 public:
  Answer(Asked asked, std::function<Result(Question&)> what)
      : asked_(std::move(asked)), what_(std::move(what)) {}
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  ~Answer() override { asked_->open = false; }

  [[nodiscard]] bool done() noexcept override { return !asked_->open; }
  Result take() override {
    if (asked_->error != 0) throw base::Error(asked_->error, asked_->text);
    return what_(*asked_);
  }

 private:
  const Asked asked_;
  const std::function<Result(Question&)> what_;
};

// Of a spawn, whose job is ended if it is not kept.
class SpawnAnswer final : public boot::Pending<boot::Spawned> {
 public:
  SpawnAnswer(Exchange& exchange, Asked asked)
      : exchange_(exchange), asked_(asked),
        answer_(std::move(asked), [](Question& its) { return std::move(its.spawned); }) {}
  SpawnAnswer(const SpawnAnswer&) = delete;
  SpawnAnswer& operator=(const SpawnAnswer&) = delete;
  ~SpawnAnswer() override {
    if (!kept_ && asked_->job >= 0) exchange_.end_job(asked_->job);
  }

  [[nodiscard]] bool done() noexcept override { return answer_.done(); }
  boot::Spawned take() override { return answer_.take(); }
  void keep() noexcept override { kept_ = true; }

 private:
  Exchange& exchange_;
  const Asked asked_;
  Answer<boot::Spawned> answer_;
  bool kept_ = false;
};

class RankUniverse final : public boot::Universe {
 public:
  RankUniverse(Rank& rank, Exchange& exchange, std::optional<boot::Met> parent)
      : rank_(rank), exchange_(exchange), parent_(std::move(parent)) {}

  [[nodiscard]] std::optional<int> size() const override {
    return exchange_.room < (1 << 30) ? std::optional(exchange_.room) : std::nullopt;
  }
  [[nodiscard]] std::optional<boot::Met> parent() const override { return parent_; }

  boot::PendingResult<boot::Spawned> spawn(std::vector<boot::SpawnCommand> commands) override {
    return std::make_unique<SpawnAnswer>(
        exchange_, exchange_.spawn(rank_, boot::read_commands(std::move(commands), rank_.host())));
  }
  std::string open_port() override { return exchange_.open_port(rank_); }
  void close_port(std::string_view port) override {
    exchange_.close_port(rank_, std::string(port));
  }
  boot::PendingResult<boot::Met> accept(std::string_view port,
                                        std::optional<double> longest) override {
    return met(exchange_.accept(rank_, std::string(port), longest));
  }
  boot::PendingResult<boot::Met> connect(std::string_view port,
                                         std::optional<double> longest) override {
    return met(exchange_.connect(rank_, std::string(port), longest));
  }
  boot::PendingResult<boot::Met> join(int socket) override {
    return std::make_unique<boot::JoinedSocket>(
        socket, boot::Met{own_ticket(), static_cast<std::uint32_t>(rank_.number()),
                          exchange_.next_meeting()});
  }
  boot::PendingResult<bool> publish(std::string_view service, std::string_view port) override {
    return yes(exchange_.publish(rank_, std::string(service), std::string(port)));
  }
  boot::PendingResult<bool> unpublish(std::string_view service, std::string_view port) override {
    return yes(exchange_.unpublish(rank_, std::string(service), std::string(port)));
  }
  boot::PendingResult<std::string> look_up(std::string_view service) override {
    return answer<std::string>(exchange_.look_up(rank_, std::string(service)),
                               [](Question& asked) { return asked.port; });
  }
  [[nodiscard]] boot::JobTicket own_ticket() override { return ticket_of(rank_.job()); }
  boot::PendingResult<const boot::Job*> meet(const boot::JobTicket& ticket) override {
    return answer<const boot::Job*>(exchange_.answer(rank_), [this, ticket](Question&) {
      const int job = job_of(ticket);
      if (rank_.is_over(job)) base::fail(MPI_ERR_OTHER, "job {} has ended", job);
      return &rank_.look_at(job);
    });
  }
  void forget(const boot::Job& job) override { rank_.look_away(job); }

 private:
  template <class Result>
  static boot::PendingResult<Result> answer(Asked asked, std::function<Result(Question&)> what) {
    return std::make_unique<Answer<Result>>(std::move(asked), std::move(what));
  }
  static boot::PendingResult<boot::Met> met(Asked asked) {
    return answer<boot::Met>(std::move(asked), [](Question& its) { return its.met; });
  }
  static boot::PendingResult<bool> yes(Asked asked) {
    return answer<bool>(std::move(asked), [](Question&) { return true; });
  }

  Rank& rank_;
  Exchange& exchange_;
  const std::optional<boot::Met> parent_;
};

} // namespace

boot::JobTicket ticket_of(int job) {
  boot::JobTicket ticket = {};
  std::memcpy(ticket.data(), &job, sizeof job);
  return ticket;
}

int job_of(const boot::JobTicket& ticket) {
  int job = 0;
  std::memcpy(&job, ticket.data(), sizeof job);
  return job;
}

std::unique_ptr<boot::Universe> make_universe(Rank& rank, Exchange& exchange,
                                              std::optional<boot::Met> parent) {
  return std::make_unique<RankUniverse>(rank, exchange, std::move(parent));
}

// --- The exchange --------------------------------------------------------------------------------

Asked Exchange::ask(Rank& rank) {
  auto asked = std::make_shared<Question>();
  asked->rank = &rank;
  return asked;
}

void Exchange::close(const Asked& asked) {
  if (!asked->open) return;
  asked->open = false;
  asked->rank->wake();
}

void Exchange::fail(const Asked& asked, int error, std::string text) {
  if (!asked->open) return;
  asked->error = error;
  asked->text = std::move(text);
  close(asked);
}

// Done after the way to the launcher and back. Nobody may wait for it any more then.
Asked Exchange::later(Rank& rank, std::function<void(Question&)> what) {
  struct Event {
    Asked asked;
    std::function<void(Question&)> what;
  };
  auto* const event = new Event{ask(rank), std::move(what)};
  Asked asked = event->asked;
  scheduler_.at(scheduler_.now() + delay_, [this, event] {
    const std::unique_ptr<Event> once(event);
    if (!once->asked->open) return;
    if (once->what) {
      try {
        once->what(*once->asked);
      } catch (const base::Error& error) {
        return fail(once->asked, error.error_class, error.text);
      }
    }
    close(once->asked);
  });
  return asked;
}

void Exchange::time_out(const Asked& asked, std::optional<double> longest, int error_class,
                        const char* what) {
  if (!longest) return;
  auto* const kept = new Asked(asked);
  scheduler_.at(scheduler_.now() + from_ns(*longest * 1e9), [this, kept, error_class, what] {
    const std::unique_ptr<Asked> once(kept);
    fail(*once, error_class, fmt::format("{} in time (info key timeout)", what));
  });
}

// As many as are acceptable and have room.
Asked Exchange::spawn(Rank& rank, std::vector<boot::SpawnProgram> programs) {
  return later(rank, [this, &rank, programs = std::move(programs)](Question& asked) {
    std::vector<int> ranks;
    int left = room - running;
    for (const boot::SpawnProgram& program : programs) {
      if (!program.hosts.empty())
        base::fail(MPI_ERR_SPAWN,
                   "info key host: each simulated job has machines of its own, which "
                   "are not to be chosen; leave the key out");
      const auto fits = std::ranges::find_if(program.counts.rbegin(), program.counts.rend(),
                                             [&](int count) { return count <= left; });
      if (fits == program.counts.rend())
        base::fail(MPI_ERR_SPAWN, "{} processes of {} are wanted, and there is room for {}",
                   program.counts.back(), program.command.front(), left);
      left -= *fits;
      ranks.push_back(*fits);
    }
    const boot::Met parent{ticket_of(rank.job()), static_cast<std::uint32_t>(rank.number()), 0};
    asked.job = start_(programs, ranks, parent);
    asked.spawned.job = ticket_of(asked.job);
    asked.spawned.ranks = std::move(ranks);
  });
}

std::string Exchange::open_port(Rank& rank) {
  const std::string name = fmt::format("port{}", ++last_port_);
  ports_.emplace(name, Port{&rank, {}, {}});
  return name;
}

void Exchange::close_port(const Rank& rank, const std::string& port) {
  const auto found = ports_.find(port);
  if (found == ports_.end() || found->second.owner != &rank)
    base::fail(MPI_ERR_PORT, "this process has no port '{}' open", port);
  close_port(found, "was closed");
}

void Exchange::close_port(std::map<std::string, Port>::iterator port, const char* why) {
  const Port gone = std::move(port->second);
  const std::string text = fmt::format("port '{}' {}", port->first, why);
  ports_.erase(port);
  for (const auto* list : {&gone.accepting, &gone.connecting})
    for (const Asked& asked : *list)
      fail(asked, MPI_ERR_PORT, text);
}

Asked Exchange::accept(Rank& rank, const std::string& port, std::optional<double> longest) {
  const auto found = ports_.find(port);
  if (found == ports_.end() || found->second.owner != &rank)
    base::fail(MPI_ERR_PORT, "this process has no port '{}' open", port);
  Asked asked = ask(rank);
  time_out(asked, longest, MPI_ERR_OTHER, "nobody has connected");
  found->second.accepting.push_back(asked);
  match(found->second);
  return asked;
}

Asked Exchange::connect(Rank& rank, const std::string& port, std::optional<double> longest) {
  Asked asked = ask(rank);
  const auto found = ports_.find(port);
  if (found == ports_.end()) base::fail(MPI_ERR_PORT, "nobody has a port '{}' open", port);
  time_out(asked, longest, MPI_ERR_PORT, "nobody has accepted");
  found->second.connecting.push_back(asked);
  match(found->second);
  return asked;
}

void Exchange::match(Port& port) {
  const auto drop_closed = [](std::deque<Asked>& list) {
    std::erase_if(list, [](const Asked& asked) { return !asked->open; });
    return list.empty();
  };
  while (!drop_closed(port.accepting) && !drop_closed(port.connecting)) {
    introduce(port.accepting.front(), port.connecting.front());
    port.accepting.pop_front();
    port.connecting.pop_front();
  }
}

void Exchange::introduce(const Asked& one, const Asked& other) {
  const std::uint32_t meeting = next_meeting();
  const auto name = [meeting](const Rank& rank) {
    return boot::Met{ticket_of(rank.job()), static_cast<std::uint32_t>(rank.number()), meeting};
  };
  one->met = name(*other->rank);
  other->met = name(*one->rank);
  close(one);
  close(other);
}

Asked Exchange::publish(Rank& rank, const std::string& service, const std::string& port) {
  return later(rank, [this, &rank, service, port](Question&) {
    if (!names_.try_emplace(service, Name{&rank, port}).second)
      base::fail(MPI_ERR_SERVICE, "service '{}' is published already", service);
  });
}

Asked Exchange::unpublish(Rank& rank, const std::string& service, const std::string&) {
  return later(rank, [this, service](Question&) {
    if (names_.erase(service) == 0)
      base::fail(MPI_ERR_SERVICE, "service '{}' is not published", service);
  });
}

Asked Exchange::look_up(Rank& rank, const std::string& service) {
  return later(rank, [this, service](Question& asked) {
    const auto found = names_.find(service);
    if (found == names_.end()) base::fail(MPI_ERR_NAME, "no service '{}' is published", service);
    asked.port = found->second.port;
  });
}

void Exchange::end_of(const Rank& rank) {
  for (auto port = ports_.begin(); port != ports_.end();) {
    const auto next = std::next(port);
    if (port->second.owner == &rank)
      close_port(port, "is gone, as its process has ended");
    else
      for (auto* const list : {&port->second.accepting, &port->second.connecting})
        std::erase_if(*list, [&](const Asked& asked) { return asked->rank == &rank; });
    port = next;
  }
  std::erase_if(names_, [&](const auto& name) { return name.second.owner == &rank; });
}

} // namespace macadam::sim
