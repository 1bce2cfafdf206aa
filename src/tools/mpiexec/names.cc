// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/names.h"

#include "base/error.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace macadam::tools {
namespace {

constexpr std::size_t most_names = 256; // each is a descriptor

// The name is taken; its socket tells which user has it.
[[noreturn]] void fail_as_taken(const std::string& service) {
  const int probe = boot::make_socket();
  std::optional<uid_t> user;
  if (probe >= 0) {
    if (boot::connect_to(probe, boot::socket_name_of(service)) == 0) user = boot::user_of(probe);
    close(probe);
  }
  if (user && *user != geteuid())
    base::fail(MPI_ERR_SERVICE,
               "\"{}\" cannot be published: user {} holds the socket at which it would be looked "
               "up; choose another name, or have that process ended",
               service, *user);
  base::fail(MPI_ERR_SERVICE, "\"{}\" is published already, by another job of this user", service);
}

} // namespace

void Names::publish(const std::string& service, const std::string& port, const boot::Secret& job) {
  if (names_.contains(service))
    base::fail(MPI_ERR_SERVICE, "\"{}\" is published already, by a job of this mpiexec", service);
  if (names_.size() >= most_names)
    base::fail(MPI_ERR_SERVICE, "{} names are published, the most that mpiexec keeps", most_names);
  if (!server_.listen(boot::socket_name_of(service))) {
    if (errno == EADDRINUSE) fail_as_taken(service);
    base::fail(MPI_ERR_SERVICE, "\"{}\" cannot be published: {}", service, std::strerror(errno));
  }
  names_.emplace(service, Name{port, job});
}

void Names::unpublish(const std::string& service, const std::string& port,
                      const boot::Secret& job) {
  const auto found = names_.find(service);
  if (found == names_.end() || found->second.job != job)
    base::fail(MPI_ERR_SERVICE, "\"{}\" is not published by this job", service);
  if (found->second.port != port)
    base::fail(MPI_ERR_SERVICE, "\"{}\" is published for another port, {}", service,
               found->second.port);
  server_.stop_listening(boot::socket_name_of(service));
  names_.erase(found);
}

void Names::unpublish_all_of(const boot::Secret& job) {
  std::erase_if(names_, [&](const auto& each) {
    if (each.second.job != job) return false;
    server_.stop_listening(boot::socket_name_of(each.first));
    return true;
  });
}

const std::string& Names::look_up(const std::string& service) const {
  const auto found = names_.find(service);
  if (found == names_.end())
    base::fail(MPI_ERR_NAME, "no job of this user on this machine has published \"{}\"", service);
  return found->second.port;
}

} // namespace macadam::tools
