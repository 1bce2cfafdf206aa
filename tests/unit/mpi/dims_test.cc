// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/dims.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace macadam::mpi {
namespace {

using Dims = std::vector<int>;

// Every way to write `product` as `n` dimensions in falling order; the least in lexical order.
Dims by_trying_all(int product, int n) {
  Dims best, dims;
  const std::function<void(int, int)> extend = [&](int rest, int most) {
    if (static_cast<int>(dims.size()) == n) {
      if (rest == 1 && (best.empty() || dims < best)) best = dims;
      return;
    }
    for (int next = 1; next <= most; ++next) {
      if (rest % next != 0) continue;
      dims.push_back(next);
      extend(rest / next, next);
      dims.pop_back();
    }
  };
  extend(product, product);
  return best;
}

TEST(BalancedDims, AreTheBestThatThereAre) {
  for (int n = 1; n <= 5; ++n) {
    for (int product = 1; product <= 360; ++product)
      EXPECT_EQ(balanced_dims(product, n), by_trying_all(product, n)) << product << " in " << n;
  }
}

// With more factors than dimensions a search could take for ever: 2095133040 has 1600 divisors, as
// many as any int.
TEST(BalancedDims, OfLargeNumbers) {
  for (const int product : {2095133040, 1 << 30, 2147483647, 1162261467, 2147395600}) {
    for (int n = 1; n <= 40; ++n) {
      const Dims dims = balanced_dims(product, n);
      ASSERT_EQ(static_cast<int>(dims.size()), n);
      EXPECT_TRUE(std::ranges::is_sorted(dims, std::ranges::greater()));
      EXPECT_EQ(std::accumulate(dims.begin(), dims.end(), 1, std::multiplies<>()), product);
    }
  }
  EXPECT_EQ(balanced_dims(2147395600, 2), (Dims{46340, 46340}));
  EXPECT_EQ(balanced_dims(2147483647, 3), (Dims{2147483647, 1, 1}));
}

} // namespace
} // namespace macadam::mpi
