// SPDX-License-Identifier: BSD-3-Clause
#include "gravel/driver.h"

namespace macadam::gravel {
namespace {

constexpr double watch_interval = 0.1; // seconds between two looks whether a peer is still there

} // namespace

void Driver::finish(RequestId id) {
  if (id == 0) return;
  finish(core_.request(id));
}

void Driver::finish(Request& request) {
  wait(static_cast<int>(request.peer->rank), [&] { return request.complete; });
  core_.finish(request);
}

void Driver::push() {
  if (!core_.must_progress()) return;
  core_.progress();
  if (core_.is_connecting()) wait(any_source, [this] { return !core_.is_connecting(); });
}

bool Driver::look(int on) {
  if (core_.progress()) return true;
  if (++looks_in_vain_ % looks_between_watches == 0) watch(on);
  return false;
}

// Of what was begun only promises may not have left, which need not be kept. No peer is asked
// whether it is there: that would itself have to arrive, also at processes that have ended before
// this one. The network gives up what cannot reach a process that was killed.
void Driver::leave() {
  wait(nobody, [this] { return core_.networks().leave(); });
}

// On this machine the system says who has ended, and the network then tells the core; over a
// network, writing to it does.
void Driver::watch(int on) {
  const double now = core_.networks().nearest().now();
  if (watched_ == 0) watched_ = now;
  if (now - watched_ < watch_interval) return;
  watched_ = now;
  for (engine::Transport* const network : core_.networks())
    network->look_after_peers();
  if (on == any_source)
    watch_all();
  else if (on != nobody)
    watch_peer(on);
}

// A wait for anybody ends when all are gone. So of those that were never met one is reached, and
// only if none is left that is known.
void Driver::watch_all() {
  bool any_left = false;
  int unmet = nobody;
  for (int peer = 0; peer < job_.size(); ++peer) {
    if (peer == job_.rank() || core_.has_lost(static_cast<Rank>(peer))) continue;
    if (core_.knows(static_cast<Rank>(peer)) || job_.life(peer) != boot::Life::unknown) {
      any_left = true;
      watch_peer(peer);
    } else if (unmet == nobody) {
      unmet = peer;
    }
  }
  if (!any_left && unmet != nobody) watch_peer(unmet);
}

void Driver::watch_peer(int peer) {
  if (peer != job_.rank() && job_.life(peer) == boot::Life::unknown)
    core_.probe(static_cast<Rank>(peer));
}

} // namespace macadam::gravel
