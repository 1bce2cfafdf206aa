// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/comm.h"
#include "coll/selection.h"
#include "datatype/op.h"

#include <cstdint>

namespace macadam::coll {

// What a rank calls, in the word that its note has for the length of its data: the same comparison
// finds another function, operation or root. Of the types it knows the length only.
class Called {
 public:
  // `root`: 0 where there is none.
  Called(Kind kind, std::uint64_t bytes, int root = 0, const datatype::Op* op = nullptr)
      : word_((bytes & all_bytes) | std::uint64_t{static_cast<std::uint8_t>(kind)} << kind_at |
              (op != nullptr ? op_of(*op) : 0) << op_at |
              static_cast<std::uint64_t>(static_cast<unsigned>(root)) << root_at) {}
  explicit Called(std::uint64_t word) : word_(word) {}

  // It follows the collectives of this digest, which then is that of the next one's. So ranks also
  // find that they differed where neither has read what the other wrote, as two roots of a
  // broadcast do not. No difference of roots alone, or of functions alone, is lost.
  void follow(std::uint8_t& before) {
    word_ |= std::uint64_t{before} << before_at;
    const std::uint64_t call = word_ >> kind_at;
    before = static_cast<std::uint8_t>(before * 5 + (call ^ call >> 8));
  }

  [[nodiscard]] std::uint64_t word() const { return word_; }
  [[nodiscard]] std::uint64_t bytes() const { return word_ & all_bytes; }
  // Whether two differ by the length of their data at most.
  [[nodiscard]] bool is_like(Called other) const { return (word_ ^ other.word_) >> before_at == 0; }
  [[nodiscard]] bool is_same_call(Called other) const {
    return (word_ ^ other.word_) >> kind_at == 0;
  }
  [[nodiscard]] bool follows_same(Called other) const {
    return static_cast<std::uint8_t>((word_ ^ other.word_) >> before_at) == 0;
  }
  // "MPI_Bcast (root 0, 16 bytes)"
  [[nodiscard]] std::string show() const;

 private:
  // Of more bytes than that, a TiB, what is above them is not compared. Those of a root suffice for
  // boards' ranks.
  static constexpr int before_at = 40, kind_at = 48, op_at = 52, root_at = 57;
  static constexpr std::uint64_t all_bytes = (std::uint64_t{1} << before_at) - 1;
  static constexpr std::uintptr_t first_op = 0x20; // of the ABI's constants

  // 0: a user's operation, of which nothing is known elsewhere.
  static std::uint64_t op_of(const datatype::Op& op) {
    return op.predefined() ? reinterpret_cast<std::uintptr_t>(op.handle()) - first_op : 0;
  }

  std::uint64_t word_;
};

// Rank `from` called something else than this one, now or before.
[[noreturn, gnu::cold]] void fail_different(const Comm& comm, int from, Called its, Called mine);

} // namespace macadam::coll
