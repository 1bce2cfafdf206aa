// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/model.h"

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
    column.bytes.push_back(model::bytes(column.shape, connections, question.sends));
    column.pinned.push_back(model::pinned_bytes(column.shape, connections, question.sends));
  }
  return column;
}

std::string as_json(const ModelQuestion& question, const std::vector<Column>& columns,
                    const std::set<std::string>& lowered) {
  nlohmann::json json;
  json["ranks"] = question.ranks;
  json["sends"] = question.sends;
  json["lowered"] = lowered;
  for (const Column& column : columns) {
    json["bytes"][column.receive] = column.bytes;
    json["pinned"][column.receive] = column.pinned;
  }
  return json.dump(2) + "\n";
}

} // namespace

std::string model_page(const ModelQuestion& question, const base::Settings& settings) {
  std::set<std::string> lowered;
  std::vector<Column> columns;
  for (const std::string& receive : question.receive)
    columns.push_back(compute(question, settings, receive, lowered));
  if (question.json) return as_json(question, columns, lowered);

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
  for (const std::string& line : lowered)
    page += line + '\n';
  return page;
}

} // namespace macadam::tools
