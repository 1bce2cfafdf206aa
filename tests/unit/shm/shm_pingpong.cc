// SPDX-License-Identifier: BSD-3-Clause
// Times the shared-memory transport between two processes, each on a core of its own, against the
// machine: one cache line from core to core, and memcpy. A tool to tune with, no test.
#include "job.h"
#include "net/shm/transport.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <vector>

namespace macadam::net::shm::test {
namespace {

cpu_set_t allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  return allowed;
}

void bind_to_core(const cpu_set_t& allowed, int index) {
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || index-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// Runs `body` with rank 0 here and rank 1 in a child.
void run_pair(const std::function<void(Rank)>& body) {
  const cpu_set_t allowed = allowed_cores();
  const pid_t child = fork();
  bind_to_core(allowed, child == 0 ? 1 : 0);
  body(child == 0 ? 1 : 0);
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  sched_setaffinity(0, sizeof allowed, &allowed);
}

constexpr int repeats = 9;

double line_time() {
  struct Flag {
    alignas(128) std::atomic<std::uint32_t> word{0};
  };
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* flags = static_cast<Flag*>(memory);
  constexpr std::uint32_t rounds = 20000;
  std::vector<double> times;
  run_pair([&](Rank rank) {
    std::uint32_t count = 0;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      const double start = seconds();
      for (std::uint32_t i = 0; i < rounds; ++i) {
        ++count;
        if (rank == 0) flags[0].word.store(count, std::memory_order_release);
        while (flags[1 - rank].word.load(std::memory_order_acquire) != count) {
        }
        if (rank == 1) flags[1].word.store(count, std::memory_order_release);
      }
      times.push_back((seconds() - start) / (2.0 * rounds));
    }
  });
  munmap(memory, 4096);
  return median(times);
}

// Whole pages, as benchmarks use.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(memory_, 1, bytes);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { munmap(memory_, bytes_); }
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_;
  std::size_t bytes_;
};

double memcpy_time(std::size_t bytes) {
  const Buffer from(bytes);
  const Buffer to(bytes);
  std::vector<double> times;
  const int rounds = static_cast<int>(std::max<std::size_t>(4, (std::size_t{8} << 20) / bytes));
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const double start = seconds();
    for (int i = 0; i < rounds; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      asm volatile("" : : "r"(to.data()) : "memory");
    }
    times.push_back((seconds() - start) / rounds);
  }
  return median(times);
}

class Endpoint final : public Sink {
 public:
  Endpoint(Job& job, Rank rank, const base::Settings& settings)
      : view_(job, rank), processes_(view_), transport_(processes_, settings) {
    view_.publish({});
    engine::PeerState state;
    do
      link_ = &transport_.connect(1 - rank, state);
    while (state == engine::PeerState::connecting);
  }

  void on_message(Rank, const std::byte* message, std::size_t) noexcept override {
    ++messages_;
    last_ = *message;
  }
  void on_put(engine::Rank, std::uint32_t, std::size_t) noexcept override {}
  void on_first_fragment(Rank, const std::byte* fragment, std::size_t,
                         std::size_t rest) noexcept override {
    last_ = *fragment;
    rest_ = rest;
  }
  void on_next_fragment(Rank, const std::byte*, std::size_t bytes) noexcept override {
    rest_ -= bytes;
    if (rest_ == 0) ++messages_;
  }
  void on_complete(std::uint64_t, bool) noexcept override { ++completions_; }
  void on_peer(Rank, engine::PeerState) noexcept override {}
  void on_failure(base::Error&& why) noexcept override {
    std::fprintf(stderr, "%s\n", why.what());
    std::abort();
  }

  void send(std::size_t bytes) {
    while (transport_.send(*link_, header_.data(), header_.size(), payload_.data(), bytes) ==
           Posted::busy) {
      transport_.poll(*this);
    }
  }
  // Waits for that many more messages; they may have come already.
  void receive(std::uint64_t count) {
    expected_ += count;
    wait([&] { return messages_ >= expected_; });
  }
  void put(const void* from, RemoteMemory to, std::size_t bytes) {
    const std::uint64_t before = completions_;
    if (transport_.put(*link_, from, to, bytes, 1) == Posted::pending) {
      wait([&] { return completions_ > before; });
    }
  }
  void get(void* to, RemoteMemory from, std::size_t bytes) {
    const std::uint64_t before = completions_;
    if (transport_.get(*link_, to, from, bytes, 1) == Posted::pending) {
      wait([&] { return completions_ > before; });
    }
  }

  template <class Done>
  void wait(Done&& done) {
    unsigned fruitless = 0;
    while (!done()) {
      if (transport_.poll(*this))
        fruitless = 0;
      else
        transport_.idle(++fruitless, 100000);
    }
    transport_.resume();
  }
  Transport& transport() { return transport_; }

