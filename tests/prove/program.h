// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/settings.h"
#include "mpi.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Small programs of point-to-point calls, their text, and what the network may do to them.
namespace macadam::prove {

// Payload bytes up to which a message is EAGER and HYBRID here: contents are cheap to check.
inline constexpr std::size_t eager_limit = 8, hybrid_limit = 16;

// One call of a process. `peer` may be MPI_ANY_SOURCE, `tag` MPI_ANY_TAG where MPI has them.
struct Step {
  enum class What {
    send,
    synchronous_send,
    exchange_send,    // as of MPI_Sendrecv
    nonblocking_send, // as of MPI_Isend
    receive,
    probe,           // Iprobe: what it says is compared
    match_probe,     // Improbe
    receive_matched, // Imrecv of the process's last matched probe; nothing if that found nothing
    cancel,          // of the process's receive `number`, in order of posting from 0
    withdraw,        // ... of its send `number`
    wait,            // until that receive is complete
    free_context,    // as MPI_Comm_free: waits until the process has nothing in flight there
    partitioned_send,
    partitioned_receive,
    start_round, // of the process's partitioned operation `number`
    mark_ready,  // ... its partition `partition`
    mark_only,   // the same by a thread that does not get the lock
    end_round,   // until the round is over
  } what = What::send;
  int peer = 0;
  int tag = 0;
  std::size_t bytes = 0; // of the message, or room of a receive
  int number = 0;
  std::size_t partitions = 0; // of `bytes` each
  std::size_t partition = 0;
  bool noncontiguous = false; // the data are of a noncontiguous type
  int context = 0;

  bool operator==(const Step&) const = default;
};

// How puts and gets of the network end.
enum class Transfers {
  at_once,
  blocking, // later, by the poll of the one who began them; sends are refused meanwhile
  ordered, // later; a put lands at any time before the message behind it, which may be sent at once
  either,  // at once or blocking, each as it comes
};

struct Conditions {
  base::Rendezvous rendezvous = base::Rendezvous::read;
  base::Protocols protocols = base::Protocols::customized;
  Transfers transfers = Transfers::at_once;
  unsigned refusals = 0; // operations that the network refuses (`busy`), in one run
  unsigned scarce = 0;   // times in one run that no memory is registered, or no put tells its end
  bool late = false;     // peers are connected some time after the first use
  bool bursts = false;   // one poll may deliver several things
  bool notifications = false; // puts tell their target that they are there; not with `either`
  bool last_byte = false; // their end is seen by the last byte; not with refusals, blocking or late
  bool throttle = false;  // room for one unexpected message
  bool uncopied = false;  // data of EAGER messages may leave their memory late; not with at_once
  bool bundles = false;   // EAGER messages of a burst travel together
  bool copies = false;    // puts and gets take the poster's processor
  bool fragments = false; // EAGER messages with data come in two fragments
  unsigned deaths = 0;    // processes that disappear, at any step
  unsigned starved = 0;   // times in one run that there is no memory for something in the library
  unsigned tags = 128;    // ordinals kept per peer

  bool operator==(const Conditions&) const = default;
};

struct Program {
  Conditions conditions;
  std::vector<std::vector<Step>> ranks;

  [[nodiscard]] std::size_t steps() const;
  bool operator==(const Program&) const = default;
};

// "write blocking refusals=1 / send 1 0 20, send 1 0 4 / recv 0 0 24, recv * * 24, cancel 0":
// the conditions, then the steps of each rank. A number of bytes with `g` is of a
// noncontiguous type; "@1" behind a step is its context if that is not 0.
std::string show(const Program& program);
std::string show(const Step& step);
// Throws std::invalid_argument that says what was found where, and what is needed.
Program parse(std::string_view text);

} // namespace macadam::prove
