// SPDX-License-Identifier: BSD-3-Clause
// The built-in programs: that each runs, and who talks to whom in the NAS benchmarks.
#include "devices.h"
#include "sim/patterns/study.h"

#include <nlohmann/json.hpp>

namespace macadam::test {
namespace {

using sim::Outcome;
using sim::Study;

Study study(const std::string& name, int ranks, std::vector<std::string> parameters = {}) {
  sim::WorldOptions options;
  options.ranks = ranks;
  options.settings.emplace();
  sim::World world(options);
  return run_pattern(world, sim::find_pattern(name), parameters);
}

TEST(Patterns, all_run_to_their_end) {
  for (const sim::Pattern& pattern : sim::patterns()) {
    const int ranks = pattern.ranks != 0 ? pattern.ranks : 16;
    const Study result = study(pattern.name, ranks);
    EXPECT_EQ(result.outcome.end, Outcome::End::finished)
        << pattern.name << ": " << result.outcome.text;
    EXPECT_EQ(result.connections.ranks, static_cast<unsigned>(ranks)) << pattern.name;
  }
}

// Wu et al., Table 2, where it does not depend on the collectives' algorithms.
TEST(Patterns, connect_as_the_paper_counts) {
  EXPECT_EQ(study("ring", 16).connections.mean(), 2);
  EXPECT_EQ(study("ring", 32).connections.mean(), 2);
  EXPECT_EQ(study("alltoall", 16, {"bytes=64K"}).connections.mean(), 15);
  EXPECT_EQ(study("is", 32).connections.mean(), 31);
  EXPECT_EQ(study("start", 16).connections.mean(), 0);
  EXPECT_LE(study("sp", 36).connections.mean(), 12);
  EXPECT_GE(study("sp", 36).connections.mean(), 6);
}

// Reordering brings neighbours onto one machine. The bytes are the network's own count; the edges
// between machines were counted by hand where the ranks are in the job's order.
TEST(Patterns, reordered_topologies_send_less_between_machines) {
  struct Case {
    const char* shape;
    int ranks, per_node;
    int edges_in_order; // 0: not known
  };
  for (const auto& [shape, ranks, per_node, edges] :
       {Case{"2d", 16, 4, 12}, Case{"2d", 64, 16, 24}, Case{"3d", 64, 8, 64},
        Case{"irregular", 48, 8, 0}}) {
    sim::WorldOptions options;
    options.ranks = ranks;
    options.ranks_per_node = per_node;
    options.settings.emplace();
    sim::World world(options);
    const std::vector<std::string> parameters = {std::string("shape=") + shape, "bytes=64K"};
    const Study study = run_pattern(world, sim::find_pattern("neighbors"), parameters);
    ASSERT_EQ(study.rows.size(), 2u) << study.outcome.text;
    const double in_order = study.rows[0].values.at("bytes_between_nodes");
    const double reordered = study.rows[1].values.at("bytes_between_nodes");
    EXPECT_LT(reordered, in_order) << shape << " on " << ranks;
    if (edges == 0) continue;
    EXPECT_NEAR(in_order, 2.0 * edges * 65536, 0.05 * in_order) << shape;
  }
}

TEST(Patterns, two_levels_are_no_slower_than_one) {
  struct Case {
    int ranks, per_node;
    bool dealt;
  };
  for (const auto& [ranks, per_node, dealt] :
       {Case{64, 8, false}, Case{64, 8, true}, Case{24, 4, false}, Case{24, 4, true}}) {
    sim::WorldOptions options;
    options.ranks = ranks;
    options.ranks_per_node = per_node;
    options.dealt = dealt;
    options.settings.emplace();
    sim::World world(options);
    const Study study = run_pattern(world, sim::find_pattern("levels"), {});
    ASSERT_EQ(study.rows.size(), 6u) << study.outcome.text;
    for (const sim::Row& row : study.rows) {
      const auto value = [&](const char* name) { return row.values.at(name); };
      EXPECT_LE(value("two_levels_us"), value("one_level_us")) << row.what << " on " << ranks;
      // Dealt out, many pairs of one level are on the same machine.
      if (dealt) continue;
      EXPECT_LE(value("two_levels_bytes_between"), value("one_level_bytes_between")) << row.what;
    }
  }
}

// The rules of the settings are those that the library takes.
TEST(Patterns, levels_are_as_the_settings_say) {
  const auto between = [](const std::string& levels) {
    sim::WorldOptions options;
    options.ranks = 32;
    options.ranks_per_node = 8;
    options.settings.emplace().levels = levels;
    sim::World world(options);
    const std::vector<std::string> parameters{"only=barrier"};
    const Study study = run_pattern(world, sim::find_pattern("levels"), parameters);
    EXPECT_EQ(study.rows.size(), 1u) << study.outcome.text;
    return std::pair(study.rows.at(0).values.at("one_level_bytes_between"),
                     study.rows.at(0).values.at("two_levels_bytes_between"));
  };
  const auto by_default = between("");
  EXPECT_LT(2 * by_default.second, by_default.first);
  const auto none = between("none");
  EXPECT_EQ(none.second, none.first);
  EXPECT_EQ(between("barrier leaders any 9").second, none.first);
  EXPECT_EQ(between("barrier leaders any 8").second, by_default.second);
}

TEST(Patterns, refuse_what_they_cannot_run_on) {
  EXPECT_NE(study("cg", 12).outcome.text.find("a power of two of ranks, not on 12"),
            std::string::npos);
  EXPECT_NE(study("bt", 12).outcome.text.find("a square of ranks, not on 12"), std::string::npos);
  EXPECT_NE(study("burst", 3).outcome.text.find("on 2 ranks, not on 3"), std::string::npos);
  EXPECT_NE(study("ring", 2, {"byte=3"})
                .outcome.text.find("no parameter 'byte'; it has bytes, iterations"),
            std::string::npos);
  EXPECT_NE(study("ring", 2, {"bytes=3X"}).outcome.text.find("found '3X', needed a number"),
            std::string::npos);
  EXPECT_NE(error_of([] { sim::find_pattern("rign"); }).find("no pattern 'rign'; there are start"),
            std::string::npos);
}

TEST(Patterns, results_are_a_table_or_json) {
  const Study result = study("pingpong", 2, {"bytes=8:1K"});
  const auto json = nlohmann::json::parse(as_json(result));
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][1]["what"], "1024 bytes");
  EXPECT_GT(json["rows"][1]["round_trip_us"], json["rows"][0]["round_trip_us"]);
  EXPECT_EQ(json["connections"]["mean"], 1);
  EXPECT_NE(as_table(result).find("round_trip_us"), std::string::npos);
}

