// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/model.h"

#include "net/rdma/ibverbs/device.h"
#include "net/rdma/measure.h"
#include "net/rdma/model.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace macadam::tools {
namespace {

namespace model = net::rdma::model;

struct Column {
  std::string receive;
  model::Shape shape;
  std::vector<std::size_t> bytes; // for each number of ranks
  std::vector<std::size_t> pinned;
};

base::ReceiveMode receive_mode(const std::string& name) {
  if (name == "ring") return base::ReceiveMode::ring;
  if (name == "mixed") return base::ReceiveMode::mixed;
  return name == "credit" ? base::ReceiveMode::credit : base::ReceiveMode::shared;
}

Column compute(const ModelQuestion& question, base::Settings settings, const std::string& receive,
               std::set<std::string>& lowered) {
  settings.rdma_receive = receive_mode(receive);
  std::vector<std::string> lines;
  Column column{receive, model::shape_of(settings, question.adapter, lines), {}, {}};
  lowered.insert(lines.begin(), lines.end());
  for (const std::size_t ranks : question.ranks) {
    const std::size_t connections = std::max<std::size_t>(ranks, 1) - 1;
    const model::Use use = {.connections = connections,
                            .sends = question.sends,
                            .buffers = question.buffers,
                            .rings = std::min<std::size_t>(connections, column.shape.rings)};
    column.bytes.push_back(model::bytes(column.shape, use));
    column.pinned.push_back(model::pinned_bytes(column.shape, use));
  }
  return column;
}

std::string as_json(const ModelQuestion& question, const std::vector<Column>& columns,
                    const std::set<std::string>& lowered, const std::string& driver) {
  nlohmann::json json;
  json["ranks"] = question.ranks;
  json["sends"] = question.sends;
  json["lowered"] = lowered;
  json["driver"] = driver;
  json["adapter"] = {{"inline", question.adapter.inline_bytes},
                     {"completion_depth", question.adapter.completion_depth}};
  for (const Column& column : columns) {
    json["bytes"][column.receive] = column.bytes;
    json["pinned"][column.receive] = column.pinned;
  }
  return json.dump(2) + "\n";
}

} // namespace

net::rdma::model::Driver measure_driver(net::rdma::Device& device, base::Settings settings) {
  std::vector<std::string> lowered;
  const auto shape = [&](base::ReceiveMode mode) {
    settings.rdma_receive = mode;
    return model::shape_of(settings, device.limits(), lowered);
  };
  return net::rdma::measure_driver(device, shape(base::ReceiveMode::shared),
                                   shape(base::ReceiveMode::credit));
}

std::string model_page(ModelQuestion question, base::Settings settings) {
  if (question.measure) {
    const std::unique_ptr<net::rdma::Device> device =
        net::rdma::ibverbs::open_device(settings.rdma_device);
    question.adapter = device->limits();
    settings.rdma_driver = model::text_of(measure_driver(*device, settings));
  } else if (!question.driver.empty()) {
    settings.rdma_driver = question.driver;
  }
  std::set<std::string> lowered;
  std::vector<Column> columns;
  for (const std::string& receive : question.receive)
    columns.push_back(compute(question, settings, receive, lowered));
  if (question.json) return as_json(question, columns, lowered, settings.rdma_driver);

  std::string page =
      "MB that the RDMA transport of a process holds when connected to all others, by how it "
      "receives\n";
  page += fmt::format("{:>10}", "ranks");
  for (const Column& column : columns)
    page += fmt::format("{:>14}", column.receive);
  for (std::size_t i = 0; i < question.ranks.size(); ++i) {
    page += fmt::format("\n{:>10}", question.ranks[i]);
    for (const Column& column : columns)
      page += fmt::format("{:>14.3f}", static_cast<double>(column.bytes[i]) * 1e-6);
  }
  page += '\n';
  if (!settings.rdma_driver.empty())
    page += "bytes of the driver, for an entry of each queue: " + settings.rdma_driver + '\n';
  for (const std::string& line : lowered)
    page += line + '\n';
  return page;
}

} // namespace macadam::tools
