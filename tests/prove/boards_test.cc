// SPDX-License-Identifier: BSD-3-Clause
// Collectives in shared memory, in every order of their atomic steps: the code of coll/ on small
// boards, whose rings few collectives go round. Each rank is a fiber with an engine of its own, and
// another may take its turn after each look at a word and each change of one (engine/word.h).
// Memory is sequentially consistent here, as in circular_buffer_test.cc.
#include "prove/machine.h"

#include "../unit/coll/world.h"
#include "coll/board.h"
#include "engine/mutant.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace macadam::prove {
namespace {

using coll::Arguments;
using coll::Board;
using coll::Kind;
using engine::Mutant;
using test::Operation;
using test::World;

constexpr coll::PanelShape small = {
    .note_bytes = 64 - coll::note_head, .chunk_bytes = 256, .notes = 4, .chunks = 4};

// For ranks that sleep: one tells what it has passed every few collectives, or that would wake
// them.
coll::PanelShape shape_for(bool sleeps) {
  coll::PanelShape shape = small;
  if (sleeps) {
    shape.notes = 32;
    shape.chunks = 16;
  }
  return shape;
}

// A collective of so many integers of each rank's.
struct Call {
  Kind kind = Kind::barrier;
  int count = 0;
  int root = 0;
  bool in_place = false;
};
// What a rank does, by the place of a call in the program. A blocking one is started and awaited.
struct Step {
  enum class What : std::uint8_t { blocking, start, await } what;
  std::size_t call;
};
// The same calls on all ranks, which may await them in different orders.
struct Program {
  std::vector<Call> calls;
  std::vector<std::vector<Step>> ranks;
  bool sleeps = false;     // a rank that finds nothing sleeps until it is woken
  bool other_ways = false; // single copies where there are, and a reduce divides its work
};

Program blocking(int ranks, const std::vector<Call>& calls) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < calls.size(); ++i)
    steps.push_back({Step::What::blocking, i});
  return {calls, std::vector<std::vector<Step>>(static_cast<std::size_t>(ranks), steps)};
}
Program sleeping(int ranks, const std::vector<Call>& calls) {
  Program program = blocking(ranks, calls);
  program.sleeps = true;
  return program;
}
Program by_other_ways(Program program) {
  program.other_ways = true;
  return program;
}

std::string text(const Program& program) {
  std::string all = fmt::format("{} ranks:", program.ranks.size());
  for (const Call& call : program.calls)
    all += fmt::format(" {}({}, root {}{})", coll::name(call.kind), call.count, call.root,
                       call.in_place ? ", in place" : "");
  return all;
}

const datatype::Op& sum() {
  static datatype::PredefinedOps ops;
  return ops[MPI_SUM];
}

// One rank's part of a call: its memory, and what must be there in the end.
class Part {
 public:
  Part(const Call& call, std::size_t number, int rank, int ranks)
      : call_(call), number_(static_cast<int>(number)), rank_(rank), ranks_(ranks) {
    const bool apart = call.kind == Kind::scatter || call.kind == Kind::alltoall ||
                       call.kind == Kind::reduce_scatter; // a block for each rank
    in_ = values(rank, apart ? ranks : 1);
    out_.assign(static_cast<std::size_t>(call.count * ranks), -1);
    arguments_.send = block(in_);
    arguments_.receive = block(out_);
    arguments_.op = &sum();
    arguments_.root = call.root;
    arguments_.in_place = call.in_place;
    const bool gives = call.kind == Kind::bcast && rank == call.root;
    if (gives || call.in_place) std::copy(in_.begin(), in_.end(), out_.begin());
  }

