// SPDX-License-Identifier: BSD-3-Clause
// Accumulates of a few integers of 8 bytes by the network's atomics, where those are the window's:
// a round trip, for which the lock takes three. What is done under the lock, by reads and writes,
// is not atomic to them: so the two exclude each other, for good. The first time that integers of a
// target are accumulated in bulk, its atomics are barred, and all of them go under the lock from
// then on. So a target has one way at any time, and atomics cost nothing to be sure of that:
//  - An origin that is about to use atomics on a target for the first time writes into the target's
//    control block that it does, and then reads there whether they are barred.
//  - Later it stores in its own control block that it is at one, and then looks there whether it is
//    barred; it stores 0 when it is done.
//  - The first origin in bulk, which is under the lock, writes that atomics are closed, and then
//    reads which origins use them. To each of these it writes that it is barred, and then reads
//    until it is not at one.
// Each writes before it reads, so of two that come together at least one sees the other: an origin
// that was not seen finds itself barred, and one that did not is waited for. Nobody waits for a
// process that computes: an origin is at atomics inside a call only.
#include "base/copy.h"
#include "base/error.h"
#include "rma/element.h"
#include "rma/post.h"
#include "rma/remote_atomics.h"
#include "rma/window.h"

#include <algorithm>
#include <array>

namespace macadam::rma {

using datatype::Op;
using datatype::Segment;
using datatype::Type;
using engine::Atomic;
using engine::RemoteMemory;

namespace {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);
constexpr std::size_t bar_offset = offsetof(Control, bar);
// Control::bar; 0 at first.
enum class Bar : std::uint64_t { closing = 1, closed };

std::uint64_t word_of(const std::byte* memory, std::size_t i) {
  std::uint64_t word;
  base::copy(&word, memory + i * word_bytes, word_bytes);
  return word;
}

} // namespace

// What we and the others say of elements of `rank` that we change.
NetworkAtomics& Window::network_atomics(int rank) const {
  return *reinterpret_cast<NetworkAtomics*>(control_ + layout_.network_atomics(rank));
}

// Whether elements of a type go by the network's atomics, if they are few.
bool Window::by_network(const Target& target, const Type& element) const {
  using enum datatype::BasicClass;
  if (target.atomics_network == nullptr || element.size() != word_bytes || !element.contiguous())
    return false;
  return is_integer(element) || element.basic()->type_class == logical;
}

// Held while atomics of a target are used. Empty: they are barred.
class Window::AtNetworkAtomics {
 public:
  AtNetworkAtomics(Window& window, Target& target)
      : ours_(window.network_atomics(target.rank)), allowed_(true) {
    if (window.is_alone(target)) return;
    if (!target.uses_atomics) begin_to_use(window, target);
    std::atomic_ref(ours_.now).exchange(1);
    allowed_ = std::atomic_ref(ours_.barred).load() == 0;
  }
  AtNetworkAtomics(const AtNetworkAtomics&) = delete;
  AtNetworkAtomics& operator=(const AtNetworkAtomics&) = delete;
  ~AtNetworkAtomics() { std::atomic_ref(ours_.now).store(0, std::memory_order_release); }
  explicit operator bool() const { return allowed_; }

 private:
  void begin_to_use(Window& window, Target& target) {
    target.flag_sent = 1;
    window.post_store(
        target, window.layout_.network_atomics(window.rank()) + offsetof(NetworkAtomics, uses),
        &target.flag_sent, sizeof target.flag_sent);
    window.post_load(target, bar_offset, target.scratch[1]);
    window.wait_for_batch(target);
    target.uses_atomics = true;
    if (target.scratch[1] != 0) std::atomic_ref(ours_.barred).store(1);
  }

  NetworkAtomics& ours_;
  bool allowed_;
};

// Where the network finds the words of which these segments of a place are made. False if they do
// not lie as it needs them.
bool Window::find_words(const Target& target, const Reach& to, std::span<const Segment> segments,
                        std::vector<RemoteMemory>& words) const {
  words.clear();
  if (target.by_messages) return false;
  for (const Segment& segment : segments) {
    const auto bytes = static_cast<std::uint64_t>(segment.bytes);
    const std::uint64_t place = to.place + reinterpret_cast<std::uint64_t>(segment.data);
    RemoteMemory memory = target.atomics_data;
    memory.address += place;
    if (memory_is_ == Memory::attached) {
      const auto next = std::ranges::upper_bound(target.attached, place, {}, &Attached::address);
      if (next == target.attached.begin()) return false;
      const Attached& holding = *(next - 1);
      if (place + bytes > holding.address + holding.bytes) return false; // in several
      memory = {holding.keys.far.address + (place - holding.address), holding.keys.far.key};
    }
    if (memory.address % word_bytes != 0) return false;
    for (std::uint64_t at = 0; at < bytes; at += word_bytes)
      words.push_back({memory.address + at, memory.key});
  }
  return true;
}

// The caller waits for the batch; then the old value is in `result`.
void Window::post_atomic(Target& target, const Atomic& what, RemoteMemory at,
                         std::uint64_t& result) {
  add_to_batch(target, [&](std::uint64_t cookie) {
    return target.atomics_network->atomic(*target.atomics_link, what, at, &result, cookie);
  });
}

