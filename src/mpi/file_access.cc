// SPDX-License-Identifier: BSD-3-Clause
// Files read and written: at offsets that are given, and at the process's own pointer.
#include "mpi/calls.h"
#include "mpi/collectives.h"
#include "mpi/file.h"
#include "mpi/process.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace macadam::mpi {

using datatype::Type;
using io::Data;

// ---------------------------------------------------------------- requests

namespace {

void destroy_lone(Process& self, LayerRequest& request) {
  give_back(self.instance->files.lone, static_cast<LoneFileRequest&>(request));
}
void destroy_collective(Process& self, LayerRequest& request) {
  give_back(self.instance->files.collective, static_cast<CollectiveFileRequest&>(request));
}
// Its handle is still known as one after the file was closed.
ErrorSource source_of_file(const LayerRequest& request) {
  return {.file = static_cast<const FileRequest&>(request).file.handle()};
}

constexpr RequestClass lone_class{
    .name = "access to a file", .destroy = destroy_lone, .source = source_of_file};
constexpr RequestClass collective_class{
    .name = "collective access to a file", .destroy = destroy_collective, .source = source_of_file};

// Bytes of the user's data that were moved, of so many of the stream.
std::size_t moved_of_user(const FileMove& move, io::Converted& data, std::size_t moved) {
  if (!move.writes) return static_cast<std::size_t>(data.from_file(static_cast<MPI_Count>(moved)));
  return move.view->has_data() ? move.user.bytes() : 0;
}

void count(Process& self, bool writes, std::uint64_t bytes) {
  io::Counters& counters = self.instance->files.counters;
  ++(writes ? counters.writes : counters.reads);
  (writes ? counters.bytes_written : counters.bytes_read) += bytes;
}

// Ends a request whose data have been moved, or not.
void end(FileRequest& request, std::size_t moved, std::optional<base::Error> failure) noexcept {
  engine::Status status;
  try {
    if (!failure) status.bytes = moved_of_user(request.move, request.data, moved);
  } catch (...) {
    failure = base::caught("to convert what was read");
  }
  if (failure) {
    status.error = failure->error_class;
    request.failure = std::move(failure->text);
  }
  count(request.process, request.move.writes, status.bytes);
  --request.file.under_way;
  complete(request.process, request, status);
}

void on_collective_end(coll::Collective& operation, void* argument) noexcept {
  auto& request = *static_cast<CollectiveFileRequest*>(argument);
  end(request, request.what.moved, attempt([&] { operation.rethrow(); }));
}

io::Access access_of(const File& file, const FileMove& move, const io::Converted& data,
                     bool atomic) {
  return {&*file.disk, move.view.get(), move.position, data.stream(), atomic, move.writes};
}

io::Converted converted(Process& self, const FileMove& move) {
  io::Converted data(*move.view, move.user, self.types[MPI_BYTE]);
  if (move.writes) data.to_file();
  return data;
}

} // namespace

FileRequest::FileRequest(Process& self, File& of, const FileMove& what, io::Converted&& converted,
                         const RequestClass& how)
    : LayerRequest(engine::Role::combined, how), process(self), file(of), move(what),
      type(*what.user.type), data(std::move(converted)) {
  belongs_to(*this, *of.comm);
}

io::Access FileRequest::access() const {
  return access_of(file, move, data, file.atomic);
}

LoneFileRequest::LoneFileRequest(Process& self, File& of, const FileMove& what,
                                 io::Converted&& converted)
    : FileRequest(self, of, what, std::move(converted), lone_class) {
  job.access = access();
  job.request = this;
}

CollectiveFileRequest::CollectiveFileRequest(Process& self, File& of, const FileMove& wanted,
                                             io::Converted&& converted)
    : FileRequest(self, of, wanted, std::move(converted), collective_class),
      what{access(), of.buffering, &self.instance->files.counters},
      operation(*self.instance->coll, of.comm->collective, of.comm->boards, of.comm->machines,
                &io::access_together, arguments) {
  arguments.extra = &what;
  operation.continuation = &on_collective_end;
  operation.argument = this;
  operation.function = self.function;
  operation.number = of.comm->sequence.count(self.function);
}

