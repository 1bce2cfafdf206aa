// SPDX-License-Identifier: BSD-3-Clause
#include "boot/local_universe.h"

#include "base/error.h"
#include "boot/joined_socket.h"
#include "boot/lone_server.h"
#include "boot/spawn_request.h"

namespace macadam::boot {
namespace {

// A port for which this process is introduced takes a descriptor.
constexpr std::size_t most_kept_calls = 64;

// Makes a request, which may throw, into something pending in either case.
template <class Result, class Make>
PendingResult<Result> attempt(Make make) {
  try {
    return make();
  } catch (base::Error& error) {
    return std::make_unique<Refused<Result>>(std::move(error));
  }
}

// A name that is known here or elsewhere; here goes before.
class EitherName final : public Pending<std::string> {
 public:
  EitherName(PendingResult<std::string> here, PendingResult<std::string> elsewhere)
      : here_(std::move(here)), elsewhere_(std::move(elsewhere)) {}
  [[nodiscard]] bool done() noexcept override {
    const bool here = here_->done();
    return elsewhere_->done() && here;
  }
  std::string take() override {
    try {
      return here_->take();
    } catch (const base::Error& error) {
      if (error.error_class != MPI_ERR_NAME) throw;
    }
    return elsewhere_->take();
  }

 private:
  PendingResult<std::string> here_, elsewhere_;
};

Met read_met(PacketReader& packet) {
  Met met;
  met.job = packet.value<JobTicket>();
  met.rank = packet.value<std::uint32_t>();
  met.meeting = packet.value<std::uint32_t>();
  return met;
}

} // namespace

std::optional<int> LocalUniverse::size() const {
  const int size = memory_.header().universe;
  return size > 0 ? std::optional(size) : std::nullopt;
}

std::optional<Met> LocalUniverse::parent() const {
  const JobHeader& header = memory_.header();
  if (header.has_parent == 0) return std::nullopt;
  return Met{header.parent, header.parent_rank};
}

Call::Whom LocalUniverse::launcher(int gone) {
  if (job_.alone() && memory_.header().launcher == 0) start_lone_server(memory_);
  const char* const socket = memory_.header().socket.data();
  if (*socket == 0)
    base::fail(MPI_ERR_OTHER,
               "mpiexec has no socket, since the system refused it one when it started; processes "
               "cannot be spawned or connected");
  return {socket, gone,
          "mpiexec cannot be reached: it has ended, or is in another network namespace"};
}

PacketWriter LocalUniverse::begin(Request request) const {
  PacketWriter packet;
  packet.value(RequestHead{.request = request,
                           .job = memory_.header().secret,
                           .rank = static_cast<std::uint32_t>(job_.rank())});
  return packet;
}

LocalUniverse::Letter LocalUniverse::relayed(Where where, std::string_view host,
                                             std::string_view socket, const PacketWriter& request,
                                             int gone) {
  PacketWriter outer = begin(Request::relay);
  outer.value(where);
  outer.text(host);
  outer.text(socket);
  outer.text(request.view());
  return {launcher(gone), std::move(outer)};
}

PendingResult<Spawned> LocalUniverse::spawn(std::vector<SpawnCommand> commands) {
  return attempt<Spawned>([&] {
    PacketWriter request = begin(Request::spawn);
    write_commands(request, read_commands(std::move(commands), job_.host()));
    return std::make_unique<Called<Spawned>>(launcher(MPI_ERR_SPAWN), std::move(request),
                                             std::nullopt, [this](Call& call, PacketReader answer) {
                                               Spawned spawned = read_spawned(answer);
                                               know_early(spawned.job, call);
                                               return spawned;
                                             });
  });
}

std::string LocalUniverse::open_port() {
  auto call = std::make_unique<Call>(launcher(), begin(Request::open_port));
  std::string name = call->wait().text();
  if (own_ports_.size() >= most_kept_calls) call.reset();
  own_ports_[read_port(name).key] = std::move(call);
  return name;
}

void LocalUniverse::close_port(std::string_view port) {
  own_ports_.erase(read_port(port).key);
  PacketWriter request = begin(Request::close_port);
  request.text(port);
  Call(launcher(), std::move(request)).wait();
}

PendingResult<Met> LocalUniverse::accept(std::string_view port, std::optional<double> longest) {
  return attempt<Met>([&]() -> PendingResult<Met> {
    const PortKey key = read_port(port).key;
    if (const auto met = accept_introduced(key)) return std::make_unique<Known<Met>>(*met);
    if (known_.empty() || door_use_.accepts || !own_ports_.contains(key))
      return ask_to_accept(port, longest);
    return std::make_unique<AtPort<AcceptingSide>>(
        [this, port = std::string(port), longest] { return ask_to_accept(port, longest); },
        memory_.door(job_.rank()), PortMark::of(key), known_, door_use_);
  });
}

PendingResult<Met> LocalUniverse::ask_to_accept(std::string_view port,
                                                std::optional<double> longest) {
  return attempt<Met>([&] {
    PacketWriter request = begin(Request::accept);
    request.text(port);
    return std::make_unique<Called<Met>>(
        launcher(), std::move(request), longest,
        [this](Call& call, PacketReader answer) { return take_met(call, answer); });
  });
}

// One that waits at the port with mpiexec, and still does. Those that do not any more are
// forgotten.
std::optional<Met> LocalUniverse::accept_introduced(const PortKey& port) {
  const auto own = own_ports_.find(port);
  if (own == own_ports_.end() || own->second == nullptr) return {};
  Call& call = *own->second;
  while (auto packet = call.take_introduction()) {
    const Met met = take_introduced(call, *packet);
    const auto job = known_.look(read_ticket(met.job).job);
    Door* const door = job != nullptr ? job->door(met.rank) : nullptr;
    if (door != nullptr &&
        door::answer(*door, PortMark::of(port), met.meeting, door::Question::accepted))
      return met;
  }
  return {};
}

PendingResult<Met> LocalUniverse::connect(std::string_view name, std::optional<double> longest) {
  return attempt<Met>([&]() -> PendingResult<Met> {
    const Port port = read_port(name);
    const auto owner = known_.owner_of(port.key);
    Door* const door = owner && !door_use_.knocks ? owner->job->job->door(owner->rank) : nullptr;
    if (door == nullptr) return ask_to_connect(port, longest);
    return std::make_unique<AtPort<KnockingSide>>(
        [this, port, longest] { return ask_to_connect(port, longest); }, memory_.door(job_.rank()),
        *door, port.key, ProcessName{job_.number(), static_cast<std::uint32_t>(job_.rank())},
        *owner->job, owner->rank, door_use_);
  });
}

PendingResult<Met> LocalUniverse::ask_to_connect(const Port& port, std::optional<double> longest) {
  return attempt<Met>([&]() -> PendingResult<Met> {
    const JobTicket own = own_ticket();
    const std::uint32_t meeting = door_use_.knocks ? 0 : random_meeting();
    PacketWriter request = begin(Request::connect);
    request.value(port.key);
    request.value(own);
    request.value(meeting);
    Letter letter =
        port.host == job_.host()
            ? Letter{{port.socket, MPI_ERR_PORT, "the job that opened this port has ended"},
                     std::move(request)}
            : relayed(Where::named, port.host, port.socket, request, MPI_ERR_PORT);
    const auto read = [this, key = port.key](Call& call, PacketReader answer) {
      return remember(key, take_met(call, answer));
    };
    if (meeting == 0)
      return std::make_unique<Called<Met>>(std::move(letter.whom), std::move(letter.request),
                                           longest, read);
    const auto read_introduction = [this, key = port.key](Call& call, PacketReader packet) {
      return remember(key, take_introduced(call, packet));
    };
    return std::make_unique<AwaitingOwner>(std::move(letter.whom), std::move(letter.request),
                                           longest, memory_.door(job_.rank()), port.key, meeting,
                                           door_use_, read_introduction, read);
  });
}

PendingResult<Met> LocalUniverse::join(int socket) {
  return attempt<Met>([&] {
    return std::make_unique<JoinedSocket>(
        socket, Met{own_ticket(), static_cast<std::uint32_t>(job_.rank()), random_meeting()});
  });
}

PendingResult<bool> LocalUniverse::publish(std::string_view service, std::string_view port) {
  return change_name(Request::publish, service, port);
}

PendingResult<bool> LocalUniverse::unpublish(std::string_view service, std::string_view port) {
  return change_name(Request::unpublish, service, port);
}

PendingResult<bool> LocalUniverse::change_name(Request change, std::string_view service,
                                               std::string_view port) {
  return attempt<bool>([&] {
    PacketWriter request = begin(change);
    request.text(service);
    request.text(port);
    Letter letter = job_.other_host().empty()
                        ? Letter{launcher(), std::move(request)}
                        : relayed(Where::first, {}, {}, request, MPI_ERR_SERVICE);
    return std::make_unique<Called<bool>>(std::move(letter.whom), std::move(letter.request),
                                          std::nullopt, [](Call&, PacketReader) { return true; });
  });
}

// A name is a socket of its own, so nobody else has to be asked; unless it may have been published
// on the first machine of mpiexec.
PendingResult<std::string> LocalUniverse::look_up(std::string_view service) {
  return attempt<std::string>([&]() -> PendingResult<std::string> {
    PacketWriter request = begin(Request::look_up);
    request.text(service);
    const auto read = [](Call&, PacketReader answer) { return answer.text(); };
    PendingResult<std::string> elsewhere;
    if (!job_.other_host().empty()) {
      Letter letter = relayed(Where::first, {}, {}, request, MPI_ERR_NAME);
      elsewhere = std::make_unique<Called<std::string>>(
          std::move(letter.whom), std::move(letter.request), std::nullopt, read);
    }
    auto here = std::make_unique<Called<std::string>>(
        Call::Whom{
            socket_name_of(service), MPI_ERR_NAME,
            fmt::format("no job of this user on this machine has published \"{}\"", service)},
        std::move(request), std::nullopt, read);
    if (!elsewhere) return here;
    return std::make_unique<EitherName>(std::move(here), std::move(elsewhere));
  });
}

Call::Whom LocalUniverse::here(std::string socket) const {
  return {std::move(socket), MPI_ERR_OTHER, fmt::format("a job on host {} has ended", job_.host())};
}

JobTicket LocalUniverse::own_ticket() {
  return make_ticket(memory_.header().secret, launcher().socket, job_.host());
}

PendingResult<const Job*> LocalUniverse::meet(const JobTicket& ticket) {
  return attempt<const Job*>([&]() -> PendingResult<const Job*> {
    const Ticket content = read_ticket(ticket);
    if (content.job == job_.secret()) return std::make_unique<Known<const Job*>>(&job_);
    if (const auto* const known = known_.find(content.job))
      return std::make_unique<Known<const Job*>>(known->job.get());
    PacketWriter request;
    request.value(RequestHead{.request = Request::meet, .job = content.job});
    request.text(content.host.data());
    request.text(content.socket.data());
    // Of jobs on other machines this job's mpiexec has a memory.
    return std::make_unique<Called<const Job*>>(
        content.host.data() == job_.host() ? here(content.socket.data()) : launcher(),
        std::move(request), std::nullopt, [this, content](Call& call, PacketReader answer) {
          return call.has_descriptor() ? know(content, call) : find_here(content, answer.text());
        });
  });
}

// The job has ranks on this machine, too, whose mpiexec listens at `socket`.
const Job* LocalUniverse::find_here(const Ticket& ticket, const std::string& socket) {
  PacketWriter request;
  request.value(RequestHead{.request = Request::meet, .job = ticket.job});
  request.text(job_.host());
  request.text(socket);
  Call call(here(socket), std::move(request));
  call.wait();
  return know(ticket, call);
}

// The job whose memory has come with a packet.
const Job* LocalUniverse::know(const Ticket& ticket, Call& call) {
  if (const auto* const known = known_.find(ticket.job)) return known->job.get();
  auto job = std::make_shared<MetJob>(receive_memory(call.take_descriptor()));
  return known_.add(ticket, std::move(job)).job.get();
}

Met LocalUniverse::take_met(Call& call, PacketReader& packet) {
  const Met met = read_met(packet);
  know_early(met.job, call);
  return met;
}

Met LocalUniverse::take_introduced(Call& call, PacketReader& packet) {
  const Met met = read_met(packet);
  const Secret job = read_ticket(met.job).job;
  if (known_.look(job) != nullptr) return met;
  know_early(met.job, call);
  known_.mark_introduced(job);
  return met;
}

Met LocalUniverse::remember(const PortKey& port, const Met& owner) {
  known_.remember(read_ticket(owner.job).job, port, owner.rank);
  return owner;
}

// If the memory has come along; or else meet() asks for it, and says what is wrong.
void LocalUniverse::know_early(const JobTicket& ticket, Call& call) {
  const Ticket content = read_ticket(ticket);
  if (!call.has_descriptor() || content.job == job_.secret()) return;
  try {
    know(content, call);
  } catch (const base::Error&) { // no descriptor or memory for it
  }
}

void LocalUniverse::forget(const Job& job) {
  known_.part(job);
}

} // namespace macadam::boot
