// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/constructors.h"

#include <algorithm>
#include <climits>
#include <initializer_list>

namespace macadam::datatype {

// Collects the arguments of a constructor call in the order of the standard's tables, each as the
// kind of contents that the form of the call asks for.
class ContentsBuilder {
 public:
  // `values` are all the counts of the call: one beyond int makes the contents large.
  ContentsBuilder(bool large, std::initializer_list<Counts> values) : large_(large) {
    for (const Counts counts : values) {
      large_ = large_ || std::any_of(counts.begin(), counts.end(), beyond_int);
    }
  }

  ContentsBuilder& integer(int value) {
    contents_.integers.push_back(value);
    return *this;
  }
  ContentsBuilder& count(MPI_Count value) {
    if (large_) {
      contents_.counts.push_back(value);
    } else {
      contents_.integers.push_back(static_cast<int>(value));
    }
    return *this;
  }
  ContentsBuilder& address(MPI_Count value) {
    if (large_) {
      contents_.counts.push_back(value);
    } else {
      contents_.addresses.push_back(static_cast<MPI_Aint>(value));
    }
    return *this;
  }
  ContentsBuilder& integers(std::span<const int> values) {
    for (const int value : values)
      integer(value);
    return *this;
  }
  ContentsBuilder& counts(Counts values) {
    for (const MPI_Count value : values)
      count(value);
    return *this;
  }
  ContentsBuilder& addresses(Counts values) {
    for (const MPI_Count value : values)
      address(value);
    return *this;
  }
  Contents with(const Type& type) {
    contents_.types.emplace_back(type);
    return std::move(contents_);
  }
  Contents with(std::span<const Type* const> types) {
    for (const Type* type : types)
      contents_.types.emplace_back(*type);
    return std::move(contents_);
  }

 private:
  static bool beyond_int(MPI_Count value) { return value > INT_MAX || value < INT_MIN; }

  bool large_;
  Contents contents_;
};

} // namespace macadam::datatype
