// SPDX-License-Identifier: BSD-3-Clause
#include "prove/explorer.h"

#include "fmt/format.h"

#include <algorithm>
#include <stdexcept>

namespace macadam::prove {
namespace {

constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuvwxyz";

class Recorded final : public Decider {
 public:
  explicit Recorded(const Schedule& schedule) : schedule_(schedule) {}
  unsigned choose(unsigned of) override {
    if (of < 2) return 0; // no choice, not in the schedule
    if (at_ == schedule_.size()) return 0;
    const std::size_t taken = digits.find(schedule_[at_++]);
    if (taken >= of)
      throw std::invalid_argument(
          fmt::format("schedule: choice {} is \"{}\", there are {}", at_, schedule_[at_ - 1], of));
    return static_cast<unsigned>(taken);
  }

 private:
  const Schedule& schedule_;
  std::size_t at_ = 0;
};

} // namespace

Tally& Tally::operator+=(const Tally& other) {
  programs += other.programs;
  runs += other.runs;
  states += other.states;
  interleavings += other.interleavings;
  longest = std::max(longest, other.longest);
  return *this;
}

class Explorer::Guide final : public Decider {
 public:
  explicit Guide(std::vector<Choice>& choices) : choices_(choices) {}
  unsigned choose(unsigned of) override {
    if (of < 2) return 0;
    if (at_ == choices_.size()) choices_.push_back({0, of, std::nullopt, 0});
    const Choice& choice = choices_[at_++];
    if (choice.of != of) throw std::logic_error("a run does not repeat itself");
    return choice.taken;
  }
  // Past what is prescribed: what comes now is new.
  [[nodiscard]] bool exploring() const { return at_ == choices_.size(); }

 private:
  std::vector<Choice>& choices_;
  std::size_t at_ = 0;
};

// One run. Returns the interleavings from where it ended on: 1 at the end of the program, more at a
// state that is known. Nothing if it was wrong.
std::optional<double> Explorer::follow(const Program& program, std::string& wrong) {
  Guide guide(choices_);
  Execution run(program, types_, guide);
  ++tally_.runs;
  for (std::uint64_t length = 1;; ++length) {
    const auto& events = run.possible();
    tally_.longest = std::max(tally_.longest, length);
    if (events.empty()) break;
    std::optional<StateKey> key;
    if (events.size() > 1 && guide.exploring()) {
      if (with_keys_ && program.conditions.starved == 0) { // what was allocated is in no key
        key = run.key();
        const auto [known, is_new] = visited_.try_emplace(*key, -1);
        if (!is_new) {
          if (known->second < 0) {
            wrong = "the run comes back to a state it was in: it may never end";
            return {};
          }
          return known->second;
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
  if (run.wrong().empty()) return 1;
  wrong = run.wrong();
  return {};
}

// Goes back to the last choice with an alternative and takes it. False if there is none.
bool Explorer::next_choice(double interleavings) {
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

std::optional<Failure> Explorer::explore(const Program& program) {
  choices_.clear();
  visited_.clear();
  ++tally_.programs;
  std::string wrong;
  while (const auto interleavings = follow(program, wrong)) {
    if (!next_choice(*interleavings)) return {};
  }
  Failure failure{program, {}, wrong};
  for (const Choice& choice : choices_)
    failure.schedule += digits[choice.taken];
  failure.schedule.erase(failure.schedule.find_last_not_of('0') + 1);
  return failure;
}

Replay replay(const Program& program, const Schedule& schedule, const Types& types) {
  Recorded recorded(schedule);
  Execution run(program, types, recorded);
  Replay result;
  while (run.wrong().empty()) {
    const auto& events = run.possible();
    if (events.empty()) break;
    const Event event = events[recorded.choose(static_cast<unsigned>(events.size()))];
    result.events.push_back(show(event, program, run.next(event.at)));
    run.happen(event);
  }
  if (run.wrong().empty()) run.finish();
  result.wrong = run.wrong();
  return result;
}

std::string show(const Failure& failure, const Types& types) {
  std::string text = fmt::format("{}\n  program: {}\n", failure.what, show(failure.program));
  int number = 0;
  for (const std::string& event : replay(failure.program, failure.schedule, types).events)
    text += fmt::format("  {:3}. {}\n", ++number, event);
  return text + fmt::format("  again: prove --program '{}' --schedule '{}'\n",
                            show(failure.program), failure.schedule);
}

} // namespace macadam::prove
