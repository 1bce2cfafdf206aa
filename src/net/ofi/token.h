// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job.h"

#include <cstdint>

namespace macadam::net::ofi {

// What a message carries to be believed: a keyed hash (SipHash-2-4, Aumasson and Bernstein 2012) of
// who sends it to whom, by the secret of the receiver's job. It cannot be made without the
// secret, nor can one for another pair from those that were seen.
[[nodiscard]] std::uint64_t token_of(const boot::Secret& secret, const boot::ProcessName& source,
                                     const boot::ProcessName& target);

// SipHash-2-4 of two words, for tests.
[[nodiscard]] std::uint64_t sip_hash(const boot::Secret& key, std::uint64_t first,
                                     std::uint64_t second);

} // namespace macadam::net::ofi
