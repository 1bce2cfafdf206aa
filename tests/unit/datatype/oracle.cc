// SPDX-License-Identifier: BSD-3-Clause
#include "oracle.h"

#include <algorithm>

namespace oracle {

namespace datatype = macadam::datatype;

std::int64_t TypeMap::true_lb() const {
  std::int64_t low = entries.empty() ? 0 : INT64_MAX;
  for (const Entry& e : entries)
    low = std::min(low, e.displacement);
  return low;
}

std::int64_t TypeMap::true_ub() const {
  std::int64_t high = entries.empty() ? 0 : INT64_MIN;
  for (const Entry& e : entries)
    high = std::max(high, e.displacement + e.size);
  return high;
}

std::int64_t TypeMap::lb() const {
  return lb_markers.empty() ? true_lb() : *std::min_element(lb_markers.begin(), lb_markers.end());
}

std::int64_t TypeMap::ub() const {
  const auto& from = ub_markers.empty() ? ends : ub_markers;
  return from.empty() ? 0 : *std::max_element(from.begin(), from.end());
}

std::int64_t TypeMap::size() const {
  std::int64_t sum = 0;
  for (const Entry& e : entries)
    sum += e.size;
  return sum;
}

std::vector<std::int64_t> TypeMap::bytes(std::int64_t count) const {
  std::vector<std::int64_t> result;
  const std::int64_t step = extent();
  for (std::int64_t i = 0; i < count; ++i) {
    for (const Entry& e : entries) {
      for (std::int64_t b = 0; b < e.size; ++b)
        result.push_back(i * step + e.displacement + b);
    }
  }
  return result;
}

TypeMap basic(MPI_Datatype handle) {
  // Pairs are structs of two basic types; the others are one entry.
  if (handle == MPI_DOUBLE_INT) return {{{0, 8, 8}, {8, 4, 4}}, {16}, {}, {}};
  if (handle == MPI_SHORT_INT) return {{{0, 2, 2}, {4, 4, 4}}, {8}, {}, {}};
  const std::int64_t size = predefined()[handle].size();
  return {{{0, size, size}}, {size}, {}, {}};
}

void pad(TypeMap& map) {
  if (!map.ub_markers.empty() || map.entries.empty()) return;
  std::int64_t alignment = 1;
  for (const Entry& e : map.entries)
    alignment = std::max(alignment, e.alignment);
  std::int64_t end = map.ub();
  while ((end - map.lb()) % alignment != 0)
    ++end;
  map.ends.push_back(end);
}

void append(TypeMap& map, std::int64_t displacement, std::int64_t length, const TypeMap& old) {
  const std::int64_t extent = old.extent();
  for (std::int64_t i = 0; i < length; ++i) {
    const std::int64_t at = displacement + i * extent;
    for (Entry e : old.entries) {
      e.displacement += at;
      map.entries.push_back(e);
    }
    for (const std::int64_t end : old.ends)
      map.ends.push_back(end + at);
    for (const std::int64_t m : old.lb_markers)
      map.lb_markers.push_back(m + at);
    for (const std::int64_t m : old.ub_markers)
      map.ub_markers.push_back(m + at);
  }
}

TypeMap contiguous(std::int64_t count, const TypeMap& old) {
  TypeMap map;
  append(map, 0, count, old);
  return map;
}

TypeMap hvector(std::int64_t count, std::int64_t blocklength, std::int64_t stride,
                const TypeMap& old) {
  TypeMap map;
  for (std::int64_t i = 0; i < count; ++i)
    append(map, i * stride, blocklength, old);
  return map;
}

TypeMap hindexed(const std::vector<std::int64_t>& blocklengths,
                 const std::vector<std::int64_t>& displacements, const TypeMap& old) {
  TypeMap map;
  for (std::size_t i = 0; i < blocklengths.size(); ++i) {
    append(map, displacements[i], blocklengths[i], old);
  }
  return map;
}

TypeMap resized(const TypeMap& old, std::int64_t lb, std::int64_t extent) {
  return {old.entries, old.ends, {lb}, {lb + extent}};
}

const datatype::PredefinedTypes& predefined() {
  static const datatype::PredefinedTypes types;
  return types;
}

namespace {

class Generator {
 public:
  explicit Generator(std::mt19937& random) : random_(random) {}

  Sample sample(int depth) {
    if (depth == 0) return leaf();
    Sample old = sample(depth - 1);
    if (old.map.entries.size() > 300) return old; // keep the literal lists short
    switch (number(0, 9)) {
    case 0:
      return contiguous(old);
    case 1:
      return vector(old);
    case 2:
      return hvector(old);
    case 3:
      return indexed(old);
    case 4:
      return hindexed(old);
    case 5:
      return indexed_block(old);
    case 6:
      return resized(old);
    case 7:
      return {datatype::dup(*old.type), old.map};
    case 8:
      return subarray(old);
    default:
      return struct_(old, depth);
    }
  }

 private:
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

  std::vector<std::int64_t> numbers(std::size_t count, std::int64_t low, std::int64_t high) {
    std::vector<std::int64_t> result(count);
    for (auto& n : result)
      n = number(low, high);
    return result;
  }

