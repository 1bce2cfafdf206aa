// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

namespace macadam::rma {

// How the layer above waits: it has the progress of the whole process in hand.
class Waiting {
 public:
  // Makes progress until done() is true. What ends the wait is a message or a completion: the wait
  // may sleep until one comes.
  template <class Done>
  void until(Done done) {
    if (!done()) wait(&call<Done>, &done, For::events);
  }
  // The same for what a peer writes into memory without a word: looked at again and again.
  template <class Done>
  void until_seen(Done done) {
    if (!done()) wait(&call<Done>, &done, For::memory);
  }
  // One look around, for a process that does not wait.
  virtual void look() = 0;

 protected:
  enum class For : unsigned char { events, memory };
  ~Waiting() = default;
  virtual void wait(bool (*done)(void*), void* argument, For what) = 0;

 private:
  template <class Done>
  static bool call(void* done) {
    return (*static_cast<Done*>(done))();
  }
};

// What a process waits for, for those who ask it meanwhile.
template <class T>
class Marked {
 public:
  Marked(T& place, T value) : place_(place), before_(std::exchange(place, value)) {}
  Marked(const Marked&) = delete;
  Marked& operator=(const Marked&) = delete;
  ~Marked() { place_ = before_; }

 private:
  T& place_;
  const T before_;
};

} // namespace macadam::rma
