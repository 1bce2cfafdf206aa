// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/slab.h"
#include "engine/request.h"
#include "mem/buffers.h"
#include "mpi/buffered.h"
#include "mpi/checked_message.h"
#include "mpi/collectives.h"
#include "mpi/generalized.h"
#include "mpi/p2p.h"
#include "mpi/partitioned.h"
#include "mpi/request.h"

namespace macadam::mpi {

// The requests of a process that this layer makes, and the two shared ones that are always
// complete.
struct Requests {
  Requests() {
    done.complete = true;
    from_nobody.complete = true;
    from_nobody.status.source = MPI_PROC_NULL;
  }

  engine::Request done{engine::Role::done};        // a send that has finished inside its call
  engine::Request from_nobody{engine::Role::done}; // a receive from MPI_PROC_NULL
  base::Slab<PersistentMessage> persistent;
  base::Slab<PartitionedRequest> partitioned;
  base::Slab<Exchange> exchanges;
  base::Slab<CheckedMessage> checked;
  base::Slab<CollectiveRequest> collectives;
  base::Slab<Generalized> generalized;
  base::Slab<Flush> flushes;
  mem::Buffers staging;   // of MPI_Isendrecv_replace, automatic buffers of buffered sends
  BufferedSends buffered; // the buffer of MPI_Buffer_attach
};

} // namespace macadam::mpi
