// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/cursor.h"

#include "datatype/constructors.h"
#include "expect_error.h"
#include "oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace macadam::datatype {
namespace {

using oracle::List;
using oracle::predefined;
using oracle::Sample;
using Bytes = std::vector<unsigned char>;

// A buffer that holds every byte of `count` elements, however far before or behind its address.
class Buffer {
 public:
  Buffer(const Sample& sample, MPI_Count count) : places_(sample.map.bytes(count)) {
    if (places_.empty()) return;
    const auto [low, high] = std::minmax_element(places_.begin(), places_.end());
    origin_ = -*low;
    memory_.resize(static_cast<std::size_t>(*high - *low + 1));
  }

  // A different value in every byte, nearly.
  void fill() {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      memory_[i] = static_cast<unsigned char>(i * 7 + i / 251 + 1);
    }
  }

  [[nodiscard]] std::size_t total() const { return places_.size(); }
  void* address() { return memory_.data() + origin_; }
  unsigned char& at(std::size_t i) {
    return memory_[static_cast<std::size_t>(places_[i] + origin_)];
  }
  // The packed stream, taken byte by byte.
  Bytes packed() {
    Bytes result(total());
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] = at(i);
    return result;
  }
  Bytes& memory() { return memory_; }

 private:
  std::vector<std::int64_t> places_;
  std::int64_t origin_ = 0;
  Bytes memory_;
};

// The memory after unpacking the whole stream, byte by byte in order.
Bytes literally_unpacked(const Sample& sample, MPI_Count count, const Bytes& stream) {
  Buffer buffer(sample, count);
  for (std::size_t i = 0; i < stream.size(); ++i)
    buffer.at(i) = stream[i];
  return buffer.memory();
}

Bytes numbered(std::size_t size) {
  Bytes stream(size);
  for (std::size_t i = 0; i < size; ++i)
    stream[i] = static_cast<unsigned char>(i * 13 + 5);
  return stream;
}

class RandomTypes : public testing::TestWithParam<unsigned> {
 protected:
  // Calls check(sample, count) for some random samples of all depths, committed.
  template <class Check>
  void for_samples(int samples, Check check) {
    std::mt19937 random(GetParam());
    for (int i = 0; i < samples; ++i) {
      const Sample sample = oracle::random_sample(random, i % 6);
      sample.type->commit();
      check(sample, static_cast<MPI_Count>(random() % 4));
      if (HasFatalFailure()) FAIL() << "sample " << i << " of seed " << GetParam();
    }
  }
};

TEST_P(RandomTypes, PackAndUnpackInOneGo) {
  for_samples(400, [](const Sample& sample, MPI_Count count) {
    Buffer buffer(sample, count);
    buffer.fill();
    PackCursor packer(*sample.type, buffer.address(), count);
    ASSERT_EQ(packer.total(), static_cast<MPI_Count>(buffer.total()));
    Bytes out(buffer.total());
    ASSERT_EQ(packer.pack(out.data(), out.size()), out.size());
    ASSERT_TRUE(packer.done());
    ASSERT_EQ(packer.pack(out.data(), 1), 0U);
    ASSERT_EQ(out, buffer.packed());

    const Bytes stream = numbered(buffer.total());
    Buffer target(sample, count);
    PackCursor unpacker(*sample.type, target.address(), count);
    ASSERT_EQ(unpacker.unpack(stream.data(), stream.size()), stream.size());
    ASSERT_EQ(target.memory(), literally_unpacked(sample, count, stream));
  });
}

