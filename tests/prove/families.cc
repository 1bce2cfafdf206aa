// SPDX-License-Identifier: BSD-3-Clause
#include "prove/families.h"

#include "fmt/format.h"

#include <algorithm>
#include <stdexcept>

namespace macadam::prove {
namespace {

using Word = std::vector<Step>;

// Replaces the first "{a b c}" by each of its alternatives, and so on.
void expand(const std::string& pattern, std::vector<std::string>& found) {
  const std::size_t open = pattern.find('{');
  if (open == std::string::npos) return found.push_back(pattern);
  const std::size_t close = pattern.find('}', open);
  std::size_t at = open + 1;
  while (at < close) {
    const std::size_t end = std::min(pattern.find(' ', at), close);
    expand(pattern.substr(0, open) + pattern.substr(at, end - at) + pattern.substr(close + 1),
           found);
    at = end + 1;
  }
}

std::vector<std::string> expand_all(const std::string& patterns) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < patterns.size();) {
    const std::size_t end = std::min(patterns.find(';', at), patterns.size());
    expand(patterns.substr(at, end - at), found);
    at = end + 1;
  }
  return found;
}

std::vector<Word> words_of(const Sequences& sequences) {
  std::vector<Word> words;
  for (const std::string& text : expand_all(sequences.words))
    words.push_back(parse("/" + text + "// // //").ranks[0]);
  return words;
}

// A cancel, withdrawal or wait names an operation that stands before it, a matched receive has its
// probe, and what is freed is not used again.
bool sensible(const Word& steps) {
  int receives = 0, sends = 0, partitioned = 0;
  bool probed = false;
  std::vector<int> freed;
  for (const Step& step : steps) {
    if (std::find(freed.begin(), freed.end(), step.context) != freed.end()) return false;
    switch (step.what) {
    case Step::What::send:
    case Step::What::synchronous_send:
    case Step::What::exchange_send:
    case Step::What::nonblocking_send:
      ++sends;
      break;
    case Step::What::withdraw:
      if (step.number >= sends) return false;
      break;
    case Step::What::receive:
      ++receives;
      break;
    case Step::What::match_probe:
      if (probed) return false;
      probed = true;
      break;
    case Step::What::receive_matched:
      if (!probed) return false;
      probed = false;
      ++receives;
      break;
    case Step::What::cancel:
    case Step::What::wait:
      if (step.number >= receives) return false;
      break;
    case Step::What::partitioned_send:
    case Step::What::partitioned_receive:
      ++partitioned;
      break;
    case Step::What::start_round:
    case Step::What::mark_ready:
    case Step::What::mark_only:
    case Step::What::end_round:
      if (step.number >= partitioned) return false;
      break;
    case Step::What::free_context:
      freed.push_back(step.context);
      break;
    default:
      break;
    }
  }
  return true;
}

// All sensible sequences, by their number of steps.
std::vector<std::vector<Word>> sequences_of(const Sequences& sequences) {
  const std::vector<Word> words = words_of(sequences);
  std::vector<std::vector<Word>> by_steps;
  std::vector<Word> level = {{}};
  for (std::size_t length = 0;; ++length) {
    if (length >= sequences.least) {
      for (const Word& steps : level) {
        if (!sensible(steps)) continue;
        by_steps.resize(std::max(by_steps.size(), steps.size() + 1));
        by_steps[steps.size()].push_back(steps);
      }
    }
    if (length == sequences.most) return by_steps;
    std::vector<Word> longer;
    for (const Word& steps : level) {
      for (const Word& word : words) {
        longer.push_back(steps);
        longer.back().insert(longer.back().end(), word.begin(), word.end());
      }
    }
    level = std::move(longer);
  }
}

// Tags are numbered as they appear.
bool tags_in_order(const Program& program) {
  int next = 0;
  for (const Word& steps : program.ranks) {
    for (const Step& step : steps) {
      const bool has_tag = step.what <= Step::What::match_probe && step.tag != MPI_ANY_TAG;
      if (!has_tag) continue;
      if (step.tag > next) return false;
      next = std::max(next, step.tag + 1);
    }
  }
  return true;
}

