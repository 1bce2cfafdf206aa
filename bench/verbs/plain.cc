// SPDX-License-Identifier: BSD-3-Clause
// What the adapter itself needs: ping-pongs and windows between two processes over libibverbs, with
// nothing above it. For each size given in bytes:
//
//   up to 32 KiB   half the round trip, in microseconds, of a send that meets a posted receive
//                  (plain_send_us) and of a write whose last byte the other side waits to see
//                  (plain_write_us)
//   longer         the bandwidth, in GB/s, of windows of 64 of them, an answer after each window
//                  (plain_send_gb, plain_write_gb); and how long a write or read of one keeps its
//                  caller while both processes do nothing else, in microseconds
//                  (plain_write_in_post_us, plain_read_in_post_us)
//
// As the libraries do, it gives its processor away between two looks that found nothing, sends
// short data inline and asks for few completions.
#include "endpoint.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using verbs::Endpoint;

constexpr int window = 64;
constexpr std::size_t long_from = 32 << 10; // bytes; longer messages are measured in windows

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Seconds for one call of `step`: the median of three batches after one that warms up.
template <class Step>
double seconds_per_step(int steps, Step step) {
  std::vector<double> times;
  for (int batch = 0; batch < 4; ++batch) {
    const double begin = now();
    for (int i = 0; i < steps; ++i)
      step();
    times.push_back((now() - begin) / steps);
  }
  times.erase(times.begin());
  std::nth_element(times.begin(), times.begin() + 1, times.end());
  return times[1];
}

void figure(bool prints, const char* name, std::size_t bytes, double value) {
  if (prints) std::printf("%s %zu %.9g\n", name, bytes, value);
}

double send_ping_pong(Endpoint& end, bool first, std::size_t bytes) {
  const auto receive = [&] {
    end.wait_received(1);
    end.post_receives(0, bytes, 1);
  };
  end.post_receives(0, bytes, 1);
  end.barrier();
  const double seconds = seconds_per_step(200, [&] {
    if (first) end.send(bytes);
    receive();
    if (!first) end.send(bytes);
  });
  end.barrier();
  end.send(bytes); // takes the receive that is still posted
  end.wait_received(1);
  end.barrier();
  return seconds;
}

double write_ping_pong(Endpoint& end, bool first, std::size_t bytes) {
  std::atomic_ref<char> last(end.inbound()[bytes - 1]);
  char mark = 1;
  last.store(0);
  end.barrier();
  const auto wait = [&] {
    while (last.load(std::memory_order_acquire) != mark)
      sched_yield();
  };
  const auto write = [&] {
    end.data()[bytes - 1] = mark;
    end.write(bytes);
  };
  const double seconds = seconds_per_step(200, [&] {
    if (first) write();
    wait();
    if (!first) write();
    mark = static_cast<char>(mark % 100 + 1);
  });
  end.barrier();
  return seconds;
}

// One window, from the first to the second process, and its answer.
template <class Post>
double windows(Endpoint& end, bool first, std::size_t bytes, int receives, Post post) {
  const int steps = bytes > 256 << 10 ? 1 : 5;
  if (!first) end.post_receives(bytes, bytes, receives);
  if (first) end.post_receives(0, 0, 1);
  end.barrier();
  return seconds_per_step(steps, [&] {
    if (first) {
      post();
      end.wait_received(1);
      end.post_receives(0, 0, 1);
    } else {
      end.wait_received(receives);
      end.post_receives(bytes, bytes, receives);
      end.send(0);
    }
  });
}

// Of the calls alone: what they begin is over before the next one.
template <class Post>
double microseconds_in_post(Endpoint& end, bool first, Post post) {
  constexpr int times = 5;
  constexpr useconds_t pause = 20000;
  std::vector<double> taken;
  end.barrier();
  for (int i = 0; first && i < times; ++i) {
    const double begin = now();
    post();
    taken.push_back((now() - begin) * 1e6);
    usleep(pause);
  }
  end.barrier();
  if (!first) return 0;
  std::nth_element(taken.begin(), taken.begin() + times / 2, taken.end());
  return taken[times / 2];
}

void measure_round_trips(const verbs::Wire& wire, bool first, std::size_t bytes) {
  Endpoint end(wire, bytes, 4);
  figure(first, "plain_send_us", bytes, send_ping_pong(end, first, bytes) / 2 * 1e6);
  figure(first, "plain_write_us", bytes, write_ping_pong(end, first, bytes) / 2 * 1e6);
}

void measure_windows(const verbs::Wire& wire, bool first, std::size_t bytes) {
  const double giga = static_cast<double>(bytes) * window * 1e-9;
  {
    Endpoint end(wire, bytes * window, window);
    const double seconds =
        windows(end, first, bytes, window, [&] { end.send_window(bytes, window); });
    figure(first, "plain_send_gb", bytes, giga / seconds);
    end.barrier();
  }
  Endpoint end(wire, bytes * window, window);
  const double seconds = windows(end, first, bytes, 1, [&] { end.write_window(bytes, window); });
  figure(first, "plain_write_gb", bytes, giga / seconds);
  end.barrier();
}

void measure_posts(const verbs::Wire& wire, bool first, std::size_t bytes) {
  Endpoint end(wire, bytes, 16);
  figure(first, "plain_write_in_post_us", bytes,
         microseconds_in_post(end, first, [&] { end.write(bytes); }));
  figure(first, "plain_read_in_post_us", bytes,
         microseconds_in_post(end, first, [&] { end.read(bytes); }));
}

void run(const verbs::Wire& wire, bool first, const std::vector<std::size_t>& sizes) {
  for (const std::size_t bytes : sizes) {
    if (bytes < long_from) {
      measure_round_trips(wire, first, bytes);
    } else {
      measure_windows(wire, first, bytes);
      measure_posts(wire, first, bytes);
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::vector<std::size_t> sizes;
  for (int i = 1; i < argc; ++i)
    sizes.push_back(static_cast<std::size_t>(std::max(1L, std::atol(argv[i]))));
  const auto [ours, theirs] = verbs::wire();
  const pid_t child = fork();
  if (child < 0) {
    std::perror("plain: fork");
    return 1;
  }
  run(child == 0 ? theirs : ours, child != 0, sizes);
  if (child == 0) return 0;
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
