// SPDX-License-Identifier: BSD-3-Clause
// Communicators of processes that have none in common yet: those of sessions.
#include "mpi/calls.h"
#include "mpi/comm_create.h"
#include "mpi/invitation.h"
#include "mpi/joint.h"
#include "mpi/process.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace macadam::mpi {
namespace {

using engine::Rank;
using engine::RankMap;

std::uint64_t sum_of(const RankMap& ranks) {
  std::uint64_t sum = static_cast<std::uint64_t>(ranks.size());
  for (int i = 0; i < ranks.size(); ++i)
    sum = (sum ^ ranks[i]) * 0x100000001b3; // FNV-1a, by ranks
  return sum;
}

// A Gathering that is known for as long as this lives.
class Gathered {
 public:
  Gathered(Process& self, const RankMap& group, const char* stringtag)
      : list_(self.instance->gatherings), gathering_{std::hash<std::string_view>()(stringtag) ^
                                                         sum_of(group),
                                                     group} {
    list_.push_back(&gathering_);
  }
  Gathered(const Gathered&) = delete;
  Gathered& operator=(const Gathered&) = delete;
  ~Gathered() { std::erase(list_, &gathering_); }

 private:
  std::vector<const Gathering*>& list_;
  Gathering gathering_;
};

void check_tag(const char* stringtag) {
  if (::strnlen(stringtag, MPI_MAX_STRINGTAG_LEN) == MPI_MAX_STRINGTAG_LEN) {
    base::fail(MPI_ERR_ARG, "stringtag is longer than {} characters (MPI_MAX_STRINGTAG_LEN - 1)",
               MPI_MAX_STRINGTAG_LEN - 1);
  }
}

void check_member(const Group& group, const char* name) {
  if (group.rank != MPI_UNDEFINED) return;
  base::fail(MPI_ERR_GROUP,
             "this process is not in {}, which has {} ranks; the members alone make "
             "a communicator of it",
             name, group.ranks.size());
}

// That all members are here goes up a binomial tree, over the ranks of the group beginning with the
// leader, and its context comes down. So nobody is through before all have entered the job's
// generation: one that is through may leave, and what it has sent has to find a process that stays.
std::uint64_t agree_on_context(Process& self, const Group& group, int leader,
                               const char* stringtag) {
  using From = Invitation::From;
  const Gathered gathered(self, group.ranks, stringtag);
  const int size = group.ranks.size();
  const int me = (group.rank - leader + size) % size;
  const auto member = [&](int place) { return group.ranks[(place + leader) % size]; };
  const auto message = [&](From from, int place) {
    Invitation made;
    made.sender = member(place);
    made.from = from;
    made.group = sum_of(group.ranks);
    made.tag = stringtag;
    return made;
  };
  std::vector<int> below;
  for (int distance = 1; distance < size && (me & distance) == 0; distance *= 2)
    if (me + distance < size) below.push_back(me + distance);

  for (const int place : below) {
    Invitation here = message(From::below, place);
    await_invitation(self, here);
  }
  Invitation agreed = message(From::above, me);
  if (me == 0) {
    agreed.context = self.instance->new_context();
  } else {
    const int parent = me & (me - 1);
    invite(self, member(parent), message(From::below, me));
    agreed = message(From::above, parent);
    await_invitation(self, agreed);
  }
  for (const int place : below)
    invite(self, member(place), agreed);
  return agreed.context;
}

// The contexts by which two leaders meet, which no communicator will have: forgotten at the end.
class MeetingContexts {
 public:
  explicit MeetingContexts(Process& self) : self_(self) {}
  MeetingContexts(const MeetingContexts&) = delete;
  MeetingContexts& operator=(const MeetingContexts&) = delete;
  ~MeetingContexts() {
    for (const std::uint64_t context : all_)
      self_.instance->engine->drop_contexts(context, sub_contexts, {leader_, 1, 1});
  }
  void keep(Rank leader, std::vector<std::uint64_t> contexts) {
    leader_ = leader;
    all_ = std::move(contexts);
  }

 private:
  Process& self_;
  Rank leader_ = 0;
  std::vector<std::uint64_t> all_;
};

// How the leaders of two groups reach each other: they agree on a context for that.
Route meet_leader(Process& self, Rank leader, const char* stringtag, MeetingContexts& contexts) {
  Invitation mine, theirs;
  mine.from = theirs.from = Invitation::From::other_leader;
  mine.tag = theirs.tag = stringtag;
  mine.context = self.instance->new_context();
  theirs.sender = leader;
  invite(self, leader, mine);
  await_invitation(self, theirs);
  const std::uint64_t agreed = std::min(mine.context, theirs.context);
  contexts.keep(leader, {mine.context, agreed});
  const std::uint64_t context = agreed + static_cast<std::uint64_t>(SubContext::create);
  return {leader,
          {context, self.job->rank(), create_tag},
          {context, static_cast<std::int32_t>(leader), create_tag},
          {},
          MPI_ERR_PROC_ABORTED};
}

} // namespace

void comm_create_from_group(Process& self, Group& group, const char* stringtag, Info* info,
                            Errhandler& errhandler, MPI_Comm* newcomm) {
  *newcomm = MPI_COMM_NULL;
  check_for_communicator(errhandler);
  check_tag(stringtag);
  if (group.ranks.size() == 0) return;
  check_member(group, "group");
  const std::uint64_t context = agree_on_context(self, group, 0, stringtag);
  CommunicatorRef made(&make_communicator(self, context, share(group), nullptr, errhandler),
                       {&self});
  comm_set_info(self, *made, info);
  *newcomm = made.release()->handle();
}

void intercomm_create_from_groups(Process& self, Group& local_group, int local_leader,
                                  MPI_Group remote_group, int remote_leader, const char* stringtag,
                                  Info* info, Errhandler& errhandler, MPI_Comm* newintercomm) {
  *newintercomm = MPI_COMM_NULL;
  check_for_communicator(errhandler);
  check_tag(stringtag);
  check_member(local_group, "local_group");
  const auto check_leader = [](int leader, const Group& group, const char* name) {
    if (leader >= 0 && leader < group.ranks.size()) return;
    base::fail(MPI_ERR_RANK, "{} is {}; the group has {} ranks, numbered from 0", name, leader,
               group.ranks.size());
  };
  check_leader(local_leader, local_group, "local_leader");
  // The local group needs a communicator, to hear what its leader has heard.
  const std::uint64_t context = agree_on_context(self, local_group, local_leader, stringtag);
  const CommunicatorRef local(
      &make_communicator(self, context, share(local_group), nullptr, errhandler), {&self});
  local->name = "the local group";
  local->of_library = true;
  MeetingContexts contexts(self);
  const auto way = [&] {
    const auto* const other_side = self.find<Group>(remote_group, base::ObjectKind::group);
    if (other_side == nullptr)
      base::fail(MPI_ERR_GROUP,
                 "remote_group is no group; the local leader needs the group of the other side");
    check_leader(remote_leader, *other_side, "remote_leader");
    check_disjoint(local_group.ranks, other_side->ranks, MPI_ERR_GROUP);
    return meet_leader(self, other_side->ranks[remote_leader], stringtag, contexts);
  };
  CommunicatorRef made(&join_groups(self, *local, local_leader, way), {&self});
  comm_set_info(self, *made, info);
  *newintercomm = made.release()->handle();
}

} // namespace macadam::mpi
