// SPDX-License-Identifier: BSD-3-Clause
// Random programs over the RDMA transport on simulated devices that misbehave. MACADAM_SEEDS=10000
// runs as many (`make torture`), MACADAM_JOBS at a time; MACADAM_SEED=7 runs one and shows it.
#include "fmt/format.h"
#include "torture/run.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace macadam::torture {
namespace {

constexpr unsigned longest_s = 60; // of one seed, on a busy machine under sanitizers
constexpr unsigned most_jobs = 64;
constexpr std::uint64_t default_seeds = 3000;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// What a child found, in memory that parent and child share.
struct Verdict {
  std::uint64_t seed;
  std::uint64_t trace;
  double virtual_s;
  std::uint64_t events, messages;
  pid_t child;
  std::array<char, 8000> wrong;
};

// Each seed runs in a process of its own, forked from one that has allocated nothing in between:
// the same memory every time (registrations are of whole pages, so addresses matter), and a crash
// is the seed's and not the test's.
class Children {
 public:
  explicit Children(unsigned jobs) : jobs_(std::clamp(jobs, 1u, most_jobs)) {
    void* const memory = mmap(nullptr, most_jobs * sizeof(Verdict), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    verdicts_ = static_cast<Verdict*>(memory);
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() { munmap(verdicts_, most_jobs * sizeof(Verdict)); }

  // Runs seeds until one is wrong; null if none is.
  const Verdict* run(std::uint64_t first, std::uint64_t last) {
    const Verdict* bad = nullptr;
    unsigned running = 0;
    for (std::uint64_t seed = first; seed <= last || running != 0;) {
      if (bad == nullptr && seed <= last && running < jobs_) {
        begin(free_place(), seed++);
        ++running;
      } else if (running != 0) {
        const Verdict& ended = wait();
        --running;
        if (bad == nullptr && ended.wrong[0] != '\0') bad = &ended;
      } else {
        break;
      }
    }
    return bad;
  }
  // Of the seed that ended last, if one ran at a time.
  [[nodiscard]] const Verdict& last() const { return verdicts_[0]; }

 private:
  Verdict& free_place() {
    return *std::find_if(verdicts_, verdicts_ + jobs_,
                         [](const Verdict& v) { return v.child == 0; });
  }

  void begin(Verdict& verdict, std::uint64_t seed) {
    verdict.seed = seed;
    verdict.wrong[0] = '\0';
    if (const pid_t child = fork(); child != 0) {
      verdict.child = child;
      return;
    }
    alarm(longest_s);
    const Setup setup = random_setup(seed);
    const prove::Types types;
    auto run = std::make_unique<Run>(setup, types, seed);
    const std::string wrong = run->execute();
    wrong.copy(verdict.wrong.data(), verdict.wrong.size() - 1);
    verdict.trace = run->scheduler().trace_hash();
    verdict.virtual_s = sim::seconds(run->scheduler().now());
    verdict.events = run->scheduler().events();
    verdict.messages = run->fabric().counters.messages;
    _exit(0);
  }

  Verdict& wait() {
    int status = 0;
    const pid_t child = ::wait(&status);
    Verdict& verdict = *std::find_if(verdicts_, verdicts_ + jobs_,
                                     [&](const Verdict& v) { return v.child == child; });
    verdict.child = 0;
    if (WIFSIGNALED(status))
      std::snprintf(verdict.wrong.data(), verdict.wrong.size(), "ended by signal %d%s",
                    WTERMSIG(status), WTERMSIG(status) == SIGALRM ? ": it took too long" : "");
    else if (WEXITSTATUS(status) != 0)
      std::snprintf(verdict.wrong.data(), verdict.wrong.size(), "ended with exit code %d",
                    WEXITSTATUS(status));
    return verdict;
  }

  const unsigned jobs_;
  Verdict* verdicts_;
};

std::string tell(const Verdict& verdict) {
  return fmt::format("{}\nseed {}\n{}again: MACADAM_SEED={} torture_test", verdict.wrong.data(),
                     verdict.seed, show(random_setup(verdict.seed)), verdict.seed);
}

TEST(Torture, random_programs_keep_the_rules) {
  const std::uint64_t one = number_from("MACADAM_SEED", 0);
  const std::uint64_t seeds = number_from("MACADAM_SEEDS", default_seeds);
  ASSERT_GT(seeds, 0u);
  Children children(static_cast<unsigned>(number_from("MACADAM_JOBS", 1)));
  const Verdict* const bad = one != 0 ? children.run(one, one) : children.run(1, seeds);
  if (bad != nullptr) FAIL() << tell(*bad);
  if (one == 0) return;
  fmt::print("{}{} s of virtual time, {} events, {} messages\n", show(random_setup(one)),
             children.last().virtual_s, children.last().events, children.last().messages);
}

TEST(Torture, the_same_seed_gives_the_same_run) {
  Children children(1);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ASSERT_EQ(children.run(seed, seed), nullptr);
    const std::uint64_t trace = children.last().trace;
    ASSERT_EQ(children.run(seed, seed), nullptr);
    EXPECT_EQ(children.last().trace, trace) << "seed " << seed;
  }
}

} // namespace
} // namespace macadam::torture
