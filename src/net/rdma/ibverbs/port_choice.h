// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/affinity.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Which port of which adapter a process uses, and by which of its addresses: decided from facts
// alone (surroundings.h and adapters.h gather them).
namespace macadam::net::rdma::ibverbs {

enum class LinkLayer : std::uint8_t { infiniband, ethernet, other };
enum class GidKind : std::uint8_t { infiniband, roce_v1, roce_v2 };

// An address of a port: an entry of its GID table.
struct Gid {
  std::uint32_t index = 0;
  GidKind kind = GidKind::infiniband;
  std::array<std::uint8_t, 16> bytes = {};
  // Of Ethernet: so many bits of it are the same for all that are reached without a router. All:
  // nobody else is known to be.
  unsigned subnet_bits = 128;
};

bool is_link_local(const Gid& gid);

using base::Threads;

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
  bool software = false;     // the adapter is the kernel's, which every processor runs
  Threads near;              // next to the adapter; empty: none is nearer than others
  int node = -1;             // ... and their NUMA node; -1: not known

  [[nodiscard]] std::string name() const; // "mlx5_0:1"
};

// One of the ports that the user allows by MACADAM_RDMA_DEVICE: "name[:port[:gid index]]".
struct PortRequest {
  std::string device;
  std::optional<std::uint32_t> port;
  std::optional<std::uint32_t> gid;
};

// Separated by commas; from an empty text none, which allows any. Throws base::Error (MPI_ERR_ARG).
std::vector<PortRequest> parse_port_requests(std::string_view text);

// Whether a port can be used, and by which address.
struct Verdict {
  std::string refusal; // empty: it can
  Gid gid;
};
Verdict judge(const PortFacts& port, std::span<const PortRequest> requests);

// Where a process is in its machine.
struct NumaNode {
  int number = 0;
  Threads threads;
  std::vector<unsigned> distances; // to each node of the list, as the kernel counts: 10 to itself
};
struct Seat {
  unsigned local_rank = 0;  // among the ranks of its job that are on this machine
  unsigned local_ranks = 0; // so many are; 0: not known
  Threads threads;          // that it may run on; empty: not known
  std::vector<NumaNode> nodes;
};

struct PortChoice {
  std::size_t port = 0; // index into the list
  Gid gid;
  bool several = false; // can be used
  std::string why;      // "the only port that can be used"
  // Another one that no other rank of the job takes, for halves of long data; if none of
  // several: why.
  std::optional<std::size_t> second;
  Gid second_gid;
  std::string why_alone;
  // Of each port of the list that can be used and was not taken: why not.
  std::vector<std::string> others;
};
// Of the usable ports the fastest, and of those equally fast, which reach each other, the nearest
// to the process's cores. Equally near ones are taken in turn, so that the ranks of a machine use
// all of them. A rank of a machine with more such ports than ranks has a second one beside its
// own; if they are not equally near to all ranks, only a rank that is alone there. Software ports
// only if they were named: they all are the same processors; so too those of InfiniBand with the
// prefix that networks come with, which may be two networks. Throws base::Error (MPI_ERR_OTHER)
// with the reason for each port if there is none.
PortChoice choose_port(std::span<const PortFacts> ports, std::span<const PortRequest> requests,
                       const Seat& seat);

// As users write addresses: "192.168.0.1", "fe80::1".
std::string text_of(const std::array<std::uint8_t, 16>& gid);
const char* text_of(GidKind kind);

} // namespace macadam::net::rdma::ibverbs
