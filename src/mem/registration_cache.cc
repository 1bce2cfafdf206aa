// SPDX-License-Identifier: BSD-3-Clause
#include "mem/registration_cache.h"

#include "base/error.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <unistd.h>
#include <utility>

namespace macadam::mem {
namespace {

const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));

// Whole pages: the device pins no less, and neighbours in one page go away together.
Range pages_of(const void* memory, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  return {begin & ~(page_bytes - 1), (begin + bytes + page_bytes - 1) & ~(page_bytes - 1)};
}

std::size_t length(const Range& range) {
  return range.end - range.begin;
}

} // namespace

// What is not watched may be as long as it is, and need not share a page with its neighbour.
Range RegistrationCache::range_of(const void* memory, std::size_t bytes) const {
  if (source_ != nullptr) return pages_of(memory, bytes);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  return {begin, begin + bytes};
}

Registration* RegistrationCache::find(const void* memory, std::size_t bytes) {
  return use(range_of(memory, bytes), true);
}

Registration* RegistrationCache::acquire(const void* memory, std::size_t bytes) {
  const Range wanted = range_of(memory, bytes);
  Registration* const found = use(wanted, true);
  return found != nullptr ? found : make(wanted);
}

Registration* RegistrationCache::register_range(const void* memory, std::size_t bytes) {
  const Range wanted = range_of(memory, bytes);
  Registration* registered = use(wanted, false);
  if (registered == nullptr) registered = make(wanted);
  if (registered != nullptr) ++registered->registered;
  return registered;
}

void RegistrationCache::deregister(Registration& registration) {
  --registration.registered;
  release(registration);
}

// One that is there. If nobody watches it, then only while the program keeps the memory: that of an
// operation under way and no more, or all that is registered.
Registration* RegistrationCache::use(const Range& wanted, bool part_of_registered) {
  take_invalidations();
  Registration* const found = look_up(wanted);
  if (found == nullptr) return nullptr;
  const bool kept =
      found->watched || found->range == wanted || (part_of_registered && found->registered != 0);
  if (!kept) return nullptr;
  ++counters_.hits;
  if (found->uses++ == 0) base::List<Registration>::erase(*found);
  return found;
}

Registration* RegistrationCache::make(const Range& wanted) try {
  let_go_dead();
  // Those it overlaps give their place to one that covers all.
  Range whole = wanted;
  for (auto at = first_overlap(wanted); at != tree_.end() && at->first < wanted.end;) {
    whole.begin = std::min(whole.begin, at->second->range.begin);
    whole.end = std::max(whole.end, at->second->range.end);
    detach(at++);
  }
  auto made = std::make_unique<Registration>();
  Registration& registration = *made;
  // If not all of it can be had, then what is asked for: the rest may be no memory any more.
  if ((whole == wanted || !pin(registration, whole, true)) && !pin(registration, wanted, false))
    return nullptr;
  Tree row{{registration.range.begin, &registration}};
  by_key_.emplace(registration.region->remote_key, std::move(made));
  tree_.merge(row); // from here on nothing needs memory
  registration.generation = ++generation_;
  registration.uses = 1;
  registration.valid = true;
  bytes_ += length(registration.range);
  ++counters_.registrations;
  return &registration;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void RegistrationCache::release(Registration& registration) {
  if (--registration.uses != 0) return;
  if (!registration.valid) return destroy(registration);
  if (!has_room(0)) let_go_dead();
  if (!registration.watched || !has_room(0)) return detach(tree_.find(registration.range.begin));
  unused_.push_back(registration);
}

Registration* RegistrationCache::find_key(std::uint64_t packed_key) const {
  Registration* const found = find_remote_key(static_cast<std::uint32_t>(packed_key));
  return found != nullptr && found->packed_key() == packed_key ? found : nullptr;
}

Registration* RegistrationCache::find_remote_key(std::uint64_t remote_key) const {
  const auto found = by_key_.find(remote_key);
  return found != by_key_.end() && found->second->uses != 0 ? found->second.get() : nullptr;
}

std::size_t RegistrationCache::in_use() const {
  return static_cast<std::size_t>(std::count_if(
      by_key_.begin(), by_key_.end(), [](const auto& row) { return row.second->uses != 0; }));
}

bool RegistrationCache::give_back_unused() {
  const std::size_t before = by_key_.size();
  while (evict_one()) {
  }
  let_go_dead();
  return by_key_.size() != before;
}

void RegistrationCache::collect() {
  take_invalidations();
  let_go_dead();
}

void RegistrationCache::let_go_dead() {
  while (!dead_.empty()) {
    Registration& registration = dead_.pop_front();
    bytes_ -= length(registration.range);
    by_key_.erase(registration.region->remote_key);
  }
}

Registration* RegistrationCache::look_up(const Range& range) const {
  auto at = tree_.upper_bound(range.begin);
  if (at == tree_.begin()) return nullptr;
  Registration* const before = std::prev(at)->second;
  return before->range.end >= range.end ? before : nullptr;
}

// Takes out of the tree what is no longer what the program sees.
void RegistrationCache::take_invalidations() {
  if (source_ == nullptr) return;
  for (Range gone; source_->take(gone) && !tree_.empty();) {
    for (auto at = first_overlap(gone); at != tree_.end() && at->first < gone.end;) {
      ++counters_.invalidated;
      detach(at++);
    }
  }
}

// The first valid registration that ends behind the beginning of `range`.
RegistrationCache::Tree::iterator RegistrationCache::first_overlap(const Range& range) {
  auto at = tree_.upper_bound(range.begin);
  if (at != tree_.begin() && std::prev(at)->second->range.end > range.begin) --at;
  return at;
}

void RegistrationCache::detach(Tree::iterator at) {
  Registration& registration = *at->second;
  tree_.erase(at);
  registration.valid = false;
  if (registration.uses == 0) destroy(registration);
}

void RegistrationCache::destroy(Registration& registration) {
  base::List<Registration>::erase(registration); // of the unused
  dead_.push_back(registration);
}

// Watched before it is pinned, so that nothing goes away unseen between the two.
bool RegistrationCache::pin(Registration& registration, const Range& range, bool only_watched) {
  registration.range = range;
  registration.watched = source_ != nullptr && source_->watch(range);
  if (registration.watched || !only_watched) registration.region = pin_with_room(range);
  return registration.region != nullptr;
}

// Lets go unused registrations until the caps are kept and the device agrees.
std::unique_ptr<MemoryRegion> RegistrationCache::pin_with_room(const Range& range) {
  while (!has_room(length(range)) && evict_one()) {
  }
  for (;;) {
    try {
      return registrar_.register_memory(reinterpret_cast<void*>(range.begin), length(range),
                                        Access::remote);
    } catch (const base::Error& error) {
      refusal_ = error.text;
    }
    if (!evict_one()) return nullptr;
  }
}

bool RegistrationCache::evict_one() {
  if (unused_.empty()) return false;
  ++counters_.evictions;
  detach(tree_.find(unused_.front().range.begin));
  let_go_dead();
  return true;
}

// For `bytes` more in one registration more; for 0, whether the caps are kept now.
bool RegistrationCache::has_room(std::size_t bytes) const {
  return by_key_.size() + (bytes != 0 ? 1 : 0) <= most_entries_ && bytes_ + bytes <= most_bytes_;
}

} // namespace macadam::mem
