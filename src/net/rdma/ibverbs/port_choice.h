// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Which port of which adapter a process uses, and by which of its addresses: decided from facts
// alone.
namespace macadam::net::rdma::ibverbs {

enum class LinkLayer : std::uint8_t { infiniband, ethernet, other };
enum class GidKind : std::uint8_t { infiniband, roce_v1, roce_v2 };

// An address of a port: an entry of its GID table.
struct Gid {
  std::uint32_t index = 0;
  GidKind kind = GidKind::infiniband;
  std::array<std::uint8_t, 16> bytes = {};
};

struct PortFacts {
  std::string device;
  std::uint8_t number = 1; // of the port, from 1 on
  std::string trouble;     // why it could not be opened or asked; then nothing below is known
  bool queue_pairs = true; // has RC and UD ones; iWARP and vendors' own networks have not
  std::string state;       // "active", "down", ...
  bool active = false;
  LinkLayer layer = LinkLayer::infiniband;
  bool global = false; // every packet needs a route header, so the peer's GID
  std::uint16_t lid = 0;
  std::uint8_t mtu = 0;      // verbs' code: 128 << code bytes
  std::uint32_t message = 0; // bytes: longest
  double gigabits = 0;       // per second
  std::vector<Gid> gids;     // the valid ones

  [[nodiscard]] std::string name() const; // "mlx5_0:1"
};

// What the user asks for by MACADAM_RDMA_DEVICE: "name[:port[:gid index]]", empty for any.
struct PortRequest {
  std::string device;
  std::optional<std::uint32_t> port;
  std::optional<std::uint32_t> gid;
};

// Throws base::Error (MPI_ERR_ARG).
PortRequest parse_port_request(std::string_view text);

// Whether a port can be used, and by which address.
struct Verdict {
  std::string refusal; // empty: it can
  Gid gid;
};
Verdict judge(const PortFacts& port, const PortRequest& request);

struct PortChoice {
  std::size_t port = 0; // index into the list
  Gid gid;
};
// The fastest usable port, the first of those equally fast. Throws base::Error (MPI_ERR_OTHER) with
// the reason for each port if there is none.
PortChoice choose_port(std::span<const PortFacts> ports, const PortRequest& request);

// As users write addresses: "192.168.0.1", "fe80::1".
std::string text_of(const std::array<std::uint8_t, 16>& gid);
const char* text_of(GidKind kind);

} // namespace macadam::net::rdma::ibverbs
