// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gravel/prove/execution.h"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace macadam::gravel::prove {

struct Tally {
  std::uint64_t runs = 0;   // from the beginning
  std::uint64_t states = 0; // in which more than one thing could happen
  double interleavings = 0; // that the programs have
};

// Visits every state that a program can reach (docs/proof.md, "How"): each run starts from the
// beginning and follows the last one to the last choice with an alternative left, and ends early in
// a state that was visited.
class Explorer {
 public:
  // Without keys every interleaving is run to its end.
  explicit Explorer(bool with_keys = true) : with_keys_(with_keys) {}

  // Nothing if no run violates the oracle; else what was wrong, and the way there.
  std::optional<std::string> explore(const Program& program) {
    choices_.clear();
    visited_.clear();
    std::string wrong;
    while (const auto interleavings = follow(program, wrong)) {
      if (!next_choice(*interleavings)) return {};
    }
    return wrong + steps_of(program);
  }
  [[nodiscard]] const Tally& tally() const { return tally_; }

 private:
  struct Choice {
    unsigned taken = 0, of = 0;
    std::optional<Key> key;
    double interleavings = 0;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return key.first; }
  };
  class Guide final : public Decider {
   public:
    explicit Guide(std::vector<Choice>& choices) : choices_(choices) {}
    unsigned choose(unsigned of) override {
      if (of < 2) return 0;
      if (at_ == choices_.size()) choices_.push_back({0, of, std::nullopt, 0});
      const Choice& choice = choices_[at_++];
      if (choice.of != of) throw std::logic_error("a run does not repeat itself");
      return choice.taken;
    }
    [[nodiscard]] bool exploring() const { return at_ == choices_.size(); }

   private:
    std::vector<Choice>& choices_;
    std::size_t at_ = 0;
  };

  // Returns the interleavings from where the run ended on; nothing if it was wrong.
  std::optional<double> follow(const Program& program, std::string& wrong) {
    Guide guide(choices_);
    Execution run(program, guide);
    ++tally_.runs;
    for (;;) {
      const auto& events = run.possible();
      if (events.empty()) break;
      std::optional<Key> key;
      if (events.size() > 1 && guide.exploring()) {
        if (with_keys_) {
          key = run.key();
          const auto [known, is_new] = visited_.try_emplace(*key, -1);
          if (!is_new) {
            if (known->second >= 0) return known->second;
            wrong = "the run comes back to a state it was in: it may never end";
            return {};
          }
        }
        ++tally_.states;
      }
      const bool fresh = guide.exploring();
      const Event event = events[guide.choose(static_cast<unsigned>(events.size()))];
      if (fresh && events.size() > 1) choices_.back().key = key;
      run.happen(event);
      if (!run.wrong().empty()) {
        wrong = run.wrong();
        return {};
      }
    }
    run.finish();
    wrong = run.wrong();
    if (wrong.empty()) return 1;
    return {};
  }

  // Goes back to the last choice with an alternative and takes it. False if there is none.
  bool next_choice(double interleavings) {
    while (!choices_.empty()) {
      Choice& last = choices_.back();
      last.interleavings += interleavings;
      if (++last.taken < last.of) return true;
      interleavings = last.interleavings;
      if (last.key) visited_[*last.key] = interleavings;
      choices_.pop_back();
    }
    tally_.interleavings += interleavings;
    return false;
  }

  std::string steps_of(const Program& program) {
    Guide guide(choices_);
    Execution run(program, guide);
    std::string text = "\n  " + program.name + "\n";
    while (run.wrong().empty() && guide.exploring() == false) {
      const auto& events = run.possible();
      if (events.empty()) break;
      const Event event = events[guide.choose(static_cast<unsigned>(events.size()))];
      text += "  " + run.show(event) + "\n";
      run.happen(event);
    }
    return text;
  }

  const bool with_keys_;
  Tally tally_;
  std::vector<Choice> choices_;
  std::unordered_map<Key, double, KeyHash> visited_; // interleavings from there; -1: under way
};

} // namespace macadam::gravel::prove
