// SPDX-License-Identifier: BSD-3-Clause
#include "prove/random_program.h"

namespace macadam::prove {
namespace {

constexpr std::size_t small_sizes[] = {0, 4, 8, 12, 16, 20, 64};
constexpr int tags = 3, contexts = 2;

Conditions random_conditions(Random& random) {
  Conditions c;
  c.rendezvous = random.chance(50) ? base::Rendezvous::read : base::Rendezvous::write;
  if (random.chance(15)) c.protocols = base::Protocols::sender;
  c.transfers = static_cast<Transfers>(random.pick(4));
  if (random.chance(50)) c.refusals = 1u << random.pick(10);
  c.late = random.chance(40);
  c.bursts = random.chance(50);
  c.throttle = random.chance(30);
  c.notifications = c.transfers != Transfers::either && random.chance(30);
  c.last_byte = (c.transfers == Transfers::at_once || c.transfers == Transfers::ordered) &&
                c.refusals == 0 && !c.late && random.chance(50);
  if (random.chance(20)) c.tags = 2; // fewer than there are: falls back
  c.fragments = random.chance(30);
  c.copies = random.chance(50);
  if (random.chance(30)) c.scarce = 1u << random.pick(8);
  return c;
}

Step random_step(Random& random, int ranks, int receives, int sends,
                 std::span<const std::size_t> sizes) {
  const auto size = [&] { return sizes[random.choose(static_cast<unsigned>(sizes.size()))]; };
  Step step;
  step.context = random.pick(contexts);
  step.tag = random.pick(tags);
  step.peer = random.pick(ranks);
  step.noncontiguous = random.chance(25);
  const int what = random.pick(100);
  if (what < 45) {
    step.what = random.chance(15)   ? Step::What::synchronous_send
                : random.chance(15) ? Step::What::exchange_send
                : random.chance(30) ? Step::What::nonblocking_send
                                    : Step::What::send;
    step.bytes = size();
    return step;
  }
  if (random.chance(25)) step.peer = MPI_ANY_SOURCE;
  if (random.chance(25)) step.tag = MPI_ANY_TAG;
  step.bytes = random.chance(80) ? sizes.back() : size();
  if (what < 85) {
    step.what = Step::What::receive;
  } else if (what < 88) {
    step.what = Step::What::probe;
  } else if (what < 92) {
    step.what = Step::What::match_probe;
  } else if (what < 96) {
    step.what = Step::What::receive_matched;
  } else if (what < 98) {
    step.what = Step::What::cancel;
    step.number = random.pick(receives + 1);
  } else {
    step.what = Step::What::withdraw;
    step.number = random.pick(sends + 1);
  }
  return step;
}

} // namespace

int random_ranks(Random& random) {
  return random.chance(5) ? 2 + random.pick(63) : 2 + random.pick(4);
}

void add_random_steps(Program& program, Random& random, int ranks,
                      std::span<const std::size_t> sizes) {
  program.ranks.resize(static_cast<std::size_t>(ranks));
  std::vector<int> receives(program.ranks.size()), sends(program.ranks.size());
  for (int steps = 40 + random.pick(160); steps > 0; --steps) {
    const auto rank = static_cast<std::size_t>(random.pick(ranks));
    const Step step = random_step(random, ranks, receives[rank], sends[rank], sizes);
    if (step.what == Step::What::receive) ++receives[rank];
    if (step.what <= Step::What::nonblocking_send) ++sends[rank];
    program.ranks[rank].push_back(step);
  }
}

void add_bursts(Program& program, Random& random) {
  for (auto& steps : program.ranks) {
    for (std::size_t at = steps.size(); at-- > 0;) {
      const Step step = steps[at];
      if (step.what == Step::What::nonblocking_send && random.chance(20))
        steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(at),
                     static_cast<std::size_t>(random.pick(12)), step);
    }
  }
}

Program random_program(std::uint64_t seed) {
  Random random(seed);
  Program program;
  program.conditions = random_conditions(random);
  const int ranks = random_ranks(random);
  add_random_steps(program, random, ranks, small_sizes);
  program.conditions.bundles = random.chance(50);
  program.conditions.uncopied = random.chance(50);
  if (program.conditions.bundles) add_bursts(program, random);
  return program;
}

std::string run_seed(std::uint64_t seed, const Types& types) {
  const Program program = random_program(seed);
  Random random(~seed);
  Execution run(program, types, random);
  while (run.wrong().empty()) {
    const auto& events = run.possible();
    if (events.empty()) break;
    run.happen(Event(events[random.choose(static_cast<unsigned>(events.size()))]));
  }
  if (run.wrong().empty()) run.finish();
  return run.wrong();
}

} // namespace macadam::prove