// words[i] = ours[i] op words[i], the values before go to `old`: sums in one round trip, what the
// network cannot compute by compare-and-swap, from the guess 0 on, each word until its own has
// succeeded. False: atomics are barred, nothing was done.
bool Window::combine_by_network(Target& target, const Op& op, const Type& element,
                                std::span<const RemoteMemory> words, const std::byte* ours,
                                std::byte* old) {
  const AtNetworkAtomics at_atomics(*this, target);
  if (!at_atomics) return false;
  const bool reads = op.handle() == MPI_NO_OP;
  const bool adds = reads || (op.handle() == MPI_SUM && is_integer(element));
  constexpr std::size_t most_words = std::size(decltype(target.scratch){});
  std::array<std::uint64_t, most_words> guess{};
  std::array<bool, most_words> done{};
  for (bool goes_on = true; goes_on;) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (done[i]) continue;
      const std::byte* const mine = ours + i * word_bytes;
      Atomic what{Atomic::Kind::fetch_and_add, adds && !reads ? word_of(ours, i) : 0, 0};
      if (!adds) {
        what = {Atomic::Kind::compare_and_swap, guess[i], guess[i]};
        if (op.handle() == MPI_REPLACE)
          what.operand = word_of(ours, i);
        else
          op.apply(mine, &what.operand, 1, element);
      }
      post_atomic(target, what, words[i], target.scratch[i]);
    }
    wait_for_batch(target);
    goes_on = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (done[i]) continue;
      const std::uint64_t found = target.scratch[i];
      done[i] = adds || found == guess[i];
      guess[i] = found;
      goes_on |= !done[i];
    }
  }
  base::copy(old, guess.data(), words.size() * word_bytes);
  return true;
}

bool Window::swap_by_network(Target& target, const Reach& to, const void* origin,
                             const void* compare, void* result) {
  std::vector<RemoteMemory>& words = target.word_places;
  const Segment segment{nullptr, word_bytes};
  if (!find_words(target, to, {&segment, 1}, words)) return false;
  const AtNetworkAtomics at_atomics(*this, target);
  if (!at_atomics) return false;
  Atomic what{Atomic::Kind::compare_and_swap, 0, 0};
  base::copy(&what.operand, origin, word_bytes);
  base::copy(&what.compare, compare, word_bytes);
  post_atomic(target, what, words.front(), target.scratch[0]);
  wait_for_batch(target);
  base::copy(result, &target.scratch[0], word_bytes);
  return true;
}

// No integers of the target are changed by atomics any more. Its accumulate lock is held.
void Window::bar_atomics(Target& target) {
  if (target.barred) return;
  post_load(target, bar_offset, target.scratch[0]);
  wait_for_batch(target);
  if (target.scratch[0] != static_cast<std::uint64_t>(Bar::closed)) {
    target.scratch[0] = static_cast<std::uint64_t>(Bar::closing);
    post_store(target, bar_offset, &target.scratch[0], word_bytes);
    std::vector<NetworkAtomics> all(static_cast<std::size_t>(size()));
    add_to_batch(target, [&](std::uint64_t cookie) {
      const std::size_t offset = layout_.network_atomics(0);
      return target.atomics_network->read(
          *target.atomics_link, all.data(),
          {target.atomics_control.address + offset, target.atomics_control.key},
          all.size() * sizeof all[0], cookie);
    });
    wait_for_batch(target);
    for (int origin = 0; origin < size(); ++origin) {
      if (origin != rank() && all[static_cast<std::size_t>(origin)].uses != 0)
        keep_out(target, origin);
    }
    target.scratch[0] = static_cast<std::uint64_t>(Bar::closed);
    post_store(target, bar_offset, &target.scratch[0], word_bytes);
    wait_for_batch(target);
  }
  std::atomic_ref(network_atomics(target.rank).barred).store(1);
  target.barred = true;
}

// Bars one origin from the target's, and waits until it is not at them.
void Window::keep_out(Target& target, int origin) {
  Target& other = this->target(origin);
  const std::size_t offset = layout_.network_atomics(target.rank);
  const auto at = [&](std::size_t member) {
    return RemoteMemory{other.atomics_control.address + offset + member, other.atomics_control.key};
  };
  // In the batch of the target, whose turn we have; that of the origin may be another thread's.
  const auto run = [&](auto&& post_it) {
    post_counted(other, target.batch, [&] { return post_it(target.batch.cookie()); });
    waiting_.until([&] { return target.batch.pending == 0; });
    if (std::exchange(target.batch.ok, true)) return;
    other.failed = true;
    check_alive(other);
  };
  target.flag_sent = 1;
  run([&](std::uint64_t cookie) {
    return other.atomics_network->write(*other.atomics_link, &target.flag_sent,
                                        at(offsetof(NetworkAtomics, barred)),
                                        sizeof target.flag_sent, cookie);
  });
  other.atomics_unlanded = true;
  waiting_.until_seen([&] {
    run([&](std::uint64_t cookie) {
      return other.atomics_network->read(*other.atomics_link, &target.flag_read,
                                         at(offsetof(NetworkAtomics, now)), sizeof target.flag_read,
                                         cookie);
    });
    return target.flag_read == 0;
  });
}

} // namespace macadam::rma
