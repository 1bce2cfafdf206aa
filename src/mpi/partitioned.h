// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/partitioned.h"
#include "mpi/request.h"

namespace macadam::mpi {

// MPI_Psend_init and MPI_Precv_init. Of the two pointers one is set; none with MPI_PROC_NULL.
struct PartitionedRequest : LayerRequest {
  PartitionedRequest(const RequestClass& how, Process& process_of, int number)
      : LayerRequest(engine::Role::partitioned, how), process(process_of), partitions(number) {
    complete = true;
  }

  Process& process;
  int partitions;
  engine::PartitionedSend* send = nullptr;
  engine::PartitionedReceive* receive = nullptr;
};

} // namespace macadam::mpi
