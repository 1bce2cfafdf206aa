// SPDX-License-Identifier: BSD-3-Clause
// What ints mean besides numbers. Each meaning converts one way and back: in() from MPICH's ABI to
// the standard one, out() from that to MPICH's. What is no constant of the meaning stays as it is.
#pragma once

#include "mpich/constants.h"

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <iterator>

namespace macadam::mpich {

// One of a section of constants.
template <const auto& pairs>
struct Constant {
  static constexpr int in(int value) {
    for (const Pair& pair : pairs)
      if (pair.mpich == value) return pair.standard;
    return value;
  }
  static constexpr int out(int value) {
    for (const Pair& pair : pairs)
      if (pair.standard == value) return pair.mpich;
    return value;
  }
};

// Several of them ORed. Bits that mean nothing become one that means nothing in the other ABI.
template <const auto& pairs>
struct Flags {
  static constexpr int in(int value) { return converted<&Pair::mpich, &Pair::standard>(value); }
  static constexpr int out(int value) { return converted<&Pair::standard, &Pair::mpich>(value); }

 private:
  static constexpr int unknown = 1 << 30;
  template <int Pair::*from, int Pair::*to>
  static constexpr int converted(int value) {
    int result = 0, left = value;
    for (const Pair& pair : pairs) {
      if ((value & pair.*from) == 0) continue;
      result |= pair.*to;
      left &= ~(pair.*from);
    }
    return left == 0 ? result : result | unknown;
  }
};

using Assertion = Flags<constants::window_assertions>;
using Bind = Constant<constants::object_a_variable_is_bound_to>;
using Combiner = Constant<constants::datatype_combiners>;
using Comparison = Constant<constants::results_of_comparing_communicators_and_groups>;
using Distribution = Constant<constants::distribution_of_array_elements>;
using FileMode = Flags<constants::file_modes>;
using Keyval = Constant<constants::predefined_attributes>;
using Lock = Constant<constants::window_locks>;
using Order = Constant<constants::order_of_array_elements>;
using Scope = Constant<constants::where_a_control_variable_can_be_set>;
using SplitType = Constant<constants::ways_to_split_a_communicator>;
using ThreadLevel = Constant<constants::thread_levels>;
using Topology = Constant<constants::topologies>;
using TypeClass = Constant<constants::classes_for_mpi_type_match_size>;
using VariableClass = Constant<constants::classes_of_performance_variables>;
using Verbosity = Constant<constants::verbosity_of_a_variable>;
using Whence = Constant<constants::file_positioning>;
using WindowFlavor = Constant<constants::how_a_window_was_made>;
using WindowModel = Constant<constants::window_memory_models>;

// MPI_PROC_NULL, MPI_ANY_SOURCE and MPI_ROOT. The number that is none of them there and one here
// takes the place that is left, so that it is refused as before, and any array can be converted and
// back.
struct Rank {
  static constexpr int in(int rank) {
    switch (rank) {
    case -1:
      return MPI_PROC_NULL;
    case -2:
      return MPI_ANY_SOURCE;
    case -3:
      return MPI_ROOT;
    case -4:
      return -2;
    default:
      return rank;
    }
  }
  static constexpr int out(int rank) {
    switch (rank) {
    case MPI_PROC_NULL:
      return -1;
    case MPI_ANY_SOURCE:
      return -2;
    case MPI_ROOT:
      return -3;
    case -2:
      return -4;
    default:
      return rank;
    }
  }
};

// MPI_ANY_TAG is -1 there; the same is said of the other number.
struct Tag {
  static constexpr int in(int tag) {
    return tag == -1 ? MPI_ANY_TAG : tag == MPI_ANY_TAG ? -1 : tag;
  }
  static constexpr int out(int tag) { return in(tag); }
};

// Classes, and codes that the program has made: those begin behind MPI_ERR_LASTCODE. But callbacks
// may return any number, and statuses hold it, so each has one of its own in the other ABI: it
// comes back as it was, and never as MPI_SUCCESS.
struct ErrorCode {
  static constexpr int last = Constant<constants::error_classes>::out(MPI_ERR_LASTCODE);
  static constexpr int in(int code) {
    if (code >= last) return code - last + MPI_ERR_LASTCODE;
    if (code >= MPI_ERR_LASTCODE) return code - (last - 1) + INT_MAX; // above all that are made
    return converted<&Pair::mpich, &Pair::standard>(code);
  }
  static constexpr int out(int code) {
    if (code == MPI_SUCCESS) [[likely]]
      return MPI_SUCCESS;
    if (code > in(INT_MAX)) return code - INT_MAX + (last - 1);
    if (code >= MPI_ERR_LASTCODE) return code - MPI_ERR_LASTCODE + last;
    return converted<&Pair::standard, &Pair::mpich>(code);
  }

 private:
  // A number that is a class in the other ABI alone gets there the number that this class has here.
  // If that is a class there, too, it gets that one's, and so on.
  template <int Pair::*from, int Pair::*to>
  static constexpr int converted(int code) {
    const auto find = [&](int Pair::*in_abi) {
      return std::ranges::find(constants::error_classes, code, in_abi);
    };
    const Pair* const none = std::end(constants::error_classes);
    if (const Pair* known = find(from); known != none) return known->*to;
    for (const Pair* taken = find(to); taken != none; taken = find(to))
      code = taken->*from;
    return code;
  }
};

struct DistributionArgument {
  static constexpr int by_default = Distribution::out(MPI_DISTRIBUTE_DFLT_DARG);
  static constexpr int in(int argument) {
    return argument == by_default ? MPI_DISTRIBUTE_DFLT_DARG : argument;
  }
  static constexpr int out(int argument) {
    return argument == MPI_DISTRIBUTE_DFLT_DARG ? by_default : argument;
  }
};

struct Displacement {
  static constexpr MPI_Offset current = -54278278; // MPI_DISPLACEMENT_CURRENT
  static constexpr MPI_Offset in(MPI_Offset displacement) {
    return displacement == current ? MPI_DISPLACEMENT_CURRENT : displacement;
  }
};

} // namespace macadam::mpich
