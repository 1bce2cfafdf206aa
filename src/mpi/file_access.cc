// SPDX-License-Identifier: BSD-3-Clause
// Files read and written: at offsets that are given, and at the process's own pointer.
#include "mpi/calls.h"
#include "mpi/collectives.h"
#include "mpi/file.h"
#include "mpi/process.h"

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
std::string failure_of(const LayerRequest& request) {
  return request.failure;
}

constexpr RequestClass lone_class{
    .name = "access to a file", .destroy = destroy_lone, .failure = failure_of};
constexpr RequestClass collective_class{
    .name = "collective access to a file", .destroy = destroy_collective, .failure = failure_of};

// Ends a request whose data have been moved, or not.
void end(FileRequest& request, std::size_t moved, std::optional<base::Error> failure) noexcept {
  engine::Status status;
  try {
    if (!failure)
      moved = request.writes
                  ? request.bytes
                  : static_cast<std::size_t>(request.data.from_file(static_cast<MPI_Count>(moved)));
  } catch (...) {
    failure = base::caught("to convert what was read");
  }
  status.bytes = moved;
  if (failure) {
    status.error = failure->error_class;
    status.bytes = 0;
    request.failure = std::move(failure->text);
  }
  --request.file.under_way;
  complete(request.process, request, status);
}

void on_collective_end(coll::Collective& operation, void* argument) noexcept {
  auto& request = *static_cast<CollectiveFileRequest*>(argument);
  std::optional<base::Error> failure;
  if (operation.error()) {
    try {
      operation.rethrow();
    } catch (...) {
      failure = base::caught("to read or write a file together");
    }
  }
  end(request, request.what.moved, std::move(failure));
}

} // namespace

FileRequest::FileRequest(Process& self, File& of, bool writing, MPI_Offset position,
                         const Data& user, const RequestClass& how)
    : LayerRequest(engine::Role::combined, how), process(self), file(of), writes(writing),
      view(of.view), type(*user.type), bytes(user.bytes()),
      data(*view, user, self.types[MPI_BYTE]), access{&*of.disk, view.get(),
                                                      position * view->unit(), data.stream(),
                                                      of.atomic} {
  if (writes) data.to_file();
  belongs_to(*this, *of.comm);
}

LoneFileRequest::LoneFileRequest(Process& self, File& of, bool writing, MPI_Offset position,
                                 const Data& user)
    : FileRequest(self, of, writing, position, user, lone_class) {
  job.access = access;
  job.writes = writing;
  job.request = this;
}

CollectiveFileRequest::CollectiveFileRequest(Process& self, File& of, bool writing,
                                             MPI_Offset position, const Data& user)
    : FileRequest(self, of, writing, position, user, collective_class),
      what{access, writing, &of.buffering, &self.instance->files.buffering},
      operation(*self.instance->coll, of.comm->collective, of.comm->boards, of.comm->machines,
                &io::access_together, arguments) {
  arguments.extra = &what;
  operation.continuation = &on_collective_end;
  operation.argument = this;
  operation.function = self.function;
}

void Files::collect_done(Process&) {
  while (io::Job* const job = worker.collect())
    end(*static_cast<LoneFileRequest::LoneJob*>(job)->request, job->moved, std::move(job->failure));
}

// ---------------------------------------------------------------- checks

MPI_Count etypes_of(Process& self, const File& file, const Data& user) {
  const io::View& view = *file.view;
  const MPI_Count element =
      view.representation().converts()
          ? view.representation().type_in_file(*user.type, self.types[MPI_BYTE])->size()
          : user.type->size();
  const MPI_Count bytes = element * user.count;
  if (bytes % view.unit() != 0)
    base::fail(MPI_ERR_TYPE,
               "{} bytes are no whole etypes of the file's view, which have {}; count and datatype "
               "must make up whole ones",
               bytes, view.unit());
  return bytes / view.unit();
}

