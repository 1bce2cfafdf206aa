// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/services.h"

#include "base/error.h"

namespace macadam::tools {

using boot::Request;

namespace {

// A whole request within another.
boot::PacketWriter as_packet(std::string_view bytes) {
  boot::PacketWriter packet;
  packet.raw(bytes);
  return packet;
}

// As a part of an mpiexec asks another one of it.
boot::PacketWriter relay_to(const Place& place, std::string_view request) {
  boot::PacketWriter outer;
  outer.value(boot::RequestHead{.request = Request::relay});
  outer.value(boot::Where::named);
  outer.text(place.host);
  outer.text(place.socket);
  outer.text(request);
  return outer;
}

constexpr std::uint64_t of_relay = std::uint64_t{1} << 63; // in numbers of what it was asked

} // namespace

void Services::join(Head& head, const boot::JobMemory& first) {
  relay_.emplace(server_, head, first);
}

// Its end is told as it was: a process that failed is missed by those who wait for it.
void Services::on_end(const boot::JobMemory& job) {
  const boot::Secret& secret = job.header().secret;
  ports_.close_all_of(secret);
  names_.unpublish_all_of(secret);
  answer_address_requests();
  bool failed = false;
  for (const std::uint32_t rank : job.members())
    failed = failed || job.life(static_cast<int>(rank), generation_of(job)) == boot::Life::failed;
  boot::PacketWriter answer;
  answer.value(failed);
  std::erase_if(watches_, [&](const Waiting& each) {
    if (each.job != secret) return false;
    server_.answer(each.id, answer);
    return true;
  });
}

void Services::tell_ended(const boot::Secret& job) {
  if (relay_) relay_->tell_ended(job);
}

void Services::take(Frame frame) {
  relay_->take(std::move(frame), [this](const boot::Secret& job) { names_.unpublish_all_of(job); });
}

void Services::exchange() {
  far_jobs_.exchange();
  answer_address_requests();
}

void Services::send(const ControlServer::Origin& origin, const std::vector<std::byte>& packet,
                    ControlServer::Then then) {
  if (!origin.is_link())
    relay_->answer(origin, packet, then);
  else if (links_)
    links_->answer(origin, packet);
}

bool Services::is_ours(const Place& place) const {
  return boot::read_part(place.socket).mpiexec == boot::read_part(server_.name()).mpiexec;
}

Links& Services::links() {
  if (!links_)
    links_.emplace(server_, directory_.link_settings(),
                   [this](const std::string& mpiexec, bool linked) {
                     if (relay_) relay_->tell_linked(mpiexec, linked);
                   });
  return *links_;
}

std::uint64_t Services::ask(const Place& place, const boot::PacketWriter& request,
                            OnAnswer on_answer) {
  OnPacket on_packet = reading(std::move(on_answer));
  if (relay_ && is_ours(place))
    return relay_->ask(boot::read_part(place.socket).machine, request, std::move(on_packet));
  const boot::PacketWriter outer = relay_to(place, request.view());
  if (relay_) return relay_->ask_outside(place, outer, std::move(on_packet));
  return links().ask(place, std::string(outer.view()), std::move(on_packet));
}

void Services::call_off(std::uint64_t asked) {
  if ((asked & of_relay) != 0)
    relay_->call_off(asked);
  else if (links_)
    links_->call_off(asked);
}

void Services::list(std::vector<pollfd>& polled) {
  const std::size_t before = polled.size();
  spawner_.list(polled);
  listed_ = polled.size() - before;
  server_.list(polled);
  served_ = polled.size() - before - listed_;
  if (links_) links_->list(polled);
}

void Services::take(const pollfd* first) {
  const bool had_links = links_.has_value(); // when they were listed
  spawner_.take(first);
  server_.take(first + listed_);
  if (had_links) links_->take(first + listed_ + served_);
  far_jobs_.look();
}

std::optional<ControlServer::Clock::time_point> Services::must_look_at() const {
  auto first = server_.must_look_at();
  for (const auto& due :
       {far_jobs_.due(), links_ ? links_->due() : std::optional<Links::Clock::time_point>()})
    if (due && (!first || *due < *first)) first = due;
  return first;
}

void Services::on_confirmed(Id id) {
  if (!relay_ || !relay_->on_confirmed(id)) spawner_.on_confirmed(id);
}

void Services::on_gone(Id id) {
  if (const auto passed = passed_on_.find(id); passed != passed_on_.end()) {
    links_->call_off(passed->second);
    passed_on_.erase(passed);
    return;
  }
  if (relay_ && relay_->on_gone(id)) return;
  const auto is_its = [id](const Waiting& each) { return each.id == id; };
  if (std::erase_if(address_requests_, is_its) + std::erase_if(watches_, is_its) > 0) return;
  if (!spawner_.on_gone(id)) ports_.forget(id);
}

void Services::on_request(Id id, const boot::RequestHead& head, boot::PacketReader rest) {
  const std::optional<ControlServer::Origin> origin = server_.origin(id);
  switch (head.request) {
  case Request::look_up:
    return look_up(id, rest);
  case Request::meet: {
    std::string host = rest.text();
    return meet(id, head.job, {std::move(host), rest.text()});
  }
  case Request::connect:
    return connect(id, head, rest);
  case Request::relay:
    if (origin) return relay(id, rest);
    break;
  case Request::link:
    if (!origin) return add_link(id);
    break;
  default:
    break;
  }
  if (origin) return serve_afar(id, head, rest);
  RunningJob* const job = directory_.find_job(head.job);
  if (job == nullptr || head.rank >= static_cast<std::uint32_t>(job->memory().size()))
    base::fail(MPI_ERR_OTHER, "this mpiexec runs no job of the process that asks it");
  serve(id, head, rest, *job);
}

// Who asks was looked at there. Another mpiexec knows the secret of the job that it asks about.
void Services::serve_afar(Id id, const boot::RequestHead& head, boot::PacketReader& rest) {
  const bool is_other = server_.origin(id)->is_link();
  switch (head.request) {
  case Request::publish:
  case Request::unpublish:
    if (is_other) break;
    return change_name(id, head, rest);
  case Request::start: {
    if (is_other) break;
    const SpawnParent parent = read_parent(rest);
    return spawner_.begin(id, parent, static_cast<int>(relay_->number()),
                          boot::read_programs(rest));
  }
  case Request::describe: {
    server_.answer(id, describe(memory_of(head.job, 0)));
    return;
  }
  case Request::address: {
    const auto generation = rest.value<std::uint32_t>();
    const auto rank = rest.value<std::uint32_t>();
    const boot::JobMemory& memory = memory_of(head.job, generation);
    if (rank >= static_cast<std::uint32_t>(memory.size()))
      base::fail(MPI_ERR_OTHER, "the job has no rank {}", rank);
    address_requests_.push_back({id, head.job, generation, static_cast<int>(rank)});
    return answer_address_requests();
  }
  case Request::watch: {
    const auto generation = rest.value<std::uint32_t>();
    static_cast<void>(memory_of(head.job, generation));
    watches_.push_back({id, head.job, generation, -1});
    return;
  }
  default:
    break;
  }
  base::fail(MPI_ERR_OTHER, "mpiexec does not know request {} of another machine",
             static_cast<std::uint32_t>(head.request));
}

// A job that runs, and is in this generation; 0: in any.
const boot::JobMemory& Services::memory_of(const boot::Secret& secret, std::uint32_t generation) {
  const RunningJob* const job = directory_.find_job(secret);
  if (job == nullptr) base::fail(MPI_ERR_OTHER, "the job has ended");
  if (generation != 0 && generation_of(job->memory()) != generation)
    base::fail(MPI_ERR_OTHER, "the job has left MPI, and has begun it again since");
  return job->memory();
}

// Those of ranks that have opened a network by now, or never will.
void Services::answer_address_requests() {
  std::erase_if(address_requests_, [&](const Waiting& each) {
    const RunningJob* const job = directory_.find_job(each.job);
    const boot::RankRow* const row = job != nullptr ? &job->memory().row(each.rank) : nullptr;
    const std::uint32_t used = row != nullptr ? row->endpoint_used.load() : 0;
    if (row != nullptr && row->refuses_strangers.load() == each.generation) {
      server_.refuse(each.id, base::Error(MPI_ERR_OTHER, "no network reaches the process"));
      return true;
    }
    if (used != 0 && row->published.load(std::memory_order_acquire) == each.generation) {
      boot::PacketWriter answer;
      answer.value(used);
      answer.value(row->address);
      server_.answer(each.id, answer);
      return true;
    }
    const bool there = row != nullptr && generation_of(job->memory()) == each.generation;
    if (there && job->memory().life(each.rank, each.generation) == boot::Life::running) {
      if (!job->memory().is_local(each.rank)) job->memory().want(each.rank);
      return false;
    }
    server_.refuse(each.id, base::Error(MPI_ERR_PROC_ABORTED, "the process has ended"));
    return true;
  });
}

// A job that has left MPI and begun it again is another one to those that knew it.
void Services::answer_watches() {
  boot::PacketWriter answer;
  answer.value(false);
  std::erase_if(watches_, [&](const Waiting& each) {
    const RunningJob* const job = directory_.find_job(each.job);
    if (job == nullptr || generation_of(job->memory()) == each.generation) return false;
    server_.answer(each.id, answer);
    return true;
  });
}

void Services::look_up(Id id, boot::PacketReader& rest) {
  boot::PacketWriter port;
  port.text(names_.look_up(rest.text()));
  server_.answer(id, port);
}

void Services::meet(Id id, const boot::Secret& secret, const Place& place) {
  if (const RunningJob* const job = directory_.find_job(secret)) {
    server_.answer(id, {}, job->memory().fd());
    return;
  }
  if (place.socket.empty() || place.host == directory_.link_settings().host || server_.origin(id))
    base::fail(MPI_ERR_OTHER, "the job has ended");
  far_jobs_.meet(id, secret, place);
}

void Services::add_link(Id id) {
  const int stream = server_.take_descriptor(id);
  if (stream < 0) base::fail(MPI_ERR_OTHER, "a link needs a stream");
  links().add(stream);
  server_.answer(id, {});
}

void Services::connect(Id id, const boot::RequestHead& head, boot::PacketReader& rest) {
  const auto key = rest.value<boot::PortKey>();
  const auto ticket = rest.value<boot::JobTicket>();
  const auto meeting = rest.value<std::uint32_t>();
  answer_watches();
  ports_.connect(id, key, {ticket, head.rank, meeting}, head.job);
}

void Services::serve(Id id, const boot::RequestHead& head, boot::PacketReader& rest,
                     RunningJob& job) {
  boot::PacketWriter answer;
  auto then = ControlServer::Then::close;
  const std::string_view own = job.memory().own_node().host.data();
  const auto who = [&] { // asks
    return boot::Met{boot::make_ticket(head.job, socket_name(), own), head.rank};
  };
  switch (head.request) {
  case Request::spawn:
    return spawn(id, head, rest, job);
  case Request::relay:
    return relay(id, rest);
  case Request::open_port:
    answer.text(ports_.open(id, who(), head.job, own));
    then = ControlServer::Then::stay;
    break;
  case Request::close_port:
    ports_.close(rest.text(), head.job, head.rank);
    break;
  case Request::accept:
    answer_watches();
    return ports_.accept(id, rest.text(), who(), head.job);
  case Request::publish:
  case Request::unpublish:
    return change_name(id, head, rest);
  default:
    base::fail(MPI_ERR_OTHER, "mpiexec does not know request {}",
               static_cast<std::uint32_t>(head.request));
  }
  server_.answer(id, answer, -1, then);
}

void Services::change_name(Id id, const boot::RequestHead& head, boot::PacketReader& rest) {
  const std::string service = rest.text();
  const std::string port = rest.text();
  if (head.request == Request::publish)
    names_.publish(service, port, head.job);
  else
    names_.unpublish(service, port, head.job);
  server_.answer(id, {});
}

// All of a job's processes are started on one machine: any, if no host is named.
void Services::spawn(Id id, const boot::RequestHead& head, boot::PacketReader& rest,
                     RunningJob& job) {
  const std::string own = job.memory().own_node().host.data();
  const auto rank = static_cast<std::int32_t>(head.rank);
  const SpawnParent parent{boot::make_ticket(head.job, socket_name(), own), job.number(), rank,
                           job.program_of(rank).environment};
  const std::vector<boot::SpawnProgram> programs = boot::read_programs(rest);
  const std::string host = boot::choose_host(programs, relay_ ? relay_->hosts() : std::vector{own});
  if (!relay_) return spawner_.begin(id, parent, 0, programs);
  boot::PacketWriter request;
  request.value(boot::RequestHead{.request = Request::start, .job = head.job, .rank = head.rank});
  write(request, parent);
  boot::write_commands(request, programs);
  relay_->pass_on(id, host.empty() ? any_machine : relay_->find(host, MPI_ERR_SPAWN), request,
                  wanted_number);
}

// To the part of this mpiexec or of another one that it is for; here, if that is this one.
void Services::relay(Id id, boot::PacketReader& rest) {
  const auto where = rest.value<boot::Where>();
  std::string host = rest.text();
  const Place place{std::move(host), rest.text()};
  const std::string request = rest.text();
  if (where == boot::Where::first) {
    if (!relay_) base::fail(MPI_ERR_OTHER, "this mpiexec has no other machines");
    return relay_->pass_on(id, 0, as_packet(request));
  }
  if (place.socket == server_.name()) {
    boot::PacketReader inner(as_packet(request).bytes());
    const auto its = inner.value<boot::RequestHead>();
    if (its.request == Request::relay) base::fail(MPI_ERR_OTHER, "a request goes round");
    return on_request(id, its, std::move(inner));
  }
  if (is_ours(place)) {
    if (!relay_) base::fail(MPI_ERR_PORT, "the job that opened this port has ended");
    return relay_->pass_on(id, boot::read_part(place.socket).machine, as_packet(request));
  }
  const std::optional<ControlServer::Origin> origin = server_.origin(id);
  if (origin && origin->is_link())
    base::fail(MPI_ERR_OTHER, "this mpiexec is not the one on host {} that was meant", place.host);
  const boot::PacketWriter outer = relay_to(place, request);
  if (relay_ && !origin) return relay_->pass_outside(id, place, outer);
  passed_on_[id] =
      links().ask(place, std::string(outer.view()), [this, id](std::vector<std::byte> answer) {
        passed_on_.erase(id);
        server_.pass_on(id, answer, ControlServer::Then::close);
      });
}

} // namespace macadam::tools
