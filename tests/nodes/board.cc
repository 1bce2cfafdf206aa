// SPDX-License-Identifier: BSD-3-Clause
#include "board.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <stdexcept>
#include <sys/random.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace macadam::test {
namespace {

using namespace std::chrono_literals;
using boot::RankState;

// Between two looks at the folder: often while endpoint addresses are awaited or something has
// changed, then each time after twice as long.
constexpr auto shortest_pause = 5ms;
constexpr auto longest_pause = 200ms;
constexpr auto beat_interval = 1s; // a page is written at least so often,
constexpr auto silence = 15s;      // and a machine whose page stays the same for so long is gone

[[noreturn]] void fail(const std::string& text) {
  throw std::runtime_error(text);
}

template <std::size_t n>
void set_text(std::array<char, n>& to, const std::string& text) {
  to.fill(0);
  text.copy(to.data(), n - 1);
}

} // namespace

Board::Board(const Place& place, boot::Node self, std::chrono::seconds longest) : place_(place) {
  check_folder();
  const std::string own = file_of(place.node);
  const int fd = open(own.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0)
    fail(fmt::format("{}: {}; every job needs an empty folder of its own, and every node its own "
                     "number",
                     own, std::strerror(errno)));
  close(fd);

  neighbours_.resize(place.nodes);
  Page& page = neighbours_[place.node].page;
  page.head.nodes = place.nodes;
  page.head.node = place.node;
  page.head.ranks = self.ranks;
  set_text(page.head.host, self.host);
  if (getrandom(page.head.secret.data(), page.head.secret.size(), 0) < 0)
    fail(fmt::format("getrandom for the job's secret: {}", std::strerror(errno)));
  page.rows.resize(self.ranks);
  write();

  const auto limit = Clock::now() + longest;
  for (std::uint32_t node = 0; node < place.nodes; ++node) {
    Neighbour& neighbour = neighbours_[node];
    while (!read(node, neighbour.page)) {
      if (Clock::now() > limit)
        fail(fmt::format("node {} has not come to {} within {} s; it is started with --nodes {} "
                         "--node {} and the same folder",
                         node, place.folder, longest.count(), place.nodes, node));
      std::this_thread::sleep_for(10ms);
    }
    neighbour.changed = Clock::now();
    if (neighbour.page.head.nodes != place.nodes)
      fail(fmt::format("node {} was started with --nodes {}, this one with --nodes {}", node,
                       neighbour.page.head.nodes, place.nodes));
  }
}

Board::~Board() {
  PageHead& head = neighbours_[place_.node].page.head;
  if (head.phase == PageHead::Phase::running) head.phase = PageHead::Phase::ended;
  try {
    write();
  } catch (const std::exception& error) {
    fmt::print(stderr, "mpiexec: {}\n", error.what());
  }
}

void Board::check_folder() const {
  if (place_.node >= place_.nodes)
    fail(fmt::format("--node {} does not go with --nodes {}: nodes are numbered from 0",
                     place_.node, place_.nodes));
  struct stat status {};
  mkdir(place_.folder.c_str(), 0700); // unless another node has
  if (stat(place_.folder.c_str(), &status) != 0)
    fail(fmt::format("{}: {}", place_.folder, std::strerror(errno)));
  if (!S_ISDIR(status.st_mode) || (status.st_mode & 0077) != 0 || status.st_uid != geteuid())
    fail(fmt::format("{} must be a folder that belongs to you and that nobody else can enter "
                     "(chmod 700): the job's secret lies there; found owner {}, mode {:o}",
                     place_.folder, status.st_uid, status.st_mode & 07777));
}

std::string Board::file_of(std::uint32_t node) const {
  return fmt::format("{}/node.{}", place_.folder, node);
}

// A page is replaced as a whole, so a reader finds an old or a new one.
void Board::write() {
  Page& page = neighbours_[place_.node].page;
  ++page.head.beat;
  const std::string name = file_of(place_.node);
  const std::string next = name + ".next";
  std::ofstream file(next, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(&page.head), sizeof page.head);
  file.write(reinterpret_cast<const char*>(page.rows.data()),
             static_cast<std::streamsize>(page.rows.size() * sizeof(PageRow)));
  file.close();
  if (!file || rename(next.c_str(), name.c_str()) != 0)
    fail(fmt::format("writing {}: {}", name, std::strerror(errno)));
  written_ = Clock::now();
}

// False if the machine has put up nothing yet.
bool Board::read(std::uint32_t node, Page& page) const {
  std::ifstream file(file_of(node), std::ios::binary);
  Page found;
  if (!file.read(reinterpret_cast<char*>(&found.head), sizeof found.head)) return false;
  if (found.head.magic != PageHead::magic_value || found.head.head_bytes != sizeof found.head ||
      found.head.node != node)
    fail(fmt::format("{} is no page of node {} by this version of mpiexec", file_of(node), node));
  found.rows.resize(found.head.ranks);
  if (!file.read(reinterpret_cast<char*>(found.rows.data()),
                 static_cast<std::streamsize>(found.rows.size() * sizeof(PageRow))))
    return false;
  page = std::move(found);
  return true;
}

