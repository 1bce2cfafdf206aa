// SPDX-License-Identifier: BSD-3-Clause
// Jobs that this one starts.
#include "mpi/calls.h"
#include "mpi/collectives.h"
#include "mpi/dynamic_info.h"
#include "mpi/joint.h"

#include <algorithm>
#include <utility>

namespace macadam::mpi {
namespace {

// What the root is asked to start, as MPI_Comm_spawn_multiple has it.
struct Order {
  int count;
  char** commands;
  char*** arguments; // null: MPI_ARGVS_NULL; null in it: MPI_ARGV_NULL
  const int* most;
  const Info* const* infos; // of each, or null
  bool single = false;      // MPI_Comm_spawn
};

boot::SpawnCommand command_of(const Order& order, int i) {
  boot::SpawnCommand made;
  const int most = order.most[i];
  const auto name = [&](const char* one, const char* several) {
    return order.single ? std::string(one) : fmt::format("{}[{}]", several, i);
  };
  if (order.commands[i] == nullptr || *order.commands[i] == '\0')
    base::fail(MPI_ERR_ARG, "{} is {}; give the name of a program",
               name("command", "array_of_commands"),
               order.commands[i] == nullptr ? "a null pointer" : "empty");
  if (most < 0)
    base::fail(MPI_ERR_ARG, "{} is {}; it must not be negative",
               name("maxprocs", "array_of_maxprocs"), most);
  made.program = order.commands[i];
  char** const arguments = order.arguments != nullptr ? order.arguments[i] : nullptr;
  if (arguments != nullptr)
    for (char** argument = arguments; *argument != nullptr; ++argument)
      made.arguments.emplace_back(*argument);
  made.counts = {most};
  if (order.infos[i] == nullptr) return made;
  for (const auto& [key, value] : order.infos[i]->entries) {
    if (key == "soft")
      made.counts = soft_counts(value, most);
    else if (key != "timeout")
      made.info.emplace_back(key, value);
  }
  if (made.counts.empty())
    base::fail(MPI_ERR_SPAWN, "command {} ({}): info key soft has no count from 0 to maxprocs ({})",
               i, made.program, most);
  return made;
}

std::vector<boot::SpawnCommand> commands_of(const Order& order) {
  if (order.count < 0)
    base::fail(MPI_ERR_COUNT, "count is {}; it must not be negative", order.count);
  if (order.count > 0 && (order.commands == nullptr || order.most == nullptr))
    base::fail(MPI_ERR_ARG, "{} is a null pointer; the root gives count entries",
               order.commands == nullptr ? "array_of_commands" : "array_of_maxprocs");
  std::vector<boot::SpawnCommand> commands;
  for (int i = 0; i < order.count; ++i)
    commands.push_back(command_of(order, i));
  const bool any = std::ranges::any_of(commands, [](const auto& c) { return c.counts.back() > 0; });
  if (!any) base::fail(MPI_ERR_SPAWN, "no process is asked for; ask for one at least");
  return commands;
}

// Every process learns what became of each that was wanted.
void tell_codes(Process& self, Communicator& comm, int root, std::vector<int> codes, int* to) {
  std::uint64_t count = codes.size();
  bcast_bytes(self, comm, &count, sizeof count, root);
  codes.resize(count);
  bcast_bytes(self, comm, codes.data(), count * sizeof(int), root);
  if (to != MPI_ERRCODES_IGNORE && to != nullptr) std::ranges::copy(codes, to);
}

// `order` is called at the root alone.
template <class MakeOrder>
MPI_Comm spawn(Process& self, Communicator& comm, int root, int* error_codes, MakeOrder&& order) {
  check_intra(comm, "comm");
  boot::PendingResult<boot::Spawned> asked; // until it is kept, the job ends with this
  boot::Spawned spawned;
  std::optional<base::Error> error;
  Patience patience(self, nullptr);
  if (comm.rank() == root) {
    try {
      std::vector<boot::SpawnCommand> commands = order(patience);
      asked = universe_of(self, MPI_ERR_SPAWN).spawn(std::move(commands));
      spawned = await(self, *asked);
    } catch (...) {
      error = base::caught("to start processes");
    }
  }
  share_error(self, comm, root, error);
  tell_codes(self, comm, root, spawned.error_codes, error_codes);
  const auto way = [&] {
    try {
      Route route = route_to(self, {spawned.job, 0, 0}, patience.until);
      route.gone = MPI_ERR_SPAWN;
      route.owned = true;
      return route;
    } catch (const base::Error& refused) { // it has ended already, for instance
      throw base::Error(MPI_ERR_SPAWN, refused.text);
    }
  };
  const MPI_Comm made = join_groups(self, comm, root, way).handle();
  if (asked) asked->keep();
  return made;
}

} // namespace

void comm_spawn(Process& self, const char* command, char* argv[], int maxprocs, Info* info,
                int root, Communicator& comm, MPI_Comm* intercomm, int array_of_errcodes[]) {
  *intercomm = spawn(self, comm, root, array_of_errcodes, [&](Patience& patience) {
    patience = Patience(self, info);
    auto* program = const_cast<char*>(command);
    return commands_of({1, &program, &argv, &maxprocs, &info, true});
  });
}

void comm_spawn_multiple(Process& self, int count, char* array_of_commands[],
                         char** array_of_argv[], const int array_of_maxprocs[],
                         const MPI_Info array_of_info[], int root, Communicator& comm,
                         MPI_Comm* intercomm, int array_of_errcodes[]) {
  *intercomm = spawn(self, comm, root, array_of_errcodes, [&](Patience& patience) {
    std::vector<const Info*> infos;
    for (int i = 0; i < count; ++i) {
      const MPI_Info handle = array_of_info != nullptr ? array_of_info[i] : MPI_INFO_NULL;
      const auto* const info = self.find<Info>(handle, base::ObjectKind::info);
      if (info == nullptr && handle != MPI_INFO_NULL)
        base::fail(MPI_ERR_INFO,
                   "array_of_info[{}] is no info object, or one that was freed; give MPI_INFO_NULL "
                   "or one that is there",
                   i);
      if (i == 0) patience = Patience(self, info);
      infos.push_back(info);
    }
    return commands_of(
        {count, array_of_commands, array_of_argv, array_of_maxprocs, infos.data(), false});
  });
}

void comm_get_parent(Process& self, MPI_Comm* parent) {
  *parent = self.world.parent != nullptr ? self.world.parent->handle() : MPI_COMM_NULL;
}

} // namespace macadam::mpi
