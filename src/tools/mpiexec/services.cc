// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/services.h"

#include "base/error.h"

namespace macadam::tools {

using boot::Request;

void Services::join(Head& head, const boot::JobMemory& first) {
  relay_.emplace(server_, head, first);
  far_jobs_.emplace(server_, *relay_);
}

void Services::on_end(const boot::Secret& job) {
  ports_.close_all_of(job);
  names_.unpublish_all_of(job);
  answer_address_requests();
}

void Services::tell_ended(const boot::Secret& job) {
  if (relay_) relay_->tell_ended(job);
}

void Services::take(Frame frame) {
  relay_->take(std::move(frame), [this](const boot::Secret& job) {
    names_.unpublish_all_of(job);
    far_jobs_->on_ended(job);
  });
}

void Services::exchange() {
  if (!relay_) return;
  far_jobs_->exchange();
  answer_address_requests();
}

void Services::send(const ControlServer::Origin& origin, const boot::PacketWriter& packet,
                    ControlServer::Then then) {
  relay_->answer(origin, packet, then);
}

void Services::list(std::vector<pollfd>& polled) {
  const std::size_t before = polled.size();
  spawner_.list(polled);
  listed_ = polled.size() - before;
  server_.list(polled);
}

void Services::take(const pollfd* first) {
  spawner_.take(first);
  server_.take(first + listed_);
}

void Services::on_confirmed(Id id) {
  if (!relay_ || !relay_->on_confirmed(id)) spawner_.on_confirmed(id);
}

void Services::on_gone(Id id) {
  if (relay_ && relay_->on_gone(id)) return;
  std::erase_if(address_requests_, [id](const AddressRequest& each) { return each.id == id; });
  if (!spawner_.on_gone(id)) ports_.forget(id);
}

void Services::on_request(Id id, const boot::RequestHead& head, boot::PacketReader rest) {
  switch (head.request) {
  case Request::look_up:
    return look_up(id, rest);
  case Request::meet:
    return meet(id, head.job, rest.text());
  case Request::connect:
    return connect(id, head, rest);
  default:
    break;
  }
  if (server_.is_far(id)) return serve_afar(id, head, rest);
  RunningJob* const job = directory_.find_job(head.job);
  if (job == nullptr || head.rank >= static_cast<std::uint32_t>(job->memory().size()))
    base::fail(MPI_ERR_OTHER, "this mpiexec runs no job of the process that asks it");
  serve(id, head, rest, *job);
}

// Who asks was looked at there.
void Services::serve_afar(Id id, const boot::RequestHead& head, boot::PacketReader& rest) {
  switch (head.request) {
  case Request::publish:
  case Request::unpublish:
    return change_name(id, head, rest);
  case Request::start: {
    const SpawnParent parent = read_parent(rest);
    return spawner_.begin(id, parent, static_cast<int>(relay_->number()),
                          boot::read_programs(rest));
  }
  case Request::describe: {
    const RunningJob* const job = directory_.find_job(head.job);
    if (job == nullptr) base::fail(MPI_ERR_OTHER, "the job has ended");
    boot::PacketWriter answer;
    answer.value(static_cast<std::uint32_t>(job->memory().size()));
    server_.answer(id, answer);
    return;
  }
  case Request::address: {
    const RunningJob* const job = directory_.find_job(head.job);
    const auto rank = rest.value<std::uint32_t>();
    if (job == nullptr || rank >= static_cast<std::uint32_t>(job->memory().size()))
      base::fail(MPI_ERR_OTHER, "the job has ended");
    address_requests_.push_back({id, head.job, static_cast<int>(rank)});
    return answer_address_requests();
  }
  default:
    base::fail(MPI_ERR_OTHER, "mpiexec does not know request {} of another machine",
               static_cast<std::uint32_t>(head.request));
  }
}

// Those of ranks that have published by now, or never will.
void Services::answer_address_requests() {
  std::erase_if(address_requests_, [&](const AddressRequest& each) {
    const RunningJob* const job = directory_.find_job(each.job);
    const boot::RankRow* const row = job != nullptr ? &job->memory().row(each.rank) : nullptr;
    if (row != nullptr && row->published.load(std::memory_order_acquire) != 0) {
      boot::PacketWriter answer;
      answer.value(row->endpoint_address_used);
      answer.value(row->endpoint_address);
      server_.answer(each.id, answer);
      return true;
    }
    const boot::Life life = row != nullptr ? job->memory().life(each.rank, 1) : boot::Life::over;
    if (life == boot::Life::running) return false;
    server_.refuse(each.id, base::Error(MPI_ERR_PROC_ABORTED, "the process has ended"));
    return true;
  });
}

void Services::look_up(Id id, boot::PacketReader& rest) {
  boot::PacketWriter port;
  port.text(names_.look_up(rest.text()));
  server_.answer(id, port);
}

void Services::meet(Id id, const boot::Secret& secret, const std::string& host) {
  if (const RunningJob* const job = directory_.find_job(secret)) {
    server_.answer(id, {}, job->memory().fd());
    return;
  }
  if (!relay_ || host == relay_->hosts()[relay_->own()])
    base::fail(MPI_ERR_OTHER, "the job has ended");
  far_jobs_->meet(id, secret, relay_->find(host, MPI_ERR_OTHER));
}

void Services::connect(Id id, const boot::RequestHead& head, boot::PacketReader& rest) {
  const auto key = rest.value<boot::PortKey>();
  const auto ticket = rest.value<boot::JobTicket>();
  if (server_.is_far(id) && !ports_.has(key))
    base::fail(MPI_ERR_PORT,
               "the port was closed, the job that opened it has ended, or another "
               "mpiexec has started that job: then only processes of host {} can "
               "connect to it; start both jobs with one mpiexec",
               relay_->hosts()[relay_->own()]);
  ports_.connect(id, key, {ticket, head.rank}, head.job);
}

void Services::serve(Id id, const boot::RequestHead& head, boot::PacketReader& rest,
                     RunningJob& job) {
  boot::PacketWriter answer;
  switch (head.request) {
  case Request::spawn:
    return spawn(id, head, rest, job);
  case Request::relay:
    return relay(id, rest);
  case Request::open_port:
    answer.text(ports_.open(head.job, head.rank, job.memory().own_node().host.data()));
    break;
  case Request::close_port:
    ports_.close(rest.text(), head.job, head.rank);
    break;
  case Request::accept: {
    const boot::JobTicket ticket =
        boot::make_ticket(head.job, socket_name(), job.memory().own_node().host.data());
    return ports_.accept(id, rest.text(), {ticket, head.rank}, head.job);
  }
  case Request::publish:
  case Request::unpublish:
    return change_name(id, head, rest);
  default:
    base::fail(MPI_ERR_OTHER, "mpiexec does not know request {}",
               static_cast<std::uint32_t>(head.request));
  }
  server_.answer(id, answer);
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

void Services::relay(Id id, boot::PacketReader& rest) {
  if (!relay_) base::fail(MPI_ERR_OTHER, "this mpiexec has no other machines");
  const auto where = rest.value<boot::Where>();
  const std::string host = rest.text();
  boot::PacketWriter request;
  request.raw(rest.text());
  relay_->pass_on(id, where == boot::Where::first ? 0 : relay_->find(host, MPI_ERR_PORT), request);
}

} // namespace macadam::tools
