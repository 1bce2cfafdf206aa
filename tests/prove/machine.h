// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <ucontext.h>

namespace macadam::prove {

// A few fibers, their turns given out by choices that are gone through one after the other.
class Machine {
 public:
  static inline Machine* now = nullptr;

  // Memory that tasks share.
  struct Shared {
    const void* memory;
    std::size_t bytes;
  };
  enum class Order {
    next,           // the next one that was not gone through, until a state that was seen before
    next_to_an_end, // the same, but tasks come to their end: after that state in a random order
    random,
  };

  // Runs the tasks in one order. `shared` is all that they share.
  void run(std::vector<std::function<void()>> bodies, const std::vector<Shared>& shared,
           Order order = Order::next) {
    now = this;
    version_ = 0;
    at_ = 0;
    failure.clear();
    tasks_.clear();
    for (auto& body : bodies) {
      tasks_.push_back(std::make_unique<Task>());
      Task& task = *tasks_.back();
      task.body = std::move(body);
      getcontext(&task.context);
      task.context.uc_stack.ss_sp = task.stack;
      task.context.uc_stack.ss_size = sizeof task.stack;
      task.context.uc_link = &main_;
      makecontext(&task.context, &Machine::enter, 0);
    }
    ++runs;
    bool chooses = order != Order::random;
    while (failure.empty()) {
      std::vector<Task*> ready;
      bool all_done = true;
      for (auto& task : tasks_) {
        all_done = all_done && task->done;
        if (!task->done && (!task->guard || task->guard())) ready.push_back(task.get());
      }
      if (ready.empty()) {
        if (!all_done) failure = "all wait";
        return;
      }
      if (chooses && ready.size() > 1 && at_ == choices_.size()) {
        chooses = seen_.insert(key(shared)).second;
        if (!chooses && order == Order::next) return;
        if (chooses) choices_.push_back({0, ready.size()});
      }
      std::size_t place = 0;
      if (ready.size() > 1) place = chooses ? choices_[at_++].first : random() % ready.size();
      current_ = ready[place];
      current_->guard = nullptr;
      swapcontext(&main_, &current_->context);
      current_ = nullptr;
    }
  }
  // Goes on to the next order; false if there is none.
  bool next() {
    while (!choices_.empty() && choices_.back().first + 1 == choices_.back().second)
      choices_.pop_back();
    if (choices_.empty()) return false;
    ++choices_.back().first;
    return true;
  }

  // As good as any for orders; the same in each execution.
  std::size_t random() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(random_ >> 33);
  }

  // ---- for tasks

  // A step is over, `value` is what the task has learnt.
  void step(std::uint64_t value) {
    if (current_ == nullptr) return; // a guard looks
    learn(value);
    yield();
  }
  // Between two operations of a task its end of the circular buffer, and how many messages it has
  // had, are all its local state: what it learnt before does not matter any more.
  template <class End>
  void between(std::size_t messages, const End& end) {
    std::byte bytes[sizeof(End)];
    std::memcpy(bytes, static_cast<const void*>(&end), sizeof bytes);
    current_->history = hash(bytes, sizeof bytes, messages);
  }
  // Looks until something has happened. A look in vain teaches nothing, and there is another when
  // something has changed.
  template <class Look>
  void look_until(Look&& moved) {
    for (;;) {
      const std::uint64_t before = version_;
      const std::uint64_t history = current_->history;
      if (moved()) return;
      current_->history = history;
      current_->guard = [this, before] { return version_ != before; };
      yield();
    }
  }
  // What the current task has learnt so far, to which it may go back where what it learnt since
  // does not matter any more.
  [[nodiscard]] std::uint64_t learnt() const { return current_->history; }
  void forget_since(std::uint64_t learnt) { current_->history = learnt; }
  void changed() { ++version_; }
  [[nodiscard]] std::uint64_t version() const { return version_; }
  void wait(std::function<bool()> guard) {
    current_->guard = std::move(guard);
    learn(1);
    yield();
  }
  // A task does nothing more.
  void kill(std::size_t task) { tasks_[task]->done = true; }
  void fail(const std::string& what) {
    if (failure.empty()) failure = what;
  }

  std::string failure;
  std::uint64_t runs = 0;
  [[nodiscard]] std::size_t states() const { return seen_.size(); }

 private:
  struct Task {
    ucontext_t context;
    std::function<void()> body;
    std::function<bool()> guard; // it waits for this
    std::uint64_t history = 1; // of its steps and what it learnt: its local state follows from that
    bool done = false;
    alignas(16) std::byte stack[64 << 10];
  };

  static void enter() {
    now->current_->body();
    now->current_->done = true;
  }
  void learn(std::uint64_t value) {
    current_->history = (current_->history ^ value) * 0x9e3779b97f4a7c15u;
    current_->history ^= current_->history >> 31;
  }
  void yield() { swapcontext(&current_->context, &main_); }
  static std::uint64_t hash(const void* memory, std::size_t bytes, std::uint64_t start) {
    std::uint64_t hash = start;
    for (std::size_t at = 0; at < bytes; at += 8) {
      std::uint64_t word;
      std::memcpy(&word, static_cast<const std::byte*>(memory) + at, 8);
      hash = (hash ^ word) * 0xd6e8feb86659fd93u;
      hash ^= hash >> 32;
    }
    return hash;
  }
  std::uint64_t key(const std::vector<Shared>& shared) const {
    std::vector<std::uint64_t> local;
    for (const auto& task : tasks_) {
      local.push_back(task->history);
      local.push_back((task->done ? 2 : 0) + (task->guard && !task->guard() ? 1 : 0));
    }
    std::uint64_t all = hash(local.data(), 8 * local.size(), 1);
    for (const Shared& part : shared)
      all = hash(part.memory, part.bytes, all);
    return all;
  }

  ucontext_t main_;
  Task* current_ = nullptr;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<std::pair<std::size_t, std::size_t>> choices_; // taken, of
  std::unordered_set<std::uint64_t> seen_;
  std::size_t at_ = 0;
  std::uint64_t version_ = 0;
  std::uint64_t random_ = 1;
};

} // namespace macadam::prove
