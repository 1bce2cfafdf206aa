// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../support/loopback.h"
#include "coll/operations.h"
#include "datatype/type.h"
#include "engine/engine.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace macadam::test {

const datatype::PredefinedTypes& types();

// The numbers of ranks that an algorithm is tried with. For a sanitizer, one of each kind: it looks
// at steps in memory, not at partners.
const std::vector<int>& every_rank_count();

// A collective with arguments of its own.
struct HeldArguments {
  coll::Arguments held;
};
class Operation : HeldArguments, public coll::Collective {
 public:
  Operation(coll::Resources& resources, const engine::Team& t, Run run, const coll::Arguments& a)
      : HeldArguments{a}, Collective(resources, t, run, held) {}
  Operation(coll::Resources& resources, const engine::Team& t, coll::Boards& its, Run run,
            const coll::Arguments& a)
      : HeldArguments{a}, Collective(resources, t, its, run, held) {}
  Operation(coll::Resources& resources, const engine::Team& t, coll::Boards& its,
            coll::Machines& levels, Run run, const coll::Arguments& a)
      : HeldArguments{a}, Collective(resources, t, its, levels, run, held) {}
};

// A few ranks in one thread over a loopback network, all in one communicator. With `remote`, an
// intercommunicator: the first `ranks` are one group, `remote` more are the other.
class World {
 public:
  World(int ranks, const LoopbackOptions& options, int remote = 0);

  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] coll::Resources& resources(int rank) { return at(rank).resources; }
  [[nodiscard]] const engine::Team& team(int rank) { return at(rank).team; }
  [[nodiscard]] coll::Boards& boards(int rank) { return at(rank).boards; }
  [[nodiscard]] coll::Machines& machines(int rank) { return at(rank).machines; }
  [[nodiscard]] engine::Engine& engine(int rank) { return at(rank).engine; }
  [[nodiscard]] coll::Sequence& sequence(int rank) { return at(rank).sequence; }
  [[nodiscard]] LoopbackNetwork& network() { return network_; }

  // As Team::connected; false at first.
  void set_connected(int rank, bool connected) { at(rank).team.connected = connected; }

  // Puts each rank on a machine, before the first collective. Ranks of one have a board if the
  // network shares memory.
  void place(const std::vector<int>& machines);

  // All collectives of this kind take this algorithm from now on; one on two levels is given ranks
  // that are placed on machines anyhow, as far as it serves them.
  void force(coll::Kind kind, coll::Algorithm algorithm);

  // Makes progress on ranks in random order until `done`. False if nothing moves any more.
  bool run_until(const std::function<bool()>& done);

  // Runs one collective on all ranks, which come to it in random order, to its end. Returns what
  // each rank's error said, empty where there was none.
  std::vector<std::string> run(coll::Collective::Run what_to_run,
                               const std::function<coll::Arguments(int)>& arguments);

  // Nothing is left over: no message, no request, no registered memory.
  [[nodiscard]] bool at_rest();

  std::mt19937_64 random;

 private:
  struct Rank {
    Rank(World& world, int rank);
    engine::Engine engine;
    coll::Resources resources;
    engine::Team team;
    engine::Team inside; // of an intercommunicator: the local group
    coll::Sequence sequence;
    coll::Boards boards;
    coll::Machines machines;
  };
  Rank& at(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

  base::Settings settings_;
  LoopbackNetwork network_;
  engine::RankMap first_;
  engine::RankMap second_;        // of an intercommunicator
  std::vector<coll::Rule> rules_; // that force() gave
  std::vector<std::unique_ptr<Rank>> ranks_;
};

// Small eager and hybrid sizes, so that short vectors meet all protocols.
LoopbackOptions calm();
LoopbackOptions rough(std::uint64_t seed);
// The same where ranks map each other's memory, as collectives in shared memory need it.
LoopbackOptions sharing(LoopbackOptions options);
[[nodiscard]] inline bool on_levels(coll::Algorithm algorithm) {
  return algorithm == coll::Algorithm::leaders || algorithm == coll::Algorithm::slices;
}
[[nodiscard]] inline LoopbackOptions options_for(coll::Algorithm algorithm,
                                                 const LoopbackOptions& options) {
  const bool shares = algorithm == coll::Algorithm::shared ||
                      algorithm == coll::Algorithm::single_copy ||
                      (on_levels(algorithm) && options.seed % 2 != 0); // with boards, and without
  return shares ? sharing(options) : options;
}

// Machines of some ranks: in order or dealt out, as many on each or not, or at random.
std::vector<int> any_placement(int ranks, std::mt19937_64& random);

// What a rank that failed said, or "".
std::string what(const std::exception_ptr& error);

} // namespace macadam::test
