// SPDX-License-Identifier: BSD-3-Clause
#include "mem/pages.h"

#include "base/error.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <sys/resource.h>

namespace macadam::mem {
namespace {

TEST(Pages, ALimitOnAddressesIsNamed) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit limit = before;
  std::size_t mapped = 0; // pages
  std::ifstream("/proc/self/statm") >> mapped;
  limit.rlim_cur = mapped * page + (8 << 20);
  setrlimit(RLIMIT_AS, &limit);
  std::string said;
  try {
    allocate_pages(16 << 20, "a test");
  } catch (const base::Error& error) {
    said = error.text;
  }
  setrlimit(RLIMIT_AS, &before);
  for (const std::string& part :
       {std::string("16777216 bytes for a test"), std::to_string(limit.rlim_cur >> 10) + " KiB",
        std::string("ulimit -v"), std::string("MACADAM_RDMA_BUFFERS")})
    EXPECT_NE(said.find(part), std::string::npos) << said;
  EXPECT_NE(allocate_pages(16 << 20, "a test"), nullptr);
}

} // namespace
} // namespace macadam::mem
