// SPDX-License-Identifier: BSD-3-Clause
// A rank of the launch tests: joins the job without MPI and acts as its arguments say, in order.
// Prints nothing unless told to. An argument "N/action" is for rank N only.
#include "boot/local_job.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

using Job = macadam::boot::LocalJob;
using macadam::boot::SharedMemory;

namespace {

class Mapped {
 public:
  explicit Mapped(const SharedMemory& segment)
      : base_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.fd,
                   static_cast<off_t>(segment.offset))) {
    if (base_ == MAP_FAILED) throw std::runtime_error(std::strerror(errno));
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() { munmap(base_, bytes); }
  int* data() { return static_cast<int*>(base_); }

 private:
  static constexpr std::size_t bytes = 4096;
  void* base_;
};

void require(bool fact, const char* what) {
  if (!fact) throw std::runtime_error(what);
}

macadam::boot::Agreement agreement_of(int rank) {
  const auto number = static_cast<std::uint32_t>(rank);
  return {.rules = ~number, .eager = number, .check = 1};
}

// Everybody's address says its rank, and so does what comes with it; the segment of everybody on
// this host holds 1000 + rank and only its owner wrote it.
void meet(Job& job) {
  const int me = job.rank();
  Mapped own(job.own_memory());
  require(*own.data() == 0, "a new segment is zero");
  *own.data() = 1000 + me;
  job.agree_on(agreement_of(me));
  job.publish(std::as_bytes(std::span(&me, 1)));
  for (int rank = 0; rank < job.size(); ++rank) {
    int address = -1;
    auto bytes = job.fetch(rank);
    for (; !bytes; bytes = job.fetch(rank))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    require(bytes->size() == sizeof address, "an address keeps its length");
    std::memcpy(&address, bytes->data(), sizeof address);
    require(address == rank, "an address is its owner's");
    require(job.agreement_of(rank) == agreement_of(rank), "what comes with it, too");
    if (job.alone() || !job.is_local(rank)) continue;
    require(*Mapped(job.memory_of(rank)).data() == 1000 + rank, "a segment is its owner's");
  }
  require(job.pid(me) == getpid(), "pids are known");
}

std::string hang_json(const Job& job, int moves) {
  return fmt::format(
      R"({{"waiting_in": "MPI_Recv", "moves": {1}, "posted": [{{"comm": "MPI_COMM_WORLD", "source": {0}, )"
      R"("tag": 5, "bytes": 8}}], "unexpected": [{{"comm": "MPI_COMM_WORLD", "source": {0}, )"
      R"("tag": 6, "bytes": 8}}]}})",
      (job.rank() + 1) % job.size(), moves);
}

std::string final_json(const Job& job) {
  return fmt::format(
      R"({{"rank": {0}, "host": "{1}", "counters": [{{"group": "protocol", "name": "eager_sent", )"
      R"("text": "messages sent EAGER", "value": {2}}}], "memory": {{"resident": 1048576}}}})",
      job.rank(), job.host(), 10 * (job.rank() + 1));
}

// As a rank that waits inside MPI for ever, or passes things on meanwhile.
[[noreturn]] void hang(Job& job, bool moving) {
  for (int moves = 0;; moves += moving ? 1 : 0) {
    if (job.report_wanted()) job.write_report(hang_json(job, moves));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void act(std::optional<Job>& job, const std::string& action) {
  const std::size_t equals = action.find('=');
  const std::string verb = action.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : action.substr(equals + 1);
  const auto number = [&] { return std::stoi(value); };
  if (verb == "join") {
    job.emplace(Job::join());
    job->enter();
  } else if (verb == "who") {
    fmt::print("rank {} of {}, app {}, {}\n", job->rank(), job->size(), job->app_number(),
               job->alone() ? "alone" : "launched");
    std::fflush(stdout);
  } else if (verb == "cores") {
    fmt::print("{}\n", job->cores());
  } else if (verb == "secret") {
    for (const std::uint8_t byte : job->secret())
      fmt::print("{:02x}", static_cast<unsigned>(byte));
    fmt::print("\n");
    std::fflush(stdout);
  } else if (verb == "meet") {
    meet(*job);
  } else if (verb == "barrier") {
    job->barrier();
  } else if (verb == "hang") {
    hang(*job, false);
  } else if (verb == "hang-moving") {
    hang(*job, true);
  } else if (verb == "compute") {
    for (;;)
      std::this_thread::sleep_for(std::chrono::seconds(1));
  } else if (verb == "report") {
    job->write_final_report(final_json(*job));
  } else if (verb == "finalize") {
    job->finalize();
  } else if (verb == "print") {
    fmt::print("{}", value); // not flushed, no line end
  } else if (verb == "abort") {
    job->abort(number(), fmt::format("called MPI_Abort(MPI_COMM_WORLD, {})", number()));
  } else if (verb == "follow") {
    job->abort(number(), "failed because another rank is gone", macadam::boot::Blame::peer);
  } else if (verb == "raise") {
    raise(number());
  } else if (verb == "exit") {
    std::exit(number());
  } else if (verb == "sleep_ms") {
    std::this_thread::sleep_for(std::chrono::milliseconds(number()));
  } else if (verb == "execute") {
    std::exit(std::system(value.c_str()) == 0 ? 0 : 1);
  } else {
    throw std::runtime_error("no such action: " + action);
  }
}

} // namespace

int main(int argc, char** argv) {
  std::optional<Job> job;
  try {
    for (int i = 1; i < argc; ++i) {
      std::string action = argv[i];
      if (std::isdigit(static_cast<unsigned char>(action.front()))) {
        const std::size_t slash = action.find('/');
        // Who has not joined may still be told apart, by the variable that join() reads.
        const char* invitation = std::getenv(macadam::boot::job_variable);
        const int rank = job ? job->rank() : std::stoi(std::strchr(invitation, ':') + 1);
        if (std::stoi(action) != rank) continue;
        action.erase(0, slash + 1);
      }
      act(job, action);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "launch_rank: {}\n", error.what());
    return 9;
  }
  return 0;
}
