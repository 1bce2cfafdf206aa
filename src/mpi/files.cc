// SPDX-License-Identifier: BSD-3-Clause
// Files opened, closed and asked about.
#include "mpi/file.h"

#include "mpi/agree.h"
#include "mpi/calls.h"
#include "mpi/collectives.h"
#include "mpi/comm_create.h"
#include "mpi/joint.h"
#include "mpi/process.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <fcntl.h>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace macadam::mpi {

Files::Files() {
  for (const char* name : {"native", "internal"})
    representations.emplace(name, std::make_shared<io::NativeRepresentation>(name));
  representations.emplace("external32", std::make_shared<io::External32>());
}

namespace {

constexpr int ways = MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR;
constexpr int known_modes = ways | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE |
                            MPI_MODE_UNIQUE_OPEN | MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND;

void check_amode(int amode) {
  if ((amode & ~known_modes) != 0)
    base::fail(MPI_ERR_AMODE, "amode has {:#x}, which is no MPI_MODE_* of files",
               amode & ~known_modes);
  if (std::popcount(static_cast<unsigned>(amode & ways)) != 1)
    base::fail(MPI_ERR_AMODE,
               "amode is {:#x}, needed: one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and "
               "MPI_MODE_RDWR",
               amode);
  const bool reads_only = (amode & MPI_MODE_RDONLY) != 0;
  if (reads_only && (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL)) != 0)
    base::fail(MPI_ERR_AMODE, "amode has MPI_MODE_RDONLY with MPI_MODE_CREATE or MPI_MODE_EXCL; a "
                              "file that is made must be written");
  if ((amode & MPI_MODE_RDWR) != 0 && (amode & MPI_MODE_SEQUENTIAL) != 0)
    base::fail(MPI_ERR_AMODE, "amode has MPI_MODE_RDWR with MPI_MODE_SEQUENTIAL; a sequential file "
                              "is either read or written");
}

// ---------------------------------------------------------------- hints

// Those of section 14.2.8 that mean something here.
constexpr std::array known_hints = {
    Hints::Known{"collective_buffering", "automatic"},
    Hints::Known{"cb_buffer_size", "4194304"},
    Hints::Known{"cb_nodes", "0"}, // by itself
    Hints::Known{"file_perm", "0666"},
};
// On one machine so many ranks write at a time; more only take each other's turn.
constexpr int most_aggregators_of_machine = 4;

// Throws nothing: a value that is none is as if it were not set.
std::optional<std::int64_t> number(std::string_view text, int base = 10) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return {};
  return value;
}

// Of collective_buffering, by io::Buffering::When.
constexpr std::array<std::string_view, 3> whens = {"automatic", "true", "false"};

bool can_be(std::string_view key, std::string_view value) {
  if (key == "collective_buffering") return std::ranges::find(whens, value) != whens.end();
  if (key == "file_perm") return number(value, 8).value_or(INT64_MAX) <= 0777;
  return number(value).has_value();
}

io::Buffering::When when_of(std::string_view collective_buffering) {
  return static_cast<io::Buffering::When>(std::ranges::find(whens, collective_buffering) -
                                          whens.begin());
}

// The ranks that read and write for all: spread over the machines, and over those of each.
std::vector<int> aggregators_of(Process& self, const Communicator& comm, int wanted) {
  std::map<int, std::vector<int>> machines; // those of other jobs are not known
  const auto& node_of = self.instance->coll->node_of;
  for (int rank = 0; rank < comm.size(); ++rank)
    machines[is_joint(comm) ? 0 : node_of((*comm.p2p.local)[rank])].push_back(rank);
  const int most = machines.size() == 1 ? most_aggregators_of_machine : 1;
  int count = std::min(comm.size(), most * static_cast<int>(machines.size()));
  if (wanted > 0) count = std::min(wanted, comm.size());
  std::vector<int> in_turn; // first of each machine, second of each, ...
  for (std::size_t i = 0; in_turn.size() < static_cast<std::size_t>(comm.size()); ++i) {
    for (const auto& [machine, ranks] : machines)
      if (i < ranks.size()) in_turn.push_back(ranks[i]);
  }
  in_turn.resize(static_cast<std::size_t>(count));
  return in_turn;
}

} // namespace

File::File(Communicator& own, std::string name, int mode)
    : base::Object(base::ObjectKind::file), comm(&own), path(std::move(name)), amode(mode),
      hints(known_hints) {}

