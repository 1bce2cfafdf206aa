// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/joint.h"

#include "base/copy.h"
#include "mpi/collectives.h"
#include "mpi/comm_create.h"
#include "mpi/context.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace macadam::mpi {
namespace {

using boot::ProcessName;
using engine::Envelope;
using engine::Rank;
using engine::RankMap;

constexpr int part_tag = create_tag - 1;

// --- What leaders tell each other ----------------------------------------------------------------

struct Side {
  ProcessName leader;
  std::int32_t size = 0;  // of the group
  std::uint32_t jobs = 0; // that it has processes of
};

// A job, for processes that may not know it.
struct Introduction {
  std::uint32_t number = 0;
  boot::JobTicket ticket = {};
};

// Then this, for all of the other group: a context, names and introductions one after the other.
struct Roster {
  std::uint64_t context = 0;
  std::vector<ProcessName> names;
  std::vector<Introduction> jobs;

  Roster() = default;
  Roster(const Side& side, bool joint)
      : names(static_cast<std::size_t>(side.size)), jobs(joint ? side.jobs : 0) {}

  [[nodiscard]] std::vector<std::byte> packed() const {
    std::vector<std::byte> bytes(size());
    visit(*this, [at = bytes.data()](const void* part, std::size_t size) mutable {
      if (size > 0) base::copy(at, part, size);
      at += size;
    });
    return bytes;
  }
  void unpack(const std::vector<std::byte>& bytes) {
    visit(*this, [at = bytes.data()](void* part, std::size_t size) mutable {
      if (size > 0) base::copy(part, at, size);
      at += size;
    });
  }
  [[nodiscard]] std::size_t size() const {
    return sizeof context + names.size() * sizeof(ProcessName) + jobs.size() * sizeof(Introduction);
  }

