// SPDX-License-Identifier: BSD-3-Clause
// Each rank sends to the next and receives from the one before.
#pragma once

#include "check.h"

inline int next() {
  return (check::rank + 1) % check::size;
}
inline int previous() {
  return (check::rank + check::size - 1) % check::size;
}