// The hints of rank 0 count, so that all ranks act alike. Collective, whoever gives some.
void agree_on_buffering(Process& self, File& file, const Info* info) {
  file.hints.take(info, can_be);
  struct {
    io::Buffering::When when;
    std::int64_t window, aggregators;
  } first{when_of(file.hints["collective_buffering"]), *number(file.hints["cb_buffer_size"]),
          *number(file.hints["cb_nodes"])};
  bcast_bytes(self, *file.comm, &first, sizeof first, 0);
  auto buffering = std::make_shared<io::Buffering>();
  buffering->when = first.when;
  buffering->window =
      std::clamp(first.window, io::Buffering::least_window, io::Buffering::most_window);
  buffering->aggregators = aggregators_of(
      self, *file.comm, static_cast<int>(std::min<std::int64_t>(first.aggregators, INT32_MAX)));
  file.buffering = std::move(buffering);
}

void check_same(Process& self, const File& file, const std::string& arguments) {
  const std::size_t own = std::hash<std::string>{}(arguments);
  std::vector<std::size_t> all(static_cast<std::size_t>(file.comm->size()));
  allgather_bytes(self, *file.comm, &own, sizeof own, all.data());
  const auto differs = [own](std::size_t each) { return each != own; };
  const auto other = std::ranges::find_if(all, differs);
  if (other == all.end()) return; // so it is on all ranks, or on none
  using Text = std::array<char, 256>;
  Text text{};
  arguments.copy(text.data(), text.size() - 1);
  std::vector<Text> texts(all.size());
  allgather_bytes(self, *file.comm, &text, sizeof text, texts.data());
  const auto rank = static_cast<std::size_t>(other - all.begin());
  base::fail(MPI_ERR_NOT_SAME, "{} here, and {} on rank {}; all ranks must give the same",
             arguments, texts[rank].data(), rank);
}

namespace {

// ---------------------------------------------------------------- opening

std::shared_ptr<const io::View> first_view(Process& self) {
  const datatype::Type& byte = self.types[MPI_BYTE];
  return std::make_shared<io::View>(
      0, byte, byte, self.instance->files.representations.find("native")->second, byte);
}

int open_flags(int amode) {
  int flags = (amode & MPI_MODE_RDONLY) != 0   ? O_RDONLY
              : (amode & MPI_MODE_WRONLY) != 0 ? O_WRONLY
                                               : O_RDWR;
  if ((amode & MPI_MODE_CREATE) != 0) flags |= O_CREAT;
  if ((amode & MPI_MODE_EXCL) != 0) flags |= O_EXCL;
  return flags;
}

// Rank 0 makes the file, so that one alone does; then the others open what is there.
void open_on_disk(Process& self, File& file) {
  const auto mode = static_cast<unsigned>(*number(file.hints["file_perm"], 8));
  const int flags = open_flags(file.amode);
  const auto open_with = [&](int how) {
    return attempt([&] { file.disk.emplace(file.path, how, mode); });
  };
  std::optional<base::Error> own;
  if (file.comm->rank() == 0) own = open_with(flags);
  share_error(self, *file.comm, 0, own);
  if (file.comm->rank() != 0) own = open_with(flags & ~(O_CREAT | O_EXCL));
  agree(self, *file.comm, own);
}

void discard(Process& self, File& file) {
  free_shared_pointer(self, file);
  file.disk.reset();
  file.view.reset();
  drop(self, file.errhandler);
  release(self, *file.comm);
  base::List<File>::erase(file);
  give_back(self.instance->files.all, file);
}

void open(Process& self, File& file, const Info* info) {
  agree_on_buffering(self, file, info);
  check_same(self, file, fmt::format("amode is {:#x}", file.amode));
  check_amode(file.amode);
  open_on_disk(self, file);
  file.view = first_view(self);
  make_shared_pointer(self, file);
  if ((file.amode & MPI_MODE_APPEND) == 0) return;
  file.position = end_of(file);
  set_shared_pointer(self, file, file.position);
}

// Without the name of a file system in front, which ROMIO takes there: here all are the system's.
std::string path_of(std::string_view filename) {
  constexpr std::array<std::string_view, 8> prefixes = {
      "ufs:", "nfs:", "lustre:", "gpfs:", "panfs:", "pvfs2:", "daos:", "testfs:"};
  for (const std::string_view prefix : prefixes)
    if (filename.starts_with(prefix)) return std::string(filename.substr(prefix.size()));
  return std::string(filename);
}

} // namespace

