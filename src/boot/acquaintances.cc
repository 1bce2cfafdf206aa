// SPDX-License-Identifier: BSD-3-Clause
#include "boot/acquaintances.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace macadam::boot {
namespace {

constexpr std::size_t most_ports = 16; // of a job

} // namespace

std::list<Acquaintances::Acquaintance>::iterator Acquaintances::place_of(const Secret& secret) {
  return std::ranges::find_if(known_,
                              [&](const Acquaintance& each) { return each.ticket.job == secret; });
}

Acquaintances::Acquaintance* Acquaintances::find(const Secret& secret) {
  const auto found = place_of(secret);
  if (found == known_.end()) return nullptr;
  if (found->parted && found->job->has_ended()) {
    known_.erase(found);
    return nullptr;
  }
  found->parted = found->introduced = false;
  return &*found;
}

std::shared_ptr<const MetJob> Acquaintances::look(const Secret& secret) {
  const auto found = place_of(secret);
  return found == known_.end() ? nullptr : found->job;
}

Acquaintances::Acquaintance* Acquaintances::find(std::uint32_t number) {
  const auto found = std::ranges::find_if(
      known_, [&](const Acquaintance& each) { return each.job->number() == number; });
  return found == known_.end() ? nullptr : &*found;
}

Acquaintances::Acquaintance& Acquaintances::add(const Ticket& ticket, std::shared_ptr<MetJob> job) {
  return known_.emplace_back(Acquaintance{ticket, std::move(job), false, false, {}});
}

void Acquaintances::mark_introduced(const Secret& secret) {
  const auto found = place_of(secret);
  if (found == known_.end()) return;
  if (std::ranges::count(known_, true, &Acquaintance::introduced) ==
      static_cast<std::ptrdiff_t>(most_kept))
    known_.erase(std::ranges::find(known_, true, &Acquaintance::introduced));
  found->introduced = true;
}

// Those that have ended go with it, so that their memory is not kept for long.
void Acquaintances::part(const Job& job) {
  const auto found = std::ranges::find_if(
      known_, [&](const Acquaintance& each) { return each.job.get() == &job; });
  if (found == known_.end()) return;
  found->parted = true;
  known_.splice(known_.end(), known_, found);
  std::erase_if(known_, [](const Acquaintance& each) {
    return each.parted && (each.job->is_far() || each.job->has_ended());
  });
  auto kept = std::ranges::count(known_, true, &Acquaintance::parted);
  std::erase_if(known_, [&](const Acquaintance& each) {
    return each.parted && kept-- > static_cast<std::ptrdiff_t>(most_kept);
  });
}

void Acquaintances::drop_unused() {
  std::erase_if(known_, [](const Acquaintance& each) { return each.parted || each.introduced; });
}

void Acquaintances::remember(const Secret& job, const PortKey& port, std::uint32_t rank) {
  const auto found = place_of(job);
  if (found == known_.end()) return;
  auto& ports = found->ports;
  std::erase_if(ports, [&](const Acquaintance::Port& each) { return each.key == port; });
  if (ports.size() == most_ports) ports.erase(ports.begin());
  ports.push_back({port, rank});
}

std::optional<Acquaintances::PortOwner> Acquaintances::owner_of(const PortKey& port) {
  for (Acquaintance& known : known_)
    for (const Acquaintance::Port& each : known.ports)
      if (each.key == port) return PortOwner{&known, each.rank};
  return std::nullopt;
}

} // namespace macadam::boot
