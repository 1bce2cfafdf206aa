// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/constructors.h"
#include "samples.h"

#include <gtest/gtest.h>

namespace {

using macadam::io::Piece;
using macadam::io::Pieces;
using samples::Copies;
using samples::Offsets;
using samples::Sample;

class RandomViews : public testing::TestWithParam<unsigned> {
 protected:
  macadam::datatype::PredefinedTypes types_;
  std::mt19937 random_{GetParam()};
  std::size_t any(std::size_t below) { return random_() % below; }
};

TEST_P(RandomViews, TakeWhatAscendsAndSayWhatOverlaps) {
  int taken = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    const oracle::Sample type = oracle::random_sample(random_, i % 5);
    const auto view = samples::view_of(type, 0, types_);
    if (samples::ascends(type.map.bytes(2))) {
      ASSERT_TRUE(view) << "seed " << GetParam() << ", sample " << i;
    }
    ++(view ? taken : refused);
    if (!view || type.map.size() == 0) continue;
    for (std::int64_t copies = 1; copies <= 3; ++copies) {
      const Offsets offsets = type.map.bytes(copies);
      const auto [first, last] = std::ranges::minmax(offsets);
      const auto bytes = static_cast<MPI_Count>(offsets.size());
      const bool in_order = view->view->in_order(0, bytes);
      ASSERT_LE(in_order, samples::ascends(offsets)) << "seed " << GetParam() << ", sample " << i;
      const Piece span = view->view->span_of(0, bytes);
      ASSERT_LE(span.offset, first);
      ASSERT_GT(span.end(), last);
      if (in_order) {
        ASSERT_EQ(span.offset, first);
        ASSERT_EQ(span.end(), last + 1);
      }
    }
  }
  EXPECT_GT(taken, 30);
  EXPECT_GT(refused, 30);
}

TEST_P(RandomViews, PlaceEachByte) {
  for (int i = 0; i < 200; ++i) {
    const Sample sample = samples::next(random_, types_, Copies::may_interleave);
    for (int k = 0; k < 50; ++k) {
      const std::size_t at = any(sample.offsets.size());
      ASSERT_EQ(sample.view->offset_of(static_cast<MPI_Count>(at)), sample.offsets[at]);
    }
  }
}

TEST_P(RandomViews, CountTheDataBeforeAnyOffset) {
  for (int i = 0; i < 200; ++i) {
    const Sample sample = samples::next(random_, types_, Copies::may_interleave);
    const auto last = static_cast<std::size_t>(sample.offsets.back()) + 2;
    for (int k = 0; k < 50; ++k) {
      // Beyond these copies there are others, so no farther than the last byte.
      const auto end = static_cast<std::int64_t>(std::min(any(last), last - 2));
      const auto beyond = [end](std::int64_t offset) { return offset >= end; };
      const auto before = std::ranges::find_if(sample.offsets, beyond) - sample.offsets.begin();
      ASSERT_EQ(sample.view->data_before(end), before) << "end " << end;
    }
  }
}

// Of the bytes of an access, in whichever copy.
TEST_P(RandomViews, FindTheFirstFromAnyOffset) {
  for (int i = 0; i < 1000; ++i) {
    const Sample sample = samples::next(random_, types_, Copies::may_interleave);
    const std::size_t first = any(sample.offsets.size());
    const std::size_t bytes = any(sample.offsets.size() - first) + 1;
    const auto position = static_cast<MPI_Count>(first), count = static_cast<MPI_Count>(bytes);
    if (!sample.view->in_order(position, count)) continue;
    const auto begin = sample.offsets.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
    for (int k = 0; k < 20; ++k) {
      const auto offset =
          static_cast<std::int64_t>(any(static_cast<std::size_t>(sample.offsets.back()) + 2));
      const auto expected = std::lower_bound(begin, end, offset) - sample.offsets.begin();
      ASSERT_EQ(sample.view->first_from(offset, position, count), expected) << "offset " << offset;
    }
  }
}

