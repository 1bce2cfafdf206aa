// SPDX-License-Identifier: BSD-3-Clause
#include "base/settings.h"

#include "base/error.h"

#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <set>
#include <string>
#include <string_view>

namespace macadam::base {
namespace {

const SettingRow& row(std::string_view name) {
  for (const SettingRow& candidate : setting_rows()) {
    if (candidate.name == name) return candidate;
  }
  throw std::out_of_range(std::string(name));
}

TEST(Settings, NamesAreUniqueAndLowerCase) {
  std::set<std::string> names;
  for (const SettingRow& r : setting_rows()) {
    EXPECT_TRUE(names.insert(r.name).second) << r.name;
    for (const char* c = r.name; *c != 0; ++c)
      EXPECT_TRUE(std::islower(*c) || *c == '_') << r.name;
    EXPECT_NE(std::string_view(r.help), "");
  }
}

TEST(Settings, EveryDefaultIsShownAsTextThatSetTakes) {
  for (const SettingRow& r : setting_rows()) {
    Settings settings;
    const std::string text = show(settings, r);
    set(settings, r, text);
    EXPECT_EQ(show(settings, r), text) << r.name;
  }
}

TEST(Settings, NumbersTakeSuffixes) {
  Settings settings;
  set(settings, row("shm_eager"), "12345");
  EXPECT_EQ(settings.shm_eager, 12345);
  set(settings, row("shm_eager"), "64K");
  EXPECT_EQ(settings.shm_eager, 64 << 10);
  set(settings, row("shm_eager"), "2m");
  EXPECT_EQ(settings.shm_eager, 2 << 20);
  set(settings, row("unexpected_limit"), "3G");
  EXPECT_EQ(settings.unexpected_limit, std::int64_t{3} << 30);
  EXPECT_EQ(show(settings, row("unexpected_limit")), "3G");
  set(settings, row("spin"), "-1");
  EXPECT_EQ(settings.spin, -1);
}

TEST(Settings, FlagsAndChoices) {
  Settings settings;
  set(settings, row("last_byte"), "1");
  EXPECT_TRUE(settings.last_byte);
  set(settings, row("last_byte"), "off");
  EXPECT_FALSE(settings.last_byte);
  set(settings, row("protocols"), "sender");
  EXPECT_EQ(settings.protocols, Protocols::sender);
  set(settings, row("shm_copy"), "pipeline");
  EXPECT_EQ(settings.shm_copy, CopyPath::pipeline);
  EXPECT_EQ(show(settings, row("shm_copy")), "pipeline");
}

TEST(Settings, AReportIsAPageOrAFile) {
  Settings settings;
  EXPECT_FALSE(is_report_wanted(settings));
  set(settings, row("report"), "1");
  EXPECT_EQ(show(settings, row("report")), "yes");
  EXPECT_TRUE(is_report_wanted(settings));
  EXPECT_FALSE(is_report_a_file(settings));
  set(settings, row("report"), "My Reports/a.json");
  EXPECT_EQ(settings.report, "My Reports/a.json");
  EXPECT_TRUE(is_report_wanted(settings));
  EXPECT_TRUE(is_report_a_file(settings));
  set(settings, row("report"), "off");
  EXPECT_FALSE(is_report_wanted(settings));
}

TEST(Settings, TextIsTakenAsItIs) {
  Settings settings;
  EXPECT_EQ(show(settings, row("rdma_device")), "");
  set(settings, row("rdma_device"), "mlx5_0:1:3");
  EXPECT_EQ(settings.rdma_device, "mlx5_0:1:3");
  set(settings, row("rdma_device"), std::string(longest_text, 'x'));
  EXPECT_EQ(settings.rdma_device.size(), longest_text);
}

TEST(Settings, ThereAreFew) {
  EXPECT_LE(setting_rows().size(), 30u);
}

TEST(Settings, BadValuesAreRefusedByName) {
  const std::string too_long(longest_text + 1, 'x');
  const struct {
    const char* name;
    const char* text;
    const char* part; // of the message
  } bad[] = {
      {"shm_eager", "", "MACADAM_SHM_EAGER"},
      {"shm_eager", "12X", "12X"},
      {"shm_eager", "-1", "from 0 on"},
      {"shm_eager", "1KK", "suffixes K, M, G"},
      {"shm_eager", "9999999999G", "bytes"},
      {"spin", "-2", "from -1 on"},
      {"last_byte", "maybe", "yes or no"},
      {"protocols", "send", "customized|sender"},
      {"shm_copy", "cma|pipeline", "cma|pipeline"},
      {"network", "ib", "automatic|shm|rdma"},
      {"rdma_device", too_long.c_str(), "at most 255 characters"},
      {"report", "report.txt", "ends with .json"},
  };
  for (const auto& [name, text, part] : bad) {
    Settings settings;
    const std::string before = show(settings, row(name));
    try {
      set(settings, row(name), text);
      ADD_FAILURE() << name << " took '" << text << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.error_class, MPI_ERR_ARG);
      EXPECT_NE(error.text.find(part), std::string::npos) << error.text;
    }
    EXPECT_EQ(show(settings, row(name)), before);
  }
}

TEST(Settings, TheEnvironmentIsReadAndMisspellingsWarn) {
  const std::array environment = {"HOME=/root",
                                  "MACADAM_SHM_EAGER=4K",
                                  "MACADAM_SMH_EAGER=1K",
                                  "MACADAM_JOB=3:0",
                                  "MACADAM_REPORT=perhaps",
                                  "MACADAMIA=nut",
                                  static_cast<const char*>(nullptr)};
  const std::array reserved = {"MACADAM_JOB"};
  Settings settings;
  const auto warnings = read_environment(settings, environment.data(), reserved);
  EXPECT_EQ(settings.shm_eager, 4 << 10);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_EQ(warnings[0], "MACADAM_SMH_EAGER is no setting and was ignored; the nearest name is "
                         "MACADAM_SHM_EAGER");
  EXPECT_EQ(warnings[1], "MACADAM_REPORT: found 'perhaps', needed yes, no or a file whose name "
                         "ends with .json; no is used");
}

} // namespace
} // namespace macadam::base
