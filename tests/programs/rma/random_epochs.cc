// SPDX-License-Identifier: BSD-3-Clause
// Random epochs against an oracle: all ranks draw the same plan, so each knows what every window
// holds after each round. A place is written by one rank in a round, or summed up by all. A failing
// seed is printed; `random_epochs SEED` runs that one.
#include "rma/window.h"

#include <array>

namespace {

using rma::Kind;

constexpr std::size_t own_words = 600; // for each origin in each window
constexpr std::size_t sums = 8;

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t end) {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return static_cast<std::size_t>((x ^ (x >> 31)) % end);
  }

 private:
  std::uint64_t state_;
};

struct Action {
  enum What { put, put_strided, request_put, add, fetch_add, get_add, get, what_count } what;
  int target;
  std::size_t at; // in the origin's words of the target, or among the sums; of a get: anywhere
  std::size_t words;
  std::int64_t value;
};

enum class Epoch { fence, lock_all, shared_locks, exclusive_locks, group, count_ };

using Model = std::vector<std::vector<std::int64_t>>; // by rank

std::size_t place_of(int origin, std::size_t at) {
  return sums + static_cast<std::size_t>(origin) * own_words + at;
}

std::vector<std::vector<Action>> draw(Random& random, Epoch epoch) {
  std::vector<std::vector<Action>> plan(static_cast<std::size_t>(check::size));
  for (auto& actions : plan) {
    std::array<std::size_t, 64> next{}; // each word of an origin is written once in a round
    const std::size_t count = random.below(7);
    for (std::size_t i = 0; i < count; ++i) {
      Action action{};
      action.what = static_cast<Action::What>(random.below(Action::what_count));
      const bool passive = epoch != Epoch::fence && epoch != Epoch::group;
      if (action.what == Action::request_put && !passive) action.what = Action::put;
      action.target = static_cast<int>(random.below(static_cast<std::size_t>(check::size)));
      action.words = 1 + random.below(random.below(4) == 0 ? 150 : 3);
      action.value = static_cast<std::int64_t>(random.below(1000));
      switch (action.what) {
      case Action::put:
      case Action::request_put:
      case Action::put_strided: {
        const std::size_t room =
            action.what == Action::put_strided ? 2 * action.words : action.words;
        std::size_t& from = next[static_cast<std::size_t>(action.target) % next.size()];
        if (from + room > own_words) continue;
        action.at = from;
        from += room;
        break;
      }
      case Action::get:
        action.at = random.below(own_words);
        action.words = 1;
        break;
      default:
        action.at = random.below(sums);
        action.words = 1;
      }
      actions.push_back(action);
    }
  }
  return plan;
}

void apply(const std::vector<std::vector<Action>>& plan, Model& model) {
  for (int origin = 0; origin < check::size; ++origin) {
    for (const Action& action : plan[static_cast<std::size_t>(origin)]) {
      auto& memory = model[static_cast<std::size_t>(action.target)];
      const std::size_t at = place_of(origin, action.at);
      switch (action.what) {
      case Action::put:
      case Action::request_put:
        for (std::size_t i = 0; i < action.words; ++i)
          memory[at + i] = action.value + static_cast<std::int64_t>(i);
        break;
      case Action::put_strided:
        for (std::size_t i = 0; i < action.words; ++i)
          memory[at + 2 * i] = action.value + static_cast<std::int64_t>(i);
        break;
      case Action::get:
      case Action::what_count:
        break;
      default:
        memory[action.at] += action.value;
      }
    }
  }
}

// What an action works with until its epoch ends.
struct Work {
  std::vector<std::int64_t> data;
  std::int64_t old = 0;
};

