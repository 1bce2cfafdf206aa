// SPDX-License-Identifier: BSD-3-Clause
#include "rma/pieces.h"

#include "base/copy.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace macadam::rma {
namespace {

// Bytes that are copied in the time that another request takes: shorter pieces travel together, and
// gaps up to this are read.
constexpr std::size_t worth_a_request = 1024;
// Moved at a time, so that the network has some while others are copied.
constexpr std::size_t most_together = 16 << 10;

} // namespace

// Some of them under way, in memory that the network reaches fastest. Ends itself.
class Window::Pieces::Together final : public Waiter {
 public:
  // All that are kept, with what lies between them: `span` bytes. Null if the network has no
  // memory.
  static Together* take(Pieces& from, std::size_t span) {
    std::unique_ptr<Together> made(new Together(from));
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
  explicit Together(const Pieces& of) : network_(*of.target_.peer->transport), whole_(of.waiter_) {}

  engine::Transport& network_;
  Waiter& whole_;
  std::byte* memory_ = nullptr;
  std::vector<Piece> spread_; // what is read
  std::uint32_t pending_ = 1; // who posts it
  bool ok_ = true;
};

// Whether it can travel with those that are kept.
bool Window::Pieces::follows(std::ptrdiff_t at, std::size_t bytes) const {
  const std::ptrdiff_t gap = at - kept_end_;
  const std::size_t most_gap = direction_ == Direction::read ? worth_a_request : 0;
  return gap >= 0 && static_cast<std::size_t>(gap) <= most_gap &&
         static_cast<std::size_t>(at - kept_.front().at) + bytes <= most_together;
}

void Window::Pieces::move(std::byte* ours, std::ptrdiff_t at, std::size_t bytes, Waiter& waiter) {
  direction_ == Direction::read ? window_.read(target_, ours, to_, at, bytes, waiter)
                                : window_.write(target_, ours, to_, at, bytes, waiter);
}

void Window::Pieces::add(std::byte* ours, std::ptrdiff_t at, std::size_t bytes) {
  if (!kept_.empty() && !follows(at, bytes)) end();
  if (bytes >= worth_a_request) {
    end();
    return move(ours, at, bytes, waiter_);
  }
  kept_.push_back({ours, at, bytes});
  kept_end_ = at + static_cast<std::ptrdiff_t>(bytes);
}

// Those that are kept leave.
void Window::Pieces::end() {
  if (kept_.empty()) return;
  const std::ptrdiff_t first = kept_.front().at;
  const auto span = static_cast<std::size_t>(kept_end_ - first);
  Together* const together = kept_.size() > 1 ? Together::take(*this, span) : nullptr;
  if (together == nullptr) {
    for (const Piece& piece : kept_)
      move(piece.ours, piece.at, piece.bytes, waiter_);
    return kept_.clear();
  }
  try {
    move(together->memory(), first, span, *together);
  } catch (...) { // the target has ended
    together->on_done(false);
    throw;
  }
  together->on_done(true);
}

} // namespace macadam::rma