  Sample leaf() {
    static const MPI_Datatype leaves[] = {
        MPI_CHAR,       MPI_SHORT,     MPI_INT,         MPI_DOUBLE, MPI_INT,
        MPI_DOUBLE_INT, MPI_SHORT_INT, MPI_LONG_DOUBLE, MPI_DOUBLE, MPI_BYTE};
    const MPI_Datatype handle = leaves[number(0, 9)];
    return {TypeRef(predefined()[handle]), basic(handle)};
  }

  Sample contiguous(const Sample& old) {
    const auto count = number(0, 5);
    return {datatype::contiguous(count, *old.type), oracle::contiguous(count, old.map)};
  }

  Sample vector(const Sample& old) {
    const auto count = number(0, 5);
    const auto blocklength = number(0, 3);
    const auto stride = number(-2, 6);
    return {datatype::vector(count, blocklength, stride, *old.type),
            oracle::hvector(count, blocklength, stride * old.map.extent(), old.map)};
  }

  Sample hvector(const Sample& old) {
    const auto count = number(0, 5);
    const auto blocklength = number(0, 3);
    const auto stride = number(-40, 90);
    return {datatype::hvector(count, blocklength, stride, *old.type),
            oracle::hvector(count, blocklength, stride, old.map)};
  }

  Sample indexed(const Sample& old) {
    const auto count = static_cast<std::size_t>(number(0, 5));
    const auto lengths = numbers(count, 0, 3);
    auto displacements = numbers(count, -3, 12);
    TypeRef type = datatype::indexed(lengths, displacements, *old.type);
    for (auto& d : displacements)
      d *= old.map.extent();
    return {std::move(type), oracle::hindexed(lengths, displacements, old.map)};
  }

  Sample hindexed(const Sample& old) {
    const auto count = static_cast<std::size_t>(number(0, 5));
    const auto lengths = numbers(count, 0, 3);
    const auto displacements = numbers(count, -50, 200);
    return {datatype::hindexed(lengths, displacements, *old.type),
            oracle::hindexed(lengths, displacements, old.map)};
  }

  Sample indexed_block(const Sample& old) {
    const auto count = static_cast<std::size_t>(number(0, 5));
    const auto length = number(0, 3);
    auto displacements = numbers(count, -3, 12);
    const std::vector<std::int64_t> lengths(count, length);
    if (number(0, 1) == 0) {
      return {datatype::hindexed_block(length, displacements, *old.type),
              oracle::hindexed(lengths, displacements, old.map)};
    }
    TypeRef type = datatype::indexed_block(length, displacements, *old.type);
    for (auto& d : displacements)
      d *= old.map.extent();
    return {std::move(type), oracle::hindexed(lengths, displacements, old.map)};
  }

  Sample resized(const Sample& old) {
    const auto lb = number(-20, 20);
    const auto extent = number(-30, 120);
    return {datatype::resized(*old.type, lb, extent), oracle::resized(old.map, lb, extent)};
  }

  // Two dimensions, the last one fast (or the first, in Fortran's order).
  Sample subarray(const Sample& old) {
    const std::vector<std::int64_t> sizes = numbers(2, 1, 4);
    const std::vector<std::int64_t> subsizes{number(1, sizes[0]), number(1, sizes[1])};
    const std::vector<std::int64_t> starts{number(0, sizes[0] - subsizes[0]),
                                           number(0, sizes[1] - subsizes[1])};
    const bool fortran = number(0, 1) == 1;
    const std::size_t slow = fortran ? 1 : 0;
    const std::size_t fast = 1 - slow;
    TypeMap map;
    for (auto i = starts[slow]; i < starts[slow] + subsizes[slow]; ++i) {
      for (auto j = starts[fast]; j < starts[fast] + subsizes[fast]; ++j) {
        append(map, (i * sizes[fast] + j) * old.map.extent(), 1, old.map);
      }
    }
    map.lb_markers = {0};
    map.ub_markers = {sizes[0] * sizes[1] * old.map.extent()};
    return {datatype::subarray(sizes, subsizes, starts, fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C,
                               *old.type),
            std::move(map)};
  }

  Sample struct_(const Sample& old, int depth) {
    const auto count = static_cast<std::size_t>(number(1, 4));
    const auto lengths = numbers(count, 0, 2);
    const auto displacements = numbers(count, -30, 150);
    std::vector<Sample> parts;
    std::vector<const Type*> types;
    TypeMap map;
    for (std::size_t i = 0; i < count; ++i) {
      parts.push_back(i == 0 ? old : sample(static_cast<int>(number(0, std::min(depth - 1, 2)))));
    }
    for (std::size_t i = 0; i < count; ++i) {
      types.push_back(parts[i].type.get());
      append(map, displacements[i], lengths[i], parts[i].map);
    }
    pad(map);
    return {datatype::struct_(lengths, displacements, types), std::move(map)};
  }

  std::mt19937& random_;
};

} // namespace

Sample random_sample(std::mt19937& random, int depth) {
  return Generator(random).sample(depth);
}

} // namespace oracle
