// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "io/view.h"
#include "oracle.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>

// Views of random filetypes, beside the list of the bytes that they show.
namespace samples {

using macadam::base::Error;
using macadam::datatype::PredefinedTypes;
using macadam::io::View;

// Where the data of the first copies of a filetype are, in order, without a displacement.
using Offsets = std::vector<std::int64_t>;

// What a view may have: offsets that ascend from 0 on, and none twice.
inline bool ascends(const Offsets& offsets) {
  return std::ranges::adjacent_find(offsets, std::greater_equal{}) == offsets.end() &&
         (offsets.empty() || offsets.front() >= 0);
}

struct Sample {
  std::shared_ptr<const View> view;
  Offsets offsets; // of some copies, with the displacement
};

// Of a type made by the datatypes' oracle; nothing if the view is refused. Bytes are the etypes.
inline std::optional<Sample> view_of(const oracle::Sample& type, std::int64_t displacement,
                                     const PredefinedTypes& types, std::int64_t copies = 3) {
  static const auto native = std::make_shared<macadam::io::NativeRepresentation>("native");
  type.type->commit();
  const auto& byte = types[MPI_BYTE];
  try {
    Sample made{std::make_shared<View>(displacement, byte, *type.type, native, byte),
                type.map.bytes(copies)};
    for (std::int64_t& offset : made.offsets)
      offset += displacement;
    return made;
  } catch (const Error&) {
    return {};
  }
}

// The next of a random sequence that a view takes and in which nothing overlaps: one in which
// copies do not lie between each other, or any.
enum class Copies { ascend, may_interleave };
inline Sample next(std::mt19937& random, const PredefinedTypes& types,
                   Copies copies = Copies::ascend) {
  for (int depth = 0;; ++depth) {
    const oracle::Sample type = oracle::random_sample(random, depth % 5);
    Offsets three = type.map.bytes(3);
    if (copies == Copies::may_interleave && ascends(type.map.bytes(1))) std::ranges::sort(three);
    if (type.map.size() == 0 || !ascends(three)) continue;
    if (auto made = view_of(type, static_cast<std::int64_t>(random() % 3 * 17), types))
      return *made;
  }
}

} // namespace samples
