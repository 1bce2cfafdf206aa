// SPDX-License-Identifier: BSD-3-Clause
#include "net/ofi/measure.h"

#include "base/descriptor.h"
#include "base/error.h"
#include "mem/resident.h"
#include "net/ofi/fabric.h"
#include "net/ofi/transport.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace macadam::net::ofi {
namespace {

constexpr std::size_t message_bytes = 1 << 10;
// With each peer, each way: more than a provider keeps ready for a connection.
constexpr int exchanges = 64;
constexpr std::chrono::seconds patience(30);

// An endpoint that talks to one peer at a time.
class Talker {
 public:
  explicit Talker(const Wish& wish) : fabric_(load_library(), wish) {
    if (!fabric_.limits().registers_local) return;
    for (Side* const side : {&out_, &in_})
      side->region = fabric_.register_memory(side->data.data(), message_bytes, mem::Access::local);
  }
  Talker(const Talker&) = delete;
  Talker& operator=(const Talker&) = delete;
  ~Talker() { fabric_.close(); }

  [[nodiscard]] Fabric& fabric() { return fabric_; }

  void send(fi_addr_t to) {
    fi_context2 context = {};
    until([&] {
      return fi_send(fabric_.endpoint(), out_.data.data(), message_bytes, out_.descriptor(), to,
                     &context);
    });
    wait_for(context);
  }
  // From whomever.
  void receive() {
    fi_context2 context = {};
    until([&] {
      return fi_recv(fabric_.endpoint(), in_.data.data(), message_bytes, in_.descriptor(),
                     FI_ADDR_UNSPEC, &context);
    });
    wait_for(context);
  }

 private:
  struct Side {
    std::array<std::byte, message_bytes> data = {};
    std::unique_ptr<mem::MemoryRegion> region;
    [[nodiscard]] void* descriptor() const {
      return region == nullptr ? nullptr : static_cast<const Region&>(*region).descriptor();
    }
  };

  using Clock = std::chrono::steady_clock;
  void check_time(Clock::time_point begin) const {
    if (Clock::now() > begin + patience)
      base::fail(MPI_ERR_OTHER,
                 "libfabric: two processes of this machine exchange no messages by {}",
                 fabric_.name());
  }
  template <class Post>
  void until(Post post) {
    const Clock::time_point begin = Clock::now();
    for (;;) {
      const ssize_t result = post();
      if (result == 0) return;
      if (result != -FI_EAGAIN)
        base::fail(MPI_ERR_OTHER, "libfabric: {} takes no message: {}", fabric_.name(),
                   fabric_.text_of(result));
      poll();
      check_time(begin);
    }
  }
  void wait_for(const fi_context2& context) {
    const Clock::time_point begin = Clock::now();
    for (done_ = nullptr; done_ != &context; check_time(begin))
      poll();
  }
  void poll() {
    fi_cq_msg_entry entry = {};
    const ssize_t count = fi_cq_read(fabric_.completions(), &entry, 1);
    if (count == 1) done_ = entry.op_context;
    if (count == -FI_EAVAIL)
      base::fail(MPI_ERR_OTHER, "libfabric: {} has lost a message", fabric_.name());
  }

