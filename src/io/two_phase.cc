// SPDX-License-Identifier: BSD-3-Clause
#include "io/two_phase.h"

#include "base/copy.h"
#include "base/error.h"
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/buffers.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <span>

namespace macadam::io {
namespace {

using coll::Batch;
using coll::Comm;
using coll::Scratch;
using coll::Task;

// Where aggregators' parts of the file meet, but for the ends: no page has two writers.
constexpr MPI_Offset boundary_unit = 64 << 10;
// Holes that are read along.
constexpr std::uint32_t longest_hole = 4 << 10;

// Longer pieces each rank moves itself: they are copied once then, and need no help.
constexpr MPI_Count longest_piece = 16 << 10;
// At least one byte in so many, of those between the first and the last, must be one that is moved,
// or there would be more windows than data.
constexpr MPI_Count thinnest = 64;

// From the first to the last byte that a rank moves; empty if it moves none.
struct Span {
  MPI_Offset begin = 0, end = 0;
  MPI_Count bytes = 0;
  MPI_Count piece = INT64_MAX; // between holes, on average; 0: they are not in order
  bool writes = false;
  [[nodiscard]] bool meets(const Span& other) const {
    return begin < other.end && other.begin < end && begin < end && other.begin < other.end;
  }
};

// From the first to the last byte that anybody moves, and how many all move.
Span union_of(std::span<const Span> spans) {
  Span all;
  for (const Span& span : spans) {
    if (span.bytes == 0) continue;
    all.begin = all.bytes == 0 ? span.begin : std::min(all.begin, span.begin);
    all.end = std::max(all.end, span.end);
    all.bytes += span.bytes;
    all.piece = std::min(all.piece, span.piece);
  }
  return all;
}

// A piece of a window, from its begin on.
struct Extent {
  std::uint32_t offset, bytes;
};

// What a rank tells an aggregator of a window. A list of extents follows if there are several, then
// the data of a write.
struct Question {
  std::uint64_t bytes; // of all extents
  std::uint32_t extents;
  Extent first;
};

// What it is told back: after each window of a read, where the data follow, and after all of a
// write.
struct Answer {
  std::uint64_t bytes; // that there were before the end of the file
  std::int32_t error;  // class
};

// An aggregator's part of the file, in the eyes of a rank.
struct Section {
  Section(int rank_, Span of_file, const Access& access, MPI_Count first)
      : rank(rank_), domain(of_file), position(first),
        pieces(*access.view, first, access.position + access.bytes() - first) {}

  int rank;
  Span domain;
  MPI_Count position; // in the stream: the next byte to be moved
  Pieces pieces;
};

// This rank's pieces in a window of an aggregator, or those of another in one of this rank's.
struct Part {
  int rank = 0;
  Question question{};
  std::vector<Extent> extents;
  Answer answer{};
  MPI_Count position = 0;            // asking: in the stream
  std::unique_ptr<std::byte[]> copy; // of the data, unless they are sent from where they are
  std::byte* data = nullptr;
};

// All that one collective access knows on a rank.
class TwoPhase {
 public:
  TwoPhase(Comm& comm, CollectiveAccess& what, std::span<const Span> spans)
      : comm_(comm), what_(what), access_(what.access), spans_(spans), all_(union_of(spans)),
        memory_(*access_.memory.type, access_.memory.address, access_.memory.count),
        window_(what.buffering->window) {
    divide();
  }

  [[nodiscard]] MPI_Count windows() const { return windows_; }
  void begin_window(MPI_Count number);
  // The steps of a window, in their order; each is one exchange, in which all ranks take part.
  void ask(Batch& batch);
  void tell_extents(Batch& batch);
  void write_window();
  void read_window();
  void answer(Batch& batch);
  void return_data(Batch& batch);
  void end_window();
  // Behind all windows of a write.
  void acknowledge(Batch& batch);
  // What went wrong, here or at an aggregator.
  void end();

 private:
  void divide();
  [[nodiscard]] MPI_Offset boundary(std::size_t aggregator) const;
  [[nodiscard]] Span window_of(const Span& domain) const;
  void collect(Section& section, const Span& window);
  void serve(const Span& where);
  [[nodiscard]] const Part* own_part() const;
  [[nodiscard]] std::byte* straight(const Part& part) const;
  [[nodiscard]] std::byte* send_buffer(Part& part);
  [[nodiscard]] std::byte* receive_buffer(Part& part);
  std::vector<Extent> wanted(std::uint32_t hole) const;
  void note(int rank, const Answer& answer);

