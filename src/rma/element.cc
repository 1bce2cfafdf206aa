// SPDX-License-Identifier: BSD-3-Clause
#include "rma/element.h"

#include "base/copy.h"
#include "datatype/cursor.h"

#include <atomic>
#include <cstdint>
#include <cstring>

namespace macadam::rma {

using datatype::Op;
using datatype::PackCursor;
using datatype::Type;

namespace {

// Bytes of a piece that is combined where it lies; shorter ones together, in a copy.
constexpr std::size_t worth_a_call = 64;

template <class Word>
Word word_at(const void* memory, std::size_t i) {
  Word word;
  std::memcpy(&word, static_cast<const std::byte*>(memory) + i * sizeof word, sizeof word);
  return word;
}

template <class Word>
void combine_words(const Op& op, const Type& element, std::byte* there, const std::byte* ours,
                   std::byte* old, std::size_t count) {
  const MPI_Op which = op.handle();
  const bool adds = which == MPI_SUM && is_integer(element);
  const datatype::Kernel kernel = op.kernel(*element.basic());
  for (std::size_t i = 0; i < count; ++i) {
    std::atomic_ref place(*reinterpret_cast<Word*>(there + i * sizeof(Word)));
    Word before;
    if (which == MPI_NO_OP) {
      before = place.load();
    } else if (which == MPI_REPLACE) {
      before = place.exchange(word_at<Word>(ours, i));
    } else if (adds) {
      before = place.fetch_add(word_at<Word>(ours, i));
    } else {
      before = place.load(std::memory_order_relaxed);
      Word after;
      do {
        after = before;
        kernel(ours + i * sizeof(Word), &after, &after, 1);
      } while (!place.compare_exchange_weak(before, after));
    }
    std::memcpy(old + i * sizeof(Word), &before, sizeof before);
  }
}

template <class Word>
void swap_word(std::byte* there, const void* ours, const void* compare, void* old) {
  Word expected = word_at<Word>(compare, 0);
  std::atomic_ref(*reinterpret_cast<Word*>(there))
      .compare_exchange_strong(expected, word_at<Word>(ours, 0));
  std::memcpy(old, &expected, sizeof expected);
}

} // namespace

bool is_integer(const Type& element) {
  using enum datatype::BasicClass;
  switch (element.basic()->type_class) {
  case c_integer:
  case fortran_integer:
  case multi_language:
    return true;
  default:
    return false;
  }
}

bool can_be_swapped(const Type& type) {
  using enum datatype::BasicClass;
  if (type.basic() == nullptr) return false;
  const datatype::BasicClass found = type.basic()->type_class;
  return is_integer(type) || found == logical || found == byte;
}

void combine_atomically(const Op& op, const Type& element, std::byte* there, const std::byte* ours,
                        std::byte* old, std::size_t count) {
  switch (element.size()) {
  case 1:
    return combine_words<std::uint8_t>(op, element, there, ours, old, count);
  case 2:
    return combine_words<std::uint16_t>(op, element, there, ours, old, count);
  case 4:
    return combine_words<std::uint32_t>(op, element, there, ours, old, count);
  default:
    return combine_words<std::uint64_t>(op, element, there, ours, old, count);
  }
}

void compare_and_swap_atomically(std::byte* there, const void* ours, const void* compare, void* old,
                                 std::size_t bytes) {
  switch (bytes) {
  case 1:
    return swap_word<std::uint8_t>(there, ours, compare, old);
  case 2:
    return swap_word<std::uint16_t>(there, ours, compare, old);
  case 4:
    return swap_word<std::uint32_t>(there, ours, compare, old);
  default:
    return swap_word<std::uint64_t>(there, ours, compare, old);
  }
}

void combine(const Op& op, const Type& element, std::size_t bytes, const Operands& operands) {
  const auto count = static_cast<MPI_Count>(bytes) / element.size();
  if (element.contiguous()) {
    base::copy(operands.result, operands.old, bytes);
    op.apply(operands.ours, operands.result, count, element);
    return;
  }
  PackCursor(element, operands.ours_spread, count).unpack(operands.ours, bytes);
  PackCursor(element, operands.result_spread, count).unpack(operands.old, bytes);
  op.apply(operands.ours_spread, operands.result_spread, count, element);
  PackCursor(element, operands.result_spread, count).pack(operands.result, bytes);
}

void combine_here(const Op& op, const Type& element, const RunsHere& runs, std::size_t bytes,
                  std::byte* ours, std::byte* old) {
  if (old != nullptr) runs.pack(old);
  if (op.handle() == MPI_NO_OP) return;
  if (op.handle() == MPI_REPLACE) return runs.unpack(ours);
  const auto size = static_cast<std::size_t>(element.size());
  const auto count = static_cast<MPI_Count>(bytes / size);
  const auto alignment = static_cast<std::size_t>(element.alignment());
  if (element.contiguous() && bytes >= runs.pieces() * worth_a_call &&
      runs.lie_aligned(alignment)) {
    return runs.for_each_piece([&](std::byte* there, std::size_t at, std::size_t length) {
      op.apply(ours + at, there, static_cast<MPI_Count>(length / size), element);
    });
  }
  std::vector<std::byte> result(bytes);
  runs.pack(result.data());
  if (element.contiguous()) {
    op.apply(ours, result.data(), count, element);
  } else {
    const std::size_t spread = static_cast<std::size_t>(count * element.extent());
    std::vector<std::byte> before(result), ours_spread(spread), result_spread(spread);
    combine(op, element, bytes,
            {ours, before.data(), result.data(), ours_spread.data(), result_spread.data()});
  }
  runs.unpack(result.data());
}

} // namespace macadam::rma
