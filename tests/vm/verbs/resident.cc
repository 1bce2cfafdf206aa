// SPDX-License-Identifier: BSD-3-Clause
// What the kernel says that a process holds (/proc/self/smaps, VmPin), more than before MPI_Init:
// after it, after a halo exchange, after an exchange of all with all, after a burst at a rank that
// computes, and when it is over (with BYTES 0 only the first). `resident RANKS FILE BYTES BURST
// [LAST]`, LAST being the stage after which the job ends:
// FILE is made, and tells of who has come to which stage, as any message of MPI would open
// connections; messages of the halo and of the all-to-all are BYTES long, BURST of 64 bytes make
// the burst. A line for each rank and stage: name, rank, peers talked to, KiB anonymous, of these
// the heap, libraries' data and what is mapped, then KiB mapped by the driver, pinned, resident in
// all; and, of the library's accounts, the most message buffers that were in use at once.
#include "check.h"
#include "counter.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fcntl.h>
#include <set>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

namespace {

struct Account {
  long anonymous = 0; // KiB, all of these together:
  long heap = 0;      // ... of the main thread, and its stack
  long libraries = 0; // ... what is written of their data
  long mapped = 0;    // ... message buffers; heaps and stacks of other threads
  long device = 0;    // queues that the driver has mapped
  long pinned = 0;
  long resident = 0;
};

std::array<char, 1 << 20> text; // of /proc, read without allocating
std::array<char, 4096> lines;   // to stdout

std::string_view read_text(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  std::size_t length = 0;
  for (ssize_t got = 1; got > 0; length += static_cast<std::size_t>(got)) {
    got = read(fd, text.data() + length, text.size() - length - 1);
    CHECK(got >= 0);
  }
  close(fd);
  text[length] = '\0';
  return {text.data(), length};
}

long number_in(std::string_view line) {
  const std::size_t at = line.find_first_of("0123456789");
  return at == line.npos ? 0 : std::strtol(line.data() + at, nullptr, 10);
}

template <class Use>
void for_each_line(const char* path, Use use) {
  std::string_view rest = read_text(path);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    use(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

Account look() {
  Account account;
  bool of_device = false;
  long* part = nullptr;
  for_each_line("/proc/self/smaps", [&](std::string_view line) {
    if (line.empty()) return;
    if (line[0] < 'A' || line[0] > 'Z') { // "7f..-7f.. rw-p 0000 00:00 0   name": a mapping begins
      of_device = line.find("/dev/infiniband/") != line.npos;
      if (line.find("[heap]") != line.npos || line.find("[stack]") != line.npos)
        part = &account.heap;
      else
        part = line.find('/') != line.npos ? &account.libraries : &account.mapped;
    } else if (line.starts_with("Rss:")) {
      account.resident += number_in(line);
      if (of_device) account.device += number_in(line);
    } else if (line.starts_with("Anonymous:") && !of_device) {
      account.anonymous += number_in(line);
      *part += number_in(line);
    }
  });
  for_each_line("/proc/self/status", [&](std::string_view line) {
    if (line.starts_with("VmPin:")) account.pinned = number_in(line);
  });
  return account;
}

// Waits without a call of MPI until all have come as often as this one.
class Meeting {
 public:
  explicit Meeting(const char* path) {
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK_EQUAL(ftruncate(fd, 4096), 0);
    void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(page != MAP_FAILED);
    close(fd);
    came_ = static_cast<int*>(page);
  }
  void all(int size) {
    const int target = ++times_ * size;
    const std::atomic_ref<int> came(*came_);
    came.fetch_add(1);
    while (came.load() < target)
      usleep(1000);
  }

 private:
  int* came_;
  int times_ = 0;
};

std::set<int> peers; // that this rank has talked to

// One message of `bytes` to each, and one from each.
void exchange(const std::set<int>& with, std::size_t bytes, std::vector<unsigned char>& out,
              std::vector<unsigned char>& in) {
  std::vector<MPI_Request> requests(2 * with.size());
  std::size_t at = 0;
  for (const int peer : with) {
    unsigned char* const to = in.data() + static_cast<std::size_t>(peer) * bytes;
    unsigned char* const from = out.data() + static_cast<std::size_t>(peer) * bytes;
    check::fill(from, bytes, static_cast<std::uint64_t>(check::rank * check::size + peer));
    OK(MPI_Irecv(to, static_cast<int>(bytes), MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[at++]));
    OK(MPI_Isend(from, static_cast<int>(bytes), MPI_BYTE, peer, 1, MPI_COMM_WORLD,
                 &requests[at++]));
  }
  OK(MPI_Waitall(static_cast<int>(at), requests.data(), MPI_STATUSES_IGNORE));
  for (const int peer : with)
    HOLDS(in.data() + static_cast<std::size_t>(peer) * bytes, bytes,
          static_cast<std::uint64_t>(peer * check::size + check::rank));
  peers.insert(with.begin(), with.end());
}

std::set<int> neighbours() {
  std::set<int> all = {(check::rank + 1) % check::size,
                       (check::rank + check::size - 1) % check::size};
  all.erase(check::rank);
  return all;
}

std::set<int> everyone() {
  std::set<int> all;
  for (int peer = 0; peer < check::size; ++peer)
    if (peer != check::rank) all.insert(peer);
  return all;
}

void burst(int messages, Meeting& meeting) {
  constexpr int bytes = 1100; // shorter ones would travel together
  std::array<unsigned char, bytes> data = {};
  std::vector<MPI_Request> requests(check::rank == 0 ? static_cast<std::size_t>(messages) : 0);
  for (MPI_Request& request : requests)
    OK(MPI_Isend(data.data(), bytes, MPI_BYTE, 1, 7, MPI_COMM_WORLD, &request));
  // Rank 1 computes until as many are there as its buffers can take.
  for (int i = 0, done = 0; i < 5000 && done == 0 && check::rank == 0; ++i) {
    OK(MPI_Testall(messages, requests.data(), &done, MPI_STATUSES_IGNORE));
    usleep(1000);
  }
  meeting.all(check::size);
  OK(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
  if (check::rank == 1) {
    for (int i = 0; i < messages; ++i)
      OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
}

} // namespace

int main(int argc, char** argv) {
  CHECK(argc == 5 || argc == 6);
  check::size = std::atoi(argv[1]);
  const auto bytes = static_cast<std::size_t>(std::atoll(argv[3]));
  const int messages = std::atoi(argv[4]);
  const std::string_view last = argc == 6 ? argv[5] : "after";
  text.fill('\1');
  lines.fill('\1');
  std::setvbuf(stdout, lines.data(), _IOFBF, lines.size());
  std::vector<unsigned char> out(bytes * static_cast<std::size_t>(check::size), 1);
  std::vector<unsigned char> in(bytes * static_cast<std::size_t>(check::size), 1);
  Meeting meeting(argv[2]);
  look();
  const Account before = look();
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &check::rank));
  int provided = 0;
  OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
  counter("buffers_most"); // what MPI_T needs for it belongs to the start

  const auto tell = [&](const char* stage) {
    meeting.all(check::size);
    const Account now = look();
    std::printf("%s %d %zu %ld %ld %ld %ld %ld %ld %ld %llu\n", stage, check::rank, peers.size(),
                now.anonymous - before.anonymous, now.heap - before.heap,
                now.libraries - before.libraries, now.mapped - before.mapped,
                now.device - before.device, now.pinned - before.pinned,
                now.resident - before.resident, counter("buffers_most"));
    std::fflush(stdout);
    meeting.all(check::size);
  };
  tell("start");
  if (bytes != 0) {
    exchange(neighbours(), bytes, out, in);
    tell("halo");
  }
  if (bytes != 0 && last != "halo") {
    exchange(everyone(), bytes, out, in);
    tell("alltoall");
  }
  if (messages != 0 && check::size > 1 && last == "after") {
    burst(messages, meeting);
    tell("burst");
    // Traffic goes on, a little, for longer than what the burst needed is kept: some 20 messages to
    // a rank in a round. Rank 1 waits for them.
    const int times = 16 / (check::size - 1) + 1;
    for (int round = 0; round < 16; ++round) {
      usleep(check::rank == 1 ? 250000 : 300000);
      for (int i = 0; i < times; ++i)
        exchange(everyone(), bytes, out, in);
    }
    tell("after");
  }
  OK(MPI_Finalize());
  OK(MPI_T_finalize());
  return 0;
}