void Files::collect_done() {
  while (io::Job* const job = worker.collect())
    end(*static_cast<LoneFileRequest::LoneJob*>(job)->request, job->moved, std::move(job->failure));
}

// ---------------------------------------------------------------- checks

MPI_Count etypes_of(Process& self, const File& file, bool writes, const Data& user) {
  if (writes && (file.amode & MPI_MODE_RDONLY) != 0)
    base::fail(MPI_ERR_READ_ONLY,
               "{} is open with MPI_MODE_RDONLY; to write, open it with MPI_MODE_RDWR or "
               "MPI_MODE_WRONLY",
               file.path);
  if (!writes && (file.amode & MPI_MODE_WRONLY) != 0)
    base::fail(MPI_ERR_ACCESS,
               "{} is open with MPI_MODE_WRONLY; to read, open it with MPI_MODE_RDWR or "
               "MPI_MODE_RDONLY",
               file.path);
  const io::View& view = *file.view;
  const datatype::TypeRef in_file =
      view.representation().type_in_file(*user.type, self.types[MPI_BYTE]);
  const MPI_Count bytes = datatype::packed_size(*in_file, user.count);
  if (bytes % view.unit() != 0)
    base::fail(MPI_ERR_TYPE,
               "{} bytes are no whole etypes of the file's view, which have {}; count and datatype "
               "must make up whole ones",
               bytes, view.unit());
  return bytes / view.unit();
}

FileMove move_at(const File& file, bool writes, MPI_Offset offset, MPI_Count etypes,
                 const Data& user) {
  const MPI_Count position = file.view->position_of(offset, etypes * file.view->unit());
  return {writes, file.view, position, etypes, user};
}

void check_random(const File& file) {
  if ((file.amode & MPI_MODE_SEQUENTIAL) != 0)
    base::fail(MPI_ERR_UNSUPPORTED_OPERATION,
               "{} is open with MPI_MODE_SEQUENTIAL, which leaves the functions with the shared "
               "file pointer",
               file.path);
}

void check_no_split(const File& file) {
  if (file.split.name != nullptr)
    base::fail(MPI_ERR_OTHER, "{}_begin of this file has not met its end; call {}_end first",
               file.split.name, file.split.name);
}

// ---------------------------------------------------------------- how

MPI_Count move_alone(Process& self, File& file, const FileMove& move, MPI_Status* status) {
  const datatype::TypeRef type(*move.user.type); // another thread may free it meanwhile
  const bool atomic = file.atomic;
  std::size_t moved = 0, of_user = 0;
  io::Converted data(*move.view, move.user, self.types[MPI_BYTE]); // types are made with the lock
  {
    const LetGo let_go(self);
    if (move.writes) data.to_file();
    moved = io::move(access_of(file, move, data, atomic));
    of_user = moved_of_user(move, data, moved);
  }
  set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, of_user);
  count(self, move.writes, of_user);
  return move.etypes - move.view->etypes_in(static_cast<MPI_Count>(moved));
}

void begin_alone(Process& self, File& file, const FileMove& move, MPI_Request* request) {
  LoneFileRequest& made = *self.instance->files.lone.make(self, file, move, converted(self, move));
  ++file.under_way;
  *request = handle(made);
  if (self.runtime->has_real_time()) return self.instance->files.worker.begin(made.job);
  made.job.run();
  end(made, made.job.moved, std::move(made.job.failure));
}

namespace {

// What `make` makes, or no data and the error.
struct Wanted {
  FileMove move;
  std::optional<io::Converted> data;
  std::optional<base::Error> refused;
};

Wanted wanted(Process& self, const File& file, bool writes, const MakeMove& make) {
  Wanted all{{writes, file.view, 0, 0, {nullptr, 0, &self.types[MPI_BYTE]}}, {}, {}};
  all.refused = attempt([&] {
    const FileMove move = make();
    all.data.emplace(converted(self, move));
    all.move = move;
  });
  if (all.refused) all.data.emplace(converted(self, all.move));
  return all;
}

CollectiveFileRequest& begin(Process& self, File& file, Wanted& all) {
  CollectiveFileRequest& made =
      *self.instance->files.collective.make(self, file, all.move, std::move(*all.data));
  ++file.under_way;
  file.comm->sequence.start_nonblocking(made.operation);
  return made;
}

} // namespace

