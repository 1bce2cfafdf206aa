// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/model.h"

#include "net/ofi/measure.h"
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

namespace {

// Over libfabric, where the provider says nothing of its memory: it is measured.
std::string page_of_peers(const ModelQuestion& question, const base::Settings& settings) {
  const net::ofi::Wish wish{.one_machine = true, .interface = settings.net_interface, .source = {}};
  const net::ofi::PeerMemory found = net::ofi::measure_peer_memory(wish, question.peers);
  const auto route = static_cast<double>(net::ofi::route_bytes());
  std::vector<double> bytes;
  for (const std::size_t ranks : question.ranks) {
    const auto others = static_cast<double>(std::max<std::size_t>(ranks, 1) - 1);
    const double pools = others > 0 ? found.pools : 0;
    bytes.push_back(found.endpoint + pools + others * (found.known + found.talked + route));
  }
  if (question.json) {
    const nlohmann::json json = {{"provider", found.provider},
                                 {"endpoint", found.endpoint},
                                 {"known", found.known},
                                 {"talked", found.talked},
                                 {"pools", found.pools},
                                 {"files", found.files},
                                 {"route", route},
                                 {"ranks", question.ranks},
                                 {"bytes", bytes}};
    return json.dump(2) + "\n";
  }
  std::string page = fmt::format(
      "MB that a process holds for libfabric and all others, with whom it has talked, over {}\n"
      "{:>10}{:>14}\n",
      found.provider, "ranks", "MB");
  for (std::size_t i = 0; i < bytes.size(); ++i)
    page += fmt::format("{:>10}{:>14.3f}\n", question.ranks[i], bytes[i] * 1e-6);
  page += fmt::format("measured with {} processes, bytes: the endpoint {:.0f}; a peer whose "
                      "address is known {:.0f}, "
                      "{:.0f} of our own; one with whom it has talked {:.0f} more and {:.2g} open "
                      "files; pools, for "
                      "all together, {:.0f}\n",
                      question.peers, found.endpoint, found.known, route, found.talked, found.files,
                      found.pools);
  return page;
}

} // namespace

std::string model_page(ModelQuestion question, base::Settings settings) {
  if (question.peers > 0) return page_of_peers(question, settings);
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
