// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/attributes.h"

#include "base/error.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace macadam::mpi {
namespace {

class AttributesTest : public testing::Test {
 protected:
  // A key whose delete callback notes the value and returns `result`.
  int key(int result = MPI_SUCCESS) {
    return keyvals.add(
        AttributeOf::communicator,
        [](void*, int, void* value, void** copy, int* flag) {
          *copy = static_cast<int*>(value) + 1;
          *flag = 1;
          return MPI_SUCCESS;
        },
        [this, result](void*, int, void* value) {
          deleted.push_back(value);
          return result;
        });
  }
  void set(int at, void* value) {
    attributes.set(nullptr, keyvals.find(at, AttributeOf::communicator), value);
  }

  int data[4] = {};
  Keyvals keyvals;
  Attributes attributes;
  std::vector<void*> deleted;
};

TEST_F(AttributesTest, ReplacingAValueDeletesTheOldOne) {
  const int first = key();
  EXPECT_EQ(attributes.find(first), nullptr);
  set(first, &data[0]);
  set(first, &data[1]);
  EXPECT_EQ(deleted, std::vector<void*>{&data[0]});
  ASSERT_NE(attributes.find(first), nullptr);
  EXPECT_EQ(*attributes.find(first), &data[1]);
}

TEST_F(AttributesTest, ClearGoesFromTheLastToTheFirst) {
  for (int i = 0; i < 3; ++i)
    set(key(), &data[i]);
  attributes.clear(nullptr);
  EXPECT_EQ(deleted, (std::vector<void*>{&data[2], &data[1], &data[0]}));
  EXPECT_TRUE(attributes.empty());
}

TEST_F(AttributesTest, ARefusalKeepsTheAttribute) {
  const int first = key(), stubborn = key(MPI_ERR_OTHER), last = key();
  set(first, &data[0]);
  set(stubborn, &data[1]);
  set(last, &data[2]);
  EXPECT_THROW(attributes.clear(nullptr), base::Error);
  EXPECT_EQ(attributes.find(last), nullptr);
  EXPECT_NE(attributes.find(stubborn), nullptr);
  EXPECT_NE(attributes.find(first), nullptr);
}

// As another thread may, while a callback runs.
TEST_F(AttributesTest, AValueIsDeletedOnce) {
  std::function<void()> meanwhile = [] {};
  const int mine = keyvals.add(AttributeOf::communicator, {}, [&](void*, int, void* value) {
    deleted.push_back(value);
    std::exchange(meanwhile, [] {})();
    return MPI_SUCCESS;
  });
  set(mine, &data[0]);
  meanwhile = [&] { set(mine, &data[2]); };
  set(mine, &data[1]);
  EXPECT_EQ(deleted, (std::vector<void*>{&data[0], &data[1]}));
  ASSERT_NE(attributes.find(mine), nullptr);
  EXPECT_EQ(*attributes.find(mine), &data[2]);

  meanwhile = [&] {
    ASSERT_NE(attributes.find(mine), nullptr);
    EXPECT_EQ(*attributes.find(mine), &data[2]);
    std::thread([&] { EXPECT_EQ(attributes.find(mine), nullptr); }).join(); // it may be gone
    EXPECT_THROW(attributes.remove(nullptr, mine), base::Error);
  };
  attributes.remove(nullptr, mine);
  EXPECT_EQ(deleted, (std::vector<void*>{&data[0], &data[1], &data[2]}));
  EXPECT_TRUE(attributes.empty());
}

TEST_F(AttributesTest, ARefusalKeepsTheOldValue) {
  const int stubborn = key(MPI_ERR_OTHER);
  set(stubborn, &data[0]);
  EXPECT_THROW(set(stubborn, &data[1]), base::Error);
  EXPECT_EQ(*attributes.find(stubborn), &data[0]);
}

TEST_F(AttributesTest, WhatIsDeletedMeanwhileIsNotCopied) {
  const int later = key();
  const int first = keyvals.add(AttributeOf::communicator,
                                [&](void*, int, void*, void**, int* flag) {
                                  attributes.remove(nullptr, later);
                                  *flag = 0;
                                  return MPI_SUCCESS;
                                },
                                {});
  set(first, &data[0]);
  set(later, &data[1]);
  EXPECT_TRUE(attributes.copy(nullptr)->empty());
}

TEST_F(AttributesTest, CopiesAskTheCallback) {
  const int copied = key();
  const int left = keyvals.add(AttributeOf::communicator, {}, {});
  set(copied, &data[0]);
  set(left, &data[1]);
  const auto copy = attributes.copy(nullptr);
  ASSERT_NE(copy->find(copied), nullptr);
  EXPECT_EQ(*copy->find(copied), &data[1]);
  EXPECT_EQ(copy->find(left), nullptr);
}

TEST_F(AttributesTest, AFreedKeyWorksWhileItIsInUse) {
  const int mine = key();
  set(mine, &data[0]);
  int handle = mine;
  keyvals.free(&handle, AttributeOf::communicator);
  EXPECT_EQ(handle, MPI_KEYVAL_INVALID);
  EXPECT_NO_THROW(keyvals.find(mine, AttributeOf::communicator));
  attributes.remove(nullptr, mine);
  EXPECT_EQ(deleted.size(), 1u);
  EXPECT_THROW(keyvals.find(mine, AttributeOf::communicator), base::Error);
}

// Within the time of a test; not if each new one looked at all that there are.
TEST_F(AttributesTest, ThereMayBeManyKeys) {
  constexpr int many = 50'000;
  for (int i = 0; i < many; ++i)
    key();
  for (int i = 0; i < many; ++i) {
    int freed = key();
    keyvals.free(&freed, AttributeOf::communicator);
  }
}

TEST_F(AttributesTest, AKeyIsOfOneKindOfObject) {
  const int mine = key();
  EXPECT_THROW(keyvals.find(mine, AttributeOf::datatype), base::Error);
  EXPECT_THROW(keyvals.find(MPI_KEYVAL_INVALID, AttributeOf::communicator), base::Error);
}

} // namespace
} // namespace macadam::mpi
