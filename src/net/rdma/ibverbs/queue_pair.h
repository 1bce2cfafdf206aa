// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/ibverbs/port.h"

namespace macadam::net::rdma::ibverbs {

// Made ready to receive at once if it is for datagrams, else by accept().
class IbverbsQueuePair final : public QueuePair {
 public:
  IbverbsQueuePair(Port& port, const QueuePairOptions& options);

  [[nodiscard]] std::uint32_t number() const override { return pair_->qp_num; }
  void accept(const QueuePairAddress& remote, const Retries& retries) override;
  void establish() override;
  void fail() override;
  std::size_t post(std::span<const SendWork> work) override;
  bool post_receive(std::span<const ReceiveWork> work) override;

 private:
  void initialise(std::uint32_t qkey);
  void start_datagrams();
  std::size_t post_many(std::span<const SendWork> work);
  [[gnu::always_inline]] std::size_t post_chain(ibv_send_wr& first, std::size_t count);
  void modify(ibv_qp_attr& attributes, int mask, const char* to);

  Port& port_;
  Owned<ibv_qp> pair_;
  const bool datagrams_;
  QueuePairAddress remote_;
  Retries retries_;
};

// Throws base::Error if there is no way to that port.
std::unique_ptr<AddressHandle> make_address(Port& port, const PortAddress& to);

} // namespace macadam::net::rdma::ibverbs