void perform(MPI_Win win, const Action& action, Work& work) {
  const auto words = static_cast<int>(action.words);
  const auto at = static_cast<MPI_Aint>(place_of(check::rank, action.at));
  for (std::size_t i = 0; i < action.words; ++i)
    work.data.push_back(action.value + static_cast<std::int64_t>(i));
  std::int64_t* const data = work.data.data();
  const auto sum_at = static_cast<MPI_Aint>(action.at);
  switch (action.what) {
  case Action::put:
    OK(MPI_Put(data, words, MPI_INT64_T, action.target, at, words, MPI_INT64_T, win));
    break;
  case Action::put_strided: {
    MPI_Datatype strided;
    OK(MPI_Type_vector(words, 1, 2, MPI_INT64_T, &strided));
    OK(MPI_Type_commit(&strided));
    OK(MPI_Put(data, words, MPI_INT64_T, action.target, at, 1, strided, win));
    OK(MPI_Type_free(&strided));
    break;
  }
  case Action::request_put: {
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Rput(data, words, MPI_INT64_T, action.target, at, words, MPI_INT64_T, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    std::fill(work.data.begin(), work.data.end(), -1); // it is ours again
    break;
  }
  case Action::add:
    OK(MPI_Accumulate(data, 1, MPI_INT64_T, action.target, sum_at, 1, MPI_INT64_T, MPI_SUM, win));
    break;
  case Action::fetch_add:
    OK(MPI_Fetch_and_op(data, &work.old, MPI_INT64_T, action.target, sum_at, MPI_SUM, win));
    break;
  case Action::get_add:
    OK(MPI_Get_accumulate(data, 1, MPI_INT64_T, &work.old, 1, MPI_INT64_T, action.target, sum_at, 1,
                          MPI_INT64_T, MPI_SUM, win));
    break;
  default: // nobody but us writes there, and we may: only that it completes is seen
    OK(MPI_Get(&work.old, 1, MPI_INT64_T, action.target, at, 1, MPI_INT64_T, win));
  }
}

void run_round(MPI_Win win, MPI_Group world, Epoch epoch, const std::vector<Action>& actions) {
  std::vector<Work> work(actions.size());
  const auto all = [&] {
    for (std::size_t i = 0; i < actions.size(); ++i)
      perform(win, actions[i], work[i]);
  };
  switch (epoch) {
  case Epoch::fence:
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    all();
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    break;
  case Epoch::lock_all:
    OK(MPI_Win_lock_all(0, win));
    all();
    OK(MPI_Win_unlock_all(win));
    break;
  case Epoch::group:
    OK(MPI_Win_post(world, 0, win));
    OK(MPI_Win_start(world, 0, win));
    all();
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    break;
  default:
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const int type = epoch == Epoch::exclusive_locks ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
      OK(MPI_Win_lock(type, actions[i].target, 0, win));
      perform(win, actions[i], work[i]);
      OK(MPI_Win_unlock(actions[i].target, win));
    }
  }
}

void run_seed(std::uint64_t seed, Kind kind) {
  Random random(seed);
  const std::size_t words = sums + own_words * static_cast<std::size_t>(check::size);
  rma::Window<std::int64_t> win(kind, words);
  Model model(static_cast<std::size_t>(check::size), std::vector<std::int64_t>(words, 0));
  MPI_Group world;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  for (int round = 0; round < check::times(8, 4); ++round) {
    const auto epoch = static_cast<Epoch>(random.below(static_cast<std::size_t>(Epoch::count_)));
    const auto plan = draw(random, epoch);
    run_round(win, world, epoch, plan[static_cast<std::size_t>(check::rank)]);
    apply(plan, model);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const auto& expected = model[static_cast<std::size_t>(check::rank)];
    for (std::size_t i = 0; i < words; ++i) {
      if (win[i] == expected[i]) continue;
      check::fail(__FILE__, __LINE__,
                  "seed " + std::to_string(seed) + ", " + rma::name(kind) + ", round " +
                      std::to_string(round) + ": word " + std::to_string(i) + " is " +
                      std::to_string(win[i]) + ", expected " + std::to_string(expected[i]));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
  }
  OK(MPI_Group_free(&world));
}

std::uint64_t first_seed = 1;
int seeds = check::times(25, 8);

void random_epochs() {
  for (int i = 0; i < seeds; ++i)
    rma::for_each_kind(
        [&](Kind kind) { run_seed(first_seed + static_cast<std::uint64_t>(i), kind); });
}

} // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    first_seed = std::strtoull(argv[1], nullptr, 10);
    seeds = 1;
  }
  return check::run(1, argv, {{"random_epochs", random_epochs}});
}