void check_move(Process& self, const File& file, bool writes, const Data& user) {
  if (writes && (file.amode & MPI_MODE_RDONLY) != 0)
    base::fail(MPI_ERR_READ_ONLY,
               "{} is open with MPI_MODE_RDONLY; to write, open it with "
               "MPI_MODE_RDWR or MPI_MODE_WRONLY",
               file.path);
  if (!writes && (file.amode & MPI_MODE_WRONLY) != 0)
    base::fail(MPI_ERR_ACCESS,
               "{} is open with MPI_MODE_WRONLY; to read, open it with "
               "MPI_MODE_RDWR or MPI_MODE_RDONLY",
               file.path);
  static_cast<void>(etypes_of(self, file, user));
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

namespace {

MPI_Offset etypes_in(const io::View& view, std::size_t bytes) {
  const auto whole = static_cast<MPI_Count>(bytes);
  return whole / view.unit() + (whole % view.unit() != 0 ? 1 : 0);
}

} // namespace

MPI_Offset move_alone(Process& self, File& file, const FileMove& move, MPI_Status* status) {
  // Another thread may set another view meanwhile.
  const std::shared_ptr<const io::View> view = file.view;
  io::Converted data(*view, move.user, self.types[MPI_BYTE]);
  if (move.writes) data.to_file();
  const io::Access access{&*file.disk, view.get(), move.offset * view->unit(), data.stream(),
                          file.atomic};
  std::size_t moved = 0;
  {
    const LetGo let_go(self);
    moved = move.writes ? io::write(access) : io::read(access);
  }
  const MPI_Count bytes = move.writes ? static_cast<MPI_Count>(move.user.bytes())
                                      : data.from_file(static_cast<MPI_Count>(moved));
  set_status(status, MPI_UNDEFINED, MPI_UNDEFINED, static_cast<std::uint64_t>(bytes));
  return etypes_in(*view, moved);
}

void begin_alone(Process& self, File& file, const FileMove& move, MPI_Request* request) {
  LoneFileRequest& made =
      *self.instance->files.lone.make(self, file, move.writes, move.offset, move.user);
  *request = handle(made);
  ++file.under_way;
  if (self.runtime->has_real_time()) return self.instance->files.worker.begin(made.job);
  made.job.run();
  end(made, made.job.moved, std::move(made.job.failure));
}

namespace {

CollectiveFileRequest& begun(Process& self, File& file, const FileMove& move) {
  CollectiveFileRequest& made =
      *self.instance->files.collective.make(self, file, move.writes, move.offset, move.user);
  ++file.under_way;
  file.comm->sequence.start_nonblocking(made.operation);
  return made;
}

} // namespace

void begin_together(Process& self, File& file, const FileMove& move, MPI_Request* request) {
  *request = handle(begun(self, file, move));
}

MPI_Offset move_together(Process& self, File& file, const FileMove& move, MPI_Status* status) {
  CollectiveFileRequest& made = begun(self, file, move);
  self.instance->wait_until([&] { return made.complete; });
  const MPI_Offset etypes = etypes_in(*made.view, made.what.moved);
  MPI_Request request = handle(made);
  finish_or_throw(self, &request, status);
  return etypes;
}

void begin_split(Process& self, File& file, const char* name, const FileMove& move) {
  file.split.name = name;
  file.split.buffer = move.user.address;
  begin_together(self, file, move, &file.split.request);
}

void end_split(Process& self, File& file, const char* name, const void* buffer,
               MPI_Status* status) {
  if (file.split.name == nullptr || std::string_view(file.split.name) != name)
    base::fail(MPI_ERR_OTHER, "{}_end without {}_begin before it on this file", name, name);
  if (buffer != file.split.buffer) base::fail(MPI_ERR_BUFFER, "buf is not that of {}_begin", name);
  file.split.name = nullptr;
  MPI_Request request = std::exchange(file.split.request, MPI_REQUEST_NULL);
  self.instance->wait_until([&] { return is_complete(request); });
  finish_or_throw(self, &request, status);
}

// ---------------------------------------------------------------- MPI's functions

namespace {

// At an offset that the caller gives.
FileMove at(Process& self, const File& file, bool writes, MPI_Offset offset, const void* buf,
            MPI_Count count, const Type& type) {
  check_random(file);
  if (offset < 0) base::fail(MPI_ERR_ARG, "offset is {}, needed: 0 or more", offset);
  const Data user{const_cast<void*>(buf), count, &type};
  check_move(self, file, writes, user);
  return {writes, offset, user};
}

// At the process's own pointer, which goes on behind all that is asked for; a call that waits lets
// it stay behind what there was.
FileMove here(Process& self, File& file, bool writes, const void* buf, MPI_Count count,
              const Type& type) {
  const FileMove move = at(self, file, writes, file.position, buf, count, type);
  file.position += etypes_of(self, file, move.user);
  return move;
}
void end_here(Process& self, File& file, const FileMove& move, MPI_Offset etypes) {
  // Another thread may have gone on from there.
  file.position -= etypes_of(self, file, move.user) - etypes;
}

} // namespace

// The forms of reading and of writing differ in their names and in `const`.
#define MACADAM_FILE_ACCESS(verb, writes, buffer)                                                  \
  void file_##verb(Process& self, File& file, buffer buf, MPI_Count count, const Type& type,       \
                   MPI_Status* status) {                                                           \
    const FileMove move = here(self, file, writes, buf, count, type);                              \
    end_here(self, file, move, move_alone(self, file, move, status));                              \
  }                                                                                                \
  void file_##verb##_at(Process& self, File& file, MPI_Offset offset, buffer buf, MPI_Count count, \
                        const Type& type, MPI_Status* status) {                                    \
    move_alone(self, file, at(self, file, writes, offset, buf, count, type), status);              \
  }                                                                                                \
  void file_i##verb(Process& self, File& file, buffer buf, MPI_Count count, const Type& type,      \
                    MPI_Request* request) {                                                        \
    begin_alone(self, file, here(self, file, writes, buf, count, type), request);                  \
  }                                                                                                \
  void file_i##verb##_at(Process& self, File& file, MPI_Offset offset, buffer buf,                 \
                         MPI_Count count, const Type& type, MPI_Request* request) {                \
    begin_alone(self, file, at(self, file, writes, offset, buf, count, type), request);            \
  }                                                                                                \
  void file_##verb##_all(Process& self, File& file, buffer buf, MPI_Count count, const Type& type, \
                         MPI_Status* status) {                                                     \
    check_no_split(file);                                                                          \
    const FileMove move = here(self, file, writes, buf, count, type);                              \
    end_here(self, file, move, move_together(self, file, move, status));                           \
  }                                                                                                \
  void file_##verb##_at_all(Process& self, File& file, MPI_Offset offset, buffer buf,              \
                            MPI_Count count, const Type& type, MPI_Status* status) {               \
    check_no_split(file);                                                                          \
    move_together(self, file, at(self, file, writes, offset, buf, count, type), status);           \
  }                                                                                                \
  void file_i##verb##_all(Process& self, File& file, buffer buf, MPI_Count count,                  \
                          const Type& type, MPI_Request* request) {                                \
    check_no_split(file);                                                                          \
    begin_together(self, file, here(self, file, writes, buf, count, type), request);               \
  }                                                                                                \
  void file_i##verb##_at_all(Process& self, File& file, MPI_Offset offset, buffer buf,             \
                             MPI_Count count, const Type& type, MPI_Request* request) {            \
    check_no_split(file);                                                                          \
    begin_together(self, file, at(self, file, writes, offset, buf, count, type), request);         \
  }                                                                                                \
  void file_##verb##_all_begin(Process& self, File& file, buffer buf, MPI_Count count,             \
                               const Type& type) {                                                 \
    check_no_split(file);                                                                          \
    begin_split(self, file, "MPI_File_" #verb "_all", here(self, file, writes, buf, count, type)); \
  }                                                                                                \
  void file_##verb##_all_end(Process& self, File& file, buffer buf, MPI_Status* status) {          \
    end_split(self, file, "MPI_File_" #verb "_all", buf, status);                                  \
  }                                                                                                \
  void file_##verb##_at_all_begin(Process& self, File& file, MPI_Offset offset, buffer buf,        \
                                  MPI_Count count, const Type& type) {                             \
    check_no_split(file);                                                                          \
    begin_split(self, file, "MPI_File_" #verb "_at_all",                                           \
                at(self, file, writes, offset, buf, count, type));                                 \
  }                                                                                                \
  void file_##verb##_at_all_end(Process& self, File& file, buffer buf, MPI_Status* status) {       \
    end_split(self, file, "MPI_File_" #verb "_at_all", buf, status);                               \
  }                                                                                                \
  static_assert(true)

MACADAM_FILE_ACCESS(read, false, void*);
MACADAM_FILE_ACCESS(write, true, const void*);

#undef MACADAM_FILE_ACCESS

} // namespace macadam::mpi
