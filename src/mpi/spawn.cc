// SPDX-License-Identifier: BSD-3-Clause
// Jobs that this one starts.
#include "boot/spawn_request.h"
#include "mpi/calls.h"
#include "mpi/collectives.h"
#include "mpi/dynamic_info.h"
#include "mpi/joint.h"

#include <algorithm>
#include <deque>
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

// What became of the processes that a command was to start.
struct Count {
  int most = 0, started = 0;
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
  return made;
}

// An info object, or null, with what the file says that it names.
Info& add_whole(std::deque<Info>& wholes, const Info* info) {
  Info& whole = wholes.emplace_back();
  if (info != nullptr) whole.entries = info->entries;
  boot::add_file(whole.entries);
  return whole;
}

// `counts` is for errors in what follows: nothing is started yet.
std::vector<boot::SpawnCommand> commands_of(const Order& order, std::vector<Count>& counts) {
  if (order.count < 0)
    base::fail(MPI_ERR_COUNT, "count is {}; it must not be negative", order.count);
  if (order.count > 0 && (order.commands == nullptr || order.most == nullptr))
    base::fail(MPI_ERR_ARG, "{} is a null pointer; the root gives count entries",
               order.commands == nullptr ? "array_of_commands" : "array_of_maxprocs");
  std::vector<boot::SpawnCommand> commands;
  for (int i = 0; i < order.count; ++i)
    commands.push_back(command_of(order, i));
  for (int i = 0; i < order.count; ++i)
    counts.push_back({order.most[i], 0});
  for (std::size_t i = 0; i < commands.size(); ++i)
    if (commands[i].counts.empty())
      base::fail(MPI_ERR_SPAWN,
                 "command {} ({}): info key soft has no count from 0 to maxprocs ({})", i,
                 commands[i].program, counts[i].most);
  const bool any = std::ranges::any_of(commands, [](const auto& c) { return c.counts.back() > 0; });
  if (!any) base::fail(MPI_ERR_SPAWN, "no process is asked for; ask for one at least");
  return commands;
}

// Every process learns it from the root.
void share_counts(Process& self, Communicator& comm, int root, std::vector<Count>& counts) {
  std::uint64_t commands = counts.size();
  bcast_bytes(self, comm, &commands, sizeof commands, root);
  counts.resize(commands);
  bcast_bytes(self, comm, counts.data(), commands * sizeof(Count), root);
}

// array_of_errcodes has an entry for each process that was asked for, command by command.
void write_codes(const std::vector<Count>& counts, int* to) {
  if (to == MPI_ERRCODES_IGNORE || to == nullptr) return;
  for (const Count& count : counts) {
    to = std::fill_n(to, count.started, MPI_SUCCESS);
    to = std::fill_n(to, count.most - count.started, MPI_ERR_SPAWN);
  }
}

// `order` is called at the root alone.
template <class MakeOrder>
MPI_Comm spawn(Process& self, Communicator& comm, int root, int* error_codes, MakeOrder&& order) {
  check_intra(comm, "comm");
  boot::PendingResult<boot::Spawned> asked; // until it is kept, the job ends with this
  boot::Spawned spawned;
  std::vector<Count> counts;
  std::optional<base::Error> error;
  Patience patience(self, nullptr);
  if (comm.rank() == root) {
    try {
      std::vector<boot::SpawnCommand> commands = order(patience, counts);
      asked = universe_of(self, MPI_ERR_SPAWN).spawn(std::move(commands));
      spawned = await(self, *asked);
      for (std::size_t i = 0; i < counts.size(); ++i)
        counts[i].started = spawned.ranks[i];
    } catch (...) {
      error = base::caught("to start processes");
    }
  }
  share_counts(self, comm, root, counts);
  write_codes(counts, error_codes);
  share_error(self, comm, root, error);
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
  try {
    const MPI_Comm made = join_groups(self, comm, root, way).handle();
    if (asked) asked->keep();
    return made;
  } catch (...) { // those that were started are ended
    for (Count& count : counts)
      count.started = 0;
    write_codes(counts, error_codes);
    throw;
  }
}

} // namespace

void comm_spawn(Process& self, const char* command, char* argv[], int maxprocs, Info* info,
                int root, Communicator& comm, MPI_Comm* intercomm, int array_of_errcodes[]) {
  *intercomm = spawn(self, comm, root, array_of_errcodes,
                     [&](Patience& patience, std::vector<Count>& counts) {
                       std::deque<Info> whole;
                       const Info* const read = &add_whole(whole, info);
                       patience = Patience(self, read);
                       auto* program = const_cast<char*>(command);
                       return commands_of({1, &program, &argv, &maxprocs, &read, true}, counts);
                     });
}

void comm_spawn_multiple(Process& self, int count, char* array_of_commands[],
                         char** array_of_argv[], const int array_of_maxprocs[],
                         const MPI_Info array_of_info[], int root, Communicator& comm,
                         MPI_Comm* intercomm, int array_of_errcodes[]) {
  *intercomm = spawn(
      self, comm, root, array_of_errcodes, [&](Patience& patience, std::vector<Count>& counts) {
        std::vector<const Info*> infos;
        std::deque<Info> wholes;
        for (int i = 0; i < count; ++i) {
          const MPI_Info handle = array_of_info != nullptr ? array_of_info[i] : MPI_INFO_NULL;
          const auto* const info = self.find<Info>(handle, base::ObjectKind::info);
          if (info == nullptr && handle != MPI_INFO_NULL)
            base::fail(
                MPI_ERR_INFO,
                "array_of_info[{}] is no info object, or one that was freed; give MPI_INFO_NULL "
                "or one that is there",
                i);
          infos.push_back(&add_whole(wholes, info));
          if (i == 0) patience = Patience(self, infos[0]);
        }
        return commands_of(
            {count, array_of_commands, array_of_argv, array_of_maxprocs, infos.data(), false},
            counts);
      });
}

void comm_get_parent(Process& self, MPI_Comm* parent) {
  *parent = self.world.parent != nullptr ? self.world.parent->handle() : MPI_COMM_NULL;
}

} // namespace macadam::mpi
