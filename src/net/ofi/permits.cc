// SPDX-License-Identifier: BSD-3-Clause
#include "net/ofi/permits.h"

#include "net/ofi/transport.h"

#include <new>

namespace macadam::net::ofi {

// Null if there is no memory.
Permits* OfiTransport::permits_of(Route& route) noexcept {
  if (route.permits == nullptr) route.permits.reset(new (std::nothrow) Permits);
  return route.permits.get();
}

std::uint64_t OfiTransport::issue(engine::Link& link) noexcept {
  const std::scoped_lock guard(lock_);
  Permits* const permits = permits_of(static_cast<Route&>(link));
  return permits != nullptr ? permits->issue() : 0;
}

bool OfiTransport::use(engine::Link& link, std::uint64_t permit) noexcept {
  const std::scoped_lock guard(lock_);
  Permits* const permits = permits_of(static_cast<Route&>(link));
  return permits != nullptr && permits->use(permit);
}

void OfiTransport::discard(engine::Link& link, std::uint64_t permit) noexcept {
  const std::scoped_lock guard(lock_);
  if (Permits* const permits = permits_of(static_cast<Route&>(link))) permits->discard(permit);
}

engine::Revoked OfiTransport::revoke(engine::Link& link, std::uint64_t permit) noexcept try {
  const std::scoped_lock guard(lock_);
  auto& route = static_cast<Route&>(link);
  Permits& permits = *permits_of(route); // there is one: it has issued the permit
  if (is_self(link)) return permits.revoke(permit) ? engine::Revoked::no : engine::Revoked::yes;
  if (route.state == Route::State::broken) return engine::Revoked::yes;
  const unsigned at = Permits::place(permit);
  const std::uint32_t bit = 1u << at;
  if ((permits.asked & bit) != 0) return permits.found[at];
  if (!can_send(route)) {
    refuse(route);
    return engine::Revoked::unknown;
  }
  const wire::PermitWanted wanted = {permit, 0};
  if (post_message(route, wire::Kind::revoke, &wanted, sizeof wanted, nullptr, 0) == Posted::done) {
    permits.asked |= bit;
    permits.found[at] = engine::Revoked::unknown;
  }
  return engine::Revoked::unknown;
} catch (...) {
  break_down();
  return engine::Revoked::unknown;
}

} // namespace macadam::net::ofi