TEST_P(RandomTypes, PackAndUnpackSplitAtEveryByte) {
  for_samples(60, [](const Sample& sample, MPI_Count count) {
    Buffer buffer(sample, count);
    if (buffer.total() > 600) return;
    buffer.fill();
    const Bytes packed = buffer.packed();
    const Bytes stream = numbered(buffer.total());
    const Bytes unpacked = literally_unpacked(sample, count, stream);
    for (std::size_t split = 0; split <= buffer.total(); ++split) {
      PackCursor packer(*sample.type, buffer.address(), count);
      Bytes out(buffer.total());
      ASSERT_EQ(packer.pack(out.data(), split), split);
      ASSERT_EQ(packer.position(), static_cast<MPI_Count>(split));
      ASSERT_EQ(packer.pack(out.data() + split, SIZE_MAX), out.size() - split);
      ASSERT_EQ(out, packed) << "split at " << split;

      Buffer target(sample, count);
      PackCursor unpacker(*sample.type, target.address(), count);
      ASSERT_EQ(unpacker.unpack(stream.data(), split), split);
      ASSERT_EQ(unpacker.unpack(stream.data() + split, stream.size() - split),
                stream.size() - split);
      ASSERT_EQ(target.memory(), unpacked) << "split at " << split;
    }
  });
}

TEST_P(RandomTypes, SeekToEveryByte) {
  for_samples(60, [](const Sample& sample, MPI_Count count) {
    Buffer buffer(sample, count);
    if (buffer.total() > 600) return;
    buffer.fill();
    const Bytes packed = buffer.packed();
    PackCursor cursor(*sample.type, buffer.address(), count);
    for (std::size_t i = buffer.total() + 1; i-- > 0;) {
      cursor.seek(static_cast<MPI_Count>(i));
      ASSERT_EQ(cursor.remaining(), static_cast<MPI_Count>(packed.size() - i));
      Bytes out(packed.size() - i);
      ASSERT_EQ(cursor.pack(out.data(), out.size()), out.size());
      ASSERT_TRUE(std::equal(out.begin(), out.end(), packed.begin() + static_cast<long>(i)));
    }
  });
}

