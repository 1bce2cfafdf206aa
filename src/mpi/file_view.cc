// SPDX-License-Identifier: BSD-3-Clause
// Views of files, positions in them, and data representations.
#include "datatype/constructors.h"
#include "datatype/cursor.h"
#include "mpi/callback.h"
#include "mpi/calls.h"
#include "mpi/collectives.h"
#include "mpi/file.h"
#include "mpi/process.h"
#include "mpi/types.h"

#include <cstring>
#include <utility>
#include <variant>

namespace macadam::mpi {

using datatype::PackCursor;
using datatype::Type;

namespace {

bool is_null(const ConversionFunction& function) {
  return std::visit([](auto* each) { return each == nullptr; }, function);
}

// Its conversions and extents are functions of the program. Where it has no function, data are as
// in memory.
class UserRepresentation final : public io::Representation {
 public:
  UserRepresentation(const char* name, ConversionFunction reads, ConversionFunction writes,
                     MPI_Datarep_extent_function* extent, void* state)
      : Representation(name), reads_(reads), writes_(writes), extent_(extent), state_(state) {}

  [[nodiscard]] bool converts() const override { return !is_null(reads_) || !is_null(writes_); }
  [[nodiscard]] MPI_Count extent_of(const Type& basic) const override {
    MPI_Aint extent = 0;
    check("the extent function", [&] { return extent_(basic.handle(), &extent, state_); });
    return extent;
  }
  void to_file(const Type& type, const void* buffer, MPI_Count count, void* data) const override {
    const MPI_Count bytes = datatype::packed_size(type, count);
    if (!is_null(writes_))
      return convert(writes_, "the write conversion function", type, const_cast<void*>(buffer),
                     bytes, data);
    check_as_in_memory(type, "write");
    PackCursor(type, buffer, count).pack(data, static_cast<std::size_t>(bytes));
  }
  MPI_Count from_file(const Type& type, const void* data, MPI_Count bytes, MPI_Count count,
                      void* buffer) const override {
    const MPI_Count whole = whole_in(type, bytes);
    if (!is_null(reads_)) {
      convert(reads_, "the read conversion function", type, buffer, whole, const_cast<void*>(data));
      return whole;
    }
    check_as_in_memory(type, "read");
    PackCursor(type, buffer, count).unpack(data, static_cast<std::size_t>(whole));
    return whole;
  }

 private:
  template <class Call>
  void check(const char* callback, Call&& call) const {
    const int code = run_callback_locked(anytime(), callback, call);
    if (code == MPI_SUCCESS) return;
    base::fail(MPI_ERR_CONVERSION, "{} of the data representation {} returned error {}", callback,
               name(), code);
  }
  // All data in one call, from position 0 on; so many bytes in memory. A function counts the basic
  // elements inside.
  void convert(const ConversionFunction& function, const char* callback, const Type& type,
               void* buffer, MPI_Count bytes, void* data) const {
    const MPI_Count items = datatype::elements_in(type, bytes);
    if (const auto* large = std::get_if<MPI_Datarep_conversion_function_c*>(&function))
      return check(callback,
                   [&] { return (*large)(buffer, type.handle(), items, data, 0, state_); });
    auto* const small = std::get<MPI_Datarep_conversion_function*>(function);
    if (items > INT32_MAX)
      base::fail(MPI_ERR_COUNT,
                 "{} elements are more than {} of the data representation {} takes; "
                 "register it with MPI_Register_datarep_c",
                 items, callback, name());
    check(callback,
          [&] { return small(buffer, type.handle(), static_cast<int>(items), data, 0, state_); });
  }
  void check_as_in_memory(const Type& type, const char* verb) const {
    const MPI_Count size = size_in_file(type);
    if (size != type.size())
      base::fail(MPI_ERR_CONVERSION,
                 "{} has {} bytes in memory and {} in a file of the data representation {}, which "
                 "has no {} conversion function; register one, or the extents of memory",
                 datatype::describe(type), type.size(), size, name(), verb);
  }

  [[nodiscard]] MPI_Count size_in_file(const Type& type) const {
    if (type.predefined()) return extent_of(type);
    MPI_Count size = 0;
    for (const datatype::Part& part : type.shape().parts)
      size += part.length * size_in_file(*part.type);
    return type.shape().repeat * size;
  }
  // Bytes in memory of the predefined types that are whole in the first `bytes` bytes of data.
  [[nodiscard]] MPI_Count whole_in(const Type& type, MPI_Count bytes) const {
    const MPI_Count size = size_in_file(type);
    if (size == 0) return 0;
    const MPI_Count whole = bytes / size * type.size();
    MPI_Count rest = bytes % size;
    if (rest == 0 || type.predefined()) return whole;
    // The repetitions that are whole, then the parts, then into the part that is cut.
    const datatype::Shape& shape = type.shape();
    MPI_Count found = whole + rest / (size / shape.repeat) * (type.size() / shape.repeat);
    rest %= size / shape.repeat;
    for (const datatype::Part& part : shape.parts) {
      const MPI_Count of_part = part.length * size_in_file(*part.type);
      if (rest < of_part) return found + whole_in(*part.type, rest);
      rest -= of_part;
      found += part.length * part.type->size();
    }
    return found;
  }

