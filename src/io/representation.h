// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/type.h"

#include <mpi.h>

#include <string>
#include <utility>

namespace macadam::io {

// How data lie in a file (MPI 5.0, section 14.5). That of a program is of the layer above.
class Representation {
 public:
  explicit Representation(std::string name) : name_(std::move(name)) {}
  Representation(const Representation&) = delete;
  Representation& operator=(const Representation&) = delete;
  virtual ~Representation() = default;

  [[nodiscard]] const std::string& name() const { return name_; }
  // Whether data differ from those in memory. If not, the next three are never called.
  [[nodiscard]] virtual bool converts() const = 0;
  // The extent of a predefined type in the file, in bytes.
  [[nodiscard]] virtual MPI_Count extent_of(const datatype::Type& basic) const = 0;
  // Elements at `buffer` to contiguous data of the file. Throws base::Error, as the next one does.
  virtual void to_file(const datatype::Type& type, const void* buffer, MPI_Count count,
                       void* data) const = 0;
  // Back: the basic elements that are whole in `bytes` bytes of data, which end in the last of
  // `count` elements or with it. Returns their bytes in memory.
  virtual MPI_Count from_file(const datatype::Type& type, const void* data, MPI_Count bytes,
                              MPI_Count count, void* buffer) const = 0;

  // A type as it lies in the file, made of `byte` (MPI_BYTE) if it differs; committed.
  [[nodiscard]] datatype::TypeRef type_in_file(const datatype::Type& type,
                                               const datatype::Type& byte) const;

 private:
  const std::string name_;
};

// "native" and "internal": as in memory.
class NativeRepresentation final : public Representation {
 public:
  using Representation::Representation;
  [[nodiscard]] bool converts() const override { return false; }
  [[nodiscard]] MPI_Count extent_of(const datatype::Type& basic) const override;
  void to_file(const datatype::Type&, const void*, MPI_Count, void*) const override {}
  MPI_Count from_file(const datatype::Type&, const void*, MPI_Count bytes, MPI_Count,
                      void*) const override {
    return bytes;
  }
};

// "external32": portable, big-endian.
class External32 final : public Representation {
 public:
  External32() : Representation("external32") {}
  [[nodiscard]] bool converts() const override { return true; }
  [[nodiscard]] MPI_Count extent_of(const datatype::Type& basic) const override;
  void to_file(const datatype::Type& type, const void* buffer, MPI_Count count,
               void* data) const override;
  MPI_Count from_file(const datatype::Type& type, const void* data, MPI_Count bytes,
                      MPI_Count count, void* buffer) const override;
};

} // namespace macadam::io
