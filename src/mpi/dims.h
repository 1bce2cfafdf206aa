// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

namespace macadam::mpi {

// `product` (1 or more) as a product of `n` dimensions in falling order, as close to each other as
// they can be: the largest is as small as possible, then the second largest, and so on. Fast for
// any int.
std::vector<int> balanced_dims(int product, int n);

} // namespace macadam::mpi