MPI_Count move_together(Process& self, File& file, bool writes, const MakeMove& make,
                        MPI_Status* status) {
  if (file.comm->size() == 1) return move_alone(self, file, make(), status);
  Wanted all = wanted(self, file, writes, make);
  CollectiveFileRequest& made = begin(self, file, all);
  self.instance->wait_until([&] { return made.complete; });
  const MPI_Count there = all.move.view->etypes_in(static_cast<MPI_Count>(made.what.moved));
  MPI_Request request = handle(made);
  finish_or_throw(self, &request, status);
  if (all.refused) throw *all.refused;
  return all.move.etypes - there;
}

void begin_together(Process& self, File& file, bool writes, const MakeMove& make,
                    MPI_Request* request) {
  if (file.comm->size() == 1) return begin_alone(self, file, make(), request);
  Wanted all = wanted(self, file, writes, make);
  MPI_Request begun = handle(begin(self, file, all));
  if (!all.refused) {
    *request = begun;
    return;
  }
  free(self, &begun);
  throw *all.refused;
}

void begin_split(Process& self, File& file, const char* name, bool writes, const MakeMove& make,
                 const void* buffer) {
  MPI_Request begun = MPI_REQUEST_NULL;
  begin_together(self, file, writes, make, &begun);
  file.split = {name, begun, buffer};
}

void end_split(Process& self, File& file, const char* name, const void* buffer,
               MPI_Status* status) {
  if (file.split.name == nullptr || std::string_view(file.split.name) != name)
    base::fail(MPI_ERR_OTHER, "{}_end without {}_begin before it on this file", name, name);
  if (buffer != file.split.buffer) base::fail(MPI_ERR_BUFFER, "buf is not that of {}_begin", name);
  MPI_Request request = std::exchange(file.split, {}).request;
  self.instance->wait_until([&] { return is_complete(request); });
  finish_or_throw(self, &request, status);
}

// ---------------------------------------------------------------- MPI's functions

namespace {

// At an offset that the caller gives.
FileMove at(Process& self, const File& file, bool writes, MPI_Offset offset, const void* buf,
            MPI_Count count, const Type& type) {
  check_random(file);
  const Data user{const_cast<void*>(buf), count, &type};
  return move_at(file, writes, offset, etypes_of(self, file, writes, user), user);
}

// The process's own pointer, during a call: behind all that is asked for, as another thread may go
// on from there meanwhile; at the end back by what is missing, which is all if the call fails.
struct OwnPointer {
  explicit OwnPointer(File& of) : file(of) {}
  OwnPointer(const OwnPointer&) = delete;
  OwnPointer& operator=(const OwnPointer&) = delete;
  ~OwnPointer() { file.position -= std::min(missing, file.position); }

  FileMove here(Process& self, bool writes, const void* buf, MPI_Count count, const Type& type) {
    const FileMove move = at(self, file, writes, file.position, buf, count, type);
    missing = move.etypes;
    file.position += missing;
    return move;
  }

  File& file;
  MPI_Count missing = 0;
};

} // namespace

