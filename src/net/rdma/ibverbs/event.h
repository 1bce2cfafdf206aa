// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mutex>
#include <string>

namespace macadam::net::rdma::ibverbs {

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

// That the adapter cannot be used any more, and why. Any thread.
class Loss {
 public:
  // The first one stays.
  void tell(std::string reason);
  [[nodiscard]] std::string reason() const; // empty: it can be used
  // Readable once told; clear() it when that was heard.
  Event event;

 private:
  mutable std::mutex lock_;
  std::string reason_;
};

} // namespace macadam::net::rdma::ibverbs
