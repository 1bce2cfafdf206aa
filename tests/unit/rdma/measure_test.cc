// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/measure.h"

#include "base/error.h"
#include "sim/device.h"

#include <gtest/gtest.h>

namespace macadam::net::rdma {
namespace {

struct Measured {
  explicit Measured(const sim::Model& model, const sim::Faults& faults = {})
      : scheduler(1), fabric(scheduler, model, faults, 1), processor(scheduler),
        device(fabric, processor) {}
  sim::Scheduler scheduler;
  sim::Fabric fabric;
  sim::Processor processor;
  sim::SimulatedDevice device;
};

TEST(Measure, finds_what_the_model_says) {
  sim::Model model;
  model.progress_thread_ns = 12'000;
  model.message_gap_ns = 500; // what bounds the rate
  Measured measured(model);
  const ProgressThreadFigures figures = measure_progress_thread(measured.device);
  EXPECT_NEAR(figures.wake_up, 12e-6, 1e-6);
  EXPECT_NEAR(figures.rate, 2e6, 0.2e6);
  EXPECT_NEAR(measured_watermark(figures), 24, 4);
}

// What the processors do for a message, or what is between two on the way, whichever is longer.
TEST(Measure, finds_what_a_message_costs) {
  sim::Model model;
  model.message_gap_ns = 0;
  model.post_ns = 3000;
  model.receive_ns = 2000;
  model.completion_ns = 1000;
  Measured busy(model);
  const double cost = measure_message(busy.device);
  EXPECT_GT(cost, 4e-6);
  EXPECT_LT(cost, 10e-6);
  model.post_ns = model.receive_ns = model.completion_ns = 10;
  model.message_gap_ns = 20'000;
  Measured slow(model);
  EXPECT_NEAR(measure_message(slow.device), 20e-6, 2e-6);
}

TEST(Measure, follows_the_progress_thread) {
  sim::Model model;
  model.progress_thread_ns = 50'000;
  Measured measured(model);
  EXPECT_NEAR(measure_progress_thread(measured.device).wake_up, 50e-6, 1e-6);
}

TEST(Measure, takes_the_longer_wake_ups) {
  sim::Model model;
  model.progress_thread_ns = 10'000;
  sim::Faults faults;
  faults.progress_thread_jitter_ns = 10'000;
  Measured measured(model, faults);
  EXPECT_NEAR(measure_progress_thread(measured.device).wake_up, 19e-6,
              1e-6); // nine of ten are shorter
}

TEST(Measure, needs_shared_receive_queues) {
  sim::Model model;
  model.shared_depth = 0;
  Measured measured(model);
  try {
    measure_progress_thread(measured.device);
    FAIL() << "measured";
  } catch (const base::Error& error) {
    EXPECT_NE(error.text.find("no shared receive queues"), std::string::npos) << error.text;
  }
  EXPECT_THROW(measure_message(measured.device), base::Error);
}

TEST(Measure, a_watermark_is_never_0) {
  EXPECT_EQ(measured_watermark({.wake_up = 0, .rate = 1e6}), 1u);
  EXPECT_EQ(measured_watermark({.wake_up = 12e-6, .rate = 25e6}), 300u); // as in the paper
}

} // namespace
} // namespace macadam::net::rdma