 private:
  template <class Self, class Visit>
  static void visit(Self& self, Visit&& visit) {
    visit(&self.context, sizeof self.context);
    visit(self.names.data(), self.names.size() * sizeof(ProcessName));
    visit(self.jobs.data(), self.jobs.size() * sizeof(Introduction));
  }
};

// The jobs of a group, each once.
std::vector<std::uint32_t> jobs_of(const std::vector<ProcessName>& names) {
  std::vector<std::uint32_t> jobs;
  for (const ProcessName& name : names)
    if (std::ranges::find(jobs, name.job) == jobs.end()) jobs.push_back(name.job);
  return jobs;
}

std::vector<Introduction> introductions_to(Process& self, const std::vector<std::uint32_t>& jobs) {
  std::vector<Introduction> made;
  for (const std::uint32_t number : jobs) {
    const KnownJob* const other = self.jobs.find(number);
    made.push_back(
        {number, other != nullptr ? other->ticket : universe_of(self, MPI_ERR_OTHER).own_ticket()});
  }
  return made;
}

// --- Messages that end, come what may ------------------------------------------------------------

struct Heard {
  int error = MPI_SUCCESS; // the class of what has happened instead
  bool late = false;
  bool empty = false; // a message without content, where one was expected
};

Heard hear(Process& self, Rank from, const Envelope& envelope, void* data, std::size_t bytes,
           std::optional<double> until = {}) {
  engine::Engine& engine = *self.instance->engine;
  const engine::Data what{data, static_cast<MPI_Count>(bytes), &self.types[MPI_BYTE]};
  engine::ReceiveRequest* const received = engine.receive(&engine.peer(from), envelope, what);
  const auto late = [&] { return until && self.instance->nearest().now() > *until; };
  constexpr unsigned look_us = 10'000;
  self.instance->wait_until([&] { return received->complete || late(); },
                            until ? look_us : Instance::longest_sleep_us);
  const bool is_late = !received->complete;
  if (is_late) {
    engine.cancel(*received);
    self.instance->wait_until([&] { return received->complete; });
  }
  const engine::Status status = received->status;
  engine.release(received);
  if (is_late && status.cancelled) return {MPI_ERR_PENDING, true};
  if (status.error != MPI_SUCCESS) return {status.error};
  if (status.bytes == bytes) return {};
  return {MPI_ERR_INTERN, false, status.bytes == 0};
}

// In place of what the other leader expects next, wherever it is: this one has given up, and it
// need not wait.
void say_no_more(Process& self, const Route& route) {
  if (route.owned) return;
  engine::Engine& engine = *self.instance->engine;
  const engine::Data nothing{nullptr, 0, &self.types[MPI_BYTE]};
  try {
    auto* const sent =
        engine.send(engine.peer(route.other), route.out, nothing, engine::SendMode::standard);
    if (sent != nullptr) engine.release(sent);
  } catch (const std::exception&) { // it has ended
  }
}

// The two leaders swap data. Throws if the other one has ended or given up, or is late. One of them
// answers: libfabric's TCP may lose a connection that both make at once (docs/ofi.md).
void swap(Process& self, const Route& route, const void* mine, std::size_t my_bytes, void* theirs,
          std::size_t their_bytes, std::optional<double> until = {}) {
  const boot::Processes& processes = self.runtime->processes();
  const ProcessName name = processes.name(route.other);
  const bool answers = name < processes.own_name();
  Heard heard;
  if (answers) heard = hear(self, route.other, route.in, theirs, their_bytes, until);
  if (heard.error == MPI_SUCCESS) {
    // Kept, should this one give up before it is read.
    auto kept = std::make_unique<std::byte[]>(my_bytes);
    base::copy(kept.get(), mine, my_bytes);
    const engine::Data out{kept.get(), static_cast<MPI_Count>(my_bytes), &self.types[MPI_BYTE]};
    engine::Engine& engine = *self.instance->engine;
    auto* const sent =
        engine.send(engine.peer(route.other), route.out, out, engine::SendMode::standard);
    if (!answers) heard = hear(self, route.other, route.in, theirs, their_bytes, until);
    if (sent != nullptr) {
      if (heard.error == MPI_SUCCESS) self.instance->wait_until([&] { return sent->complete; });
      if (sent->complete)
        engine.release(sent);
      else
        self.jobs.unfinished.push_back({sent, std::move(kept)});
    }
  }
  const int error = heard.error;
  if (error == MPI_SUCCESS) return;
  if (heard.empty)
    base::fail(MPI_ERR_OTHER,
               "rank {} of job {:#x}, which leads the other group, has given up: it had waited for "
               "as long as its info key timeout says, or could not go on",
               name.rank, name.job);
  if (heard.late)
    base::fail(route.owned ? route.gone : MPI_ERR_OTHER,
               "rank {} of job {:#x}, which leads the other group, has not answered in time (info "
               "key timeout)",
               name.rank, name.job);
  base::fail(error == MPI_ERR_PROC_ABORTED ? route.gone : error,
             "rank {} of job {:#x}, which leads the other group, {}", name.rank, name.job,
             has_ended(processes.life(route.other))
                 ? "has ended"
                 : "is not reached any more: its connection was lost");
}

// --- The parts of join_groups() ------------------------------------------------------------------

// What a leader knows of the other group once the two have talked.
struct Meeting {
  Side theirs;
  std::uint32_t joint = 0; // there are several jobs
  std::uint32_t jobs = 0;  // that are introduced
  std::uint64_t context = 0;
};

Meeting talk(Process& self, const Communicator& local, const Route& route, Roster& theirs) {
  Roster mine;
  mine.names = names_of(self, local.local->ranks);
  const std::vector<std::uint32_t> jobs = jobs_of(mine.names);
  const Side side{self.runtime->processes().own_name(), local.size(),
                  static_cast<std::uint32_t>(jobs.size())};
  Meeting meeting;
  // Once it has answered it is no longer late: it goes on by itself. What is given up later than
  // this might have been heard and agreed to by the other side.
  swap(self, route, &side, sizeof side, &meeting.theirs, sizeof meeting.theirs, route.until);
  const bool joint =
      jobs.size() > 1 || meeting.theirs.jobs > 1 || meeting.theirs.leader.job != side.leader.job;
  mine.context = self.instance->new_context(joint);
  if (joint) mine.jobs = introductions_to(self, jobs);
  theirs = Roster(meeting.theirs, joint);
  std::vector<std::byte> in(theirs.size());
  const std::vector<std::byte> out = mine.packed();
  swap(self, route, out.data(), out.size(), in.data(), in.size());
  theirs.unpack(in);
  meeting.context = theirs.context = std::min(mine.context, theirs.context);
  meeting.joint = joint ? 1 : 0;
  meeting.jobs = static_cast<std::uint32_t>(theirs.jobs.size());
  return meeting;
}

// The processes as this one knows them, after it has met their jobs.
std::vector<Rank> known(Process& self, const Roster& roster) {
  for (const Introduction& job : roster.jobs)
    if (job.number != self.job->number() && self.jobs.find(job.number) == nullptr)
      meet(self, job.ticket);
  std::vector<Rank> list;
  for (const ProcessName& name : roster.names) {
    const auto found = self.runtime->processes().find(name);
    if (!found)
      base::fail(MPI_ERR_PROC_ABORTED, "rank {} of job {:#x} has ended", name.rank, name.job);
    list.push_back(*found);
  }
  return list;
}

// All of both groups throw if one of them has an error. `route` is the leader's.
void agree(Process& self, Communicator& local, int leader, const Route* route,
           const std::optional<base::Error>& error) {
  const std::optional<Failed> failed = find_failed(self, local, error);
  std::optional<base::Error> others;
  if (route != nullptr && !(route->owned && failed)) {
    others = attempt([&] {
      const std::int32_t ours = failed ? failed->error_class : MPI_SUCCESS;
      std::int32_t theirs = MPI_SUCCESS;
      swap(self, *route, &ours, sizeof ours, &theirs, sizeof theirs);
      if (theirs != MPI_SUCCESS)
        base::fail(theirs, "a process of the other group could not meet the jobs of this one");
    });
  }
  if (failed) share_error(self, local, failed->rank, error);
  share_error(self, local, leader, others);
}

} // namespace