  [[nodiscard]] const Arguments& arguments() const { return arguments_; }
  [[nodiscard]] coll::Collective::Run run() const {
    switch (call_.kind) {
    case Kind::bcast:
      return &coll::bcast;
    case Kind::reduce:
      return &coll::reduce;
    case Kind::allreduce:
      return &coll::allreduce;
    case Kind::gather:
      return &coll::gather;
    case Kind::scatter:
      return &coll::scatter;
    case Kind::allgather:
      return &coll::allgather;
    case Kind::alltoall:
      return &coll::alltoall;
    case Kind::reduce_scatter:
      return &coll::reduce_scatter;
    default:
      return &coll::barrier;
    }
  }
  [[nodiscard]] bool is_right() const {
    const std::vector<int> expected = result();
    return std::equal(expected.begin(), expected.end(), out_.begin());
  }

 private:
  [[nodiscard]] coll::Blocks block(std::vector<int>& data) const {
    return {data.data(), call_.count, &test::types()[MPI_INT], {}, {}, nullptr};
  }
  // Of the blocks of a rank.
  [[nodiscard]] int value(int rank, int block, int i) const {
    return 1000000 * (number_ + 1) + 100000 * rank + 10000 * block + i;
  }
  [[nodiscard]] std::vector<int> values(int rank, int blocks) const {
    std::vector<int> all;
    for (int block = 0; block < blocks; ++block)
      for (int i = 0; i < call_.count; ++i)
        all.push_back(value(rank, block, i));
    return all;
  }
  [[nodiscard]] std::vector<int> sums(int block) const {
    std::vector<int> all(static_cast<std::size_t>(call_.count));
    for (int rank = 0; rank < ranks_; ++rank)
      for (int i = 0; i < call_.count; ++i)
        all[static_cast<std::size_t>(i)] += value(rank, block, i);
    return all;
  }
  // Block `of(rank)` of every rank.
  template <class Of>
  [[nodiscard]] std::vector<int> of_all(Of&& of) const {
    std::vector<int> all;
    for (int rank = 0; rank < ranks_; ++rank)
      for (int i = 0; i < call_.count; ++i)
        all.push_back(value(rank, of(rank), i));
    return all;
  }
  [[nodiscard]] std::vector<int> result() const {
    const bool is_root = rank_ == call_.root;
    switch (call_.kind) {
    case Kind::bcast:
      return values(call_.root, 1);
    case Kind::reduce:
      return is_root ? sums(0) : std::vector<int>();
    case Kind::allreduce:
      return sums(0);
    case Kind::gather:
      return is_root ? of_all([](int) { return 0; }) : std::vector<int>();
    case Kind::scatter: {
      std::vector<int> all;
      for (int i = 0; i < call_.count; ++i)
        all.push_back(value(call_.root, rank_, i));
      return all;
    }
    case Kind::allgather:
      return of_all([](int) { return 0; });
    case Kind::alltoall:
      return of_all([this](int) { return rank_; });
    case Kind::reduce_scatter:
      return sums(rank_);
    default:
      return {};
    }
  }

  const Call call_;
  int number_, rank_, ranks_;
  std::vector<int> in_, out_;
  Arguments arguments_;
};

constexpr auto reached = [](Kind kind) {
  return coll::Rule{kind, INT_MAX, UINT64_MAX, coll::Algorithm::single_copy,
                    coll::Among::single_copy};
};
constexpr std::array single_copy_rules = {reached(Kind::gather), reached(Kind::scatter),
                                          reached(Kind::alltoall)};

// The ranks with boards for the tags that programs here use, cleared before each run.
class Ranks {
 public:
  Ranks(int n, bool sleep, bool other_ways)
      : other_ways_(other_ways), shape_(shape_for(sleep)), world_(n, options()) {
    for (int rank = 0; rank < n; ++rank) {
      world_.resources(rank).panels.shape = shape_;
      for (const coll::Rule& rule : single_copy_rules)
        if (other_ways)
          world_.resources(rank).rules[static_cast<std::size_t>(rule.kind)] = {&rule, 1};
    }
    sequences_.resize(static_cast<std::size_t>(n));
    for (int i = 0; i < rounds; ++i) // a nonblocking tag has its board from its second turn on
      for (const bool blocks : {false, true})
        meet(blocks);
    for (std::int32_t tag = 0; tag < tags; ++tag) {
      for (int rank = 0; rank < n; ++rank) {
        std::byte* const panel = world_.boards(rank).find(tag)->own_panel();
        panels_[static_cast<std::size_t>(tag)].push_back(panel);
        shared_.push_back({panel, shape_.bytes()});
      }
    }
    shared_.push_back({asleep_.data(), sizeof asleep_});
    world_.network().sleeps = [this](engine::Rank rank) { return asleep_[rank].load() != 0; };
    world_.network().wake = [this](engine::Rank rank) { asleep_[rank].store(0); };
  }

