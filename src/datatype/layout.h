// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

namespace macadam::datatype {

struct Shape;

// A flattened type: where its data lies, in packing order, and nothing else. A tree, each node of
// which is one of
//   run:  `size` contiguous bytes;
//   loop: `count` copies of `body` (or, where it is null, of a run of `block` bytes), `stride`
//   bytes apart; list: `pieces`, each a node (or a run) at an offset, the last entry an end mark.
// All offsets are from the first byte of the node in packing order; the root's own place is
// `origin`. Normal form, so that few kernels cover all: neighbouring runs are merged, a loop whose
// copies touch is one run, loops that continue each other are one loop, a regular list is a loop,
// no node is empty but the root of an empty type.
struct Layout {
  enum class Kind : unsigned char { run, loop, list };
  struct Piece {
    MPI_Count offset;   // bytes from the node's first byte
    MPI_Count start;    // place in the packed stream of the node
    const Layout* body; // null: a run up to the next piece's start
  };

  Kind kind = Kind::run;
  int depth = 0;        // levels of loops and lists
  MPI_Count size = 0;   // packed bytes
  MPI_Count origin = 0; // root only: bytes from the buffer's address to the first byte
  MPI_Count count = 0;  // loop
  MPI_Count stride = 0; // loop: bytes
  MPI_Count block = 0;  // loop: packed bytes of the body
  const Layout* body = nullptr;
  std::vector<Piece> pieces;                        // list
  std::vector<std::shared_ptr<const Layout>> owned; // keeps the bodies alive
};

// Flattens one element; the result shares the flattened parts.
[[nodiscard]] std::shared_ptr<const Layout> flatten(const Shape& shape);

// `count` elements of a flattened type, `extent` bytes apart. Refers to `element`, does not own it.
[[nodiscard]] Layout repeat(const Layout& element, MPI_Count count, MPI_Count extent);

} // namespace macadam::datatype
