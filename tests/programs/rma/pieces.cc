// SPDX-License-Identifier: BSD-3-Clause
// Puts, gets and replacing accumulates of many pieces on either side, short and long, near each
// other and far, against a model of what they read and write: gaps stay as they are, and our own
// memory is ours again once it is said to be.
#include "rma/window.h"

#include <algorithm>

namespace {

using rma::Kind;
using Bytes = std::vector<unsigned char>;

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t end) {
    return static_cast<std::size_t>(check::pattern_word(state_++, 1) % end);
  }

 private:
  std::uint64_t state_;
};

constexpr std::size_t most = 100'000; // bytes of an access
constexpr std::size_t room = 4 * most;

// Pieces in ascending order, `bytes` bytes together, within `room`.
class Pieces {
 public:
  Pieces(Random& random, std::size_t bytes) {
    constexpr std::size_t lengths[] = {12, 100, 900, 1500, 12'000, most};
    constexpr std::size_t gaps[] = {1, 20, 1100, 3000};
    const std::size_t longest = lengths[random.below(std::size(lengths))];
    const std::size_t gap = gaps[random.below(std::size(gaps))];
    std::size_t at = random.below(100);
    for (std::size_t left = bytes; left > 0;) {
      std::size_t length = std::min(left, 1 + random.below(longest));
      if (at + left + gap > room) length = left; // the rest together
      places_.push_back(static_cast<MPI_Aint>(at));
      lengths_.push_back(static_cast<int>(length));
      at += length + random.below(gap);
      left -= length;
    }
    OK(MPI_Type_create_hindexed(static_cast<int>(lengths_.size()), lengths_.data(), places_.data(),
                                MPI_BYTE, &type_));
    OK(MPI_Type_commit(&type_));
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  ~Pieces() { OK(MPI_Type_free(&type_)); }

  [[nodiscard]] MPI_Datatype type() const { return type_; }
  [[nodiscard]] Bytes pack(const Bytes& from) const {
    Bytes packed;
    for (std::size_t i = 0; i < places_.size(); ++i)
      packed.insert(packed.end(), from.begin() + places_[i],
                    from.begin() + places_[i] + lengths_[i]);
    return packed;
  }
  void unpack(const Bytes& packed, Bytes& to) const {
    auto from = packed.begin();
    for (std::size_t i = 0; i < places_.size(); from += lengths_[i++])
      std::copy_n(from, lengths_[i], to.begin() + places_[i]);
  }

 private:
  std::vector<MPI_Aint> places_;
  std::vector<int> lengths_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

// Every rank has `room` bytes of its right neighbour to itself.
void pieces_of(Kind kind) {
  rma::Window<unsigned char> win(kind, room);
  const int target = rma::right();
  Random random(1000 * static_cast<std::uint64_t>(check::rank) + static_cast<std::uint64_t>(kind));
  Bytes there(room, 0), ours(room), whole(room);
  std::uint64_t seed = 1;
  OK(MPI_Win_lock_all(0, win));
  for (int round = 0; round < 40; ++round) {
    const std::size_t bytes = 1 + random.below(random.below(4) == 0 ? most : most / 20);
    const Pieces here(random, bytes), at(random, bytes);
    const auto action = random.below(5);
    check::fill(ours.data(), room, seed++);
    Bytes expected = ours;
    const auto call = [&](auto&& operation) {
      return operation(ours.data(), 1, here.type(), target, 0, 1, at.type(), win);
    };
    const auto call_request = [&](auto&& operation) {
      MPI_Request request;
      OK(operation(ours.data(), 1, here.type(), target, 0, 1, at.type(), win, &request));
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    };
    switch (action) {
    case 0:
      OK(call(MPI_Put));
      OK(MPI_Win_flush_local(target, win));
      break;
    case 1:
      call_request(MPI_Rput);
      break;
    case 2:
      OK(call(MPI_Get));
      OK(MPI_Win_flush(target, win));
      break;
    case 3:
      call_request(MPI_Rget);
      break;
    default:
      OK(MPI_Accumulate(ours.data(), 1, here.type(), target, 0, 1, at.type(), MPI_REPLACE, win));
      OK(MPI_Win_flush_local(target, win));
      break;
    }
    if (action == 2 || action == 3) {
      here.unpack(at.pack(there), expected);
      CHECK(ours == expected);
    } else {
      at.unpack(here.pack(ours), there);
      check::fill(ours.data(), room, seed++);
      OK(MPI_Win_flush(target, win));
    }
    if (round % 4 != 3) continue;
    OK(MPI_Get(whole.data(), room, MPI_BYTE, target, 0, room, MPI_BYTE, win));
    OK(MPI_Win_flush(target, win));
    CHECK(whole == there);
  }
  OK(MPI_Win_unlock_all(win));
}

void pieces() {
  rma::for_each_kind(pieces_of);
}

// What a rank writes or reads of its neighbour's memory in an epoch: pieces of the first `room`
// bytes, and behind them bytes in one piece. As a function of its seed, so that the neighbour knows
// too.
class Epoch {
 public:
  Epoch(int rank, int number)
      : random_(static_cast<std::uint64_t>(1000 * rank + number)),
        bytes_(1 + random_.below(random_.below(3) == 0 ? most : most / 20)),
        whole_(1 + random_.below(random_.below(3) == 0 ? room : 10'000)), reads_(number % 3 == 2),
        here_(random_, bytes_), at_(random_, bytes_), ours_(2 * room) {
    check::fill(ours_.data(), ours_.size(), static_cast<std::uint64_t>(rank + 100 * number));
  }

  // `displacement` of the neighbour's memory; `there` is what is in it.
  void access(MPI_Win win, int target, MPI_Aint displacement) {
    const auto count = static_cast<int>(whole_);
    const auto call = [&](auto&& operation) {
      OK(operation(ours_.data(), 1, here_.type(), target, displacement, 1, at_.type(), win));
      OK(operation(ours_.data() + room, count, MPI_BYTE, target, displacement + room, count,
                   MPI_BYTE, win));
    };
    reads_ ? call(MPI_Get) : call(MPI_Put);
  }
  // The same to a model of that memory.
  void apply(Bytes& there) const {
    if (reads_) return;
    at_.unpack(here_.pack(ours_), there);
    std::copy_n(ours_.begin() + room, whole_, there.begin() + room);
  }
  // After the epoch, which began with `there`.
  void check_read(const Bytes& there, int rank, int number) const {
    if (!reads_) return;
    Bytes expected = Epoch(rank, number).ours_;
    here_.unpack(at_.pack(there), expected);
    std::copy_n(there.begin() + room, whole_, expected.begin() + room);
    CHECK(ours_ == expected);
  }

 private:
  Random random_;
  std::size_t bytes_, whole_;
  bool reads_;
  Pieces here_, at_;
  Bytes ours_;
};

// Epochs that the target ends too, of either kind. `memory` is ours, `displacement` the
// neighbour's.
void epochs(MPI_Win win, const unsigned char* memory, MPI_Aint displacement) {
  const int target = rma::left(), origin = rma::right();
  MPI_Group all, origins, targets;
  OK(MPI_Win_get_group(win, &all));
  OK(MPI_Group_incl(all, 1, &origin, &origins));
  OK(MPI_Group_incl(all, 1, &target, &targets));
  Bytes there(2 * room, 0), own(2 * room, 0); // the neighbour's memory, and ours
  for (int number = 0; number < 30; ++number) {
    Epoch ours(check::rank, number);
    if (number % 2 == 0) {
      OK(MPI_Win_fence(0, win));
      ours.access(win, target, displacement);
      OK(MPI_Win_fence(0, win));
    } else {
      OK(MPI_Win_post(origins, 0, win));
      OK(MPI_Win_start(targets, 0, win));
      ours.access(win, target, displacement);
      OK(MPI_Win_complete(win));
      OK(MPI_Win_wait(win));
    }
    Epoch(origin, number).apply(own);
    CHECK(std::equal(own.begin(), own.end(), memory));
    ours.check_read(there, check::rank, number);
    ours.apply(there);
  }
  for (MPI_Group* const group : {&all, &origins, &targets})
    OK(MPI_Group_free(group));
}

void in_epochs() {
  rma::for_each_kind([](Kind kind) {
    rma::Window<unsigned char> win(kind, 2 * room);
    epochs(win, win.data(), 0);
  });
}

void attached() {
  MPI_Win win;
  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  Bytes memory(2 * room, 0);
  OK(MPI_Win_attach(win, memory.data(), room)); // pieces in one region, the rest in another
  OK(MPI_Win_attach(win, memory.data() + room, room));
  MPI_Aint mine, theirs;
  OK(MPI_Get_address(memory.data(), &mine));
  OK(MPI_Sendrecv(&mine, 1, MPI_AINT, rma::right(), 0, &theirs, 1, MPI_AINT, rma::left(), 0,
                  MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  epochs(win, memory.data(), theirs);
  OK(MPI_Win_free(&win));
}

// More of them under way than a network takes at once; none has come before the fence.
void many() {
  constexpr int accesses = 200, count = 500;
  rma::Window<std::int32_t> win(Kind::created, accesses * count);
  MPI_Datatype every_second;
  OK(MPI_Type_vector(count, 1, 2, MPI_INT32_T, &every_second));
  OK(MPI_Type_commit(&every_second));
  std::vector<std::int32_t> ours(std::size_t{2} * accesses * count, -1);
  for (std::size_t i = 0; i < ours.size(); i += 2)
    ours[i] = check::rank + static_cast<std::int32_t>(i);
  std::vector<std::int32_t> back(ours.size(), -1);
  const auto all = [&](std::vector<std::int32_t>& data, auto&& operation) {
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < accesses; ++i)
      OK(operation(&data[std::size_t{2} * static_cast<std::size_t>(i) * count], 1, every_second,
                   rma::right(), static_cast<MPI_Aint>(i) * count, count, MPI_INT32_T, win));
    OK(MPI_Win_fence(0, win));
  };
  all(ours, MPI_Put);
  for (std::size_t i = 0; i < win.size(); ++i)
    CHECK_EQUAL(win[i], rma::left() + 2 * static_cast<std::int32_t>(i));
  all(back, MPI_Get);
  CHECK(back == ours);
  OK(MPI_Type_free(&every_second));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(
      argc, argv,
      {{"pieces", pieces}, {"in epochs", in_epochs}, {"attached", attached}, {"many", many}});
}