  World& world() { return world_; }
  // 1 while a rank sleeps, or is about to.
  engine::Word& asleep(int rank) { return asleep_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const std::vector<Machine::Shared>& shared() const { return shared_; }
  coll::Sequence& sequence(int rank) { return sequences_[static_cast<std::size_t>(rank)]; }
  // What a rank knows of a board between two collectives.
  auto known(int rank) {
    const Board& board = *world_.boards(rank).find(0);
    return std::array{board.notes.position, board.notes.free_end, board.chunks.position,
                      board.chunks.free_end};
  }

  void clear() {
    for (std::int32_t tag = 0; tag < tags; ++tag) {
      const auto& its = panels_[static_cast<std::size_t>(tag)];
      for (int rank = 0; rank < world_.size(); ++rank) {
        coll::Resources& resources = world_.resources(rank);
        std::byte* const panel = its[static_cast<std::size_t>(rank)];
        std::fill_n(panel, shape_.bytes(), std::byte{0});
        resources.panels.clear(panel);
        const coll::Comm comm(resources, world_.team(rank), tag);
        auto board = std::make_unique<Board>(comm, its);
        board->set_single_copy();
        if (other_ways_) board->set_divides_work();
        world_.boards(rank).put(tag, std::move(board));
      }
    }
    std::fill(sequences_.begin(), sequences_.end(), coll::Sequence());
    for (engine::Word& its : asleep_)
      its.store(0);
  }

 private:
  // What is in the panels is a part of the state, so names of memory are the same in each run.
  static test::LoopbackOptions options() {
    test::LoopbackOptions options = test::sharing(test::calm());
    options.names_repeat = true;
    return options;
  }
  static constexpr std::int32_t tags = 3; // of blocking collectives, and of two nonblocking ones
  static constexpr int rounds = 16;

  void meet(bool blocks) {
    std::vector<std::unique_ptr<Operation>> all;
    for (int rank = 0; rank < world_.size(); ++rank) {
      all.push_back(std::make_unique<Operation>(world_.resources(rank), world_.team(rank),
                                                world_.boards(rank), &coll::barrier, Arguments()));
      if (blocks)
        sequence(rank).start_blocking(*all.back());
      else
        sequence(rank).start_nonblocking(*all.back());
    }
    static_cast<void>(world_.run_until([&] {
      return std::all_of(all.begin(), all.end(), [](auto& one) { return one->complete(); });
    }));
  }

  static constexpr std::size_t most_ranks = 4;

  const bool other_ways_;
  const coll::PanelShape shape_;
  World world_;
  std::vector<coll::Sequence> sequences_;
  std::array<engine::Word, most_ranks> asleep_;
  std::array<std::vector<std::byte*>, tags> panels_;
  std::vector<Machine::Shared> shared_;
};

// Looks until something has happened; one that sleeps looks once more when it has said so, and then
// only when it was woken.
void progress(Ranks& ranks, int rank, bool sleeps) {
  Machine& machine = *Machine::now;
  engine::Engine& engine = ranks.world().engine(rank);
  if (!sleeps) return machine.look_until([&] { return engine.progress(); });
  engine::Word& asleep = ranks.asleep(rank);
  const std::uint64_t learnt = machine.learnt();
  while (!engine.progress()) {
    asleep.store(1);
    if (engine.progress()) return asleep.store(0);
    machine.wait([&] { return asleep.load() == 0; });
    machine.forget_since(learnt);
  }
}

// A rank's steps; what it finds wrong is the machine's failure.
void go(Ranks& ranks, const Program& program, int rank, std::vector<std::size_t>& entered) {
  Machine& machine = *Machine::now;
  World& world = ranks.world();
  const auto own = static_cast<std::size_t>(rank);
  std::vector<std::unique_ptr<Part>> parts(program.calls.size());
  std::vector<std::unique_ptr<Operation>> operations(program.calls.size());
  std::size_t under_way = 0;
  std::size_t taken = 0;
  for (const Step& step : program.ranks[own]) {
    if (under_way == 0) machine.between(taken, ranks.known(rank));
    ++taken;
    if (step.what != Step::What::await) {
      const Call& call = program.calls[step.call];
      parts[step.call] = std::make_unique<Part>(call, step.call, rank, world.size());
      const Part& part = *parts[step.call];
      operations[step.call] =
          std::make_unique<Operation>(world.resources(rank), world.team(rank), world.boards(rank),
                                      part.run(), part.arguments());
      entered[own] = std::max(entered[own], step.call + 1);
      ++under_way;
      if (step.what == Step::What::start) {
        ranks.sequence(rank).start_nonblocking(*operations[step.call]);
        continue;
      }
      ranks.sequence(rank).start_blocking(*operations[step.call]);
    }
    const Operation& operation = *operations[step.call];
    while (!operation.complete())
      progress(ranks, rank, program.sleeps);
    const std::string error = test::what(operation.error());
    if (!error.empty()) machine.fail(error);
    if (!parts[step.call]->is_right())
      machine.fail(fmt::format("rank {} has wrong data after call {}", rank, step.call));
    const bool all_entered =
        std::all_of(entered.begin(), entered.end(), [&](auto at) { return at > step.call; });
    if (program.calls[step.call].kind == Kind::barrier && !all_entered)
      machine.fail(fmt::format("rank {} has passed a barrier alone", rank));
    operations[step.call].reset(); // the caller uses its memory again
    parts[step.call].reset();
    --under_way;
  }
}

struct Tally {
  std::uint64_t programs = 0, states = 0, runs = 0;
};

// Runs a program in one order.
void run(Machine& machine, Ranks& ranks, const Program& program, Machine::Order order) {
  ranks.clear();
  std::vector<std::size_t> entered(program.ranks.size());
  std::vector<std::function<void()>> bodies;
  for (int rank = 0; rank < ranks.world().size(); ++rank)
    bodies.emplace_back([&, rank] { go(ranks, program, rank, entered); });
  engine::word_step = [](std::uint64_t learnt, bool changed) {
    if (changed) Machine::now->changed();
    Machine::now->step(learnt);
  };
  machine.run(std::move(bodies), ranks.shared(), order);
  engine::word_step = nullptr;
}
std::unique_ptr<Ranks> make_ranks(std::size_t n, bool sleep, bool other_ways = false) {
  return std::make_unique<Ranks>(static_cast<int>(n), sleep, other_ways);
}
// Ranks of a program that went wrong, where operations wait for ever.
void leave(std::unique_ptr<Ranks> ranks) {
  static std::vector<std::unique_ptr<Ranks>>& all = *new std::vector<std::unique_ptr<Ranks>>;
  all.push_back(std::move(ranks));
}

// Goes through every order of a program; returns what is wrong in one.
std::string explore(const Program& program, Tally& tally) {
  std::unique_ptr<Ranks> ranks =
      make_ranks(program.ranks.size(), program.sleeps, program.other_ways);
  Machine machine;
  do {
    run(machine, *ranks, program, Machine::Order::next_to_an_end);
  } while (machine.failure.empty() && machine.next());
  ++tally.programs;
  tally.states += machine.states();
  tally.runs += machine.runs;
  if (!machine.failure.empty()) leave(std::move(ranks));
  return machine.failure;
}

void expect_right(const std::vector<Program>& programs) {
  Tally tally;
  for (const Program& program : programs) {
    ASSERT_EQ(explore(program, tally), "") << text(program);
  }
  fmt::print("{} programs, {} states, {} runs\n", tally.programs, tally.states, tally.runs);
  EXPECT_GT(tally.states, 100u);
}

// Counts of what goes in a note, in half a chunk, and in so many chunks.
constexpr int is_short = 4;
constexpr int is_long = 24;
int long_count(Kind kind, int ranks, int chunks) {
  const bool in_parts =
      kind == Kind::scatter || kind == Kind::alltoall || kind == Kind::reduce_scatter;
  const int most = static_cast<int>(small.chunk_bytes) / 4;
  return (chunks - 1) * (in_parts ? most / ranks / 16 * 16 : most) + (in_parts ? 12 : is_long);
}

constexpr std::array all_kinds = {Kind::bcast,    Kind::reduce,        Kind::allreduce,
                                  Kind::gather,   Kind::scatter,       Kind::allgather,
                                  Kind::alltoall, Kind::reduce_scatter};

bool has_root(Kind kind) {
  return kind == Kind::bcast || kind == Kind::reduce || kind == Kind::gather ||
         kind == Kind::scatter;
}

// Every collective, short and in so many chunks, from each of the first two ranks.
std::vector<Call> calls(int ranks, int chunks) {
  std::vector<Call> all = {{}};
  for (const Kind kind : all_kinds) {
    for (const int count : {is_short, long_count(kind, ranks, chunks)})
      for (int root = 0; root < (has_root(kind) ? 2 : 1); ++root)
        all.push_back({kind, count, root});
  }
  all.push_back({Kind::allreduce, is_short, 0, true});
  all.push_back({Kind::allreduce, long_count(Kind::allreduce, ranks, chunks), 0, true});
  return all;
}

// Of two ranks, every collective after every other.
TEST(BoardsInEveryOrder, OneAfterTheOther) {
  std::vector<Program> programs;
  for (const Call& first : calls(2, 1)) {
    for (const Call& second : calls(2, 1))
      if (first.root == 0 && second.root == (has_root(second.kind) ? 1 : 0))
        programs.push_back(blocking(2, {first, second}));
  }
  expect_right(programs);
}

// A rank that only gives is a lap ahead of the other.
TEST(BoardsInEveryOrder, RoundTheRings) {
  std::vector<Program> programs;
  for (const Call& call : calls(2, 2))
    programs.push_back(blocking(2, std::vector<Call>(call.count > is_short ? 3 : 5, call)));
  expect_right(programs);
}

// What all give and all take in chunks has too many orders; see below.
TEST(BoardsInEveryOrder, ThreeRanks) {
  std::vector<Program> programs;
  for (const Call& call : calls(3, 1))
    if (call.count <= is_short || has_root(call.kind)) programs.push_back(blocking(3, {call}));
  expect_right(programs);
}

bool has_other_ways(Kind kind) {
  return kind == Kind::gather || kind == Kind::scatter || kind == Kind::alltoall ||
         kind == Kind::reduce;
}

// Blocks that are copied from memory to memory, and vectors of which each rank combines a piece:
// behind every other collective and before it, round the rings, and among three ranks. Those that
// sleep come below.
TEST(BoardsInEveryOrder, OtherWays) {
  std::vector<Program> programs;
  for (const Call& call : calls(2, 1)) {
    if (call.count <= is_short || !has_other_ways(call.kind)) continue;
    for (const Call& other : calls(2, 1)) {
      programs.push_back(by_other_ways(blocking(2, {call, other})));
      programs.push_back(by_other_ways(blocking(2, {other, call})));
    }
    programs.push_back(by_other_ways(blocking(2, std::vector<Call>(5, call))));
  }
  for (const Call& call : calls(3, 1)) {
    if (call.count <= is_short || !has_other_ways(call.kind) || call.kind == Kind::alltoall ||
        call.kind == Kind::reduce) // have too many orders
      continue;
    programs.push_back(by_other_ways(blocking(3, {call})));
  }
  expect_right(programs);
}

// Two nonblocking collectives at once, and a blocking one meanwhile; awaited as started, and by one
// rank in the opposite order.
TEST(BoardsInEveryOrder, Outstanding) {
  using enum Step::What;
  std::vector<Program> programs;
  for (const Call& first :
       {Call{Kind::bcast, 4}, Call{Kind::allreduce, 4}, Call{Kind::bcast, is_long}})
    for (const Call& second : {Call{Kind::bcast, 4, 1}, Call{Kind::allgather, is_long}})
      programs.push_back({{first, second, {}},
                          {{{start, 0}, {start, 1}, {blocking, 2}, {await, 0}, {await, 1}},
                           {{start, 0}, {start, 1}, {await, 1}, {blocking, 2}, {await, 0}}}});
  expect_right(programs);
}

// Ranks that sleep until the last of those that they wait for has written. What all give and all
// take goes as a barrier does.
TEST(BoardsInEveryOrder, ThreeSleepers) {
  std::vector<Program> programs;
  for (const Call& call : calls(3, 1))
    if (call.count <= is_short && (call.count == 0 || has_root(call.kind)))
      programs.push_back(sleeping(3, {call}));
  for (const int root : {0, 1})
    programs.push_back(by_other_ways(sleeping(2, {{Kind::reduce, is_long, root}})));
  expect_right(programs);
}

// Random programs in random orders, of up to four ranks, more chunks, and up to eight calls.
TEST(Boards, InRandomOrders) {
  Machine machine;
  for (std::size_t n : {2, 3, 4}) {
    std::array ranks = {make_ranks(n, false), make_ranks(n, true), make_ranks(n, false, true),
                        make_ranks(n, true, true)};
    const std::vector<Call> all = calls(static_cast<int>(n), 7);
    for (int i = 0; i < 3000; ++i) {
      std::vector<Call> some;
      for (std::size_t left = 1 + machine.random() % 8; left > 0; --left)
        some.push_back(all[machine.random() % all.size()]);
      Program program = blocking(static_cast<int>(n), some);
      program.sleeps = i % 2 != 0;
      program.other_ways = i % 4 > 1;
      std::unique_ptr<Ranks>& its =
          ranks[(program.sleeps ? 1u : 0u) + (program.other_ways ? 2 : 0)];
      run(machine, *its, program, Machine::Order::random);
      if (!machine.failure.empty()) leave(std::move(its));
      ASSERT_EQ(machine.failure, "") << "program " << i << ", " << text(program);
    }
  }
}

// What finds nothing proves nothing.
class BoardMutants : public testing::Test {
 protected:
  void TearDown() override { engine::mutant = Mutant::none; }

