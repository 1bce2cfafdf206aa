// SPDX-License-Identifier: BSD-3-Clause
// Reads and writes of one process on a real file, beside a file kept in memory.
#include "io/access.h"

#include "io/worker.h"
#include "samples.h"

#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace {

using macadam::datatype::PackCursor;
using macadam::engine::Data;
using namespace macadam::io;

using Bytes = std::vector<unsigned char>;

class Accesses : public testing::TestWithParam<unsigned> {
 protected:
  Accesses() {
    std::string name = testing::TempDir() + "macadam_access_XXXXXX";
    ::close(::mkstemp(name.data()));
    file_ = std::make_unique<DiskFile>(name, O_RDWR, 0600);
    remove_file(name);
  }

  // What a program would see of a file of these bytes; reads beyond the end find nothing.
  static Bytes shown(const samples::Sample& sample, const Bytes& whole, std::size_t first,
                     std::size_t bytes) {
    Bytes found;
    for (std::size_t i = first; i < first + bytes; ++i) {
      const auto at = static_cast<std::size_t>(sample.offsets[i]);
      if (at >= whole.size()) break;
      found.push_back(whole[at]);
    }
    return found;
  }

  Bytes contents() const {
    Bytes all(static_cast<std::size_t>(file_->size()));
    EXPECT_EQ(file_->read(all.data(), all.size(), 0), all.size());
    return all;
  }

  std::size_t any(std::size_t below) { return random_() % below; }
  unsigned char byte() { return static_cast<unsigned char>(random_()); }

  macadam::datatype::PredefinedTypes types_;
  std::mt19937 random_{GetParam()};
  std::unique_ptr<DiskFile> file_;
};

// Through any view, from and to memory with and without gaps, atomic or not.
TEST_P(Accesses, MoveWhatTheViewShows) {
  const auto gaps = macadam::datatype::resized(types_[MPI_BYTE], 0, 3);
  gaps->commit();
  Bytes whole;
  for (int i = 0; i < 300; ++i) {
    const samples::Sample sample = samples::next(random_, types_, samples::Copies::may_interleave);
    const std::size_t first = any(sample.offsets.size());
    const std::size_t bytes = any(sample.offsets.size() - first) + 1;
    const bool dense = any(2) == 0;
    const auto& type = dense ? types_[MPI_BYTE] : *gaps;
    const std::size_t step = dense ? 1 : 3;
    Bytes memory(step * bytes, 0xcc);
    Access access{file_.get(), sample.view.get(), static_cast<MPI_Count>(first),
                  Data{memory.data(), static_cast<MPI_Count>(bytes), &type}, any(2) == 0};
    if (any(2) == 0) {
      for (std::size_t k = 0; k < bytes; ++k) {
        memory[k * step] = byte();
        const auto at = static_cast<std::size_t>(sample.offsets[first + k]);
        if (whole.size() <= at) whole.resize(at + 1);
        whole[at] = memory[k * step];
      }
      ASSERT_EQ(write(access), bytes);
      ASSERT_EQ(contents(), whole);
      continue;
    }
    if (any(8) == 0) { // somewhere an end
      whole.resize(any(whole.size() + 1));
      file_->resize(static_cast<std::int64_t>(whole.size()));
    }
    const Bytes expected = shown(sample, whole, first, bytes);
    ASSERT_EQ(read(access), expected.size());
    for (std::size_t k = 0; k < memory.size(); ++k)
      ASSERT_EQ(memory[k], k % step == 0 && k / step < expected.size() ? expected[k / step] : 0xcc);
  }
}

// Pieces longer than what is staged, close to each other and far.
TEST_P(Accesses, MoveLongPieces) {
  for (const MPI_Count hole : {16, 5000, 300000}) {
    const auto filetype = macadam::datatype::resized(
        *macadam::datatype::contiguous(300000, types_[MPI_BYTE]), 0, 300000 + hole);
    filetype->commit();
    const View view(7, types_[MPI_BYTE], *filetype,
                    std::make_shared<NativeRepresentation>("native"), types_[MPI_BYTE]);
    const auto pairs = macadam::datatype::vector(500000, 1, 2, types_[MPI_BYTE]);
    pairs->commit();
    Bytes out(1000000), in(1000000);
    for (unsigned char& each : out)
      each = byte();
    ASSERT_EQ(write({file_.get(), &view, 100000, Data{out.data(), 1, pairs.get()}}), 500000U);
    ASSERT_EQ(read({file_.get(), &view, 100000, Data{in.data(), 1, pairs.get()}}), 500000U);
    for (std::size_t k = 0; k < out.size(); k += 2)
      ASSERT_EQ(in[k], out[k]);
  }
}

// A job is done in the background, and errors come back with it.
TEST_P(Accesses, WorkForThoseWhoDoNotWait) {
  const View view(0, types_[MPI_BYTE], types_[MPI_BYTE],
                  std::make_shared<NativeRepresentation>("native"), types_[MPI_BYTE]);
  const DiskFile nowhere("/dev/full", O_WRONLY, 0);
  Bytes data(100000, 7);
  Worker worker;
  std::array<Job, 20> jobs;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].access = {i == 5 ? &nowhere : file_.get(), &view,
                      static_cast<MPI_Count>(i * data.size()),
                      Data{data.data(), static_cast<MPI_Count>(data.size()), &types_[MPI_BYTE]}};
    jobs[i].access.writes = true;
    worker.begin(jobs[i]);
  }
  for (std::size_t i = 0; i < jobs.size();) {
    Job* const done = worker.collect();
    if (done == nullptr) continue;
    ASSERT_EQ(done, &jobs[i]);
    ASSERT_EQ(done->failure.has_value(), i == 5);
    if (i == 5) {
      ASSERT_EQ(done->failure->error_class, MPI_ERR_NO_SPACE);
    }
    ++i;
  }
  EXPECT_EQ(worker.under_way(), 0U);
  EXPECT_EQ(file_->size(), static_cast<std::int64_t>(jobs.size() * data.size()));
}

INSTANTIATE_TEST_SUITE_P(Seeds, Accesses, testing::Range(1U, 4U));

} // namespace
