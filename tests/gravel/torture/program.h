// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torture/network.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace macadam::gravel::torture {

using macadam::torture::Network;
using macadam::torture::Random;

struct Fragment {
  std::size_t offset, bytes;
  bool own_request; // that is waited for; else the FIN's stands for it
};

// Data that go from one rank to another, or to itself, by one of the paper's protocols.
struct Exchange {
  enum class Kind : std::uint8_t { consumer_write, producer_write, producer_read } kind;
  int producer, consumer;
  int tag;
  std::size_t bytes;
  std::size_t from = 0, to = 0;    // where the data are in each one's memory
  std::vector<Fragment> fragments; // in the order in which they are moved
};

// One call of one side of an exchange.
struct Step {
  enum class What : std::uint8_t {
    post_request, // producer: data will come
    take_request,
    take_any,     // from any source: which exchange it is for is found then
    promise,      // consumer: `fragment` receive buffers like this one will be posted
    post_receive, // consumer: here is memory
    take_receive,
    post_send, // producer: here are data
    take_send,
    move, // put or get of `fragment`
    fin,
    wait_moved, // `fragment`, which has a request of its own
    wait_fin,
    wait_request,
    wait_posted, // the memory that was announced is one's own again
  } what;
  int exchange;
  int fragment = 0;
  bool any_tag = false;
};

// A random program and the network it runs on: everything follows from the seed.
struct Setup : Network {
  std::uint32_t slots = 2;
  bool copies = false; // promised buffers are copied, if they are short
  bool scarce = false; // registrations may be refused
  int mortal = -1;     // this rank ends before its step `dies_at`
  std::size_t dies_at = 0;
  std::vector<Exchange> exchanges;
  std::vector<std::vector<Step>> ranks;
  std::vector<std::size_t> memory_bytes; // of each rank
};

// Without `promises`: as it was before there were any, for seeds that have a name.
Setup random_setup(std::uint64_t seed, bool promises = true);
std::string show(const Setup& setup);
// "take_receive of 3 (consumer_write, 1 to 0, tag 2, 100 bytes)"
std::string show(const Setup& setup, const Step& step);

} // namespace macadam::gravel::torture
