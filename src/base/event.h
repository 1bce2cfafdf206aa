// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace macadam::base {

// A descriptor that is readable from ring() to clear(). Any thread.
class Event {
 public:
  // Throws base::Error (MPI_ERR_OTHER) if the process may open no more files.
  Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();

  [[nodiscard]] int descriptor() const { return descriptor_; }
  void ring() const;
  void clear() const;

 private:
  int descriptor_;
};

} // namespace macadam::base
