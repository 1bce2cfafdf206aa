// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/packet.h"

#include <cstdint>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace macadam::tools {

// What the mpiexec that a user has started and its proxies, one on each machine of a job, say to
// each other. All of it goes through the proxy's standard input and output, which on other machines
// are ssh's. Fields are listed in their order; ranks are std::uint32_t.
enum class FrameKind : std::uint8_t {
  beat, // both ways, now and then (silence.h): whether its sender's machine is busy (bool)

  // From a proxy.
  hello,   // ProxyHello
  refused, // text: why the ranks cannot be started; a `bye` is awaited
  row,     // rank, RankState, pid, start_error: how a rank stands now
  arrived, // all ranks here have come to the barrier of this round (u32)
  failure, // rank, status (i32), ends_jobs, quiet (bool), text: what a rank did that is a failure
  output,  // stream (u8: 1 or 2), text: what ranks have printed
  input_taken, // bytes (u64) of input that rank 0 has been given
  statuses,    // count (u32), then rank, kind (u8), pid (i32), text: answers to `ask`
  stacks,      // count (u32), then rank, text: answers to `locate`
  report,      // rank, text: its final report
  others,      // how many ranks of spawned jobs run here (u32)
  done,        // no rank is left here, and nothing more will be said; a `bye` is awaited

  // From a branch (branch.h), which is no proxy.
  lost, // place (u32), text: the connection with this proxy is over, if that had to say more

  // To a proxy.
  start,        // ProxyOrder
  open_barrier, // all machines have arrived in this round (u32)
  end,          // the job ends
  bye,          // all has come, the proxy may end
  signal,       // number (i32): for the ranks here
  ask,          // what do your ranks wait for; whether `locate` will follow (bool)
  locate,       // count (u32), ranks: where are these in their programs
  output_taken, // stream (u8), bytes (u64) that have been written
  input,        // text: for rank 0
  input_end,

  // To a branch, before all: whether a shell reads the command (bool), count (u32) and words that
  // start it on a host, then count (u32) and hosts, this one first.
  connect,

  // Both ways.
  want,    // rank: whose address is wanted
  via,     // to and from a branch: place (u32), then kind and body of a frame to or from that proxy
  address, // rank, whether there is one (bool; it has ended if not), used (u32), bytes

  // From one proxy to another: first the machine (u32) that it is for; as it arrives, that it is
  // from. See relay.h.
  request,    // id (u64), number (u32) of a new job, which is given on the way if wanted, text
  answer,     // id, whether a confirmation is awaited (bool), text
  confirmed,  // id
  called_off, // id
  ended,      // a spawned job (Secret): to all others

  // For another mpiexec (links.h): the head says which proxy is to ask it, by a `request`.
  outside,  // id (u64), mpiexec, host, packet (texts)
  linked,   // mpiexec (text): this proxy is connected with it
  unlinked, // mpiexec (text): ... not any more

  // Between two mpiexecs, over a link, besides `beat` (empty), `hello` (mpiexec's name and host),
  // `refused`, `request` (id, text), `answer` (id, text), `called_off` (id), `signal` (number) of
  // one that stops or goes on, `done` and `bye`.
};

// In place of a machine: the one that has most room for ranks.
inline constexpr std::uint32_t any_machine = UINT32_MAX;
// In place of the number of a new job: one is wanted.
inline constexpr std::uint32_t wanted_number = UINT32_MAX;

struct Frame {
  FrameKind kind;
  boot::PacketReader body;
};

// The other side speaks another version of Macadam, or nothing that can be understood.
class Misunderstood : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A copy of a standard stream that programs do not find, and nothing in its place. Throws
// std::runtime_error.
int take_stream(int fd);

// Frames over two descriptors, for one poll() loop: never waits. Each side first sends a line with
// its version; what comes before that line (greetings of a login shell) is skipped.
class FrameStream {
 public:
  // Takes the descriptors over.
  // `first` goes before all else, for whoever connects the two sides.
  FrameStream(int in, int out, std::string first = {});
  FrameStream(const FrameStream&) = delete;
  FrameStream& operator=(const FrameStream&) = delete;
  ~FrameStream();

  // Queues a frame; it goes with the next write_some().
  void send(FrameKind kind, const boot::PacketWriter& body = {});
  void write_some();
  [[nodiscard]] bool has_pending() const { return !out_bytes_.empty() && !is_broken_; }

  // Reads what is there. False at the end of the stream.
  bool read_some();
  // The next frame that has come whole. Throws Misunderstood.
  std::optional<Frame> next();

  // The two entries to poll.
  void list(std::vector<pollfd>& polled) const;

 private:
  bool take_preamble();

  int in_, out_;
  std::string in_bytes_, out_bytes_;
  std::size_t taken_ = 0; // of in_bytes_
  bool greeted_ = false;
  bool is_broken_ = false; // nobody reads what is written
};

} // namespace macadam::tools
