// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace macadam::boot {

// The fields of a packet between processes of one machine, one after the other. They are read in
// the order in which they were written.
class PacketWriter {
 public:
  template <class Field>
  requires std::is_trivially_copyable_v<Field>
  void value(const Field& field) { append(&field, sizeof field); }
  void text(std::string_view text) {
    value(static_cast<std::uint32_t>(text.size()));
    append(text.data(), text.size());
  }
  // The bytes of another packet.
  void raw(std::string_view bytes) { append(bytes.data(), bytes.size()); }
  void append(const PacketWriter& other) { append(other.bytes_.data(), other.bytes_.size()); }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }
  // The same as the bytes of a text, valid as long as the packet is not changed.
  [[nodiscard]] std::string_view view() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  void append(const void* data, std::size_t count) {
    if (count == 0) return;
    const std::size_t used = bytes_.size();
    bytes_.resize(used + count);
    std::memcpy(bytes_.data() + used, data, count);
  }

  std::vector<std::byte> bytes_;
};

// A packet that was a field of another.
inline std::vector<std::byte> as_bytes(std::string_view text) {
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

// Throws MPI_ERR_OTHER where the packet ends too early.
class PacketReader {
 public:
  PacketReader() = default;
  explicit PacketReader(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  template <class Field>
  requires std::is_trivially_copyable_v<Field> Field value() {
    Field field;
    std::memcpy(&field, next(sizeof field), sizeof field);
    return field;
  }
  std::string text() {
    const auto length = value<std::uint32_t>();
    return {reinterpret_cast<const char*>(next(length)), length};
  }
  // What has not been read.
  [[nodiscard]] std::string_view rest() const {
    return {reinterpret_cast<const char*>(bytes_.data()) + read_, bytes_.size() - read_};
  }

 private:
  const std::byte* next(std::size_t count) {
    if (count > bytes_.size() - read_)
      base::fail(MPI_ERR_OTHER, "a control packet of {} bytes ends within a field of {}",
                 bytes_.size(), count);
    read_ += count;
    return bytes_.data() + (read_ - count);
  }

  std::vector<std::byte> bytes_;
  std::size_t read_ = 0;
};

} // namespace macadam::boot
