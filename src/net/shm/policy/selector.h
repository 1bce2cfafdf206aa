// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace macadam::net::shm {

// Sizes within a factor of two are alike: to 8 KiB, 16 KiB, ..., from 1 MiB on. An engine's header
// in front of the data changes nothing.
inline constexpr std::size_t size_classes = 9;
constexpr std::size_t size_class(std::size_t bytes) {
  constexpr std::size_t header = 64;
  const std::size_t last = bytes - std::min(bytes, header + 1);
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::bit_width(last)), 13, 21) - 13;
}

// Which of several methods (the values of an enumeration, from 0 on) to move data is the fastest
// one between two processes: it depends on the size, the machine, and on which cores they are.
// Learned from the transfers themselves: the best method is taken, another one now and then to see
// whether that is still so, the more seldom the slower it was.
template <class Method, unsigned methods, unsigned explore_every>
class Selector {
 public:
  struct Turn {
    Method method;
    bool timed; // tell record() how long it took
  };

  Turn next(std::size_t bytes) {
    Class& c = class_of(bytes);
    const unsigned turn = c.turn++;
    if (turn < run * methods) return {static_cast<Method>(turn / run), true};
    const unsigned better = best_of(c);
    if (turn == c.look_at) {
      c.other = (c.other + 1) % methods;
      if (c.other == better) c.other = (c.other + 1) % methods;
    }
    if (turn - c.look_at < run) return {static_cast<Method>(c.other), true};
    if (turn - c.look_at == run) {
      // So that looking costs less than `run` transfers in explore_every; at first more often, as
      // what is new may not show what it can.
      const float ratio = c.seconds[c.other] / c.seconds[better]; // not a number if all are unknown
      const float slower = ratio > 1 ? std::min(ratio, slowest) : 1;
      c.look_at = turn + std::min(explore_every, turn) * static_cast<unsigned>(slower);
    }
    return {static_cast<Method>(better), turn % time_every == 0};
  }

  // The best method so far; nothing is counted.
  [[nodiscard]] Method best(std::size_t bytes) const {
    return static_cast<Method>(best_of(classes_[size_class(bytes)]));
  }

  // Nothing is faster than it can be, but many things make a transfer slow that say little about
  // the method: memory touched for the first time, a core lost meanwhile. So a faster sample counts
  // at once, and slower ones little by little.
  void record(std::size_t bytes, Method method, double seconds) {
    float& best = class_of(bytes).seconds[static_cast<std::size_t>(method)];
    const auto sample = static_cast<float>(seconds / static_cast<double>(bytes));
    if (best == 0 || sample < best)
      best = sample;
    else
      best += (std::min(sample, 2 * best) - best) / 8;
  }

 private:
  // How often a method is taken when it is looked at: what it costs is seen when some transfers
  // before used the same method. At first each is.
  static constexpr unsigned run = 8;
  static constexpr unsigned time_every = 8;
  static constexpr float slowest = 64; // as far as that matters

  struct Class {
    float seconds[methods] = {}; // a byte, by method; 0: unknown
    std::uint32_t turn = 0;
    std::uint32_t look_at = 2 * run * methods;
    std::uint32_t other = 0; // that was looked at last
  };
  Class& class_of(std::size_t bytes) { return classes_[size_class(bytes)]; }

  // An unknown method is the worst; if all are, the first is best.
  static unsigned best_of(const Class& c) {
    unsigned best = 0;
    for (unsigned method = 1; method < methods; ++method)
      if (c.seconds[method] > 0 && (c.seconds[best] == 0 || c.seconds[method] < c.seconds[best]))
        best = method;
    return best;
  }

  std::array<Class, size_classes> classes_;
};

// How long data come to a process that waits for them.
enum class CopyMethod : std::uint8_t {
  chunks,             // through chunks, by stores through the cache
  chunks_nontemporal, // through chunks, by non-temporal stores
  kernel,             // copied by the kernel, on one core
};
// Looks seldom: what was written by non-temporal stores makes others slow later.
using MethodSelector = Selector<CopyMethod, 3, 1024>;

// What a message costs its receiver is more than the time of the transfer: a method may leave the
// data in the sender's cache, from where their reader has to fetch them. So the cost is
// the time since the message before, if they come fast, all of it: whatever else is in it is the
// same for all methods.
class CopyCost {
 public:
  // A message has ended; `timed`: the next one's cost will be asked for.
  void ended(CopyMethod method, bool timed, double now) {
    method_ = method;
    since_ = timed ? now : 0;
  }
  // The cost of a message that ends now, in seconds. Nothing if the one before came by another
  // method: what that left is part of this one's time.
  [[nodiscard]] std::optional<double> cost(CopyMethod method, double now, double transfer) const {
    if (since_ == 0 || method != method_) return std::nullopt;
    return std::min(now - since_, most_transfers * transfer);
  }

 private:
  // A receiver that does other things for longer than this hardly notices what else a method costs.
  static constexpr double most_transfers = 16;

  CopyMethod method_ = CopyMethod::chunks;
  double since_ = 0; // when the message before ended, 0 if that is not known
};

} // namespace macadam::net::shm