// Sur et al., Figure 10: without the watermark, a burst longer than the queue is slow.
TEST(Patterns, a_burst_shows_what_the_watermark_is_for) {
  const auto waitall = [](std::int64_t watermark) {
    sim::WorldOptions options;
    options.settings.emplace();
    options.settings->rdma_watermark = watermark;
    sim::World world(options);
    const std::vector<std::string> parameters{"bursts=200:1000"};
    const Study result = run_pattern(world, sim::find_pattern("burst"), parameters);
    EXPECT_EQ(result.rows.size(), 2u) << result.outcome.text;
    return std::pair(result.rows.at(0).values.at("waitall_us"),
                     result.rows.at(1).values.at("waitall_us"));
  };
  const auto with = waitall(base::Settings{}.rdma_watermark), without = waitall(0);
  EXPECT_NEAR(without.first, with.first, with.first * 0.5); // short bursts fit anyway
  // What was refused comes at the next try, 640 us after the one before.
  EXPECT_GT(without.second, with.second + 640.0 / 4);
}

// All has come: a wait reads it without giving its core to others in between.
TEST(Patterns, a_wait_reads_a_burst_in_one_go) {
  sim::WorldOptions options;
  options.settings.emplace();
  sim::World world(options);
  const std::vector<std::string> parameters{"bursts=400"};
  const Study result = run_pattern(world, sim::find_pattern("burst"), parameters);
  ASSERT_EQ(result.rows.size(), 1u) << result.outcome.text;
  // 256 bytes each, the headers that repeat are left out.
  const double copying_ns = 256 / options.model.copy_mb_per_s * 1e3;
  const double reading_us = 400e-3 * (options.model.completion_ns + copying_ns);
  EXPECT_LT(result.rows.at(0).values.at("waitall_us"), 1.5 * reading_us);
}

} // namespace
} // namespace macadam::test
