// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/session.h"

#include "mpi/buffered.h"
#include "mpi/calls.h"
#include "mpi/process.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <strings.h>

namespace macadam::mpi {
namespace {

using engine::Rank;
using engine::RankMap;

// The process sets that there always are.
constexpr std::array<const char*, 2> process_sets = {"mpi://WORLD", "mpi://SELF"};
enum : std::size_t { world_set, self_set, no_set };

// A name is a URI, of which scheme and authority are the same in upper and lower case (RFC 3986,
// section 6.2.2.1), and those of the standard have nothing else.
std::size_t find_set(const char* name) {
  const auto found = std::ranges::find_if(
      process_sets, [&](const char* set) { return ::strcasecmp(set, name) == 0; });
  return static_cast<std::size_t>(found - process_sets.begin());
}

// What info key "thread_level" asks for: the highest level if it is not there.
int wanted_level(const Info* info) {
  const std::string* const name = info != nullptr ? info->find("thread_level") : nullptr;
  if (name == nullptr) return MPI_THREAD_MULTIPLE;
  for (const int level :
       {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE})
    if (*name == level_name(level)) return level;
  base::fail(MPI_ERR_INFO_VALUE,
             "info key thread_level is '{}'; it can be MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, "
             "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE",
             *name);
}

} // namespace

Session::Session(Errhandler& handler)
    : base::Object(base::ObjectKind::session), errhandler(&handler) {}
Session::~Session() = default;

// The MPI functions.

void session_init(Library& self, Info* info, Errhandler& errhandler, MPI_Session* session) {
  if (self.forked_from != 0) not_initialized("MPI_Session_init");
  const int level = wanted_level(info);
  *session = self.sessions.make(share(self, errhandler))->handle();
  self.admit_user(level);
}

void session_finalize(Process& self, MPI_Session* session) {
  Session& object = *self.find<Session>(*session, base::ObjectKind::session);
  if (object.buffered) drain(*object.buffered);
  // Others may come while this one waits.
  if (self.users == 1 && running == &self) settle(self);
  const bool last = self.users == 1 && running == &self;
  if (last) self.job->leave();
  self.anytime_handles.forget(*session);
  drop(self, object.errhandler);
  give_back(self.sessions, object);
  *session = MPI_SESSION_NULL;
  self.dismiss_user();
  if (last) end(self);
}

void session_get_info(Library& self, Session&, MPI_Info* info_used) {
  *info_used = make_info(self, {{"thread_level", level_name(self.thread_level)}});
}

void session_get_num_psets(Library&, Session&, Info*, int* npset_names) {
  *npset_names = static_cast<int>(process_sets.size());
}

void session_get_nth_pset(Library&, Session&, Info*, int n, int* pset_len, char* pset_name) {
  const auto index = static_cast<std::size_t>(n);
  if (index >= process_sets.size()) {
    base::fail(MPI_ERR_ARG, "n is {}; there are {} process sets, numbered from 0", n,
               process_sets.size());
  }
  // As for MPI_Info_get_string: the length counts the terminating null, 0 asks for it alone.
  const std::string_view name = process_sets[index];
  if (*pset_len > 0 && pset_name == nullptr) {
    base::fail(MPI_ERR_ARG, "pset_name is null, and pset_len {}; it may be null with pset_len 0",
               *pset_len);
  }
  if (*pset_len > 0)
    pset_name[name.copy(pset_name, static_cast<std::size_t>(*pset_len) - 1)] = '\0';
  *pset_len = static_cast<int>(name.size()) + 1;
}

void session_get_pset_info(Library& self, Session&, const char* pset_name, MPI_Info* info) {
  const std::size_t set = find_set(pset_name);
  if (set == no_set) {
    base::fail(MPI_ERR_ARG,
               "there is no process set '{}'; MPI_Session_get_nth_pset names those "
               "that there are",
               pset_name);
  }
  self.join_job();
  const int size = set == world_set ? self.job->size() : 1;
  *info = make_info(self, {{"mpi_size", std::to_string(size)}});
}

void group_from_session_pset(Library& self, Session& session, const char* pset_name,
                             MPI_Group* newgroup) {
  *newgroup = MPI_GROUP_NULL;
  const std::size_t set = find_set(pset_name);
  if (set == no_set) return; // which the standard does not call an error
  self.join_job();
  const auto own = static_cast<Rank>(self.job->rank());
  RankMap ranks = set == world_set ? RankMap(0, 1, self.job->size()) : RankMap(own, 1, 1);
  *newgroup = make_group(self, std::move(ranks), &session).handle();
}

} // namespace macadam::mpi