  static void expect_found(Mutant bug, const Program& program) {
    Tally tally;
    engine::mutant = bug;
    const std::string found = explore(program, tally);
    EXPECT_NE(found, "");
    fmt::print("found in run {} of {}: {}\n", tally.runs, text(program), found);
    engine::mutant = Mutant::none;
    EXPECT_EQ(explore(program, tally), "");
  }
};

TEST_F(BoardMutants, SlotThatIsWrittenTooEarlyIsFound) {
  expect_found(Mutant::board_one_late, blocking(2, std::vector<Call>(6, {Kind::bcast, is_short})));
}
TEST_F(BoardMutants, ChunkThatIsReadTooEarlyIsFound) {
  expect_found(Mutant::board_unwritten, blocking(2, {{Kind::allgather, is_long}}));
}
TEST_F(BoardMutants, BlocksThatAreNotCopiedYetAreFound) {
  expect_found(Mutant::single_copy_unawaited,
               by_other_ways(blocking(2, {{Kind::gather, is_long}})));
}
TEST_F(BoardMutants, RootThatNobodyWakesIsFound) {
  expect_found(Mutant::board_reader_asleep, by_other_ways(sleeping(2, {{Kind::reduce, is_long}})));
}
TEST_F(BoardMutants, SleeperThatNobodyWakesIsFound) {
  expect_found(Mutant::board_awaited_once,
               sleeping(3, {{Kind::gather, is_short}, {Kind::bcast, is_short, 1}}));
}

} // namespace
} // namespace macadam::prove