// Ranks 0 and 2 of three are interchangeable if the family treats them alike.
Program mirrored(const Program& program) {
  Program other = program;
  std::swap(other.ranks[0], other.ranks[2]);
  for (Word& steps : other.ranks) {
    for (Step& step : steps) {
      if (step.peer == 0 || step.peer == 2) step.peer = 2 - step.peer;
    }
  }
  return other;
}

bool chosen(const Program& program, bool symmetric) {
  if (!tags_in_order(program)) return false;
  if (!symmetric) return true;
  const Program other = mirrored(program);
  return !tags_in_order(other) || show(program) <= show(other);
}

} // namespace

void enumerate(const Family& family, const std::function<bool(const Program&)>& visit) {
  std::vector<Conditions> conditions;
  for (const std::string& text : expand_all(family.conditions))
    conditions.push_back(parse(text + "// /").conditions);
  std::vector<std::vector<std::vector<Word>>> choices;
  std::size_t most = 0;
  for (const Sequences& rank : family.ranks) {
    choices.push_back(sequences_of(rank));
    most += choices.back().size() - 1;
  }
  const bool symmetric = family.ranks.size() == 3 && family.ranks[0].words == family.ranks[2].words;

  Program program;
  program.ranks.resize(choices.size());
  // Ranks from `rank` on take `steps` steps together.
  const auto fill = [&](auto& self, std::size_t rank, std::size_t steps) -> bool {
    if (rank == choices.size()) {
      if (steps != 0 || !chosen(program, symmetric)) return true;
      return std::all_of(conditions.begin(), conditions.end(), [&](const Conditions& c) {
        program.conditions = c;
        return visit(program);
      });
    }
    for (std::size_t own = 0; own <= steps && own < choices[rank].size(); ++own) {
      for (const Word& word : choices[rank][own]) {
        program.ranks[rank] = word;
        if (!self(self, rank + 1, steps - own)) return false;
      }
    }
    return true;
  };
  for (std::size_t steps = 0; steps <= most; ++steps) {
    if (!fill(fill, 0, steps)) return;
  }
}

const Family& family(std::string_view name) {
  std::string names;
  for (const Family& known : families()) {
    if (name == known.name) return known;
    names += names.empty() ? known.name : std::string(", ") + known.name;
  }
  throw std::invalid_argument(fmt::format("there is no family \"{}\"; there are {}", name, names));
}

