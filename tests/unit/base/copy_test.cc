// SPDX-License-Identifier: BSD-3-Clause
#include "base/copy.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace macadam::base {
namespace {

TEST(Copy, PastCachesMovesAllBytesAndNoOther) {
  constexpr std::size_t longest = 400, around = 64, room = longest + 3 * around;
  std::vector<std::byte> from(room);
  for (std::size_t i = 0; i < room; ++i)
    from[i] = static_cast<std::byte>(i * 7 % 251);
  for (std::size_t bytes = 0; bytes <= longest; bytes += bytes < 130 ? 1 : 9) {
    for (std::size_t to = 0; to < around; to += 5) {
      for (std::size_t source = 0; source < around; source += 13) {
        std::vector<std::byte> expected(room, std::byte{0xff});
        std::vector<std::byte> found = expected;
        std::memcpy(&expected[around + to], &from[source], bytes);
        copy_past_caches(&found[around + to], &from[source], bytes);
        ASSERT_EQ(found, expected) << bytes << " bytes from " << source << " to " << to;
      }
    }
  }
}

} // namespace
} // namespace macadam::base