  Comm& comm_;
  CollectiveAccess& what_;
  const Access& access_;
  const std::span<const Span> spans_;
  const Span all_;
  datatype::PackCursor memory_;
  const MPI_Count window_;
  MPI_Count windows_ = 0;
  MPI_Count number_ = 0;
  std::deque<Section> sections_;
  std::optional<Span> domain_; // of this rank, if it is an aggregator
  Span now_{};                 // its window
  std::unique_ptr<std::byte[]> buffer_;
  std::vector<Part> asking_, serving_;
  std::optional<base::Error> failure_; // of this rank as an aggregator
  std::optional<base::Error> told_;    // of another
};

// ---------------------------------------------------------------- who does what

MPI_Offset TwoPhase::boundary(std::size_t aggregator) const {
  const std::size_t count = what_.buffering->aggregators.size();
  if (aggregator == 0) return all_.begin;
  if (aggregator == count) return all_.end;
  const MPI_Offset length = (all_.end - all_.begin) / static_cast<MPI_Offset>(count);
  const MPI_Offset exact = all_.begin + length * static_cast<MPI_Offset>(aggregator);
  return std::clamp(exact / boundary_unit * boundary_unit, all_.begin, all_.end);
}

void TwoPhase::divide() {
  const Span& own = spans_[static_cast<std::size_t>(comm_.rank())];
  const std::vector<int>& aggregators = what_.buffering->aggregators;
  for (std::size_t i = 0; i < aggregators.size(); ++i) {
    const Span domain{boundary(i), boundary(i + 1)};
    windows_ = std::max(windows_, (domain.end - domain.begin + window_ - 1) / window_);
    if (aggregators[i] == comm_.rank() && domain.begin != domain.end) domain_ = domain;
    if (!own.meets(domain)) continue;
    const MPI_Count first =
        access_.view->first_from(domain.begin, access_.position, access_.bytes());
    sections_.emplace_back(aggregators[i], domain, access_, first);
  }
  if (domain_) {
    buffer_ = std::make_unique_for_overwrite<std::byte[]>(
        static_cast<std::size_t>(std::min(window_, domain_->end - domain_->begin)));
  }
}

Span TwoPhase::window_of(const Span& domain) const {
  const MPI_Offset begin = std::min(domain.begin + number_ * window_, domain.end);
  return {begin, std::min(begin + window_, domain.end)};
}

// Of this rank's pieces those in the window.
void TwoPhase::collect(Section& section, const Span& window) {
  Part& part = asking_.emplace_back();
  part.rank = section.rank;
  part.position = section.position;
  for (Piece piece = section.pieces.next(INT64_MAX, window.end); piece.bytes != 0;
       piece = section.pieces.next(INT64_MAX, window.end)) {
    part.extents.push_back({static_cast<std::uint32_t>(piece.offset - window.begin),
                            static_cast<std::uint32_t>(piece.bytes)});
    part.question.bytes += static_cast<std::uint64_t>(piece.bytes);
  }
  part.question.extents = static_cast<std::uint32_t>(part.extents.size());
  if (!part.extents.empty()) part.question.first = part.extents.front();
  section.position += static_cast<MPI_Count>(part.question.bytes);
}

void TwoPhase::begin_window(MPI_Count number) {
  number_ = number;
  asking_.clear();
  serving_.clear();
  const Span& own = spans_[static_cast<std::size_t>(comm_.rank())];
  for (Section& section : sections_) {
    const Span window = window_of(section.domain);
    if (own.meets(window)) collect(section, window);
  }
  now_ = domain_ ? window_of(*domain_) : Span{};
  serve(now_);
}

// A part for each other rank that has data there.
void TwoPhase::serve(const Span& where) {
  for (int rank = 0; rank < comm_.size(); ++rank)
    if (rank != comm_.rank() && spans_[static_cast<std::size_t>(rank)].meets(where))
      serving_.emplace_back().rank = rank;
}

// What this rank asks of itself; null: nothing.
const Part* TwoPhase::own_part() const {
  const auto own = std::ranges::find(asking_, comm_.rank(), &Part::rank);
  return own != asking_.end() ? &*own : nullptr;
}

// ---------------------------------------------------------------- the steps

void TwoPhase::ask(Batch& batch) {
  for (const Part& part : asking_)
    if (part.rank != comm_.rank())
      batch.send(part.rank, comm_.bytes(&part.question, sizeof part.question));
  for (Part& part : serving_)
    batch.receive(part.rank, comm_.bytes(&part.question, sizeof part.question));
}

// Where a part's data are, or belong, if that is one block of the user's memory.
std::byte* TwoPhase::straight(const Part& part) const {
  if (!access_.memory.type->contiguous()) return nullptr;
  return static_cast<std::byte*>(access_.memory.address) + (part.position - access_.position);
}

// Of the user's data, packed if they are not contiguous.
std::byte* TwoPhase::send_buffer(Part& part) {
  if (std::byte* const there = straight(part)) return there;
  part.copy = std::make_unique_for_overwrite<std::byte[]>(part.question.bytes);
  memory_.seek(part.position - access_.position);
  memory_.pack(part.copy.get(), part.question.bytes);
  return part.copy.get();
}

// One extent comes to its place in the window, several are put there later.
std::byte* TwoPhase::receive_buffer(Part& part) {
  if (part.question.extents == 1) return buffer_.get() + part.question.first.offset;
  part.copy = std::make_unique_for_overwrite<std::byte[]>(part.question.bytes);
  return part.copy.get();
}

void TwoPhase::tell_extents(Batch& batch) {
  const auto bytes_of = [](const Part& part) { return part.extents.size() * sizeof(Extent); };
  for (Part& part : asking_) {
    if (part.rank == comm_.rank() || part.extents.empty()) continue;
    if (part.extents.size() > 1)
      batch.send(part.rank, comm_.bytes(part.extents.data(), bytes_of(part)));
    if (access_.writes) batch.send(part.rank, comm_.bytes(send_buffer(part), part.question.bytes));
  }
  for (Part& part : serving_) {
    part.extents.assign(part.question.extents, part.question.first);
    if (part.extents.size() > 1)
      batch.receive(part.rank, comm_.bytes(part.extents.data(), bytes_of(part)));
    if (!access_.writes || part.extents.empty()) continue;
    part.data = receive_buffer(part);
    batch.receive(part.rank, comm_.bytes(part.data, part.question.bytes));
  }
}

// The extents of all, in order; those that touch, or have no longer hole between them, are one.
// Each rank's are in order, so neighbours are merged, and theirs, until there is one list.
std::vector<Extent> TwoPhase::wanted(std::uint32_t hole) const {
  std::vector<Extent> all;
  std::vector<std::ptrdiff_t> begins;
  const auto add = [&](const Part& part) {
    begins.push_back(std::ssize(all));
    all.insert(all.end(), part.extents.begin(), part.extents.end());
  };
  std::ranges::for_each(serving_, add);
  if (const Part* const own = own_part()) add(*own);
  for (std::size_t lists = 1; lists < begins.size(); lists *= 2) {
    for (std::size_t i = 0; i + lists < begins.size(); i += 2 * lists) {
      const auto end =
          i + 2 * lists < begins.size() ? all.begin() + begins[i + 2 * lists] : all.end();
      std::inplace_merge(all.begin() + begins[i], all.begin() + begins[i + lists], end,
                         [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
    }
  }
  std::vector<Extent> joined;
  for (const Extent& extent : all) {
    if (joined.empty() || extent.offset > joined.back().offset + joined.back().bytes + hole) {
      joined.push_back(extent);
      continue;
    }
    Extent& last = joined.back();
    last.bytes = std::max(last.offset + last.bytes, extent.offset + extent.bytes) - last.offset;
  }
  return joined;
}

void TwoPhase::write_window() {
  for (const Part& part : serving_) {
    if (!part.copy) continue;
    const std::byte* from = part.copy.get();
    for (const Extent& extent : part.extents) {
      base::copy(buffer_.get() + extent.offset, from, extent.bytes);
      from += extent.bytes;
    }
  }
  if (const Part* const own = own_part()) {
    memory_.seek(own->position - access_.position);
    for (const Extent& extent : own->extents)
      memory_.pack(buffer_.get() + extent.offset, extent.bytes);
  }
  if (now_.begin == now_.end || failure_) return;
  ++what_.counters->windows;
  try {
    for (const Extent& extent : wanted(0))
      access_.file->write(buffer_.get() + extent.offset, extent.bytes, now_.begin + extent.offset);
  } catch (...) {
    failure_ = base::caught("to write a window of a file"); // told behind the last one
  }
}

// Fills the window, as far as the file goes, and the copies of those that want several extents.
void TwoPhase::read_window() {
  if (now_.begin == now_.end) return;
  ++what_.counters->windows;
  std::uint32_t end = UINT32_MAX; // of the file, in the window
  try {
    for (const Extent& extent : wanted(longest_hole)) {
      const std::size_t got = access_.file->read(buffer_.get() + extent.offset, extent.bytes,
                                                 now_.begin + extent.offset);
      if (got == extent.bytes) continue;
      end = extent.offset + static_cast<std::uint32_t>(got);
      break;
    }
  } catch (...) {
    failure_ = base::caught("to read a window of a file");
    end = 0;
  }
  const auto there = [end](const Extent& extent) {
    return std::min(std::max(end, extent.offset) - extent.offset, extent.bytes);
  };
  for (Part& part : serving_) {
    part.answer = {0, failure_ ? failure_->error_class : MPI_SUCCESS};
    for (const Extent& extent : part.extents)
      part.answer.bytes += there(extent);
    part.data = buffer_.get() + part.question.first.offset;
    if (part.extents.size() <= 1) continue;
    part.copy = std::make_unique_for_overwrite<std::byte[]>(part.question.bytes);
    part.data = part.copy.get();
    std::byte* to = part.data;
    for (const Extent& extent : part.extents) {
      base::copy(to, buffer_.get() + extent.offset, there(extent));
      to += there(extent);
    }
  }
  const Part* const own = own_part();
  if (own == nullptr) return;
  memory_.seek(own->position - access_.position);
  for (const Extent& extent : own->extents)
    what_.moved += memory_.unpack(buffer_.get() + extent.offset, there(extent));
}

void TwoPhase::answer(Batch& batch) {
  for (const Part& part : serving_)
    batch.send(part.rank, comm_.bytes(&part.answer, sizeof part.answer));
  for (Part& part : asking_)
    if (part.rank != comm_.rank())
      batch.receive(part.rank, comm_.bytes(&part.answer, sizeof part.answer));
}

void TwoPhase::return_data(Batch& batch) {
  for (const Part& part : serving_)
    if (part.answer.bytes != 0) batch.send(part.rank, comm_.bytes(part.data, part.answer.bytes));
  for (Part& part : asking_) {
    if (part.rank == comm_.rank()) continue;
    note(part.rank, part.answer);
    if (part.answer.bytes == 0) continue;
    part.data = straight(part);
    if (part.data == nullptr) {
      part.copy = std::make_unique_for_overwrite<std::byte[]>(part.answer.bytes);
      part.data = part.copy.get();
    }
    batch.receive(part.rank, comm_.bytes(part.data, part.answer.bytes));
  }
}

void TwoPhase::end_window() {
  for (const Part& part : asking_) {
    if (part.rank == comm_.rank()) continue;
    what_.moved += part.answer.bytes;
    if (!part.copy) continue;
    memory_.seek(part.position - access_.position);
    memory_.unpack(part.copy.get(), part.answer.bytes);
  }
}

void TwoPhase::acknowledge(Batch& batch) {
  asking_.clear();
  serving_.clear();
  for (const Section& section : sections_)
    asking_.emplace_back().rank = section.rank;
  if (domain_) serve(*domain_);
  for (Part& part : serving_)
    part.answer.error = failure_ ? failure_->error_class : MPI_SUCCESS;
  answer(batch);
}

void TwoPhase::note(int rank, const Answer& told) {
  if (told.error == MPI_SUCCESS || told_) return;
  told_ = base::make_error(told.error, "rank {}, which {} the file for this one, could not", rank,
                           access_.writes ? "writes" : "reads");
}

void TwoPhase::end() {
  if (access_.writes) {
    for (const Part& part : asking_)
      note(part.rank, part.answer);
    what_.moved = static_cast<std::size_t>(access_.bytes());
  }
  if (failure_) throw *failure_;
  if (told_) throw *told_;
}

// ---------------------------------------------------------------- in turn

// One exchange. What the step throws is told when all that it has posted is over.
Task exchange(Comm& comm, TwoPhase& access, void (TwoPhase::*step)(Batch&)) {
  Batch batch(comm);
  try {
    (access.*step)(batch);
  } catch (...) {
    batch.note(base::caught("for what ranks exchange of a file"));
  }
  co_await batch;
}

Task move_together(Comm& comm, TwoPhase& access, bool writes) {
  for (MPI_Count i = 0; i < access.windows(); ++i) {
    access.begin_window(i);
    Task asked = exchange(comm, access, &TwoPhase::ask);
    co_await asked;
    Task told = exchange(comm, access, &TwoPhase::tell_extents);
    co_await told;
    if (writes) {
      access.write_window();
      continue;
    }
    access.read_window();
    Task answered = exchange(comm, access, &TwoPhase::answer);
    co_await answered;
    Task returned = exchange(comm, access, &TwoPhase::return_data);
    co_await returned;
    access.end_window();
  }
  if (writes) {
    Task acknowledged = exchange(comm, access, &TwoPhase::acknowledge);
    co_await acknowledged;
  }
  access.end();
}

// Whether aggregators may help: not if pieces are not in order, nor where hardly any are moved.
bool can_help(const Span& all) {
  return all.piece != 0 && all.bytes >= (all.end - all.begin) / thinnest;
}

// Whether what ranks move lies between what others do.
bool interleave(std::span<const Span> spans) {
  std::vector<Span> sorted;
  std::ranges::copy_if(spans, std::back_inserter(sorted),
                       [](const Span& span) { return span.bytes != 0; });
  std::ranges::sort(sorted, {}, &Span::begin);
  return std::ranges::adjacent_find(sorted, [](const Span& before, const Span& after) {
           return after.begin < before.end;
         }) != sorted.end();
}

Span span_of(const Access& access) {
  const MPI_Count bytes = access.bytes();
  if (bytes == 0) return {.writes = access.writes};
  const View& view = *access.view;
  const Piece all = view.span_of(access.position, bytes);
  const MPI_Count piece = view.in_order(access.position, bytes) ? view.piece() : 0;
  return {all.offset, all.end(), bytes, piece, access.writes};
}

// On all ranks, as each sees one that does the other.
void check_direction(const coll::Collective& self, std::span<const Span> spans) {
  const bool writes = spans[static_cast<std::size_t>(self.rank())].writes;
  const auto other = std::ranges::find(spans, !writes, &Span::writes);
  if (other == spans.end()) return;
  base::fail(MPI_ERR_ARG,
             "{} {} the file here, and what rank {} calls {} it; all ranks must call the same "
             "collective function",
             self.function, writes ? "writes" : "reads", other - spans.begin(),
             writes ? "reads" : "writes");
}

void move_alone(CollectiveAccess& what) {
  ++what.counters->alone;
  what.moved = move(what.access);
}

} // namespace

void Counters::list(base::CounterList& list) const {
  const auto add = [&](const char* name, const char* text, const std::uint64_t& value) {
    list.add("files", name, text, value);
  };
  add("file_reads", "reads of files", reads);
  add("file_writes", "writes to files", writes);
  add("file_bytes_read", "bytes read from files", bytes_read);
  add("file_bytes_written", "bytes written to files", bytes_written);
  add("file_together", "collective accesses to files by aggregators", together);
  add("file_alone", "... by each rank for itself", alone);
  add("file_windows", "parts of files read or written for all ranks", windows);
}

Task access_together(coll::Collective& self) {
  auto& what = *static_cast<CollectiveAccess*>(self.arguments.extra);
  const Buffering::When when = what.buffering->when;
  if (self.size() == 1 || what.access.atomic || when == Buffering::When::never) {
    move_alone(what);
    co_return;
  }
  const auto ranks = static_cast<std::size_t>(self.size());
  Scratch memory(self, ranks * sizeof(Span));
  const std::span spans(reinterpret_cast<Span*>(memory.bytes()), ranks);
  spans[static_cast<std::size_t>(self.rank())] = span_of(what.access);
  coll::Blocks blocks;
  blocks.address = spans.data();
  blocks.count = sizeof(Span);
  blocks.type = &self.shared->byte;
  Task exchange = coll::allgather_on(self, blocks);
  co_await exchange;
  check_direction(self, spans);
  const Span all = union_of(spans);
  const bool need_help = all.piece <= longest_piece && interleave(spans);
  if (!can_help(all) || (when != Buffering::When::always && !need_help)) {
    move_alone(what);
    co_return;
  }
  ++what.counters->together;
  TwoPhase access(self, what, spans);
  Task moved = move_together(self, access, what.access.writes);
  co_await moved;
}

} // namespace macadam::io