ProcessName name_of(const Process& self, Rank process) {
  return self.runtime->processes().name(process);
}

std::vector<ProcessName> names_of(const Process& self, const RankMap& ranks) {
  std::vector<ProcessName> names;
  for (int i = 0; i < ranks.size(); ++i)
    names.push_back(name_of(self, ranks[i]));
  return names;
}

Communicator& join_groups(Process& self, Communicator& local, int leader, const Route* route,
                          const std::optional<base::Error>& failed) {
  std::optional<base::Error> error = failed;
  Meeting meeting;
  Roster theirs;
  if (route != nullptr) {
    error = attempt([&] { meeting = talk(self, local, *route, theirs); });
    if (error) say_no_more(self, *route);
    if (error && route->owned) error->error_class = route->gone; // wherever it has ended
  }
  share_error(self, local, leader, error);
  bcast_bytes(self, local, &meeting, sizeof meeting, leader);
  if (route == nullptr) theirs = Roster(meeting.theirs, meeting.joint != 0);
  std::vector<std::byte> packed = theirs.packed();
  bcast_bytes(self, local, packed.data(), packed.size(), leader);
  theirs.unpack(packed);

  std::vector<Rank> others;
  error = attempt([&] { others = known(self, theirs); });
  if (meeting.joint != 0) agree(self, local, leader, route, error);
  if (error) throw base::Error(*error);
  RankMap ranks(std::move(others));
  check_disjoint(local.local->ranks, ranks, MPI_ERR_COMM);
  Group& remote = make_group(self, std::move(ranks), local.local->session);
  return make_communicator(self, meeting.context, share(*local.local), &remote, *local.errhandler);
}

void check_disjoint(const RankMap& one, const RankMap& other, int error_class) {
  const engine::Places places(one);
  for (int i = 0; i < other.size(); ++i)
    if (places(other[i]) >= 0)
      base::fail(error_class,
                 "rank {} of the job is in both groups; those of an intercommunicator must be "
                 "disjoint",
                 other[i]);
}

