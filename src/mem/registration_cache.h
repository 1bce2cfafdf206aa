// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "base/list.h"
#include "mem/invalidation.h"
#include "mem/registrar.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

namespace macadam::mem {

// A registered range of memory.
struct Registration : base::ListNode<> {
  Range range;
  std::unique_ptr<MemoryRegion> region;
  std::uint32_t generation = 0; // tells it from others that had the same key
  std::uint32_t uses = 0;
  std::uint32_t registered = 0; // of the uses: by register_range()
  bool valid = false;           // in the tree: still what the program sees at these addresses
  bool watched = false;         // somebody would tell if it were not

  // The packed key, as it travels: the device's, and the generation above it. For keys of 32 bits.
  [[nodiscard]] std::uint64_t packed_key() const {
    return std::uint64_t{generation} << 32 | region->remote_key;
  }
};

struct RegistrationCounters {
  std::uint64_t hits = 0;
  std::uint64_t registrations = 0;
  std::uint64_t evictions = 0;   // for want of room
  std::uint64_t invalidated = 0; // memory went away
};

// Registrations of the user's memory that a network keeps after use.
inline constexpr std::size_t most_registrations = 1024;

// The pin-down cache (Jiang et al., "Memory registration"): registering memory is dear, so it stays
// registered after its use, whole pages, the least recently used let go first. Without a source
// (Gravel: the program registers and says when it takes back) not pages, but what was asked for.
// Not thread safe.
//
// The valid registrations never overlap: one that is wanted across several takes their place and
// covers them all. Those that lost their place while in use live on outside the tree until their
// last use ends. What is to be let go waits in a dead list until collect(), outside of any hook
// and off the path of an operation.
class RegistrationCache {
 public:
  // `registrar` and `source` outlive the cache. What the source cannot watch, or anything if it is
  // null, does not stay registered after its last use: nobody would tell when it goes away.
  RegistrationCache(Registrar& registrar, InvalidationSource* source, std::size_t most_entries,
                    std::size_t most_bytes)
      : registrar_(registrar), source_(source), most_entries_(most_entries),
        most_bytes_(most_bytes) {}
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;
  // Nothing may be in use.
  ~RegistrationCache() = default;

  // A registration that covers this memory, in use until release(). Null if the device refuses and
  // nothing is left to let go, or if there is no memory to note it. `bytes` is not 0.
  Registration* acquire(const void* memory, std::size_t bytes);
  // The same if there is one already, else null.
  Registration* find(const void* memory, std::size_t bytes);
  void release(Registration& registration);

  // As acquire(), of memory that the program keeps as a whole until deregister(): what lies in it
  // needs no registration of its own meanwhile, also if nobody watches it.
  Registration* register_range(const void* memory, std::size_t bytes);
  void deregister(Registration& registration);

  // The registration of a packed key that is in use; null if there is none.
  [[nodiscard]] Registration* find_key(std::uint64_t packed_key) const;
  // The same of a key as the device gave it.
  [[nodiscard]] Registration* find_remote_key(std::uint64_t remote_key) const;

  // All that is not in use, for others to whom the device has refused memory. False: nothing was.
  bool give_back_unused();
  // Makes something for which memory is registered, and if that is refused, once more so.
  template <class Make>
  auto with_room(Make&& make) {
    try {
      return make();
    } catch (const base::Error&) {
      if (!give_back_unused()) throw;
    }
    return make();
  }

  // Lets go what is in the dead list, and what has gone away.
  void collect();

  [[nodiscard]] std::size_t entries() const { return by_key_.size(); }
  [[nodiscard]] std::size_t pinned_bytes() const { return bytes_; }
  // Registrations between acquire() (or find()) and release().
  [[nodiscard]] std::size_t in_use() const;
  // Why the device last refused to register more.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  [[nodiscard]] const RegistrationCounters& counters() const { return counters_; }

 private:
  using Tree = std::map<std::uintptr_t, Registration*>; // by first address

  [[nodiscard]] Range range_of(const void* memory, std::size_t bytes) const;
  Registration* use(const Range& wanted, bool part_of_registered);
  Registration* make(const Range& wanted);
  Registration* look_up(const Range& range) const;
  void take_invalidations();
  Tree::iterator first_overlap(const Range& range);
  void detach(Tree::iterator at);
  bool pin(Registration& registration, const Range& range, bool only_watched);
  std::unique_ptr<MemoryRegion> pin_with_room(const Range& range);
  void let_go_dead();
  bool evict_one();
  bool has_room(std::size_t bytes) const;
  void destroy(Registration& registration);

  Registrar& registrar_;
  InvalidationSource* source_;
  const std::size_t most_entries_;
  const std::size_t most_bytes_;
  Tree tree_;                                                               // the valid ones
  std::unordered_map<std::uint64_t, std::unique_ptr<Registration>> by_key_; // all
  base::List<Registration> unused_; // valid, least recently used first
  base::List<Registration> dead_;
  std::size_t bytes_ = 0; // of all
  std::uint32_t generation_ = 0;
  RegistrationCounters counters_;
  std::string refusal_;
};

// Registers what a cache's unused registrations give way to. For the thread that uses the cache.
class PreferredRegistrar final : public Registrar {
 public:
  PreferredRegistrar(Registrar& registrar, RegistrationCache& cache)
      : registrar_(registrar), cache_(cache) {}

  [[nodiscard]] const std::string& name() const override { return registrar_.name(); }
  std::unique_ptr<MemoryRegion> register_memory(void* memory, std::size_t bytes,
                                                Access access) override {
    return cache_.with_room([&] { return registrar_.register_memory(memory, bytes, access); });
  }

 private:
  Registrar& registrar_;
  RegistrationCache& cache_;
};

} // namespace macadam::mem