std::span<const Family> families() {
  static const std::vector<Family> all = {
      {.name = "pairs",
       .about = "one or two messages, every kind of receive, every room, every way to move data",
       .conditions = "{read write} {at_once blocking ordered};sender {read write}",
       .ranks = {{1, 2, "send 1 {0 1} {4 12 20}"}, {1, 2, "recv {0 *} {0 1 *} {4 12 24}"}},
       .quick = true},
      {.name = "probes",
       .about = "probes, matched probes and cancels among receives",
       .conditions = "{read write} {at_once blocking ordered}",
       .ranks = {{1, 2, "send 1 0 {4 12 20};send 1 1 20"},
                 {2, 3, "recv 0 0 {12 24};recv * 0 24;cancel {0 1};probe 0 *;mprobe * *,mrecv 24"}},
       .quick = false},
      {.name = "threes",
       .about = "three messages, three receives or matched probes",
       .conditions = "{read write} blocking",
       .ranks = {{3, 3, "send 1 0 {4 12 20}"},
                 {3, 3, "recv 0 0 {4 24};recv * 0 24;mprobe * *,mrecv 24"}},
       .quick = false},
      {.name = "tags",
       .about = "three messages of two tags, three receives that may take any",
       .conditions = "{read write} at_once",
       .ranks = {{3, 3, "send 1 {0 1} {4 20}"}, {3, 3, "recv {0 *} {0 1} 24;recv 0 * 24"}},
       .quick = false},
      {.name = "taken_back",
       .about = "three messages, two receives or more of which some are cancelled",
       .conditions = "{read write} blocking",
       .ranks = {{3, 3, "send 1 0 {4 20}"}, {3, 4, "recv 0 0 24;cancel {0 1}"}},
       .quick = false},
      {.name = "cancels",
       .about = "up to three receives of one tag, up to four cancels or receives more",
       .conditions = "write {at_once blocking}",
       .ranks = {{1, 2, "send 1 0 {4 20}"}, {4, 5, "recv 0 0 24;recv * 0 24;cancel {0 1 2}"}},
       .quick = false},
      {.name = "retractions",
       .about = "receives cancelled, posted and announced anew while permits are revoked",
       .conditions = "{read write} {at_once blocking}",
       .ranks = {{1, 2, "send 1 0 {4 12 20}"}, {3, 4, "recv 0 0 {8 24};cancel {0 1}"}},
       .quick = false},
      {.name = "uncounted",
       .about = "receives that announce themselves and are cancelled, for messages that the sender "
                "does not count",
       .conditions = "write tags=1 {either ordered} refusals=1",
       .ranks = {{2, 2, "send 1 {0 1} {4 20}"}, {2, 3, "recv 0 {0 1} 24;cancel {0 1}"}},
       .quick = true},
      {.name = "withdrawals",
       .about =
           "sends cancelled that wait for their receive, among receives that are cancelled too",
       .conditions = "{read write} {at_once blocking}",
       .ranks = {{2, 3, "send 1 0 {4 20};ssend 1 0 {4 20};withdraw {0 1}"},
                 {1, 2, "recv {0 *} 0 24;mprobe * *,mrecv 24;cancel 0"}},
       .quick = false},
      {.name = "refusals",
       .about = "the network refuses up to two operations, connects late, delivers in bursts",
       .conditions =
           "{read write} {at_once blocking ordered} {refusals=2 late} bursts;"
           "sender {read write} refusals=2 bursts;{read write} throttle refusals=1 bursts",
       .ranks = {{1, 2, "send 1 0 {4 12 20};ssend 1 0 4"},
                 {1, 2, "recv 0 0 {8 24};recv * 0 24;mprobe * *,mrecv 24"}},
       .quick = false},
      {.name = "busy",
       .about = "puts and gets end at once or later as each comes; sends are refused meanwhile",
       .conditions = "{read write} either refusals=1",
       .ranks = {{2, 3, "send 1 0 {4 12 20}"}, {2, 2, "recv 0 0 24;recv * 0 24"}},
       .quick = true},
      {.name = "last_byte",
       .about = "the end of a write is seen by its last byte, without a packet",
       .conditions = "{read write} {at_once ordered} last_byte",
       .ranks = {{1, 2, "send 1 0 {4 12 20};send 1 1 20"},
                 {1, 3, "recv 0 0 {12 20 24};recv * * 20;cancel 0"}},
       .quick = false},
      {.name = "notifications",
       .about = "writes tell their target that they are there, without a packet",
       .conditions = "{read write} {at_once ordered blocking} notifications",
       .ranks = {{1, 2, "send 1 0 {4 12 20};send 1 1 20"},
                 {1, 3, "recv 0 0 {12 24};recv * * 20;cancel 0"}},
       .quick = false},
      {.name = "silent",
       .about = "both of these for one or two messages of one tag",
       .conditions = "{read write} {at_once ordered} {last_byte notifications}",
       .ranks = {{1, 2, "send 1 0 {4 20}"}, {1, 2, "recv 0 0 {12 20 24};recv * 0 20"}},
       .quick = true},
      {.name = "both_ways",
       .about = "both processes send and receive",
       .conditions = "{read write} blocking",
       .ranks = {{1, 3, "send 1 0 {12 20};recv 1 0 24"},
                 {1, 3, "send 0 0 {12 20};recv {0 *} 0 24"}},
       .quick = false},
      {.name = "exchanges",
       .about = "both processes send parts of exchanges, among other messages",
       .conditions = "read {at_once blocking ordered} copies;read ordered notifications copies;"
                     "sender read blocking copies;read blocking copies refusals=1;"
                     "read at_once copies scarce=1",
       .ranks = {{1, 2, "recv 1 0 24;xsend 1 0 {4 12 20};send 1 0 20"},
                 {1, 2, "recv 0 0 24;xsend 0 0 {12 20};recv * 0 12"}},
       .quick = true},
      {.name = "nonblocking",
       .about = "both processes send without waiting, among receives that are cancelled",
       .conditions = "read {at_once blocking ordered} copies;read ordered notifications copies;"
                     "write blocking copies;read blocking copies refusals=1;"
                     "read at_once copies scarce=1;read at_once copies deaths=1",
       .ranks = {{1, 2, "recv 1 0 24;isend 1 0 {12 20};send 1 0 20"},
                 {1, 2, "recv {0 *} 0 24;isend 0 0 20;cancel 0"}},
       .quick = true},
      {.name = "leaving",
       .about = "senders that wait leave copies behind, among receives of all kinds",
       .conditions = "read {at_once blocking ordered} copies;read at_once copies refusals=1;"
                     "read at_once copies scarce=1;"
                     "read at_once copies deaths=1",
       .ranks = {{1, 2, "send 1 0 12"}, {1, 2, "recv {0 *} 0 24;cancel 0;mprobe * *,mrecv 8"}},
       .quick = true},
      {.name = "bundles",
       .about = "a burst of short nonblocking messages, of which the last are held, among all else",
       .conditions = "read {at_once ordered} bundles;write blocking bundles refusals=1;"
                     "read at_once bundles {late throttle bursts deaths=1}",
       .ranks =
           {{1, 1,
             "isend 1 0 4,isend 1 0 4,isend 1 0 4,isend 1 0 4,isend 1 0 4,isend 1 0 4,"
             "{send ssend isend} 1 0 4;"
             "isend 1 0 4,isend 1 0 4,isend 1 0 4,isend 1 0 4,isend 1 0 4,isend 1 0 4,"
             "isend 1 0 20;"
             "recv 1 0 24,isend 1 0 4,isend 1 0 4,isend 1 0 4,isend 1 0 4,isend 1 0 4,isend 1 0 4;"
             "isend 1 0 4,isend 1 0 4,isend 1 0 4,isend 1 0 4,isend 1 0 4,isend 1 0 4,"
             "recv 1 0 24"},
            {0, 1, "recv {0 *} 0 24;ssend 0 0 4"}},
       .quick = true},
      {.name = "uncopied",
       .about = "EAGER messages whose data leave their memory after the call, among all else",
       .conditions = "read {blocking ordered either} uncopied;write blocking uncopied refusals=1;"
                     "read blocking uncopied {late throttle bursts fragments bundles deaths=1}",
       .ranks = {{1, 2, "send 1 0 4;isend 1 0 4g;ssend 1 0 4;isend 1 0 20;withdraw 0"},
                 {1, 2, "recv 0 0 24;send 0 0 4"}},
       .quick = true},
      {.name = "senders",
       .about = "three ranks: two senders, every size, one receiver with wildcards",
       .conditions = "{read write} blocking",
       .ranks = {{1, 1, "send 1 0 {4 12 20}"},
                 {1, 3, "recv {0 2 *} 0 24;recv * * 12;cancel {0 1};mprobe * *,mrecv 24"},
                 {1, 1, "send 1 0 {4 12 20}"}},
       .quick = false},
      {.name = "crowd",
       .about = "three ranks: two senders of one or two large messages, three receives",
       .conditions = "{read write} at_once",
       .ranks = {{1, 2, "send 1 0 20"}, {2, 3, "recv {0 2 *} 0 24"}, {1, 2, "send 1 0 20"}},
       .quick = false},
      {.name = "freed",
       .about = "communicators are freed while announcements and questions are on their way",
       .conditions = "{read write} {at_once blocking}",
       .ranks = {{1, 2, "send 1 0 {4 12 20},free;send 1 0 {4 12 20} @1,free @1"},
                 {1, 2,
                  "recv 0 0 24,free;recv 0 0 24 @1,free @1;recv 0 0 24,cancel 0,recv 0 0 24,free"}},
       .quick = true},
      {.name = "scarce",
       .about = "memory that cannot be registered, on either side or both",
       .conditions =
           "{read write} {at_once blocking ordered} scarce=2;"
           "{read write} {at_once ordered} notifications scarce=1;write blocking scarce=1 late",
       .ranks = {{1, 2, "send 1 0 {4 20};send 1 0 12"},
                 {1, 2, "recv 0 0 {12 24};recv * 0 24;mprobe * *,mrecv 24;cancel 0"}},
       .quick = true},
      {.name = "fragments",
       .about = "eager messages come in two fragments, with everything that can happen in between",
       .conditions = "read {at_once blocking} fragments;read throttle fragments",
       .ranks = {{1, 2, "send 1 0 {4 12};ssend 1 0 4g"},
                 {1, 2, "recv 0 0 {0 24};recv * 0 24g;mprobe * *,mrecv 24;cancel 0"}},
       .quick = true},
      {.name = "fragments_after_writes",
       .about = "fragments of messages behind writes that end without a packet",
       .conditions = "{read write} ordered {last_byte notifications} fragments",
       .ranks = {{1, 2, "send 1 0 {4 20}"}, {1, 2, "recv 0 0 {20 24};recv * 0 20"}},
       .quick = true},
      {.name = "fragments_more",
       .about = "the same with three receives, and writes",
       .conditions = "{read write} {at_once blocking} fragments;write throttle fragments",
       .ranks = {{1, 2, "send 1 0 {4 12};ssend 1 0 4g"},
                 {3, 3, "recv 0 0 {0 24};recv * 0 24g;mprobe * *,mrecv 24;cancel 0"}},
       .quick = false},
      {.name = "fragments_of_two",
       .about = "three ranks: fragments of two senders' messages between each other",
       .conditions = "read at_once fragments",
       .ranks = {{1, 2, "send 1 0 4"},
                 {1, 2, "recv {0 *} 0 24;mprobe * *,mrecv 24"},
                 {1, 1, "send 1 0 {4 20}"}},
       .quick = false},
      {.name = "partitions",
       .about = "partitions in every order, cut otherwise by the receiver, two rounds in flight",
       .conditions =
           "read {at_once blocking ordered};read {at_once ordered} notifications;"
           "read blocking notifications refusals=1;read {at_once ordered} scarce=1;"
           "read ordered notifications late bursts;read {at_once blocking} copies;"
           "read {at_once blocking ordered} notifications copies;read ordered copies refusals=1;"
           "read ordered notifications copies refusals=1;read blocking notifications copies "
           "scarce=1;"
           "read ordered notifications copies late bursts;"
           "read blocking copies scarce=1",
       .ranks =
           {{1, 1,
             "psend 1 0 2 6,start 0,ready 0 1,ready 0 0,end 0,start 0,ready 0 0,ready 0 1;"
             "psend 1 0 3 4,start 0,ready 0 2,mark 0 0,ready 0 1,end 0,start 0,{ready mark} 0 1;"
             "psend 1 0 1 12g,start 0,mark 0 0,end 0,start 0,mark 0 0"},
            {1, 1,
             "precv 0 0 1 12,start 0,end 0,start 0;precv 0 0 2 6,start 0,end 0,start 0;"
             "precv 0 0 3 4,start 0,end 0,start 0;"
             "precv 0 0 1 12g,start 0,end 0,start 0,end 0"}},
       .quick = true},
      {.name = "partitioned",
       .about = "several partitioned operations of one tag, messages among them",
       .conditions =
           "{read write} {at_once blocking};read ordered notifications;write ordered scarce=1;"
           "read {at_once ordered} copies;read at_once notifications copies",
       .ranks =
           {{1, 1,
             "psend 1 0 1 8,psend 1 0 2 4,start 1,ready 1 1,start 0,ready 0 0,ready 1 0;"
             "psend 1 0 2 4,start 0,ready 0 0,send 1 0 {4 20},ready 0 1,end 0,start 0,ready 0 0;"
             "psend 1 0 1 8,start 0,ready 0 0,precv 1 0 1 8,start 1"},
            {1, 1,
             "precv 0 0 2 4,precv 0 0 1 8,start 0,start 1,end 0,start 0;"
             "precv 0 0 2 4,start 0,recv 0 0 24,end 0,start 0;"
             "precv 0 0 1 8,start 0,psend 0 0 1 8,start 1,ready 1 0"}},
       .quick = false},
      {.name = "deaths",
       .about = "one process disappears, at any step",
       .conditions = "{read write} {at_once blocking ordered} deaths=1;"
                     "read ordered notifications deaths=1;read blocking copies deaths=1;"
                     "read at_once fragments deaths=1;write blocking late deaths=1",
       .ranks = {{1, 2, "send 1 0 {4 12 20};recv 1 0 24"},
                 {1, 1, "recv {0 *} 0 24;send 0 0 {12 20}"}},
       .quick = true},
      {.name = "deaths_more",
       .about = "... with receives that are cancelled, and both ways",
       .conditions = "{read write} {at_once blocking ordered} deaths=1",
       .ranks = {{1, 2, "send 1 0 {4 12 20};recv 1 0 24"},
                 {2, 2, "recv {0 *} 0 24;send 0 0 {12 20};cancel 0"}},
       .quick = false},
      {.name = "deaths_of_one",
       .about = "three ranks, one of which disappears",
       .conditions = "{read write} {at_once blocking} deaths=1",
       .ranks = {{1, 1, "send 1 0 {4 12 20}"},
                 {1, 2, "recv {0 2 *} 0 24;mprobe * *,mrecv 24"},
                 {1, 1, "send 1 0 {4 12 20}"}},
       .quick = false},
      {.name = "deaths_in_rounds",
       .about = "one side of a partitioned operation disappears",
       .conditions = "read {at_once blocking ordered} deaths=1;"
                     "read ordered notifications deaths=1;read blocking copies deaths=1;"
                     "read blocking notifications copies deaths=1",
       .ranks = {{1, 1,
                  "psend 1 0 2 6,start 0,ready 0 1,ready 0 0,end 0,start 0,ready 0 0;"
                  "psend 1 0 3 4,start 0,ready 0 2,mark 0 0,ready 0 1"},
                 {1, 1, "precv 0 0 1 12,start 0,end 0,start 0;precv 0 0 2 6,start 0"}},
       .quick = true},
      {.name = "starved",
       .about = "no memory for something in the library, once, whatever it is",
       .conditions =
           "{read write} {at_once blocking} starved=1;read ordered notifications starved=1",
       .ranks = {{1, 2, "send 1 0 {4 12 20g}"}, {1, 1, "recv {0 *} 0 24g;mprobe * *,mrecv 24"}},
       .quick = true},
      {.name = "starved_more",
       .about = "... with cancels, offers of exchanges, synchronous sends, fragments",
       .conditions = "{read write} at_once starved=1;read blocking copies starved=1;"
                     "read at_once fragments starved=1",
       .ranks = {{1, 1, "xsend 1 0 20;ssend 1 0 {4 20g};recv 1 0 24"},
                 {1, 2, "recv {0 *} 0 24g;cancel 0;xsend 0 0 20"}},
       .quick = false},
      {.name = "starved_rounds",
       .about = "... in rounds of partitions, on either side",
       .conditions = "read {at_once ordered} starved=1;read ordered notifications starved=1;"
                     "read at_once copies starved=1;read at_once notifications copies starved=1",
       .ranks = {{1, 1,
                  "psend 1 0 2 6,start 0,ready 0 1,ready 0 0;"
                  "psend 1 0 1 12g,start 0,mark 0 0,end 0,start 0"},
                 {1, 1, "precv 0 0 1 12,start 0;precv 0 0 1 12g,start 0"}},
       .quick = true},
      {.name = "bounds",
       .about = "ordinals for one tag only, room for one unexpected message, noncontiguous types",
       .conditions = "{read write} {tags=1 throttle} {at_once blocking}",
       .ranks = {{1, 2, "send 1 {0 1} {4g 12 20g}"}, {1, 2, "recv 0 {0 1 *} 24g;recv 0 0 4g"}},
       .quick = false},
  };
  return all;
}

} // namespace macadam::prove