// Both use a context that no leader gives out, by the lesser of their names. A process may meet
// several at a time, by its threads: jobs that it spawns by their numbers, others by the meeting's.
Route route_to(Process& self, const boot::Met& met, std::optional<double> until) {
  const boot::Job& job = meet(self, met.job);
  const ProcessName own = self.runtime->processes().own_name();
  const ProcessName other{job.number(), met.rank};
  const auto process = self.runtime->processes().find(other);
  if (!process)
    base::fail(MPI_ERR_INTERN, "rank {} of a job of {} has answered", met.rank, job.size());
  const std::uint64_t context = joint_context_of(std::min(own, other), 0);
  const auto tag = static_cast<std::int32_t>(met.meeting & 0x7fffffff);
  return {*process,
          {context, static_cast<std::int32_t>(own.job), tag},
          {context, static_cast<std::int32_t>(other.job), tag},
          until,
          MPI_ERR_PROC_ABORTED};
}

boot::Universe& universe_of(Process& self, int error_class) {
  if (boot::Universe* const universe = self.job->universe()) return *universe;
  base::fail(error_class, "this process has no launcher that could start or find other jobs; start "
                          "the program by mpiexec");
}

const boot::Job& meet(Process& self, const boot::JobTicket& ticket) {
  const boot::Job* const job = await(self, universe_of(self, MPI_ERR_OTHER).meet(ticket));
  if (job->number() == self.job->number() || self.jobs.find(job->number()) != nullptr) return *job;
  boot::Processes& processes = self.runtime->processes();
  Rank first = 0;
  try {
    self.instance->reach(*job);
    first = processes.add(*job);
  } catch (...) {
    universe_of(self, MPI_ERR_OTHER).forget(*job);
    throw;
  }
  self.instance->engine->know(processes.size());
  self.jobs.add({job, ticket, first, static_cast<std::uint32_t>(job->size()), 0});
  return *job;
}

// --- The end -------------------------------------------------------------------------------------

namespace {

// Members of other jobs; with the group that each is in.
template <class Visit>
void for_each_foreign(Process& self, const Communicator& comm, Visit&& visit) {
  for (const Group* const group : {comm.local, comm.remote})
    for (int i = 0; group != nullptr && i < group->ranks.size(); ++i)
      if (KnownJob* const job = self.jobs.of(group->ranks[i])) visit(*job, group->ranks[i], *group);
}

// Numbers of the other jobs that the communicator has processes of.
std::vector<std::uint32_t> other_jobs(Process& self, const Communicator& comm) {
  std::vector<std::uint32_t> numbers;
  for_each_foreign(self, comm, [&](const KnownJob& job, Rank, const Group&) {
    const std::uint32_t number = job.job->number();
    if (std::ranges::find(numbers, number) == numbers.end()) numbers.push_back(number);
  });
  return numbers;
}

// Whether no other group of this process has any of the communicator's other jobs, it has talked to
// none of these jobs' processes but members, and the program has no operation with them under way.
// (On this communicator none is left: the caller has waited for them.)
bool is_last(Process& self, Communicator& comm) {
  std::uint32_t held = 1; // by the handle, and by sends that the program has freed
  self.instance->engine->for_each_send([&](const engine::SendRequest& send) {
    if (send.detached && send.continuation != nullptr && send.owner == &comm) ++held;
  });
  bool last = comm.references == held;
  std::unordered_map<const KnownJob*, std::uint64_t> members;
  std::unordered_set<Rank> all;
  for_each_foreign(self, comm, [&](const KnownJob& job, Rank rank, const Group& group) {
    ++members[&job];
    all.insert(rank);
    last = last && group.references == 1; // or else a communicator or handle shares it
  });
  const engine::Engine& engine = *self.instance->engine;
  for (const auto& [job, count] : members)
    last = last && job->uses == count && !engine.is_used_for(job->first, job->size);
  engine.peers().for_each([&](const engine::Peer& peer) {
    const KnownJob* const job = self.jobs.of(peer.rank);
    if (job != nullptr && members.contains(job)) last = last && all.contains(peer.rank);
  });
  return last;
}

constexpr unsigned look_for_leftovers_us = 1000;

// Nobody receives from the communicator any more. What was received ends by itself (copies that are
// still read, answers); messages that were not are called off.
void let_leftovers_end(Process& self, const Communicator& comm) {
  engine::Engine& engine = *self.instance->engine;
  engine.call_off(
      [&](const engine::SendRequest& s) { return comm.has_context(s.envelope.context); });
  self.instance->wait_until([&] { return !communicates(engine, comm, Owners::any); },
                            look_for_leftovers_us);
}

// The same of other communicators with these jobs, which are all freed.
void let_leftovers_end(Process& self, const std::vector<std::uint32_t>& jobs) {
  engine::Engine& engine = *self.instance->engine;
  for (const std::uint32_t number : jobs) {
    const KnownJob& job = *self.jobs.find(number);
    engine.call_off([&](const engine::SendRequest& send) { return job.has(send.peer->rank); });
    self.instance->wait_until([&] { return !engine.has_to_do_with(job.first, job.size); },
                              look_for_leftovers_us);
  }
}

// A word sent and heard along a binomial tree of a group: each waits for a few processes that it
// names, of which each sends or ends, so all come to the end. The word is 1 where all say 1.
class Parting {
 public:
  Parting(Process& self, const engine::Team& team, int round, std::uint8_t word)
      : self_(self), team_(team), round_(round), word_(word) {}
  [[nodiscard]] std::uint8_t word() const { return word_; }

