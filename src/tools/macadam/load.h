// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace macadam::tools {

// How many processors of this machine others use: neither this process nor children that it has
// waited for, and theirs.
class Load {
 public:
  Load() : begin_(now()) {}
  // On average since the beginning; 0 where the system does not tell.
  [[nodiscard]] double of_others() const;

 private:
  struct Times { // in seconds
    double clock, all, own;
  };
  static Times now();

  Times begin_;
};

} // namespace macadam::tools
