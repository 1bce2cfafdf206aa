// SPDX-License-Identifier: BSD-3-Clause
// Jobs that meet: by ports, by the names of ports, and by a socket.
#include "mpi/calls.h"
#include "mpi/context.h"
#include "mpi/dynamic_info.h"
#include "mpi/joint.h"

#include <string>
#include <string_view>

namespace macadam::mpi {
namespace {

using boot::Met;

// What a port name or a service's name has to be.
std::string_view text_of(const char* text, const char* name, std::size_t most, int error_class) {
  const std::size_t bytes = ::strnlen(text, most);
  if (bytes == 0) base::fail(error_class, "{} is empty; give a name", name);
  if (bytes == most)
    base::fail(error_class, "{} is longer than {} characters; give one of at most these", name,
               most - 1);
  return {text, bytes};
}

std::string_view port_of(const char* port_name) {
  if (port_name == nullptr)
    base::fail(MPI_ERR_ARG, "port_name is a null pointer; the root gives the name of a port");
  return text_of(port_name, "port_name", MPI_MAX_PORT_NAME, MPI_ERR_PORT);
}

std::string_view service_of(const char* service_name, int error_class) {
  return text_of(service_name, "service_name", MPI_MAX_OBJECT_NAME, error_class);
}

// The intercommunicator of `comm` and those whose root is met by `ask`.
template <class Ask>
MPI_Comm make(Process& self, Communicator& comm, int root, const Info* info, Ask&& ask) {
  check_intra(comm, "comm");
  const auto way = [&] {
    const Patience patience(self, info);
    const Met met = await(self, ask(patience.seconds));
    return route_to(self, met, patience.until);
  };
  return join_groups(self, comm, root, way).handle();
}

} // namespace

void open_port(Process& self, Info*, char* port_name) {
  const std::string name = universe_of(self, MPI_ERR_PORT).open_port();
  port_name[name.copy(port_name, MPI_MAX_PORT_NAME - 1)] = '\0';
}

void close_port(Process& self, const char* port_name) {
  universe_of(self, MPI_ERR_PORT).close_port(port_of(port_name));
}

void comm_accept(Process& self, const char* port_name, Info* info, int root, Communicator& comm,
                 MPI_Comm* newcomm) {
  *newcomm = make(self, comm, root, info, [&](std::optional<double> longest) {
    return universe_of(self, MPI_ERR_PORT).accept(port_of(port_name), longest);
  });
}

void comm_connect(Process& self, const char* port_name, Info* info, int root, Communicator& comm,
                  MPI_Comm* newcomm) {
  *newcomm = make(self, comm, root, info, [&](std::optional<double> longest) {
    return universe_of(self, MPI_ERR_PORT).connect(port_of(port_name), longest);
  });
}

void comm_join(Process& self, int fd, MPI_Comm* intercomm) {
  if (fd < 0) base::fail(MPI_ERR_ARG, "fd is {}; give a connected socket", fd);
  // There need be no MPI_COMM_SELF.
  const auto own = static_cast<engine::Rank>(self.job->rank());
  Communicator& alone = make_communicator(self, self.instance->new_context(),
                                          make_group(self, engine::RankMap(own, 1, 1), nullptr),
                                          nullptr, self.errors_are_fatal);
  try {
    *intercomm = make(self, alone, 0, nullptr, [&](std::optional<double>) {
      return universe_of(self, MPI_ERR_OTHER).join(fd);
    });
  } catch (...) {
    release(self, alone);
    throw;
  }
  release(self, alone);
}

void publish_name(Process& self, const char* service_name, Info*, const char* port_name) {
  await(self, universe_of(self, MPI_ERR_SERVICE)
                  .publish(service_of(service_name, MPI_ERR_SERVICE), port_of(port_name)));
}

void unpublish_name(Process& self, const char* service_name, Info*, const char* port_name) {
  await(self, universe_of(self, MPI_ERR_SERVICE)
                  .unpublish(service_of(service_name, MPI_ERR_SERVICE), port_of(port_name)));
}

void lookup_name(Process& self, const char* service_name, Info*, char* port_name) {
  const std::string found =
      await(self, universe_of(self, MPI_ERR_NAME).look_up(service_of(service_name, MPI_ERR_NAME)));
  port_name[found.copy(port_name, MPI_MAX_PORT_NAME - 1)] = '\0';
}

} // namespace macadam::mpi