// The forms of reading and of writing differ in their names and in `const`.
#define MACADAM_FILE_ACCESS(verb, writes, buffer)                                                  \
  void file_##verb(Process& self, File& file, buffer buf, MPI_Count count, const Type& type,       \
                   MPI_Status* status) {                                                           \
    OwnPointer pointer(file);                                                                      \
    const FileMove move = pointer.here(self, writes, buf, count, type);                            \
    pointer.missing = move_alone(self, file, move, status);                                        \
  }                                                                                                \
  void file_##verb##_at(Process& self, File& file, MPI_Offset offset, buffer buf, MPI_Count count, \
                        const Type& type, MPI_Status* status) {                                    \
    move_alone(self, file, at(self, file, writes, offset, buf, count, type), status);              \
  }                                                                                                \
  void file_i##verb(Process& self, File& file, buffer buf, MPI_Count count, const Type& type,      \
                    MPI_Request* request) {                                                        \
    OwnPointer pointer(file);                                                                      \
    begin_alone(self, file, pointer.here(self, writes, buf, count, type), request);                \
    pointer.missing = 0;                                                                           \
  }                                                                                                \
  void file_i##verb##_at(Process& self, File& file, MPI_Offset offset, buffer buf,                 \
                         MPI_Count count, const Type& type, MPI_Request* request) {                \
    begin_alone(self, file, at(self, file, writes, offset, buf, count, type), request);            \
  }                                                                                                \
  void file_##verb##_all(Process& self, File& file, buffer buf, MPI_Count count, const Type& type, \
                         MPI_Status* status) {                                                     \
    check_no_split(file);                                                                          \
    OwnPointer pointer(file);                                                                      \
    const auto make = [&] { return pointer.here(self, writes, buf, count, type); };                \
    pointer.missing = move_together(self, file, writes, make, status);                             \
  }                                                                                                \
  void file_##verb##_at_all(Process& self, File& file, MPI_Offset offset, buffer buf,              \
                            MPI_Count count, const Type& type, MPI_Status* status) {               \
    check_no_split(file);                                                                          \
    const auto make = [&] { return at(self, file, writes, offset, buf, count, type); };            \
    move_together(self, file, writes, make, status);                                               \
  }                                                                                                \
  void file_i##verb##_all(Process& self, File& file, buffer buf, MPI_Count count,                  \
                          const Type& type, MPI_Request* request) {                                \
    check_no_split(file);                                                                          \
    OwnPointer pointer(file);                                                                      \
    const auto make = [&] { return pointer.here(self, writes, buf, count, type); };                \
    begin_together(self, file, writes, make, request);                                             \
    pointer.missing = 0;                                                                           \
  }                                                                                                \
  void file_i##verb##_at_all(Process& self, File& file, MPI_Offset offset, buffer buf,             \
                             MPI_Count count, const Type& type, MPI_Request* request) {            \
    check_no_split(file);                                                                          \
    const auto make = [&] { return at(self, file, writes, offset, buf, count, type); };            \
    begin_together(self, file, writes, make, request);                                             \
  }                                                                                                \
  void file_##verb##_all_begin(Process& self, File& file, buffer buf, MPI_Count count,             \
                               const Type& type) {                                                 \
    check_no_split(file);                                                                          \
    OwnPointer pointer(file);                                                                      \
    const auto make = [&] { return pointer.here(self, writes, buf, count, type); };                \
    begin_split(self, file, "MPI_File_" #verb "_all", writes, make, buf);                          \
    pointer.missing = 0;                                                                           \
  }                                                                                                \
  void file_##verb##_all_end(Process& self, File& file, buffer buf, MPI_Status* status) {          \
    end_split(self, file, "MPI_File_" #verb "_all", buf, status);                                  \
  }                                                                                                \
  void file_##verb##_at_all_begin(Process& self, File& file, MPI_Offset offset, buffer buf,        \
                                  MPI_Count count, const Type& type) {                             \
    check_no_split(file);                                                                          \
    const auto make = [&] { return at(self, file, writes, offset, buf, count, type); };            \
    begin_split(self, file, "MPI_File_" #verb "_at_all", writes, make, buf);                       \
  }                                                                                                \
  void file_##verb##_at_all_end(Process& self, File& file, buffer buf, MPI_Status* status) {       \
    end_split(self, file, "MPI_File_" #verb "_at_all", buf, status);                               \
  }                                                                                                \
  static_assert(true)

MACADAM_FILE_ACCESS(read, false, void*);
MACADAM_FILE_ACCESS(write, true, const void*);

#undef MACADAM_FILE_ACCESS

} // namespace macadam::mpi
