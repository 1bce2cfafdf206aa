// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"

#include <utility>

namespace macadam::gravel {

// What a call of the user can meet. gravel.h gives them the same numbers.
enum class Code : int {
  success = 0,
  state = 1,  // not between gravel_init() and gravel_finalize()
  argument,   // a rank, tag, size or pointer that cannot be
  memory,     // not registered, registered twice, or in use
  range,      // a fragment outside of the announced buffer
  request,    // no request, or one that was waited for already
  buffer,     // no announced buffer, or one whose FIN was sent
  incomplete, // a FIN before all fragments; the end before all requests
  transfer,   // data could not be moved
  peer,       // the peer is gone
  system,     // the system or the network refuses
};

class Error : public base::Error {
 public:
  Error(Code c, std::string message) : base::Error(MPI_ERR_OTHER, std::move(message)), code(c) {}
  Code code;
};

template <class... Args>
[[noreturn, gnu::cold, gnu::noinline]] void fail(Code code, fmt::format_string<Args...> format,
                                                 Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

} // namespace macadam::gravel