boot::JobMemory Board::make_job(std::uint32_t cores) const {
  std::vector<boot::Node> nodes;
  for (const Neighbour& neighbour : neighbours_)
    nodes.push_back({neighbour.page.head.host.data(), neighbour.page.head.ranks});
  boot::JobMemory memory = boot::JobMemory::create(nodes, place_.node, cores);
  memory.header().secret = neighbours_[0].page.head.secret;
  return memory;
}

void Board::tell_failure(const Failure& failure) {
  if (failure_) return; // what follows from the first
  failure_ = failure;
  PageHead& head = neighbours_[place_.node].page.head;
  head.phase = PageHead::Phase::failed;
  head.status = failure.status;
  set_text(head.sentence, failure.sentence);
  written_ = {}; // to be written in any case
}

std::chrono::milliseconds Board::exchange(boot::JobMemory& memory) {
  const Page before = neighbours_[place_.node].page;
  describe(memory);
  const Page& own = neighbours_[place_.node].page;
  bool changed = own.rows != before.rows || own.head.arrived != before.head.arrived;
  if (changed || Clock::now() - written_ > beat_interval) write();

  bool awaiting = false;
  std::uint32_t arrived = own.head.arrived;
  for (std::uint32_t node = 0; node < place_.nodes; ++node) {
    if (node == place_.node) continue;
    Neighbour& neighbour = neighbours_[node];
    const std::uint32_t beat = neighbour.page.head.beat;
    if (read(node, neighbour.page) && neighbour.page.head.beat != beat) {
      neighbour.changed = Clock::now();
      take(neighbour, memory);
    }
    arrived = std::min(arrived, neighbour.page.head.arrived);
    awaiting |= std::ranges::any_of(neighbour.page.rows, [](const PageRow& row) {
      return row.published == 0 && row.state <= RankState::finalized;
    });
    changed |= neighbour.page.head.beat != beat;
  }
  if (arrived > memory.header().barrier_round.load(std::memory_order_relaxed)) {
    memory.open_barrier();
    changed = true;
  }
  look_for_failures();
  const bool barrier = own.head.arrived > arrived;
  pause_ = changed || awaiting || barrier
               ? shortest_pause
               : std::min<std::chrono::milliseconds>(2 * pause_, longest_pause);
  return pause_;
}

// Our own page from the job's memory.
void Board::describe(const boot::JobMemory& memory) {
  Page& page = neighbours_[place_.node].page;
  const auto first = static_cast<int>(memory.own_node().first);
  for (std::size_t i = 0; i < page.rows.size(); ++i) {
    const boot::RankRow& row = memory.row(first + static_cast<int>(i));
    PageRow& told = page.rows[i];
    told.published = row.published.load(std::memory_order_acquire);
    told.state = row.state.load(std::memory_order_acquire);
    told.pid = row.pid;
    if (told.published == 0) continue;
    told.endpoint_address_used = row.endpoint_address_used;
    told.endpoint_address = row.endpoint_address;
  }
  const boot::JobHeader& header = memory.header();
  const std::uint32_t round = header.barrier_round.load(std::memory_order_acquire);
  const bool all = header.barrier_arrived.load(std::memory_order_acquire) == page.head.ranks;
  page.head.arrived = round + (all ? 1 : 0);
}

// The rows of another machine's ranks, for those of this one to see.
void Board::take(const Neighbour& neighbour, boot::JobMemory& memory) {
  const auto first = static_cast<int>(memory.node(neighbour.page.head.node).first);
  for (std::size_t i = 0; i < neighbour.page.rows.size(); ++i) {
    boot::RankRow& row = memory.row(first + static_cast<int>(i));
    const PageRow& told = neighbour.page.rows[i];
    row.pid = told.pid;
    if (told.published != 0 && row.published.load(std::memory_order_relaxed) == 0) {
      row.endpoint_address = told.endpoint_address;
      row.endpoint_address_used = told.endpoint_address_used;
      row.published.store(1, std::memory_order_release);
    }
    const RankState before = row.state.exchange(told.state, std::memory_order_release);
    const bool absent = told.state == RankState::dead && told.pid == 0;
    if (absent && before != RankState::dead) memory.header().absent.fetch_add(1);
  }
}

void Board::look_for_failures() {
  for (std::uint32_t node = 0; node < place_.nodes && !failure_; ++node) {
    const PageHead& head = neighbours_[node].page.head;
    if (node == place_.node || head.phase == PageHead::Phase::ended) continue;
    if (head.phase == PageHead::Phase::failed)
      failure_ = {head.sentence.data(), head.status};
    else if (Clock::now() - neighbours_[node].changed > silence)
      failure_ = {fmt::format("mpiexec on host {} (node {}) has not been heard of for {} s",
                              head.host.data(), node, silence.count()),
                  1};
  }
}

} // namespace macadam::test