  void gather() {
    for (int below = 1; below < team_.size() && (team_.rank & below) == 0; below *= 2)
      if (team_.rank + below < team_.size()) hear_from(team_.rank + below);
    if (team_.rank != 0) tell(team_.rank & (team_.rank - 1));
  }
  void release(std::uint8_t word) {
    word_ = word;
    if (team_.rank != 0) hear_from(team_.rank & (team_.rank - 1));
    const auto size = static_cast<unsigned>(team_.size());
    const int reach =
        team_.rank == 0 ? static_cast<int>(std::bit_ceil(size)) : team_.rank & -team_.rank;
    for (int below = reach / 2; below > 0; below /= 2)
      if (team_.rank + below < team_.size()) tell(team_.rank + below);
  }
  // The word is a tag: empty messages leave at once and nothing of them stays under way, even if
  // the other side has no room for more.
  void tell(int to) {
    try {
      send_bytes(self_, (*team_.peers)[to], envelope(team_.rank, word_), nullptr, 0);
    } catch (const std::exception&) { // it has ended
    }
  }
  void hear_from(int from) {
    engine::Engine& engine = *self_.instance->engine;
    const engine::Data nothing{nullptr, 0, &self_.types[MPI_BYTE]};
    std::array<engine::ReceiveRequest*, 2> words{};
    const auto wait_for = [&](auto&& is_complete) { self_.instance->wait_until(is_complete); };
    bool yes = false;
    try {
      engine::Peer& peer = engine.peer((*team_.peers)[from]);
      for (std::uint8_t word = 0; word < words.size(); ++word)
        words[word] = engine.receive(&peer, envelope(from, word), nothing);
      wait_for([&] { return words[0]->complete || words[1]->complete; });
      yes = words[1]->complete && words[1]->status.error == MPI_SUCCESS;
    } catch (const std::exception&) { // the same
    }
    for (engine::ReceiveRequest* const word : words) {
      if (word == nullptr) continue;
      if (!word->complete) engine.cancel(*word);
      wait_for([&] { return word->complete; });
      engine.release(word);
    }
    if (!yes) word_ = 0;
  }

 private:
  [[nodiscard]] engine::Envelope envelope(int source, std::uint8_t word) const {
    return {team_.context, source, part_tag - (2 * round_ + word)};
  }

