// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace macadam::gravel::prove {

inline constexpr std::size_t memory_bytes = 96; // that every process has, registered as a whole

// One call of a process. `as` names what it gives (a request, a buffer, a producer that was found),
// `of` what it uses.
struct Step {
  enum class What : std::uint8_t {
    promise_receive_buffers, // as many as `at` says, of `bytes`, to `peer`
    post_receive_buffer,     // `bytes` at `at`, to `peer` (or the producer found as `of`)
    post_send_buffer,
    post_send_request,
    take_receive_buffer, // these wait, from `peer` or any source
    take_send_buffer,
    take_send_request,
    put, // `bytes` at `at` to `offset` of the buffer `of`
    get,
    send_fin, // of the buffer `of`
    wait,     // for the request `of`
  } what;
  int peer = 0;
  int tag = 0;
  int of = -1;
  int as = -1;
  std::size_t at = 0;
  std::size_t bytes = 0;
  std::size_t offset = 0;
};

// Whether the network says at once that a transfer is over, or later.
enum class Ends : std::uint8_t { at_once, later, either };

// What the processes stand on.
struct Conditions {
  std::uint32_t slots = 2;
  Ends ends = Ends::at_once;
  bool ordered = true;      // puts land in order ...
  bool says_ordered = true; // ... as Limits claims
  bool reads_late = false;  // memory is read after the network has said that it is free (wrong)
  unsigned refusals = 0;    // operations for which there is no room at first
  bool late = false;        // connections take a while
  int mortal = -1;          // this process may end at any time
  // The network has memory for the places of promised buffers, and copies are cheap.
  bool copies = true;
  // If not 0, puts are a processor's copies, so that whole promised buffers go as messages, of so
  // many bytes at most; whole or in two fragments.
  std::size_t messages = 0;
};

struct Program {
  std::string name;
  Conditions conditions;
  std::vector<std::vector<Step>> ranks;
};

// Short words for steps.
namespace words {

using What = Step::What;
inline Step receive(int producer, std::size_t at, std::size_t bytes, int tag, int as) {
  return {What::post_receive_buffer, producer, tag, -1, as, at, bytes, 0};
}
inline Step promise(int producer, std::size_t count, std::size_t bytes, int tag) {
  return {What::promise_receive_buffers, producer, tag, -1, -1, count, bytes, 0};
}
// From the producer that take_request() has found as `found`.
inline Step answer(int found, std::size_t at, std::size_t bytes, int tag, int as) {
  return {What::post_receive_buffer, -1, tag, found, as, at, bytes, 0};
}
inline Step send(int consumer, std::size_t at, std::size_t bytes, int tag, int as) {
  return {What::post_send_buffer, consumer, tag, -1, as, at, bytes, 0};
}
inline Step request(int consumer, std::size_t bytes, int tag, int as) {
  return {What::post_send_request, consumer, tag, -1, as, 0, bytes, 0};
}
inline Step take_receive(int consumer, int tag, int as) {
  return {What::take_receive_buffer, consumer, tag, -1, as, 0, 0, 0};
}
inline Step take_send(int producer, int tag, int as) {
  return {What::take_send_buffer, producer, tag, -1, as, 0, 0, 0};
}
inline Step take_request(int producer, int tag, int as) {
  return {What::take_send_request, producer, tag, -1, as, 0, 0, 0};
}
inline Step put(int buffer, std::size_t at, std::size_t bytes, std::size_t offset, int as = -1) {
  return {What::put, 0, 0, buffer, as, at, bytes, offset};
}
inline Step get(int buffer, std::size_t at, std::size_t bytes, std::size_t offset, int as = -1) {
  return {What::get, 0, 0, buffer, as, at, bytes, offset};
}
inline Step fin(int buffer, int as) {
  return {What::send_fin, 0, 0, buffer, as, 0, 0, 0};
}
inline Step wait(int request) {
  return {What::wait, 0, 0, request, -1, 0, 0, 0};
}

} // namespace words

} // namespace macadam::gravel::prove
