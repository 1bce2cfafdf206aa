// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace macadam::mpich {

// A status in MPICH's ABI. Programs know three words of it by name.
struct Status {
  int count_low;
  int count_high_and_cancelled; // the flag is the last bit
  int source;
  int tag;
  int error;
};
inline Status* const status_ignore = reinterpret_cast<Status*>(1);

} // namespace macadam::mpich