  Process& self_;
  const engine::Team& team_;
  const int round_; // one may end here while the other side has begun the next
  std::uint8_t word_;
};

// Whether all of the communicator have come and say yes.
bool swap_words(Process& self, Communicator& comm, int round, bool mine) {
  Parting inside(self, comm.inside, round, mine ? 1 : 0);
  inside.gather();
  std::uint8_t word = inside.word();
  if (comm.inter() && comm.rank() == 0) {
    engine::Team leaders = comm.p2p;
    leaders.context += static_cast<std::uint64_t>(SubContext::create);
    Parting outside(self, leaders, round, word);
    outside.tell(0);
    outside.hear_from(0);
    word = outside.word();
  }
  inside.release(comm.rank() == 0 ? word : 1);
  return inside.word() != 0;
}

// Waits until the networks have let go of the job, whose processes do the same.
void forget(Process& self, KnownJob& job) {
  engine::Engine& engine = *self.instance->engine;
  boot::Processes& processes = self.runtime->processes();
  processes.hide(*job.job);
  constexpr unsigned look_us = 1'000;
  self.instance->wait_until([&] { return engine.forget(job.first, job.size); }, look_us);
  processes.remove(*job.job);
}

// Nobody is there to agree with.
bool has_ended(const KnownJob& job) {
  bool all = true;
  for (int rank = 0; rank < static_cast<int>(job.size); ++rank)
    all = all && has_ended(job.job->life(rank));
  return all;
}

// Twice: what is under way may be called off once all are here and nobody has another communicator,
// and forgotten once nobody has anything under way.
bool agree_to_forget(Process& self, Communicator& comm) {
  const bool is_all = swap_words(self, comm, 0, is_last(self, comm));
  let_leftovers_end(self, comm);
  if (!is_all) return false;
  let_leftovers_end(self, other_jobs(self, comm));
  return swap_words(self, comm, 1, true);
}

} // namespace

std::vector<std::uint32_t> part(Process& self, Communicator& comm) {
  std::vector<std::uint32_t> jobs = other_jobs(self, comm);
  if (!agree_to_forget(self, comm))
    std::erase_if(jobs, [&](std::uint32_t job) { return !has_ended(*self.jobs.find(job)); });
  return jobs;
}

// In the order of contexts, which is the same everywhere.
void part_all(Process& self) {
  std::vector<Communicator*> joint;
  for (Communicator& comm : self.instance->live_communicators)
    if (is_joint(comm) && comm.kind == base::ObjectKind::communicator) joint.push_back(&comm);
  std::ranges::sort(joint, {}, [](const Communicator* comm) { return comm->p2p.context; });
  for (Communicator* const comm : joint)
    part(self, *comm);
}

void forget(Process& self, const std::vector<std::uint32_t>& jobs) {
  for (const std::uint32_t number : jobs) {
    KnownJob* const job = self.jobs.find(number);
    if (job == nullptr || job->uses != 0 || std::exchange(job->leaving, true)) continue;
    const boot::Job* const gone = job->job;
    forget(self, *job);
    self.jobs.erase(number);
    universe_of(self, MPI_ERR_OTHER).forget(*gone);
  }
}

void forget_ended(Process& self) {
  engine::Engine& engine = *self.instance->engine;
  std::erase_if(self.jobs.unfinished, [&](const Jobs::Unfinished& each) {
    if (!each.sent->complete) return false;
    engine.release(each.sent);
    return true;
  });
  if (self.jobs.empty()) return;
  forget(self, self.jobs.list([&](const KnownJob& job) {
    return job.uses == 0 && has_ended(job) && !engine.is_used_for(job.first, job.size);
  }));
}

// Handles of groups may be left, whose numbers are then nobody else's.
void forget_all(Process& self) {
  self.jobs.unfinished.clear();
  for (const std::uint32_t number : self.runtime->processes().others()) {
    const KnownJob* const job = self.jobs.find(number);
    if (job == nullptr || job->uses != 0) continue;
    const boot::Job* const gone = job->job;
    self.runtime->processes().remove(*gone);
    self.jobs.erase(number);
    self.job->universe()->forget(*gone);
  }
}

} // namespace macadam::mpi
