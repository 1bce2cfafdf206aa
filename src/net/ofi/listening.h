// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/ofi/wire.h"

namespace macadam::net::ofi {

// True if the kernel of the peer's machine says that nobody listens at this address. False if
// somebody does, which may be stopped or compute; if it is no address of IP; or if nothing is heard
// within some milliseconds.
[[nodiscard]] bool nobody_listens(const wire::Endpoint& endpoint) noexcept;

} // namespace macadam::net::ofi
