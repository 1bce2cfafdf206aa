// SPDX-License-Identifier: BSD-3-Clause
// Permits: a word of the issuer's segment holds the number of one that is open. Whoever sets it to
// zero, the peer or the issuer, has it.
#include "net/shm/transport.h"

#include <bit>

namespace macadam::net::shm {
namespace {

constexpr std::uint64_t words = SegmentHeader::permits;
static_assert(std::has_single_bit(words));

bool take(SegmentHeader& header, std::uint64_t permit) {
  return header.permit[permit % words].compare_exchange_strong(permit, 0);
}

} // namespace

std::uint64_t Transport::issue(engine::Link&) noexcept {
  for (std::uint64_t i = 0; i < permits_used_.size(); ++i) {
    const auto bit = static_cast<std::uint64_t>(std::countr_one(permits_used_[i]));
    if (bit == 64) continue;
    permits_used_[i] |= std::uint64_t{1} << bit;
    const std::uint64_t place = i * 64 + bit;
    const std::uint64_t permit = ++last_permit_ * words + place;
    segment_.front().header().permit[place].store(permit);
    return permit;
  }
  return 0;
}

bool Transport::use(engine::Link& issuer, std::uint64_t permit) noexcept {
  return take(*static_cast<Peer&>(issuer).header, permit);
}

engine::Revoked Transport::revoke(engine::Link&, std::uint64_t permit) noexcept {
  return take(segment_.front().header(), permit) ? engine::Revoked::yes : engine::Revoked::no;
}

void Transport::discard(engine::Link&, std::uint64_t permit) noexcept {
  const std::uint64_t place = permit % words;
  segment_.front().header().permit[place].store(0);
  permits_used_[place / 64] &= ~(std::uint64_t{1} << place % 64);
}

} // namespace macadam::net::shm
