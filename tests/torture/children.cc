// SPDX-License-Identifier: BSD-3-Clause
#include "torture/children.h"

#include "fmt/format.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace macadam::torture {
namespace {

constexpr unsigned longest_s = 60; // of one seed, on a busy machine under sanitizers
constexpr unsigned most_jobs = 64;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

} // namespace

Children::Children(Experiment experiment, unsigned jobs)
    : experiment_(std::move(experiment)), jobs_(std::clamp(jobs, 1u, most_jobs)) {
  void* const memory = mmap(nullptr, most_jobs * sizeof(Verdict), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  verdicts_ = static_cast<Verdict*>(memory);
}

Children::~Children() {
  munmap(verdicts_, most_jobs * sizeof(Verdict));
}

const Verdict* Children::run(std::uint64_t first, std::uint64_t last) {
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

Verdict& Children::free_place() {
  return *std::find_if(verdicts_, verdicts_ + jobs_, [](const Verdict& v) { return v.child == 0; });
}

void Children::begin(Verdict& verdict, std::uint64_t seed) {
  verdict.seed = seed;
  verdict.wrong[0] = '\0';
  if (const pid_t child = fork(); child != 0) {
    verdict.child = child;
    return;
  }
  alarm(longest_s);
  const Finding found = experiment_(seed);
  found.wrong.copy(verdict.wrong.data(), verdict.wrong.size() - 1);
  verdict.trace = found.trace;
  verdict.virtual_s = found.virtual_s;
  verdict.events = found.events;
  verdict.messages = found.messages;
  _exit(0);
}

Verdict& Children::wait() {
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

void expect_nothing_wrong(const Children::Experiment& experiment, std::uint64_t seeds,
                          const std::function<std::string(std::uint64_t)>& show,
                          const char* program) {
  const std::uint64_t one = number_from("MACADAM_SEED", 0);
  seeds = number_from("MACADAM_SEEDS", seeds);
  ASSERT_GT(seeds, 0u);
  Children children(experiment, static_cast<unsigned>(number_from("MACADAM_JOBS", 1)));
  const Verdict* const bad = one != 0 ? children.run(one, one) : children.run(1, seeds);
  if (bad != nullptr)
    FAIL() << fmt::format("{}\nseed {}\n{}again: MACADAM_SEED={} {}", bad->wrong.data(), bad->seed,
                          show(bad->seed), bad->seed, program);
  if (one == 0) return;
  fmt::print("{}{} s of virtual time, {} events, {} messages\n", show(one),
             children.last().virtual_s, children.last().events, children.last().messages);
}

void expect_the_same_run(const Children::Experiment& experiment, std::uint64_t seeds) {
  Children children(experiment);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    ASSERT_EQ(children.run(seed, seed), nullptr);
    const std::uint64_t trace = children.last().trace;
    ASSERT_EQ(children.run(seed, seed), nullptr);
    EXPECT_EQ(children.last().trace, trace) << "seed " << seed;
  }
}

} // namespace macadam::torture
