// SPDX-License-Identifier: BSD-3-Clause
#include "boot/hang/time_limit.h"

#include "base/error.h"
#include "base/thread.h"
#include "boot/hang/stacks.h"
#include "boot/launcher.h"
#include "boot/launcher_client.h"
#include "boot/packet.h"
#include "boot/streams.h"

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <unistd.h>

namespace macadam::boot {
namespace {

using namespace std::chrono_literals;
using Kind = RankStatus::Kind;

constexpr int timeout_status = 124; // as mpiexec has it
constexpr auto pause = 10ms;
constexpr int most_looks = 3;
constexpr auto time_to_abort = 5s;
constexpr auto time_to_page = 10s; // for rank 0, once all others should be through

// Of ranks that are alike, where one is in its program.
std::map<pid_t, std::string> find_stacks(const std::vector<RankStatus>& ranks) {
  std::vector<pid_t> processes;
  for (const int rank : ranks_to_show(ranks))
    if (const int process = ranks[static_cast<std::size_t>(rank)].process; process > 0)
      processes.push_back(process);
  Stacks stacks(processes);
  while (!stacks.are_known())
    std::this_thread::sleep_for(pause);
  return stacks.by_process();
}

// Whether one answers that has not before.
bool answers_anew(const std::vector<RankStatus>& earlier, const std::vector<RankStatus>& now) {
  for (std::size_t rank = 0; rank < now.size(); ++rank)
    if (now[rank].kind == Kind::answered && earlier[rank].kind != Kind::answered) return true;
  return false;
}

double seconds_of(const JobMemory& memory) {
  return memory.header().timeout_ms / 1e3;
}

} // namespace

TimeLimit::TimeLimit(const JobMemory& memory, LauncherClient& launcher, Clock::time_point start)
    : memory_(memory), launcher_(launcher),
      limit_(start + std::chrono::milliseconds(memory.header().timeout_ms)) {
  thread_ = base::start_thread("macadam-limit", [this] { watch(); });
}

TimeLimit::~TimeLimit() {
  {
    const std::lock_guard lock(mutex_);
    in_time_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool TimeLimit::wait_until(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_until(lock, until, [&] { return in_time_; });
}

void TimeLimit::watch() {
  if (!wait_until(limit_)) return;
  const auto until = limit_ + longest_page;
  if (launcher_.rank() == 0) end_job(make_page(until));
  try {
    launcher_.leave_word(pack(look()));
  } catch (const base::Error&) { // the launcher fails: the job ends anyway
  }
  // Rank 0 ends all, unless it has been stopped or is gone.
  if (wait_until(until + time_to_page)) end_job("");
}

// Twice, so that the page can tell ranks that stand in a circle from those that pass things on;
// once more where a rank has only then come to wait, as on a machine that is overloaded.
std::vector<TimeLimit::Seen> TimeLimit::look() const {
  memory_.header().ending.store(1);
  std::vector<RankStatus> earlier, now = ask_ranks(memory_);
  int looks = 1;
  do {
    earlier = std::move(now);
    std::this_thread::sleep_for(look_interval);
    now = ask_ranks(memory_);
  } while (++looks < most_looks && answers_anew(earlier, now));
  for (std::size_t rank = 0; rank < now.size(); ++rank)
    if (now[rank].kind == Kind::silent && earlier[rank].kind == Kind::answered)
      now[rank] = earlier[rank];
  const auto host = std::string(memory_.own_node().host.data());
  for (const auto& [process, stack] : find_stacks(now))
    for (RankStatus& rank : now)
      if (rank.process == process) rank.stack = stack;
  std::vector<Seen> seen(now.size());
  for (std::size_t rank = 0; rank < now.size(); ++rank) {
    seen[rank].stood = now[rank].kind == Kind::answered && earlier[rank].kind == Kind::answered &&
                       now[rank].json == earlier[rank].json;
    if (memory_.header().nodes > 1) now[rank].host = host;
    seen[rank].status = std::move(now[rank]);
  }
  return seen;
}

std::string TimeLimit::pack(const std::vector<Seen>& seen) const {
  PacketWriter packet;
  for (const std::uint32_t rank : memory_.members()) {
    const auto& [status, stood] = seen[rank];
    packet.value(static_cast<std::uint8_t>(status.kind));
    packet.value(std::int32_t{status.process});
    packet.value(stood);
    packet.text(status.json);
    packet.text(status.stack);
  }
  return std::string(packet.view());
}

void TimeLimit::unpack(std::uint32_t node, const std::string& text, std::vector<Seen>& all) const {
  PacketReader packet(as_bytes(text));
  for (const std::uint32_t rank : memory_.members(node)) {
    Seen seen;
    seen.status.kind = static_cast<Kind>(packet.value<std::uint8_t>());
    seen.status.process = packet.value<std::int32_t>();
    seen.stood = packet.value<bool>();
    seen.status.json = packet.text();
    seen.status.stack = packet.text();
    seen.status.host = memory_.node(node).host.data();
    all[rank] = std::move(seen);
  }
}

std::string TimeLimit::make_page(Clock::time_point until) {
  std::vector<Seen> all = look();
  const JobHeader& header = memory_.header();
  for (std::uint32_t node = 0; node < header.nodes; ++node) {
    if (node == header.node) continue;
    for (const std::uint32_t rank : memory_.members(node))
      all[rank].status = {Kind::unheard, memory_.node(node).host.data()};
    try {
      const auto first = static_cast<int>(memory_.members(node).front());
      if (const std::string text = launcher_.await_word(first, until); !text.empty())
        unpack(node, text, all);
    } catch (const base::Error&) { // it stays unheard
    }
  }
  std::vector<RankStatus> now, earlier;
  for (auto& [status, stood] : all) {
    earlier.push_back(stood ? status : RankStatus{Kind::silent, {}});
    now.push_back(std::move(status));
  }
  const std::string where = header.nodes > 1
                                ? fmt::format("{} hosts", header.nodes)
                                : fmt::format("host {}", memory_.own_node().host.data());
  return hang_report(where, now, earlier, "", "macadam");
}

void TimeLimit::end_job(const std::string& page) {
  const std::string sentence =
      fmt::format("the job has not ended within {} s ({})", seconds_of(memory_), timeout_variable);
  fmt::print(stderr, "{}macadam: {}\n", page, sentence);
  flush_streams();
  std::thread([&] { launcher_.abort(timeout_status, sentence); }).detach();
  std::this_thread::sleep_for(time_to_abort); // its server may not answer any more
  _exit(timeout_status);
}

} // namespace macadam::boot