 private:
  Job::View view_;
  const boot::Processes processes_;
  Transport transport_;
  engine::Link* link_ = nullptr;
  std::uint64_t messages_ = 0;
  std::uint64_t expected_ = 0;
  std::uint64_t completions_ = 0;
  std::byte last_{};
  std::size_t rest_ = 0;
  std::array<std::byte, 20> header_ = {};
  std::array<std::byte, 65536> payload_ = {};
};

void small_messages(double line, const base::Settings& settings) {
  for (const std::size_t bytes : {8u, 32u, 64u, 256u, 1024u, 4096u, 8192u}) {
    Job job(2);
    run_pair([&](Rank rank) {
      Endpoint end(job, rank, settings);
      std::vector<double> times;
      constexpr int rounds = 5000;
      for (int repeat = 0; repeat < repeats; ++repeat) {
        const double start = seconds();
        for (int i = 0; i < rounds; ++i) {
          if (rank == 0) end.send(bytes);
          end.receive(1);
          if (rank == 1) end.send(bytes);
        }
        times.push_back((seconds() - start) / (2 * rounds));
      }
      if (rank == 0) {
        fmt::print("message of {:5} bytes: {:7.1f} ns half round trip, {:.2f} x line\n", bytes,
                   1e9 * median(times), median(times) / line);
      }
    });
  }
}

void message_rate(const base::Settings& settings) {
  Job job(2);
  run_pair([&](Rank rank) {
    Endpoint end(job, rank, settings);
    std::vector<double> times;
    constexpr int window = 64;
    constexpr int rounds = 2000;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      const double start = seconds();
      for (int i = 0; i < rounds; ++i) {
        if (rank == 0) {
          for (int k = 0; k < window; ++k)
            end.send(8);
          end.receive(1);
        } else {
          end.receive(window);
          end.send(8);
        }
      }
      times.push_back((seconds() - start) / (rounds * window));
    }
    if (rank == 0) {
      fmt::print("windows of {} messages of 8 bytes: {:.1f} ns a message, {:.1f} M/s\n", window,
                 1e9 * median(times), 1e-6 / median(times));
    }
  });
}

void large(const char* name, bool use_get, const base::Settings& settings) {
  for (const std::size_t bytes : {16u << 10, 64u << 10, 256u << 10, 1u << 20, 4u << 20}) {
    const double copy = memcpy_time(bytes);
    Job job(2);
    run_pair([&](Rank rank) {
      Endpoint end(job, rank, settings);
      const Buffer out(bytes);
      const Buffer in(bytes);
      // The two processes are forked: buffers of one size lie at the same addresses.
      const RemoteMemory target{reinterpret_cast<std::uint64_t>(use_get ? out.data() : in.data()),
                                private_key};
      std::vector<double> times;
      const int rounds = static_cast<int>(std::clamp<std::size_t>((32u << 20) / bytes, 20, 1000));
      for (int repeat = 0; repeat < repeats; ++repeat) {
        const double start = seconds();
        for (int i = 0; i < rounds; ++i) {
          for (Rank sender = 0; sender < 2; ++sender) {
            if (use_get) {
              // The sender says where its data are, the receiver reads them and says so.
              if (rank == sender) {
                end.send(56);
                end.receive(1);
              } else {
                end.receive(1);
                end.get(in.data(), target, bytes);
                end.send(8);
              }
            } else if (rank == sender) {
              end.put(out.data(), target, bytes);
              end.send(8);
            } else {
              end.receive(1);
            }
          }
        }
        times.push_back((seconds() - start) / (2 * rounds));
      }
      if (rank == 0) {
        fmt::print("{} {:5} KiB: {:8.2f} us, {:5.1f} GB/s, {:.2f} x memcpy ({:.2f} us)\n", name,
                   bytes >> 10, 1e6 * median(times),
                   1e-9 * static_cast<double>(bytes) / median(times), median(times) / copy,
                   1e6 * copy);
      }
    });
  }
}

int run(const std::string& fragment) {
  setvbuf(stdout, nullptr, _IONBF, 0);
  const double line = line_time();
  fmt::print("cache line from core to core: {:.1f} ns\n", 1e9 * line);
  base::Settings settings;
  if (fragment != "large") {
    settings.shm_rings = 0;
    fmt::print("shared queue only:\n");
    small_messages(line, settings);
    message_rate(settings);
    fmt::print("with rings:\n");
    small_messages(line, {});
    message_rate({});
  }
  if (fragment == "small") return 0;
  for (const auto path :
       {base::CopyPath::automatic, base::CopyPath::cma, base::CopyPath::pipeline}) {
    settings = {};
    settings.shm_copy = path;
    const std::array names{"automatic", "cma", "pipeline"};
    const char* name = names[static_cast<std::size_t>(path)];
    large(fmt::format("put {}", name).c_str(), false, settings);
    large(fmt::format("get {}", name).c_str(), true, settings);
  }
  return 0;
}

} // namespace
} // namespace macadam::net::shm::test

// Usage: shm_pingpong [small|large]
int main(int argc, char** argv) {
  return macadam::net::shm::test::run(argc > 1 ? argv[1] : "");
}