  const ConversionFunction reads_, writes_;
  MPI_Datarep_extent_function* const extent_;
  void* const state_;
};

std::shared_ptr<const io::Representation> representation_of(Process& self, const char* name) {
  const auto& known = self.instance->files.representations;
  const auto found = known.find(std::string_view(name));
  if (found != known.end()) return found->second;
  base::fail(MPI_ERR_UNSUPPORTED_DATAREP,
             "the data representation {} is not known; there are native, internal, external32, and "
             "what MPI_Register_datarep adds",
             name);
}

} // namespace

void register_datarep(Process& self, const char* datarep, ConversionFunction reads,
                      ConversionFunction writes, MPI_Datarep_extent_function* extent,
                      void* extra_state) {
  const std::size_t length = std::strlen(datarep);
  if (length == 0 || length >= MPI_MAX_DATAREP_STRING)
    base::fail(MPI_ERR_ARG, "datarep has {} characters, needed: 1 to {}", length,
               MPI_MAX_DATAREP_STRING - 1);
  if (extent == nullptr) base::fail(MPI_ERR_ARG, "dtype_file_extent_fn is null");
  auto& known = self.instance->files.representations;
  if (known.contains(std::string_view(datarep)))
    base::fail(MPI_ERR_DUP_DATAREP, "the data representation {} is there already", datarep);
  known.emplace(datarep,
                std::make_shared<UserRepresentation>(datarep, reads, writes, extent, extra_state));
}

// ---------------------------------------------------------------- views

namespace {

MPI_Count extent_in_file(Process& self, const io::View& view, const Type& type) {
  return view.representation().type_in_file(type, self.types[MPI_BYTE])->extent();
}

void check_displacement(MPI_Offset disp, bool sequential) {
  const bool current = disp == MPI_DISPLACEMENT_CURRENT;
  if (current && !sequential)
    base::fail(MPI_ERR_ARG, "disp is MPI_DISPLACEMENT_CURRENT, which is for files opened with "
                            "MPI_MODE_SEQUENTIAL");
  if (!current && sequential)
    base::fail(MPI_ERR_ARG,
               "disp is {} in a file opened with MPI_MODE_SEQUENTIAL, needed: "
               "MPI_DISPLACEMENT_CURRENT",
               disp);
  if (disp < 0 && !current) base::fail(MPI_ERR_ARG, "disp is {}, needed: 0 or more", disp);
}

} // namespace

void file_set_view(Process& self, File& file, MPI_Offset disp, const Type& etype,
                   const Type& filetype, const char* datarep, Info* info) {
  check_no_split(file);
  const bool sequential = (file.amode & MPI_MODE_SEQUENTIAL) != 0;
  const MPI_Offset shared = sequential ? shared_position(self, file) : 0;
  std::shared_ptr<const io::View> view;
  MPI_Count extent = 0; // of the etype, in the file
  agree(self, *file.comm, attempt([&] {
          check_displacement(disp, sequential);
          const MPI_Offset begin =
              sequential ? file.view->offset_of(file.view->position_of(shared)) : disp;
          view = std::make_shared<io::View>(begin, etype, filetype,
                                            representation_of(self, datarep), self.types[MPI_BYTE]);
          if (view->overlaps() && (file.amode & MPI_MODE_RDONLY) == 0)
            base::fail(MPI_ERR_ARG, "filetype has data that overlap, which MPI allows if the file "
                                    "is open with MPI_MODE_RDONLY only");
          extent = extent_in_file(self, *view, etype);
        }));
  check_same(self, file, fmt::format("etype has extent {} and datarep is {}", extent, datarep));
  set_shared_pointer(self, file, 0);
  file.view = std::move(view);
  file.position = 0;
  agree_on_buffering(self, file, info);
}

namespace {

// What MPI_File_get_view gives out: predefined types as they are, others as copies to be freed.
MPI_Datatype given_out(const Type& type) {
  if (permanent(type)) return type.handle();
  datatype::TypeRef copy = datatype::dup(type);
  copy->commit();
  return copy.release()->handle();
}

} // namespace

void file_get_view(Process&, File& file, MPI_Offset* disp, MPI_Datatype* etype,
                   MPI_Datatype* filetype, char* datarep) {
  *disp = file.view->displacement();
  *etype = given_out(file.view->etype());
  *filetype = given_out(file.view->filetype());
  datarep[file.view->representation().name().copy(datarep, MPI_MAX_DATAREP_STRING - 1)] = '\0';
}

void file_get_type_extent(Process& self, File& file, const Type& type, MPI_Count* extent) {
  *extent = extent_in_file(self, *file.view, type);
}

// ---------------------------------------------------------------- positions

MPI_Offset end_of(const File& file) {
  const io::View& view = *file.view;
  return view.etypes_in(view.data_before(file.disk->size()));
}

MPI_Offset sought(const File& file, MPI_Offset offset, int whence, MPI_Offset current) {
  MPI_Offset from = 0;
  if (whence == MPI_SEEK_CUR)
    from = current;
  else if (whence == MPI_SEEK_END)
    from = end_of(file);
  else if (whence != MPI_SEEK_SET)
    base::fail(MPI_ERR_ARG, "whence is {}, needed: MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END",
               whence);
  MPI_Offset position = 0;
  if (__builtin_add_overflow(from, offset, &position) || position < 0)
    base::fail(MPI_ERR_ARG, "offset {} from position {} is before the begin of the view", offset,
               from);
  return position;
}

void file_seek(Process&, File& file, MPI_Offset offset, int whence) {
  check_random(file);
  file.position = sought(file, offset, whence, file.position);
}

void file_get_position(Process&, File& file, MPI_Offset* offset) {
  check_random(file);
  *offset = file.position;
}

void file_get_byte_offset(Process&, File& file, MPI_Offset offset, MPI_Offset* disp) {
  check_random(file);
  *disp = file.view->offset_of(file.view->position_of(offset));
}

} // namespace macadam::mpi
