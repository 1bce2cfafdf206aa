// SPDX-License-Identifier: BSD-3-Clause
#include "gravel/prove/families.h"

#include <fmt/format.h>

namespace macadam::gravel::prove {
namespace {

using namespace words;
using Steps = std::vector<Step>;

constexpr int any_source = -1;
constexpr int any_tag = -2;

// Each half of a protocol uses names from `first` on, and memory from `at` on.

Steps consume_written(int producer, std::size_t at, int tag, int first) {
  return {receive(producer, at, 4, tag, first), wait(first)};
}
Steps produce_written(int consumer, std::size_t at, int tag, int first) {
  return {take_receive(consumer, tag, first), put(first, at, 4, 0, first), fin(first, first + 1),
          wait(first), wait(first + 1)};
}
Steps produce_on_request(int consumer, std::size_t at, int tag, int first) {
  return {request(consumer, 4, tag, first),
          take_receive(consumer, tag, first),
          put(first, at, 4, 0),
          fin(first, first + 1),
          wait(first),
          wait(first + 1)};
}
Steps consume_on_request(int producer, std::size_t at, int tag, int first) {
  return {take_request(producer, tag, first), answer(first, at, 4, tag, first), wait(first)};
}
Steps produce_read(int consumer, std::size_t at, int tag, int first) {
  return {send(consumer, at, 4, tag, first), wait(first)};
}
Steps consume_read(int producer, std::size_t at, int tag, int first) {
  return {take_send(producer, tag, first), get(first, at, 4, 0, first), wait(first),
          fin(first, first + 1), wait(first + 1)};
}

Steps operator+(Steps first, const Steps& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

} // namespace

Program consumer_write(int rounds) {
  Program program{"consumer-initiated write", {}, {{}, {}}};
  for (int round = 0; round < rounds; ++round) {
    const auto at = static_cast<std::size_t>(8 * round);
    program.ranks[0] = program.ranks[0] + consume_written(1, at, 1, 0);
    program.ranks[1] = program.ranks[1] + produce_written(0, at, 1, 0);
  }
  return program;
}

// More announcements than there are slots, taken in another order than they came.
Program consumer_writes_in_flight() {
  return {"consumer-initiated writes in flight",
          {},
          {{receive(1, 0, 4, 1, 0), receive(1, 8, 4, 2, 1), receive(1, 16, 4, 1, 2), wait(2),
            wait(1), wait(0)},
           {take_receive(0, any_tag, 0), put(0, 0, 4, 0), take_receive(0, 2, 1), put(1, 8, 4, 0),
            fin(1, 1), fin(0, 0), take_receive(0, 1, 2), put(2, 16, 4, 0), fin(2, 2), wait(0),
            wait(1), wait(2)}}};
}

Program producer_write() {
  return {"producer-initiated write",
          {},
          {consume_on_request(any_source, 0, 1, 0), produce_on_request(0, 8, 1, 0)}};
}

Program producer_read() {
  return {"producer-initiated read", {}, {produce_read(1, 0, 3, 0), consume_read(0, 8, 3, 0)}};
}

// Three fragments, the middle one last, none with a request of its own.
Program pipeline() {
  return {"fragments with one handshake",
          {},
          {{receive(1, 0, 9, 1, 0), wait(0)},
           {take_receive(0, 1, 0), put(0, 0, 3, 0), put(0, 6, 3, 6), put(0, 3, 3, 3), fin(0, 1),
            wait(1)}}};
}

// The consumer posts what it has promised when it gets to it.
Program promised_writes(int rounds) {
  Program program = consumer_write(rounds);
  program.name = "promised writes";
  auto& consumer = program.ranks[0];
  consumer.insert(consumer.begin(), promise(1, static_cast<std::size_t>(rounds), 4, 1));
  return program;
}

// More posted, and taken before any is filled, than the ring has places; filled in another order.
Program promised_writes_in_flight() {
  return {"promised writes in flight",
          {},
          {{promise(1, 3, 4, 1), receive(1, 0, 4, 1, 0), receive(1, 8, 4, 1, 1),
            receive(1, 16, 4, 1, 2), wait(2), wait(0), wait(1)},
           {take_receive(0, 1, 0), take_receive(0, 1, 1), take_receive(0, any_tag, 2),
            put(1, 8, 4, 0), fin(1, 1), put(2, 16, 4, 0), fin(2, 2), put(0, 0, 4, 0), fin(0, 0),
            wait(0), wait(1), wait(2)}}};
}

// Beside buffers that were not promised, with the same tag, before and after.
Program promised_writes_between_others() {
  return {"promised writes between others",
          {},
          {{receive(1, 0, 4, 1, 0), promise(1, 1, 4, 1), receive(1, 8, 4, 1, 1),
            receive(1, 16, 4, 1, 2), wait(0), wait(1), wait(2)},
           {take_receive(any_source, 1, 0), put(0, 0, 4, 0), fin(0, 0), take_receive(0, 1, 1),
            put(1, 8, 4, 0), fin(1, 1), take_receive(0, 1, 2), put(2, 16, 4, 0), fin(2, 2), wait(0),
            wait(1), wait(2)}}};
}

// What comes after a promise need not wait until it is fulfilled, however short the ledger.
Program promise_that_is_passed() {
  return {"a promise that is passed",
          {},
          {{promise(1, 2, 4, 1), receive(1, 0, 4, 2, 0), wait(0), receive(1, 8, 4, 1, 1), wait(1)},
           {take_receive(0, 2, 0), put(0, 0, 4, 0), fin(0, 0), take_receive(0, 1, 1),
            put(1, 8, 4, 0), fin(1, 1), wait(0), wait(1)}}};
}

// ... nor does it take the room of a buffer that is taken later than one behind it.
Program promise_behind_what_is_passed() {
  return {
      "a promise behind what is passed",
      {},
      {{receive(1, 0, 4, 1, 0), promise(1, 1, 4, 2), receive(1, 8, 4, 3, 1), wait(1), wait(0),
        receive(1, 16, 4, 2, 2), wait(2)},
       {take_receive(0, 3, 0), put(0, 8, 4, 0), fin(0, 0), take_receive(0, 1, 1), put(1, 0, 4, 0),
        fin(1, 1), take_receive(0, 2, 2), put(2, 16, 4, 0), fin(2, 2), wait(0), wait(1), wait(2)}}};
}

// Fragments of a promised buffer: some move together, one does not follow the others.
Program promised_strips() {
  return {"fragments of promised buffers",
          {},
          {{promise(1, 2, 9, 1), receive(1, 0, 9, 1, 0), wait(0), receive(1, 16, 9, 1, 1), wait(1)},
           {take_receive(0, 1, 0), put(0, 0, 2, 0), put(0, 2, 4, 2, 2), put(0, 6, 3, 6), fin(0, 0),
            wait(2), wait(0), take_receive(0, 1, 1), put(1, 19, 6, 3), put(1, 16, 3, 0), fin(1, 1),
            wait(1)}}};
}

// Short fragments in their order: some move together, the last of them tells.
Program strips() {
  return {"short fragments that follow each other",
          {},
          {{receive(1, 0, 9, 1, 0), wait(0)},
           {take_receive(0, 1, 0), put(0, 0, 2, 0, 2), put(0, 2, 2, 2), put(0, 4, 2, 4, 3),
            put(0, 6, 1, 6), put(0, 7, 2, 7), fin(0, 1), wait(2), wait(3), wait(1)}}};
}

namespace {

// A get of two fragments whose FIN is sent before they are over.
Program early_fin_of_a_read() {
  return {"read in fragments, FIN at once",
          {},
          {produce_read(1, 0, 3, 0),
           {take_send(0, 3, 0), get(0, 8, 2, 2), get(0, 12, 2, 0), fin(0, 1), wait(1)}}};
}

// Both ways at once, of different protocols.
Program both_ways(const char* name, const Steps& first, const Steps& second) {
  return {name, {}, {first, second}};
}

std::vector<Program> pairs() {
  std::vector<Program> all{consumer_write(1),
                           consumer_write(3),
                           consumer_writes_in_flight(),
                           producer_write(),
                           producer_read(),
                           pipeline(),
                           strips(),
                           early_fin_of_a_read(),
                           promised_writes(4),
                           promised_writes_in_flight(),
                           promised_writes_between_others(),
                           promised_strips(),
                           promise_that_is_passed(),
                           promise_behind_what_is_passed()};
  all.push_back(both_ways("promised writes, one each way",
                          {promise(1, 1, 4, 1), receive(1, 0, 4, 1, 0), take_receive(1, 1, 1),
                           put(1, 8, 4, 0), fin(1, 2), wait(0), wait(2)},
                          {promise(0, 1, 4, 1), take_receive(0, 1, 1), put(1, 8, 4, 0), fin(1, 2),
                           receive(0, 0, 4, 1, 0), wait(0), wait(2)}));
  all.push_back(both_ways(
      "two consumer-initiated writes, one each way",
      {receive(1, 0, 4, 1, 0), take_receive(1, 1, 1), put(1, 8, 4, 0), fin(1, 2), wait(0), wait(2)},
      {receive(0, 0, 4, 1, 0), take_receive(0, 1, 1), put(1, 8, 4, 0), fin(1, 2), wait(0),
       wait(2)}));
  all.push_back(both_ways("two producer-initiated reads, one each way",
                          {send(1, 0, 4, 1, 0), take_send(1, 1, 1), get(1, 8, 4, 0, 3), wait(3),
                           fin(1, 2), wait(0), wait(2)},
                          {send(0, 0, 4, 1, 0), take_send(0, 1, 1), get(1, 8, 4, 0, 3), wait(3),
                           fin(1, 2), wait(0), wait(2)}));
  all.push_back(both_ways("a write one way, then a read the other way",
                          consume_written(1, 0, 1, 0) + produce_read(1, 8, 2, 2),
                          produce_written(0, 0, 1, 0) + consume_read(0, 8, 2, 2)));
  all.push_back(both_ways(
      "send buffers and requests mixed",
      {send(1, 0, 4, 1, 0), request(1, 4, 1, 1), send(1, 8, 4, 2, 2), wait(1), wait(0), wait(2)},
      {take_request(0, any_tag, 5), take_send(0, 2, 0), get(0, 8, 4, 0), fin(0, 1),
       take_send(any_source, 1, 2), get(2, 16, 4, 0), fin(2, 3), wait(1), wait(3)}));
  return all;
}

Program ring_of_three() {
  return {"a ring of three",
          {},
          {{receive(2, 0, 4, 1, 0), take_receive(1, 1, 1), put(1, 8, 4, 0), fin(1, 2), wait(0),
            wait(2)},
           {receive(0, 0, 4, 1, 0), take_receive(2, 1, 1), put(1, 8, 4, 0), fin(1, 2), wait(0),
            wait(2)},
           {receive(1, 0, 4, 1, 0), take_receive(0, 1, 1), put(1, 8, 4, 0), fin(1, 2), wait(0),
            wait(2)}}};
}

std::vector<Program> threes() {
  return {
      {"two producers, any source",
       {},
       {consume_on_request(any_source, 0, 1, 0) + consume_on_request(any_source, 8, 1, 1),
        produce_on_request(0, 0, 1, 0), produce_on_request(0, 8, 1, 0)}},
      {"two readers of two announcements",
       {},
       {{send(1, 0, 4, 1, 0), send(2, 8, 4, 1, 1), wait(0), wait(1)},
        consume_read(any_source, 0, 1, 0),
        consume_read(0, 0, 1, 0)}},
      {"two consumers, whoever is first",
       {},
       {{take_receive(any_source, any_tag, 0), put(0, 0, 4, 0), fin(0, 1),
         take_receive(any_source, any_tag, 2), put(2, 8, 4, 0), fin(2, 3), wait(1), wait(3)},
        consume_written(0, 0, 1, 0),
        consume_written(0, 0, 2, 0)}},
  };
}

} // namespace

std::vector<Program> all_programs() {
  std::vector<Program> all;
  const auto add = [&](Program program, const Conditions& conditions, const char* name) {
    program.conditions = conditions;
    program.name += fmt::format(" ({}, {} slots)", name, program.conditions.slots);
    all.push_back(std::move(program));
  };
  for (const std::uint32_t slots : {1u, 2u}) {
    for (const Program& program : pairs()) {
      add(program, {.slots = slots}, "at once");
      add(program, {.slots = slots, .ends = Ends::later}, "later");
      add(program, {.slots = slots, .ends = Ends::later, .ordered = false, .says_ordered = false},
          "unordered");
      add(program, {.slots = slots, .ends = Ends::either}, "either");
      add(program, {.slots = slots, .ends = Ends::later, .refusals = 1}, "later, one refusal");
      add(program, {.slots = slots, .refusals = 2}, "two refusals");
      add(program, {.slots = slots, .ends = Ends::later, .late = true}, "late connections");
      for (const int rank : {0, 1})
        add(program, {.slots = slots, .ends = Ends::later, .mortal = rank}, "a process ends");
    }
    // Where each promised buffer is announced by itself.
    for (const Program& program : {promised_writes(4), promised_writes_in_flight(),
                                   promised_writes_between_others(), promised_strips()})
      add(program, {.slots = slots, .copies = false}, "no copies");
    // Where they go as messages, all of them or the short ones.
    for (const Program& program :
         {promised_writes(4), promised_writes_in_flight(), promised_writes_between_others(),
          promised_strips(), promise_that_is_passed()}) {
      add(program, {.slots = slots, .messages = 13}, "messages");
      add(program, {.slots = slots, .messages = 12}, "short messages");
      add(program, {.slots = slots, .refusals = 2, .messages = 13}, "messages, two refusals");
      add(program, {.slots = slots, .ends = Ends::later, .late = true, .messages = 13},
          "messages, late connections");
      for (const int rank : {0, 1})
        add(program, {.slots = slots, .mortal = rank, .messages = 13}, "messages, a process ends");
    }
    add(ring_of_three(), {.slots = slots}, "at once"); // the others have too many orders
    for (const Program& program : threes()) {
      add(program, {.slots = slots}, "at once");
      add(program, {.slots = slots, .ends = Ends::later}, "later");
      add(program, {.slots = slots, .ends = Ends::later, .ordered = false, .says_ordered = false},
          "unordered");
      add(program, {.slots = slots, .late = true}, "late connections");
    }
  }
  return all;
}

} // namespace macadam::gravel::prove
