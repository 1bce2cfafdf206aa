// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/services.h"

#include "base/error.h"

namespace macadam::tools {

using boot::Request;

void Services::on_end(const boot::Secret& job) {
  ports_.close_all_of(job);
  names_.unpublish_all_of(job);
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

void Services::on_gone(Id id) {
  if (!spawner_.on_gone(id)) ports_.forget(id);
}

void Services::on_request(Id id, const boot::RequestHead& head, boot::PacketReader rest) {
  switch (head.request) {
  case Request::look_up:
    return look_up(id, rest);
  case Request::meet:
    return meet(id, head.job);
  case Request::connect:
    return connect(id, head, rest);
  default:
    break;
  }
  RunningJob* const job = directory_.find_job(head.job);
  if (job == nullptr || head.rank >= static_cast<std::uint32_t>(job->memory().size()))
    base::fail(MPI_ERR_OTHER, "this mpiexec runs no job of the process that asks it");
  serve(id, head, rest, *job);
}

void Services::look_up(Id id, boot::PacketReader& rest) {
  boot::PacketWriter port;
  port.text(names_.look_up(rest.text()));
  server_.answer(id, port);
}

void Services::meet(Id id, const boot::Secret& secret) {
  const RunningJob* const job = directory_.find_job(secret);
  if (job == nullptr) base::fail(MPI_ERR_OTHER, "the job has ended");
  server_.answer(id, {}, job->memory().fd());
}

void Services::connect(Id id, const boot::RequestHead& head, boot::PacketReader& rest) {
  const auto key = rest.value<boot::PortKey>();
  const auto ticket = rest.value<boot::JobTicket>();
  ports_.connect(id, key, {ticket, head.rank}, head.job);
}

void Services::serve(Id id, const boot::RequestHead& head, boot::PacketReader& rest,
                     RunningJob& job) {
  boot::PacketWriter answer;
  switch (head.request) {
  case Request::spawn:
    return spawner_.begin(id, job, static_cast<int>(head.rank), boot::read_programs(rest));
  case Request::open_port:
    answer.text(ports_.open(head.job, head.rank));
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
  case Request::unpublish: {
    const std::string service = rest.text();
    const std::string port = rest.text();
    if (head.request == Request::publish)
      names_.publish(service, port, head.job);
    else
      names_.unpublish(service, port, head.job);
    break;
  }
  default:
    base::fail(MPI_ERR_OTHER, "mpiexec does not know request {}",
               static_cast<std::uint32_t>(head.request));
  }
  server_.answer(id, answer);
}

} // namespace macadam::tools
