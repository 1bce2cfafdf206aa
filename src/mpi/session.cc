// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/session.h"

#include "mpi/buffered.h"
#include "mpi/calls.h"
#include "mpi/process.h"

#include <string>
#include <strings.h>
#include <vector>

namespace macadam::mpi {
namespace {

using engine::Rank;
using engine::RankMap;

// The process sets that there always are.
constexpr const char* world_set = "mpi://WORLD";
constexpr const char* self_set = "mpi://SELF";

// In an order that is the same in every process.
std::vector<std::string> set_names(Library& self) {
  self.join_job();
  std::vector<std::string> names{world_set, self_set};
  for (boot::ProcessSet& set : self.job->process_sets())
    names.push_back(std::move(set.name));
  return names;
}

RankMap ranks_of_set(Library& self, const char* name) {
  if (std::optional<NamedSet> found = find_set(self, name)) return std::move(found->ranks);
  base::fail(MPI_ERR_ARG,
             "pset_name is '{}', which is no process set; MPI_Session_get_nth_pset names those "
             "that there are",
             name);
}

// What info key "thread_level" asks for: the highest level if it is not there.
int wanted_level(const Info* info) {
  const std::string* const name = find(info, "thread_level");
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

// A name is a URI, of which scheme and authority are the same in upper and lower case (RFC 3986,
// section 6.2.2.1), and those of the standard have nothing else.
std::optional<NamedSet> find_set(Library& self, const std::string& name) {
  self.join_job();
  if (::strcasecmp(name.c_str(), world_set) == 0)
    return NamedSet{world_set, {0, 1, self.job->size()}};
  if (::strcasecmp(name.c_str(), self_set) == 0)
    return NamedSet{self_set, {static_cast<Rank>(self.job->rank()), 1, 1}};
  for (boot::ProcessSet& set : self.job->process_sets())
    if (set.name == name) return NamedSet{name, RankMap(std::move(set.ranks))};
  return {};
}

Session::Session(Errhandler& handler)
    : base::Object(base::ObjectKind::session), errhandler(&handler) {}
Session::~Session() = default;

// The MPI functions.

void session_init(Library& self, Info* info, Errhandler& errhandler, MPI_Session* session) {
  if (self.forked_from != 0) not_initialized("MPI_Session_init");
  check_for_session(errhandler);
  const int level = wanted_level(info);
  *session = self.sessions.make(share(self, errhandler))->handle();
  self.admit_user(level);
}

void session_finalize(Process& self, MPI_Session* session) {
  Session& object = *self.find<Session>(*session, base::ObjectKind::session);
  if (object.buffered) drain(*object.buffered);
  const bool last = leave_if_last(self);
  self.anytime_handles.forget(*session);
  drop(self, object.errhandler);
  give_back(self.sessions, object);
  *session = MPI_SESSION_NULL;
  self.dismiss_user();
  if (last) end(self);
}

void session_get_info(Library& self, Session&, MPI_Info* info_used) {
  *info_used = make_info_used(self, {{"thread_level", level_name(self.thread_level)}});
}

void session_get_num_psets(Library& self, Session&, Info*, int* npset_names) {
  *npset_names = static_cast<int>(set_names(self).size());
}

void session_get_nth_pset(Library& self, Session&, Info*, int n, int* pset_len, char* pset_name) {
  const std::vector<std::string> names = set_names(self);
  const auto index = static_cast<std::size_t>(n);
  if (index >= names.size()) {
    base::fail(MPI_ERR_ARG, "n is {}; there are {} process sets, numbered from 0", n, names.size());
  }
  // As for MPI_Info_get_string: the length counts the terminating null, 0 asks for it alone.
  const std::string& name = names[index];
  if (*pset_len > 0)
    pset_name[name.copy(pset_name, static_cast<std::size_t>(*pset_len) - 1)] = '\0';
  *pset_len = static_cast<int>(name.size()) + 1;
}

void session_get_pset_info(Library& self, Session&, const char* pset_name, MPI_Info* info) {
  const RankMap ranks = ranks_of_set(self, pset_name);
  *info = make_info(self, {{"mpi_size", std::to_string(ranks.size())}});
}

// A name that is mistyped makes no communicator: so beside MPI_GROUP_NULL, which the standard
// wants, there is an error, as with other libraries.
void group_from_session_pset(Library& self, Session& session, const char* pset_name,
                             MPI_Group* newgroup) {
  *newgroup = MPI_GROUP_NULL;
  *newgroup = make_group(self, ranks_of_set(self, pset_name), &session).handle();
}

} // namespace macadam::mpi
