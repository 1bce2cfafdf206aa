// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/copy.h"
#include "datatype/cursor.h"
#include "rma/target.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace macadam::rma {

// Appends a piece of this process's memory; those that touch become one.
inline void add_segment(std::vector<datatype::Segment>& segments, datatype::Segment next) {
  if (!segments.empty() && segments.back().data + segments.back().bytes == next.data)
    segments.back().bytes += next.bytes;
  else
    segments.push_back(next);
}

// Calls copy(memory, bytes) for each segment.
template <class Copy>
void for_each_of(const std::vector<datatype::Segment>& segments, Copy&& copy) {
  std::size_t few = 0;
  for (const datatype::Segment& segment : segments) {
    const auto bytes = static_cast<std::size_t>(segment.bytes);
    if (bytes <= base::few_bytes) few += bytes;
    copy(segment.data, bytes);
  }
  base::touched(few);
}

// Data that come packed, on their way to where they belong. Ends itself.
struct Collected final : Waiter {
  Collected(Waiter& waiter, std::vector<datatype::Segment> segments, std::size_t bytes)
      : whole(waiter), ours(std::move(segments)), packed(bytes) {
    whole.on_posted();
  }
  void on_posted() override { ++pending; }
  void on_done(bool ok) noexcept override {
    succeeded = succeeded && ok;
    if (--pending != 0) return;
    const std::byte* from = packed.data();
    if (succeeded) {
      for_each_of(ours, [&](std::byte* to, std::size_t bytes) {
        base::copy(to, from, bytes);
        from += bytes;
      });
    }
    whole.on_done(succeeded);
    delete this;
  }

  Waiter& whole;
  std::vector<datatype::Segment> ours;
  std::vector<std::byte> packed;
  std::uint32_t pending = 1; // who posts it
  bool succeeded = true;
};

// `bytes` bytes to these segments: ask(where they come to, packed, who is told) posts the request.
template <class Ask>
void collect(std::vector<datatype::Segment> ours, std::size_t bytes, Waiter& waiter, Ask&& ask) {
  if (ours.size() == 1) return ask(ours.front().data, waiter);
  auto* const collected = new Collected(waiter, std::move(ours), bytes);
  try {
    ask(collected->packed.data(), *collected);
  } catch (...) { // the target has ended
    collected->on_done(false);
    throw;
  }
  collected->on_done(true);
}

} // namespace macadam::rma
