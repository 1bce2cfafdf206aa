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

// Peers are not looked after: a look would itself have to arrive, also at processes that have ended
// before this one. The network gives up what cannot reach a process that was killed.
void Driver::leave() {
  wait(nobody, [this] { return core_.at_rest() && core_.networks().leave(); });
}

void Driver::watch(int on) {
  if (on == nobody) return;
  const double now = core_.networks().nearest().now();
  if (watched_ == 0) watched_ = now;
  if (now - watched_ < watch_interval) return;
  watched_ = now;
  if (on != any_source) return watch_peer(static_cast<Rank>(on));
  for (int peer = 0; peer < job_.size(); ++peer)
    watch_peer(static_cast<Rank>(peer));
}

// On this machine the system says that a process has ended; over a network, writing to it.
void Driver::watch_peer(Rank peer) {
  if (static_cast<int>(peer) == job_.rank() || !core_.knows(peer)) return;
  const boot::Life life = job_.life(static_cast<int>(peer));
  if (life == boot::Life::unknown) return core_.probe(peer);
  if (life == boot::Life::running) return;
  while (core_.progress()) { // what it has still sent
  }
  core_.lose(peer);
}

} // namespace macadam::gravel
