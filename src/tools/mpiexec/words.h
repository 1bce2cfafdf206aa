// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace macadam::tools {

inline std::string plural(int count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// "; ending the other 3 ranks": the end of the sentence about a failure. Empty if there are none.
inline std::string ending_others(int others) {
  if (others <= 0) return {};
  return "; ending the other " + (others == 1 ? "rank" : plural(others, "rank"));
}

} // namespace macadam::tools