// Whatever the steps are, pieces are the bytes of the stream in their order, and whole ones do not
// touch.
TEST_P(RandomViews, GiveAllPieces) {
  for (int i = 0; i < 200; ++i) {
    const Sample sample = samples::next(random_, types_, Copies::may_interleave);
    const std::size_t first = any(sample.offsets.size());
    const std::size_t bytes = any(sample.offsets.size() - first) + 1;
    const bool whole = any(2) == 0;
    Pieces pieces(*sample.view, static_cast<MPI_Count>(first), static_cast<MPI_Count>(bytes));
    Offsets found;
    Piece last{-2, 0};
    while (pieces.left() != 0) {
      ASSERT_EQ(static_cast<std::size_t>(pieces.left()), bytes - found.size());
      const auto peeked = pieces.peek();
      const MPI_Count most = whole ? INT64_MAX : static_cast<MPI_Count>(any(40) + 1);
      const MPI_Offset end = whole ? INT64_MAX : peeked.offset + static_cast<MPI_Offset>(any(40));
      const Piece piece = pieces.next(most, end);
      ASSERT_LE(piece.bytes, most);
      ASSERT_LE(piece.end(), std::max(end, peeked.offset));
      if (piece.bytes == 0) continue;
      ASSERT_EQ(piece.offset, peeked.offset);
      if (whole) {
        ASSERT_NE(piece.offset, last.end());
      }
      last = piece;
      for (MPI_Offset at = piece.offset; at < piece.end(); ++at)
        found.push_back(at);
    }
    const auto begin = sample.offsets.begin() + static_cast<std::ptrdiff_t>(first);
    ASSERT_EQ(found, Offsets(begin, begin + static_cast<std::ptrdiff_t>(bytes)));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomViews, testing::Range(1U, 6U));

class Views : public testing::Test {
 protected:
  macadam::datatype::PredefinedTypes types_;
  std::shared_ptr<const macadam::io::View> of(MPI_Offset displacement, MPI_Datatype type) {
    return std::make_shared<macadam::io::View>(
        displacement, types_[type], types_[type],
        std::make_shared<macadam::io::NativeRepresentation>("native"), types_[MPI_BYTE]);
  }
};

// Positions that would wrap round are refused, the last that do not are taken.
TEST_F(Views, EndWhereFilesDo) {
  const auto doubles = of(8, MPI_DOUBLE);
  const MPI_Offset last = INT64_MAX / 8 - 1;
  EXPECT_EQ(doubles->offset_of(doubles->position_of(last)), 8 * last + 8);
  EXPECT_EQ(doubles->position_of(last - 1, 8), 8 * (last - 1));
  EXPECT_THROW(static_cast<void>(doubles->position_of(last, 8)), macadam::base::Error);
  for (const MPI_Offset beyond : {last + 1, MPI_Offset{1} << 61, INT64_MAX, MPI_Offset{-1}})
    EXPECT_THROW(static_cast<void>(doubles->position_of(beyond)), macadam::base::Error) << beyond;
  EXPECT_THROW(static_cast<void>(doubles->position_of(0, INT64_MAX)), macadam::base::Error);
  EXPECT_THROW(static_cast<void>(of(INT64_MAX, MPI_DOUBLE)->position_of(1)), macadam::base::Error);
}

// The extent of the last copy is not touched.
TEST_F(Views, MayHaveExtentsAsLongAsFiles) {
  for (const MPI_Offset displacement : {0, 100}) {
    for (const MPI_Offset extent : {MPI_Offset{1} << 61, MPI_Offset{1} << 62, INT64_MAX}) {
      const auto filetype = macadam::datatype::resized(types_[MPI_INT], 0, extent);
      filetype->commit();
      const macadam::io::View view(displacement, types_[MPI_INT], *filetype,
                                   std::make_shared<macadam::io::NativeRepresentation>("native"),
                                   types_[MPI_BYTE]);
      for (MPI_Offset copy = 0; copy < 5; ++copy) {
        const auto at = macadam::datatype::Wide{copy} * extent + displacement;
        if (at + 4 <= INT64_MAX) {
          EXPECT_EQ(view.position_of(copy, 4), 4 * copy);
        } else {
          EXPECT_THROW(static_cast<void>(view.position_of(copy, 4)), macadam::base::Error);
        }
        if (at <= INT64_MAX) {
          EXPECT_EQ(view.offset_of(view.position_of(copy)), static_cast<MPI_Offset>(at));
        } else {
          EXPECT_THROW(static_cast<void>(view.position_of(copy)), macadam::base::Error);
        }
      }
    }
  }
}

TEST_F(Views, HaveOnePieceWithoutHoles) {
  EXPECT_EQ(of(3, MPI_INT)->piece(), INT64_MAX);
  Pieces pieces(*of(3, MPI_INT), 5, 1 << 30);
  EXPECT_EQ(pieces.next().bytes, 1 << 30);
  EXPECT_EQ(pieces.left(), 0);
}

} // namespace
