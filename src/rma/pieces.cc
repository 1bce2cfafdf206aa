// SPDX-License-Identifier: BSD-3-Clause
#include "rma/pieces.h"

#include "base/copy.h"
#include "rma/post.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

namespace macadam::rma {
namespace {

// Bytes that are copied in the time that another request takes: what is shorter on average travels
// together, and gaps up to this are read.
constexpr std::size_t worth_a_request = 1024;
// The same of another piece of a gather list.
constexpr std::size_t worth_a_piece = 256;
// Bytes of one, so that the network has some while others are copied. A piece that is longer has
// one to itself.
constexpr std::size_t most_in_request = 16 << 10;

} // namespace

Window::Pieces::Pieces(Window& window, Target& target, Direction direction, const Reach& to,
                       Waiter& waiter, engine::Block around)
    : window_(window), target_(target), direction_(direction), to_(to), waiter_(waiter),
      around_(around), most_gathered_(around.bytes != 0 && !target.by_messages && to.regions.empty()
                                          ? target.peer->transport->limits().local_blocks
                                          : 1) {}

// Some of them under way, in a bounce buffer that the network reaches fastest. Ends itself.
class Window::Pieces::Bounce final : public Waiter {
 public:
  // All that are kept, with what lies between them: `span` bytes. Null if the network has no
  // memory.
  static Bounce* take(Pieces& from, std::size_t span) {
    std::unique_ptr<Bounce> made(new Bounce(from));
    made->memory_ = static_cast<std::byte*>(made->network_.allocate(span));
    if (made->memory_ == nullptr) return nullptr;
    if (from.direction_ == Direction::read) {
      made->spread_ = std::move(from.kept_);
    } else {
      for (const Piece& piece : from.kept_)
        base::copy(made->memory_ + (piece.at - from.kept_.front().at), piece.ours, piece.bytes);
    }
    from.kept_.clear();
    made->whole_.on_posted();
    return made.release();
  }

  [[nodiscard]] std::byte* memory() const { return memory_; }
  void on_posted() override { ++pending_; }
  void on_done(bool ok) noexcept override {
    ok_ = ok_ && ok;
    if (--pending_ != 0) return;
    for (const Piece& piece : spread_) {
      if (!ok_) break;
      base::copy(piece.ours, memory_ + (piece.at - spread_.front().at), piece.bytes);
    }
    network_.free(memory_);
    whole_.on_done(ok_);
    delete this;
  }

 private:
  explicit Bounce(const Pieces& of) : network_(*of.target_.peer->transport), whole_(of.waiter_) {}

  engine::Transport& network_;
  Waiter& whole_;
  std::byte* memory_ = nullptr;
  std::vector<Piece> spread_; // what is read
  std::uint32_t pending_ = 1; // who posts it
  bool ok_ = true;
};

// Whether it can share a request with those that are kept.
bool Window::Pieces::follows(std::ptrdiff_t at, std::size_t bytes) const {
  const std::ptrdiff_t gap = at - kept_end_;
  const std::size_t most_gap = direction_ == Direction::read ? worth_a_request : 0;
  return gap >= 0 && static_cast<std::size_t>(gap) <= most_gap &&
         static_cast<std::size_t>(at - kept_.front().at) + bytes <= most_in_request;
}

void Window::Pieces::add(std::byte* ours, std::ptrdiff_t at, std::size_t bytes) {
  if (!kept_.empty() && !follows(at, bytes)) end();
  if (bytes >= most_in_request) return move(ours, at, bytes, waiter_);
  kept_.push_back({ours, at, bytes});
  kept_end_ = at + static_cast<std::ptrdiff_t>(bytes);
  kept_bytes_ += bytes;
}

void Window::Pieces::end() {
  if (kept_.empty()) return;
  const auto span = static_cast<std::size_t>(kept_end_ - kept_.front().at);
  const bool gathers = most_gathered_ > 1 && span == kept_bytes_;
  const std::size_t average = std::exchange(kept_bytes_, 0) / kept_.size();
  if (kept_.size() == 1)
    move_each(kept_);
  else if (gathers && average >= worth_a_piece)
    move_gathered();
  else if (average >= worth_a_request || !move_bounced(span))
    move_each(kept_);
  kept_.clear();
}

void Window::Pieces::move(std::byte* ours, std::ptrdiff_t at, std::size_t bytes, Waiter& waiter) {
  window_.move_segment(target_, direction_, ours, to_, at, bytes, waiter);
}

void Window::Pieces::move_each(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces)
    move(piece.ours, piece.at, piece.bytes, waiter_);
}

// False if the network has no memory for them.
bool Window::Pieces::move_bounced(std::size_t span) {
  const std::ptrdiff_t first = kept_.front().at;
  Bounce* const bounce = Bounce::take(*this, span);
  if (bounce == nullptr) return false;
  try {
    move(bounce->memory(), first, span, *bounce);
  } catch (...) { // the target has ended
    bounce->on_done(false);
    throw;
  }
  bounce->on_done(true);
  return true;
}

void Window::Pieces::move_gathered() {
  std::span<const Piece> left = kept_;
  while (!left.empty()) {
    const auto now = left.first(std::min(most_gathered_, left.size()));
    if (!gather(now)) return move_each(left);
    left = left.subspan(now.size());
  }
}

// In one request. False if our memory cannot be registered.
bool Window::Pieces::gather(std::span<const Piece> pieces) {
  std::array<engine::Block, most_in_request / worth_a_piece> ours;
  engine::Block there{to_.there.address + static_cast<std::uint64_t>(pieces.front().at), 0};
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    ours[i] = {reinterpret_cast<std::uint64_t>(pieces[i].ours), pieces[i].bytes};
    there.bytes += pieces[i].bytes;
  }
  const std::span<const engine::Block> local(ours.data(), pieces.size());
  const bool reads = direction_ == Direction::read;
  engine::Transport& network = *target_.peer->transport;
  bool refused = false;
  const engine::Posted posted = window_.posted(target_, [&] {
    const std::uint64_t cookie = waiter_.cookie();
    const engine::Posted result = reads ? network.read_blocks(*target_.link, local, {&there, 1},
                                                              to_.there.key, cookie, around_)
                                        : network.write_blocks(*target_.link, local, {&there, 1},
                                                               to_.there.key, cookie, around_);
    refused = result == engine::Posted::refused;
    return refused ? engine::Posted::done : result;
  });
  if (refused) return false;
  target_.unlanded |= !reads;
  if (posted == engine::Posted::pending) waiter_.on_posted();
  return true;
}

} // namespace macadam::rma
