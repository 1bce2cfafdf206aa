// SPDX-License-Identifier: BSD-3-Clause
#include "net/shm/transport.h"

#include <unistd.h>

#include <utility>

// Split copy: the kernel copies long data on both cores: we write the first half into the memory of
// a target that waits, while it reads the second half from ours. What tells the target of the end
// stands in the circular buffer behind the request, so it has done its half by then.
namespace macadam::net::shm {
namespace {

const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

} // namespace

// Moves as much of the stream as can be moved like that: all, unless the kernel must not or the
// target stopped waiting before it read the request. Then we take its half back.
void Transport::split_copy(Stream& stream) {
  const std::uint32_t claim = take_claim();
  if (claim == no_claim) return;
  const std::size_t ours = stream.bytes / 2 / page * page;
  const SplitRequest request{.claim = claim,
                             .ticket = offer_claim(claim),
                             .from = reinterpret_cast<std::uint64_t>(stream.from) + ours,
                             .to = stream.to + ours,
                             .bytes = stream.bytes - ours,
                             .answer = stream.end == Stream::End::complete_put,
                             .notified = stream.end != Stream::End::complete_put ||
                                         stream.notification != 0};
  if (!post(*stream.peer, Kind::split_request, only(request))) return give_claim_back(claim);
  stream.bytes = ours;
  stream.method = finish_by_cross_copy(stream) ? CopyMethod::split : CopyMethod::chunks;
  if (take_claim_back(claim, request.ticket)) {
    ++counters_.taken_back;
    give_claim_back(claim);
    stream.bytes += request.bytes;
    stream.begin = 0;
  } else {
    counters_.bytes_split_copied += ours + request.bytes;
    if (request.answer) {
      stream.claim = claim;
      split_copies_[claim] = &stream;
    } else {
      give_claim_back(claim); // the process that has asked says when the data are there
    }
  }
  if (stream.method != CopyMethod::split) {
    stream.begin = 0;
    return;
  }
  stream.from += ours;
  stream.to += ours;
  if (stream.bytes > 0) stream.method = CopyMethod::kernel;
}

void Transport::on_split_request(Peer& peer, const Line& line, Sink& sink) {
  const auto request = read_body<SplitRequest>(line);
  if (!claim(reach(peer), request.claim, request.ticket)) return;
  const Copied copied = cross_copy_with(peer, Direction::read, reinterpret_cast<void*>(request.to),
                                        request.from, request.bytes);
  if (copied != Copied::yes) peer.half_missing = request.notified;
  if (!request.answer) return;
  Stream& stream = *stream_slab_.make();
  stream.peer = &peer;
  stream.end = Stream::End::answer_split;
  stream.id = request.claim;
  stream.all = request.bytes;
  stream.ok = copied == Copied::yes;
  stream.refused = copied == Copied::refused;
  take_up_later(stream);
  finish(stream, sink);
}

// The target has done its half, or cannot.
void Transport::on_split_done(const Peer& peer, const Line& line) {
  const auto done = read_body<SplitDone>(line);
  check_claim(peer, done.claim);
  give_claim_back(done.claim);
  Stream* const stream = std::exchange(split_copies_[done.claim], nullptr);
  if (stream == nullptr) return; // it has failed with its target
  stream->claim = no_claim;
  if (done.refused) {
    stream->bytes = done.bytes;
    stream->notified = false; // the target took no notice
  } else if (!done.ok) {
    stream->ok = false;
  }
}

// Whether our half of what has come just now is not there. Then its end is to be told again.
bool Transport::lost_half(Peer& peer) {
  return std::exchange(peer.half_missing, false);
}

} // namespace macadam::net::shm
