// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mem/registrar.h"
#include "net/ofi/choice.h"
#include "net/ofi/library.h"
#include "net/ofi/wire.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace macadam::net::ofi {

// Facts about a provider, constant after it was opened.
struct ProviderLimits {
  std::size_t inject = 0;  // bytes that a message may have to be copied by the provider
  std::size_t message = 0; // longest message, put and get
  // A put is in place before a later message is delivered, and before what a later put places; a
  // get finds what was put before it.
  bool ordered = false;
  bool stream = false;            // all of a pair goes through one connection, which delivers it
  bool tcp = false;               // ... of TCP
  bool bare_tcp = false;          // ... of TCP, and nothing stands between
  bool gathers = false;           // a message may be of two blocks, which need not be registered
  bool chooses_keys = false;      // else we do
  bool virtual_addresses = false; // peers name memory by its address, else by its place in a region
  bool registers_local = false;   // our own side of a put or get is registered too
  bool pins = false;              // registered memory must be there, and stay what it is
  bool wakes = false;             // descriptor() is known to tell of all that arrives
};

// All endpoints that libfabric offers for this transport. Throws base::Error if it refuses to say.
[[nodiscard]] std::vector<Offer> list_offers(const Library& library);

template <class Object>
struct CloseObject {
  void operator()(Object* object) const { fi_close(&object->fid); }
};
template <class Object>
using Owned = std::unique_ptr<Object, CloseObject<Object>>;

class Fabric;

// Registered memory. Of providers that need none for the own side, it may be nothing at all.
class Region final : public mem::MemoryRegion {
 public:
  Region(Fabric& fabric, void* memory, std::size_t bytes, mem::Access access);
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() override;

  // How a peer names a place in it.
  [[nodiscard]] engine::RemoteMemory name(const void* memory) const {
    return {reinterpret_cast<std::uintptr_t>(memory) - base_, remote_key};
  }
  [[nodiscard]] void* descriptor() const {
    return region_ == nullptr ? nullptr : fi_mr_desc(region_.get());
  }

 private:
  friend class Fabric;

  Fabric& fabric_;
  Owned<fid_mr> region_;
  std::uintptr_t begin_ = 0;
  std::size_t bytes_ = 0;
  std::uintptr_t base_ = 0; // what addresses count from
  bool remote_ = false;
};

// An endpoint of a libfabric provider, with its completion queue and address vector.
class Fabric final : public mem::Registrar {
 public:
  // Opens the best that there is. Throws base::Error (MPI_ERR_OTHER), with all that was offered.
  Fabric(const Library& library, const Wish& wish);
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  ~Fabric() = default;

  [[nodiscard]] const std::string& name() const override { return name_; } // "tcp;ofi_rxm on lo"
  [[nodiscard]] const ProviderLimits& limits() const { return limits_; }
  [[nodiscard]] const wire::Endpoint& address() const { return address_; }
  [[nodiscard]] std::string text_of(long error) const { return library_.text_of(error); }

  std::unique_ptr<mem::MemoryRegion> register_memory(void* memory, std::size_t bytes,
                                                     mem::Access access) override;
  // Where registered memory of this process is; null if it is not all in one region.
  [[nodiscard]] std::byte* find(engine::RemoteMemory memory, std::size_t bytes) const;

  // Throws base::Error (MPI_ERR_OTHER) if it is no address of this provider's.
  fi_addr_t insert(const wire::Endpoint& peer);
  void remove(fi_addr_t peer);

  // Null once closed.
  [[nodiscard]] fid_ep* endpoint() const { return endpoint_.get(); }
  [[nodiscard]] fid_cq* completions() const { return completions_.get(); }
  // Nothing is sent, received, read or written any more.
  void close() { endpoint_.reset(); }

  // Readable when poll() would find something, if may_sleep() has said so since the last poll; -1:
  // the provider has none.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] bool may_sleep() const;

 private:
  friend class Region;

  void open(const fi_info& info);
  [[nodiscard]] std::uint64_t new_key() const;

  const Library library_;
  std::string name_;
  ProviderLimits limits_;
  std::uint64_t key_mask_ = 0; // of keys that we choose
  bool binds_regions_ = false; // to the endpoint
  wire::Endpoint address_;
  int descriptor_ = -1;
  std::unordered_map<std::uint64_t, const Region*> regions_; // those of peers, by key
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_cq> completions_;
  Owned<fid_av> addresses_;
  Owned<fid_ep> endpoint_;
};

} // namespace macadam::net::ofi