  Fabric fabric_;
  Side out_, in_;
  const void* done_ = nullptr; // what has completed last
};

// Two processes tell each other their addresses.
struct Line {
  explicit Line(int fd) : end(fd) {}
  // Else it waits for its turn, or until the other ends.
  void limit_patience() const {
    const timeval limit{patience.count(), 0};
    setsockopt(end.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  void tell(const wire::Endpoint& address) const {
    if (::send(end.get(), &address, sizeof address, MSG_NOSIGNAL) != sizeof address) fail();
  }
  [[nodiscard]] wire::Endpoint hear() const {
    wire::Endpoint address;
    if (::recv(end.get(), &address, sizeof address, 0) != sizeof address) fail();
    return address;
  }
  void await_end() const {
    std::byte nothing;
    while (::recv(end.get(), &nothing, sizeof nothing, 0) > 0) {
    }
  }
  [[noreturn]] static void fail() {
    base::fail(MPI_ERR_OTHER, "libfabric: a process that was to be a peer has ended at once");
  }

  base::Descriptor end;
};

// Of a process that is measured by another one, on the line.
[[noreturn]] void answer(const Wish& wish, const Line& line) noexcept {
  try {
    Talker talker(wish);
    line.tell(talker.fabric().address());
    const fi_addr_t to = talker.fabric().insert(line.hear());
    for (int i = 0; i < exchanges; ++i) {
      talker.receive();
      talker.send(to);
    }
    line.await_end();
    alarm(patience.count()); // closing takes no longer
  } catch (...) {            // the other hears nothing more, and says so
  }
  _exit(0);
}

// A process more. It is killed with this object, or with this process, unless end() comes before.
class Peer {
 public:
  explicit Peer(const Wish& wish) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      base::fail(MPI_ERR_OTHER, "no socket: {}", std::strerror(errno));
    line.emplace(ends[0]).limit_patience();
    const Line its(ends[1]);
    const pid_t parent = getpid();
    process_ = fork();
    if (process_ < 0) base::fail(MPI_ERR_OTHER, "no process more: {}", std::strerror(errno));
    if (process_ > 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    line.reset();
    answer(wish, its);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() {
    if (process_ < 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  // It closes its endpoint: what some providers keep in files would stay. (To close our end of the
  // line would tell it nothing: the processes that were started later have it too.)
  void end() {
    shutdown(line->end.get(), SHUT_RDWR);
    waitpid(std::exchange(process_, -1), nullptr, 0);
  }

  std::optional<Line> line;

 private:
  pid_t process_ = -1;
};

// Resident bytes and open files of this process.
struct Use {
  double bytes = static_cast<double>(mem::resident_bytes());
  double files =
      static_cast<double>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
};

} // namespace

PeerMemory measure_peer_memory(const Wish& wish, int peers) {
  std::vector<std::unique_ptr<Peer>> others;
  for (int i = 0; i < peers; ++i)
    others.push_back(std::make_unique<Peer>(wish)); // before any of them uses the library
  static_cast<void>(Use());                         // what reading takes is there before
  const Use nothing;
  Talker talker(wish);
  std::vector<fi_addr_t> addresses;
  const auto know = [&](const std::unique_ptr<Peer>& peer) {
    addresses.push_back(talker.fabric().insert(peer->line->hear()));
  };
  know(others[0]);
  const Use with_address;
  std::for_each(others.begin() + 1, others.end(), know);
  const auto talk = [&](std::size_t i) {
    others[i]->line->tell(talker.fabric().address());
    for (int k = 0; k < exchanges; ++k) {
      talker.send(addresses[i]);
      talker.receive();
    }
  };
  const Use with_addresses;
  Use with_all = with_addresses;
  std::vector<double> grown;
  for (std::size_t i = 0; i < others.size(); ++i) {
    talk(i);
    const Use before = std::exchange(with_all, Use());
    grown.push_back(with_all.bytes - before.bytes);
  }
  for (const auto& other : others)
    other->end();
  const auto middle = grown.begin() + static_cast<std::ptrdiff_t>(grown.size() / 2);
  std::nth_element(grown.begin(), middle, grown.end());
  return {.provider = talker.fabric().name(),
          .endpoint = with_address.bytes - nothing.bytes,
          .known = (with_addresses.bytes - with_address.bytes) / (peers - 1),
          .talked = *middle,
          .pools = with_all.bytes - with_addresses.bytes - peers * *middle,
          .files = (with_all.files - with_addresses.files) / peers};
}

std::size_t route_bytes() {
  return sizeof(Route);
}

} // namespace macadam::net::ofi
