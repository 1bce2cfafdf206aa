// SPDX-License-Identifier: BSD-3-Clause
#include "devices.h"
#include "sim/model.h"

#include <filesystem>
#include <fstream>
#include <sstream>

namespace macadam::test {
namespace {

using sim::read_faults;
using sim::read_model;

TEST(Model, keys_replace_defaults) {
  const Model model = read_model(R"({"name": "x", "latency_ns": 600, "atomics": false})", "file");
  EXPECT_EQ(model.name, "x");
  EXPECT_EQ(model.latency_ns, 600);
  EXPECT_FALSE(model.atomics);
  EXPECT_EQ(model.post_ns, Model{}.post_ns);
}

TEST(Model, what_is_wrong_is_told_with_file_key_and_need) {
  const auto text = [](const char* json) { return error_of([&] { read_model(json, "x.json"); }); };
  EXPECT_EQ(text(R"({"latency_us": 1})"),
            "x.json: there is no key \"latency_us\"; the nearest is \"latency_ns\"");
  EXPECT_EQ(text(R"({"bandwidth_mb_per_s": 0})"),
            "x.json: \"bandwidth_mb_per_s\" is 0, needed a number from 0.001 to 1000000000");
  EXPECT_EQ(text(R"({"queue_pairs": 1.5})"),
            "x.json: \"queue_pairs\" is 1.5, needed a whole number from 1 to 16777216");
  EXPECT_EQ(text(R"({"atomics": 1})"), "x.json: \"atomics\" is 1, needed true or false");
  EXPECT_EQ(text(R"({"poll_ns": "fast"})"),
            "x.json: \"poll_ns\" is \"fast\", needed a number from 1 to 1000000000000");
  EXPECT_EQ(text(R"({"poll_ns": 1, "sources": {}})"),
            "x.json: \"poll_ns\" has a value and no source, needed both");
  EXPECT_EQ(text(R"({"sources": {"a manual": ["poll_ns"]}})"),
            "x.json: \"poll_ns\" has a source and no value, needed both");
  EXPECT_EQ(text(R"({"poll_ns": 1, "sources": {"a manual": ["poll_ns"], "a paper": ["poll_ns"]}})"),
            "x.json: \"poll_ns\" has two sources, needed one");
  EXPECT_EQ(text("[]"), "x.json: found array, needed an object of keys and numbers");
  EXPECT_NE(text("{").find("x.json: this is no JSON"), std::string::npos);
}

TEST(Model, is_changed_by_a_list) {
  sim::Model model;
  sim::change_model(model, "copy_mb_per_s=9000,atomics=no");
  EXPECT_EQ(model.copy_mb_per_s, 9000);
  EXPECT_FALSE(model.atomics);
  EXPECT_EQ(model.latency_ns, sim::Model().latency_ns);
  EXPECT_EQ(error_of([&] { sim::change_model(model, "copy_mb_per=1"); }),
            "change: there is no key \"copy_mb_per\"; the nearest is \"copy_mb_per_s\"");
}

TEST(Faults, are_read_from_a_list) {
  const Faults faults = read_faults("datagram_loss=0.25,shuffle,slow_rank=3,split_writes=no");
  EXPECT_EQ(faults.datagram_loss, 0.25);
  EXPECT_TRUE(faults.shuffle);
  EXPECT_EQ(faults.slow_rank, 3);
  EXPECT_FALSE(faults.split_writes);
  EXPECT_EQ(error_of([] { read_faults("datagram_los=1"); }),
            "faults: there is no key \"datagram_los\"; the nearest is \"datagram_loss\"");
  EXPECT_EQ(error_of([] { read_faults("jitter=x"); }),
            "faults: \"jitter\" is \"x\", needed a number from 0 to 1000");
}

// Every preset can be read, says where its numbers come from, and is complete.
TEST(Presets, are_whole) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MACADAM_PRESETS)) {
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    const Model model = read_model(text.str(), entry.path().filename());
    EXPECT_EQ(model.name + ".json", entry.path().filename());
    EXPECT_FALSE(model.description.empty()) << entry.path();
    for (const auto& key : sim::model_keys())
      EXPECT_NE(text.str().find('"' + std::string(key.name) + '"'), std::string::npos)
          << entry.path() << " leaves out " << key.name;
    // The library's own work is free nowhere.
    for (const double cost : {model.post_ns, model.receive_ns, model.poll_ns, model.completion_ns,
                              model.call_ns, model.matching_ns})
      EXPECT_GT(cost, 0) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 4);
}

} // namespace
} // namespace macadam::test
