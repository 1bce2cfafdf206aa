// SPDX-License-Identifier: BSD-3-Clause
#include "base/error.h"
#include "boot/pmi2/connection.h"
#include "boot/pmi2/mapping.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace macadam::boot::pmi2 {
namespace {

using Machines = std::vector<std::uint32_t>;

TEST(Mapping, BlocksAreDealtOneAfterTheOther) {
  EXPECT_EQ(parse_mapping("(vector,(0,2,2))", 4), (Machines{0, 0, 1, 1}));
  EXPECT_EQ(parse_mapping("(vector,(0,1,3),(1,1,1))", 4), (Machines{0, 0, 0, 1}));
  EXPECT_EQ(parse_mapping("(vector,(0,1,2),(1,1,1),(0,1,2))", 5), (Machines{0, 0, 1, 0, 0}));
}

TEST(Mapping, BeginsAgainWhereRanksAreLeft) {
  EXPECT_EQ(parse_mapping("(vector,(0,2,1))", 5), (Machines{0, 1, 0, 1, 0}));
  EXPECT_EQ(parse_mapping("(vector,(0,3,4))", 2), (Machines{0, 0}));
}

TEST(Mapping, MachinesAreNumberedAsTheyAppear) {
  EXPECT_EQ(parse_mapping("(vector,(7,1,1),(3,1,2))", 3), (Machines{0, 1, 1}));
}

TEST(Mapping, OtherTextIsRefused) {
  for (const char* const text : {"", "(vector)", "(vector,0)", "(vector,(0,2))", "(vector,(0,0,1))",
                                 "(vector,(0,1,1)", "(plane,(0,1,1))"})
    EXPECT_THROW(parse_mapping(text, 2), base::Error) << text;
}

TEST(FieldsOfAnAnswer, SemicolonsWithinAValueAreDoubled) {
  const Fields fields = parse_fields("cmd=x-response;rc=0;value=a;;b=c;;;empty=;");
  EXPECT_EQ(fields,
            (Fields{{"cmd", "x-response"}, {"rc", "0"}, {"value", "a;b=c;"}, {"empty", ""}}));
}

// A server of one answer.
class Answered {
 public:
  explicit Answered(const std::string& answer) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0);
    EXPECT_EQ(write(ends_[1], answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
    shutdown(ends_[1], SHUT_WR);
  }
  Answered(const Answered&) = delete;
  Answered& operator=(const Answered&) = delete;
  ~Answered() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Connection connection() { return Connection(ends_[0]); }
  std::string asked() {
    char text[1000];
    const ssize_t bytes = read(ends_[1], text, sizeof text);
    return {text, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
  }

 private:
  int ends_[2] = {-1, -1};
};

TEST(Connection, ACommandHasItsLengthInFront) {
  Answered server("28    cmd=kvs-put-response;rc=0;;");
  server.connection().send("kvs-put", {{"key", "k"}, {"value", "v"}});
  EXPECT_EQ(server.asked(), "    26cmd=kvs-put;key=k;value=v;");
}

TEST(Connection, SpacesStandOnEitherSideOfALength) {
  for (const char* const length : {"    35", "35    ", "  35  "}) {
    Answered server(std::string(length) + "cmd=kvs-get-response;rc=0;value=ab;;");
    EXPECT_EQ(server.connection().ask("kvs-get", {})["value"], "ab") << length;
  }
}

TEST(Connection, WhatIsNoAnswerIsRefused) {
  for (const char* const answer :
       {"", "    27cmd=kvs-", "nonsense of a server", "    27cmd=kvs-put-response;rc=0;;",
        "    27cmd=kvs-get-response;rc=1;;"})
    EXPECT_THROW(Answered(answer).connection().ask("kvs-get", {}), base::Error) << answer;
}

TEST(Connection, AServerOfVersionOneIsRefused) {
  Answered("cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n").connection().greet();
  for (const char* const answer :
       {"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n", "cmd=response_to_init"})
    EXPECT_THROW(Answered(answer).connection().greet(), base::Error) << answer;
}

} // namespace
} // namespace macadam::boot::pmi2
