// SPDX-License-Identifier: BSD-3-Clause
#include "boot/hang/waiting.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace macadam::boot {
namespace {

using Json = nlohmann::json;

const Json& member(const Json& object, const char* name) {
  static const Json nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

Envelope read_envelope(const Json& json, const char* peer) {
  const Json& comm = member(json, "comm");
  return {comm.is_string() ? comm.get<std::string>()
          : comm.is_null() ? ""
                           : "communicator " + comm.dump(),
          json.value(peer, any), json.value("tag", any), json.value("bytes", std::uint64_t{0})};
}

} // namespace

Waiting read_waiting(const std::string& text) {
  Waiting result;
  try {
    const Json json = Json::parse(text);
    result.in = json.value("waiting_in", "");
    result.what = json.value("waiting_for", "");
    result.may_do_more = json.value("may_do_more", false);
    result.moves = json.value("moves", std::uint64_t{0});
    result.damage = json.value("error", "");
    for (const Json& row : member(json, "posted"))
      result.posted.push_back(
          {read_envelope(row, "source"), row.value("announced", false), row.value("probe", false)});
    for (const Json& row : member(json, "unexpected"))
      result.unexpected.push_back(read_envelope(row, "source"));
    for (const Json& row : member(json, "rendezvous"))
      result.rendezvous.push_back({read_envelope(row, "peer"), row.value("protocol", ""),
                                   row.value("stage", ""), row.value("sending", false),
                                   row.contains("tag"), row.value("unmarked", 0) != 0});
    for (const Json& row : member(json, "collectives"))
      result.collectives.push_back({row.value("id", std::uint64_t{0}), row.value("comm", ""),
                                    row.value("function", ""), row.value("number", 0U),
                                    row.value("members", std::vector<int>{}),
                                    row.value("persistent", false)});
    for (const Json& row : member(json, "called"))
      result.called[row.value("id", std::uint64_t{0})] = {row.value("count", 0U),
                                                          row.value("last", "")};
    for (const Json& row : member(json, "windows")) {
      InWindow window{row.value("id", std::uint64_t{0}),
                      row.value("name", ""),
                      {},
                      row.value("waits_for", any),
                      row.value("members", std::vector<int>{}),
                      row.value("post_of", any),
                      row.value("complete_of", std::vector<int>{})};
      for (const Json& lock : member(row, "holds"))
        window.holds[lock.value("rank", any)] = lock.value("exclusive", false);
      result.windows.push_back(std::move(window));
    }
    for (const Json& row : member(json, "connections"))
      result.connections[row.value("state", "unknown")].push_back(row.value("peer", any));
  } catch (const Json::exception& error) {
    result.damage = error.what();
  }
  return result;
}

} // namespace macadam::boot