TEST_P(RandomTypes, StepsAndSegmentsMixed) {
  std::mt19937 steps(GetParam() + 1000);
  for_samples(200, [&steps](const Sample& sample, MPI_Count count) {
    Buffer buffer(sample, count);
    buffer.fill();
    PackCursor cursor(*sample.type, buffer.address(), count);
    Bytes out;
    while (!cursor.done()) {
      const std::size_t step = steps() % 40 + 1;
      const auto way = steps() % 3;
      if (way == 2) {
        const SegmentRun run = cursor.next_run(static_cast<MPI_Count>(step));
        ASSERT_GE(run.bytes, 1);
        ASSERT_GE(run.count, 1);
        ASSERT_LE(run.bytes * run.count, static_cast<MPI_Count>(step));
        for (MPI_Count i = 0; i < run.count; ++i) {
          const auto* data = reinterpret_cast<unsigned char*>(run.data + i * run.stride);
          out.insert(out.end(), data, data + run.bytes);
        }
      } else if (way == 0) {
        const Segment segment = cursor.next_segment(static_cast<MPI_Count>(step));
        ASSERT_GE(segment.bytes, 1);
        ASSERT_LE(segment.bytes, static_cast<MPI_Count>(step));
        const auto* data = reinterpret_cast<unsigned char*>(segment.data);
        out.insert(out.end(), data, data + segment.bytes);
      } else {
        Bytes piece(step);
        piece.resize(cursor.pack(piece.data(), step));
        out.insert(out.end(), piece.begin(), piece.end());
      }
      ASSERT_EQ(cursor.position(), static_cast<MPI_Count>(out.size()));
    }
    ASSERT_EQ(out, buffer.packed());
    ASSERT_EQ(cursor.next_segment().bytes, 0);
    ASSERT_EQ(cursor.next_run(1).count, 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTypes, testing::Range(1U, 6U));

// What a type is flattened to decides how fast it is: the regular cases must be loops of runs.
struct Flat {
  Layout::Kind kind;
  MPI_Count count;
  MPI_Count stride;
  MPI_Count block;
};

void expect_layout(const TypeRef& type, const Flat& flat) {
  type->commit();
  const Layout& layout = type->layout();
  EXPECT_EQ(layout.kind, flat.kind) << describe(*type);
  EXPECT_EQ(layout.count, flat.count);
  EXPECT_EQ(layout.stride, flat.stride);
  EXPECT_EQ(layout.block, flat.block);
  EXPECT_EQ(layout.body, nullptr);
}

TEST(Layout, RegularTypesAreLoopsOfRuns) {
  using Kind = Layout::Kind;
  const Type& double_type = predefined()[MPI_DOUBLE];
  expect_layout(vector(10, 1, 4, double_type), {Kind::loop, 10, 32, 8});
  expect_layout(vector(10, 3, 4, double_type), {Kind::loop, 10, 32, 24});
  // The same by listing the blocks.
  expect_layout(indexed_block(1, List{0, 4, 8, 12}, double_type), {Kind::loop, 4, 32, 8});
  // Neighbouring blocks join; then one run is left.
  expect_layout(indexed_block(1, List{0, 1, 2, 3}, double_type), {Kind::run, 0, 0, 0});
  // A column of a matrix, resized so that columns interleave; two nested vectors in step.
  expect_layout(resized(*vector(10, 1, 4, double_type), 0, 8), {Kind::loop, 10, 32, 8});
  expect_layout(contiguous(3, *resized(*vector(10, 1, 4, double_type), 0, 320)),
                {Kind::loop, 30, 32, 8});
  // Rows of a sub-matrix.
  expect_layout(subarray(List{6, 10}, List{3, 4}, List{1, 2}, MPI_ORDER_C, double_type),
                {Kind::loop, 3, 80, 32});
  // Full rows are one run.
  expect_layout(subarray(List{6, 10}, List{3, 10}, List{1, 0}, MPI_ORDER_C, double_type),
                {Kind::run, 0, 0, 0});
}

TEST(Layout, DeepTreesAreWalkedWithAHeapOfFrames) {
  TypeRef type(predefined()[MPI_CHAR]);
  Sample sample{type, oracle::basic(MPI_CHAR)};
  MPI_Count stride = 1;
  for (int level = 0; level < 8; ++level) {
    stride = stride * 2 + 1;
    sample = {hvector(2, 1, stride, *sample.type), oracle::hvector(2, 1, stride, sample.map)};
  }
  sample.type->commit();
  EXPECT_GT(sample.type->layout().depth, 4);
  Buffer buffer(sample, 3);
  buffer.fill();
  PackCursor cursor(*sample.type, buffer.address(), 3);
  Bytes out(buffer.total());
  cursor.seek(5);
  cursor.pack(out.data() + 5, 100);
  cursor.pack(out.data() + 105, SIZE_MAX);
  cursor.seek(0);
  cursor.pack(out.data(), 5);
  EXPECT_EQ(out, buffer.packed());
}

// Every second int, each with a level of its own.
TEST(Layout, TreesMayBeDeeperThanTheStack) {
  constexpr std::size_t levels = 200'000;
  TypeRef type = contiguous(1, predefined()[MPI_INT]);
  for (std::size_t level = 1; level < levels; ++level) {
    const Type* parts[] = {type.get(), &predefined()[MPI_INT]};
    // Not next to the one before, and not evenly spaced, or these were one loop.
    const auto at = static_cast<MPI_Count>(8 * level + level % 2 * 4);
    type = struct_(List{1, 1}, List{0, at}, parts);
    type->commit();
  }
  EXPECT_GE(type->layout().depth, static_cast<int>(levels) / 2);
  std::vector<int> buffer(2 * levels), out(levels), back(2 * levels);
  for (std::size_t i = 0; i < buffer.size(); ++i)
    buffer[i] = static_cast<int>(i);
  const auto place = [](std::size_t i) { return 2 * i + i % 2; };
  EXPECT_EQ(PackCursor(*type, buffer.data(), 1).pack(out.data(), SIZE_MAX), 4 * levels);
  for (std::size_t i = 0; i < levels; ++i)
    ASSERT_EQ(out[i], static_cast<int>(place(i)));
  PackCursor(*type, back.data(), 1).unpack(out.data(), 4 * levels);
  for (std::size_t i = 0; i < levels; ++i)
    ASSERT_EQ(back[place(i)], out[i]);
}

TEST(Layout, BlocksOfEverySizeAreCopiedWhole) {
  for (MPI_Count block = 1; block <= 40; ++block) {
    const Sample sample{hvector(20, block, block + 3, predefined()[MPI_BYTE]),
                        oracle::hvector(20, block, block + 3, oracle::basic(MPI_BYTE))};
    sample.type->commit();
    Buffer buffer(sample, 2);
    buffer.fill();
    Bytes out(buffer.total());
    PackCursor(*sample.type, buffer.address(), 2).pack(out.data(), out.size());
    ASSERT_EQ(out, buffer.packed()) << block;
    Buffer target(sample, 2);
    PackCursor(*sample.type, target.address(), 2).unpack(out.data(), out.size());
    ASSERT_EQ(target.packed(), out) << block;
  }
}

TEST(PackCursor, AbsoluteAddressesNeedNoBuffer) {
  int first = 11;
  int second = 22;
  const auto address = [](int& place) { return reinterpret_cast<MPI_Count>(&place); };
  const TypeRef type =
      hindexed(List{1, 1}, List{address(second), address(first)}, predefined()[MPI_INT]);
  type->commit();
  int out[2] = {};
  PackCursor(*type, MPI_BOTTOM, 1).pack(out, sizeof out);
  EXPECT_EQ(out[0], 22);
  EXPECT_EQ(out[1], 11);
}

TEST(PackCursor, IsSmallEnoughForAPendingRequest) {
  EXPECT_LE(sizeof(PackCursor), 288U);
}

TEST(PackCursor, RegularPiecesComeTogether) {
  const TypeRef column = hvector(1000, 1, 24, predefined()[MPI_DOUBLE]);
  column->commit();
  PackCursor cursor(*column, nullptr, 1);
  const SegmentRun some = cursor.next_run(100);
  EXPECT_EQ(some.count, 12);
  EXPECT_EQ(some.bytes, 8);
  EXPECT_EQ(some.stride, 24);
  EXPECT_EQ(cursor.next_run(4).count, 1); // a part of one
  EXPECT_EQ(cursor.next_run(1 << 20).count, 1);
  EXPECT_EQ(cursor.next_run(1 << 20).count, 987);
  EXPECT_TRUE(cursor.done());
}

TEST(PackCursor, NothingToDoTouchesNothing) {
  PackCursor none(predefined()[MPI_INT], nullptr, 0);
  EXPECT_TRUE(none.done());
  EXPECT_EQ(none.pack(nullptr, 100), 0U);
  EXPECT_EQ(none.next_segment().data, nullptr);
  const TypeRef empty = contiguous(0, predefined()[MPI_INT]);
  empty->commit();
  PackCursor empties(*empty, nullptr, 1000);
  EXPECT_TRUE(empties.done());
}

TEST(PackCursor, SeekOutsideTheStreamIsRefused) {
  int value = 0;
  PackCursor cursor(predefined()[MPI_INT], &value, 1);
  expect_error(MPI_ERR_INTERN, "stream of 4 bytes", [&] { cursor.seek(5); });
  expect_error(MPI_ERR_INTERN, "stream of 4 bytes", [&] { cursor.seek(-1); });
}

TEST(PackCursor, HugeCountsOfAnySizeCanBeAddressed) {
  // 2^40 elements, never touched but at the one byte that is looked at.
  const TypeRef type = vector(1, 1, 1, *resized(predefined()[MPI_BYTE], 0, 0));
  type->commit();
  char byte = 'x';
  const MPI_Count count = MPI_Count{1} << 40;
  PackCursor cursor(*type, &byte, count);
  EXPECT_EQ(cursor.total(), count);
  cursor.seek(count - 1);
  char out = 0;
  EXPECT_EQ(cursor.pack(&out, 10), 1U);
  EXPECT_EQ(out, 'x');
}

} // namespace
} // namespace macadam::datatype
