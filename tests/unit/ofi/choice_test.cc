// SPDX-License-Identifier: BSD-3-Clause
#include "net/ofi/choice.h"

#include "base/error.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace macadam::test {
namespace {

using net::ofi::choose;
using net::ofi::Offer;
using net::ofi::Wish;

const std::vector<Offer> machine = {
    {"tcp;ofi_rxm", "docker0", "172.17.0.1"},
    {"tcp;ofi_rxm", "eth0", "10.1.0.7"},
    {"tcp;ofi_rxm", "eth0", "fe80::1"},
    {"tcp;ofi_rxm", "lo", "::1"},
    {"tcp;ofi_rxm", "lo", "127.0.0.1"},
    {"udp;ofi_rxd", "eth0", "10.1.0.7"},
    {"shm", "shm", ""},
};

TEST(OfiChoice, OneMachineIsServedOnLoopbackAlone) {
  EXPECT_EQ(choose(machine, {.one_machine = true, .interface = {}, .source = {}}), 4u);
  const std::vector<Offer> no_loopback(machine.begin(), machine.begin() + 3);
  EXPECT_THROW(
      static_cast<void>(choose(no_loopback, {.one_machine = true, .interface = {}, .source = {}})),
      base::Error);
}

TEST(OfiChoice, TheAddressThatReachesTheOthers) {
  EXPECT_EQ(choose(machine, {.one_machine = false, .interface = {}, .source = "10.1.0.7"}), 1u);
  EXPECT_EQ(choose(machine, {.one_machine = false, .interface = "docker0", .source = "10.1.0.7"}),
            0u);
  EXPECT_EQ(choose(machine, {.one_machine = false, .interface = "10.1.0.7", .source = {}}), 1u);
}

TEST(OfiChoice, AnAdapterComesBeforeTcp) {
  auto offers = machine;
  offers.push_back({"verbs;ofi_rxm", "mlx5_0", "10.1.0.7"});
  offers.push_back({"cxi", "cxi0", ""});
  EXPECT_EQ(choose(offers, {.one_machine = false, .interface = {}, .source = "10.1.0.7"}),
            machine.size() + 1);
  offers.pop_back();
  EXPECT_EQ(choose(offers, {.one_machine = false, .interface = {}, .source = "10.1.0.7"}),
            machine.size());
}

// `verbs` offers each adapter by an InfiniBand address first, which leads nowhere over RoCE.
TEST(OfiChoice, AnAdapterIsTakenByItsIpAddress) {
  auto offers = machine;
  offers.push_back({"verbs;ofi_rxm", "mlx5_0", ""});
  offers.push_back({"verbs;ofi_rxm", "mlx5_0", "10.1.0.7"});
  EXPECT_EQ(choose(offers, {.one_machine = true, .interface = {}, .source = {}}),
            machine.size() + 1);
  EXPECT_EQ(choose(offers, {.one_machine = false, .interface = {}, .source = "10.1.0.7"}),
            machine.size() + 1);
  offers.pop_back();
  EXPECT_EQ(choose(offers, {.one_machine = false, .interface = {}, .source = "10.1.0.7"}),
            machine.size());
}

TEST(OfiChoice, SharedMemoryReachesNoOtherMachine) {
  EXPECT_EQ(choose(std::vector<Offer>{{"shm", "shm", ""}},
                   {.one_machine = true, .interface = {}, .source = {}}),
            0u);
  EXPECT_THROW(static_cast<void>(choose(std::vector<Offer>{{"shm", "shm", ""}},
                                        {.one_machine = false, .interface = {}, .source = {}})),
               base::Error);
}

TEST(OfiChoice, ARefusalNamesWhatWasFoundAndTheRemedy) {
  try {
    static_cast<void>(choose(machine, {.one_machine = false, .interface = "ib0", .source = {}}));
    FAIL() << "nothing was thrown";
  } catch (const base::Error& error) {
    for (const char* const part :
         {"MACADAM_NET_INTERFACE", "'ib0'", "tcp;ofi_rxm on eth0 10.1.0.7"})
      EXPECT_NE(error.text.find(part), std::string::npos) << error.text;
  }
}

std::string refusal_of_nothing(const std::string& interface) {
  try {
    static_cast<void>(choose({}, {.one_machine = true, .interface = interface, .source = {}}));
  } catch (const base::Error& error) {
    return error.text;
  }
  return "nothing was thrown";
}

TEST(OfiChoice, WhoAsksForNoProviderThatThereIsIsTold) {
  const char* const set = std::getenv("FI_PROVIDER");
  std::optional<std::string> before;
  if (set != nullptr) before = set;
  for (const char* const name : {"nonsense", ""}) {
    setenv("FI_PROVIDER", name, 1);
    for (const char* const interface : {"", "eth0"}) {
      const std::string text = refusal_of_nothing(interface);
      EXPECT_NE(text.find(fmt::format("FI_PROVIDER is '{}'", name)), std::string::npos) << text;
      EXPECT_NE(text.find("unset it"), std::string::npos) << text;
    }
  }
  unsetenv("FI_PROVIDER");
  EXPECT_NE(refusal_of_nothing("").find("found none"), std::string::npos);
  if (before) setenv("FI_PROVIDER", before->c_str(), 1);
}

TEST(OfiChoice, ASourceAddressIsTheRoutes) {
  EXPECT_EQ(net::ofi::source_address("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(net::ofi::source_address("no such host, surely"), "");
}

} // namespace
} // namespace macadam::test