void file_open(Process& self, Communicator& comm, const char* filename, int amode, Info* info,
               MPI_File* fh) {
  *fh = MPI_FILE_NULL;
  check_intra(comm, "comm");
  Files& files = self.instance->files;
  CommunicatorRef own(&duplicate_ranks(self, comm), {&self});
  own->name = fmt::format("file {}", filename);
  own->of_library = true;
  File& file = *files.all.make(*own, path_of(filename), amode);
  own.release();
  files.live.push_back(file);
  file.errhandler = &share(self, *self.errors_of_files);
  try {
    open(self, file, info);
  } catch (...) {
    discard(self, file);
    throw;
  }
  *fh = file.handle();
}

void file_close(Process& self, MPI_File* fh) {
  File& file = *self.find<File>(*fh, base::ObjectKind::file);
  check_no_split(file);
  self.instance->wait_until([&] { return file.under_way == 0; });
  // The data are where whoever opens the file sees them, if not on the device: that takes long, and
  // MPI_File_sync sees to it.
  barrier(self, *file.comm); // nobody needs it any more
  const bool deletes = (file.amode & MPI_MODE_DELETE_ON_CLOSE) != 0 && file.comm->rank() == 0;
  const std::optional<base::Error> failure = attempt([&] {
    file.disk->close();
    if (deletes) io::remove_file(file.path);
  });
  self.handles.forget(file.handle());
  discard(self, file);
  *fh = MPI_FILE_NULL;
  if (failure) throw *failure;
}

void file_delete(Process&, const char* filename, Info*) {
  io::remove_file(path_of(filename));
}

// ---------------------------------------------------------------- what it is

void file_get_amode(Process&, File& file, int* amode) {
  *amode = file.amode;
}

void file_get_group(Process&, File& file, MPI_Group* group) {
  *group = share(*file.comm->local).handle();
}

void file_set_info(Process& self, File& file, Info* info) {
  agree_on_buffering(self, file, info);
}

void file_get_info(Process& self, File& file, MPI_Info* info_used) {
  std::vector<std::pair<std::string, std::string>> hints = file.hints.entries();
  hints.emplace_back("filename", file.path);
  const io::Buffering& used = *file.buffering; // by the hints of rank 0
  for (auto& [key, value] : hints) {
    if (key == "collective_buffering") value = whens[static_cast<std::size_t>(used.when)];
    if (key == "cb_buffer_size") value = std::to_string(used.window);
    if (key == "cb_nodes") value = std::to_string(used.aggregators.size());
  }
  *info_used = make_info_used(self, std::move(hints));
}

void file_get_size(Process&, File& file, MPI_Offset* size) {
  *size = file.disk->size();
}

namespace {

void check_size(const File& file, MPI_Offset size) {
  if (size < 0) base::fail(MPI_ERR_ARG, "size is {}, needed: 0 or more", size);
  if ((file.amode & MPI_MODE_SEQUENTIAL) != 0)
    base::fail(MPI_ERR_UNSUPPORTED_OPERATION,
               "{} is open with MPI_MODE_SEQUENTIAL, in which nobody sets its size", file.path);
  if ((file.amode & MPI_MODE_RDONLY) != 0)
    base::fail(MPI_ERR_READ_ONLY, "{} is open with MPI_MODE_RDONLY", file.path);
}

// One rank sets the size, and all learn how it went.
template <class Act>
void set_size_by_first(Process& self, File& file, MPI_Offset size, Act&& act) {
  // When all have come, what they have begun before is done.
  check_same(self, file, fmt::format("size is {}", size));
  check_size(file, size);
  std::optional<base::Error> own;
  if (file.comm->rank() == 0) own = attempt(act);
  share_error(self, *file.comm, 0, own);
}

} // namespace

void file_set_size(Process& self, File& file, MPI_Offset size) {
  check_no_split(file);
  set_size_by_first(self, file, size, [&] { file.disk->resize(size); });
}

void file_preallocate(Process& self, File& file, MPI_Offset size) {
  check_no_split(file);
  set_size_by_first(self, file, size, [&] { file.disk->preallocate(size); });
}

void file_sync(Process& self, File& file) {
  check_no_split(file);
  self.instance->wait_until([&] { return file.under_way == 0; });
  const LetGo let_go(self);
  file.disk->sync();
}

void file_set_atomicity(Process& self, File& file, int flag) {
  check_no_split(file);
  check_same(self, file, fmt::format("flag is {}", flag != 0));
  file.atomic = flag != 0;
}

void file_get_atomicity(Process&, File& file, int* flag) {
  *flag = file.atomic ? 1 : 0;
}

} // namespace macadam::mpi
