// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job.h"
#include "boot/packet.h"
#include "boot/universe.h"

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace macadam::boot {

// How processes and mpiexecs of one machine and user talk about jobs, ports and names.
//
// Each mpiexec listens on a Unix socket with an abstract name, which is in no file system and ends
// with the process. Names are seen by all users, so both sides look at the other's credentials
// before they say anything, and a request has the secret of a job besides.
//
// A connection is one operation: one packet with the request, one with the answer. So an operation
// is called off by closing it, and the kernel does that for a process that is killed. Packets are
// whole or not there (SOCK_SEQPACKET).
//
// A process that connects to a port whose owner is not there yet is introduced, if both are of the
// mpiexec's own jobs: each gets a packet with the other's Met and the descriptor of its job's
// memory, the one before its answer, the owner on the connection with which it has opened the port,
// which it keeps. So the owner can accept without mpiexec, and each may have mapped the other's
// memory before (door.h).

inline constexpr std::uint64_t control_magic = 0x6d6163'6374726c; // "mac" "ctrl"
// The version of packets, tickets and ports.
inline constexpr std::uint32_t control_version = 6;
inline constexpr std::size_t longest_packet = std::size_t{128} << 10;
inline constexpr std::size_t longest_socket_name = 47;
inline constexpr std::size_t longest_host_name = 63;

enum class Request : std::uint32_t {
  spawn,     // commands: Spawned, with the descriptor of the job's memory. The caller confirms that
             // it has met it; unconfirmed jobs are ended
  open_port, // none: text. The connection stays, for introductions
  close_port, // text
  accept,     // text: Met, with the descriptor of the other's job's memory if it is at hand
  connect,    // PortKey, JobTicket (of the caller), number of the meeting (0: the caller cannot be
              // introduced): as accept
  publish,    // service and port, texts
  unpublish,  // the same
  look_up,    // service: service and port, texts. To the name's own socket
  meet,       // host and socket of the job's ticket, texts: none, with the descriptor of the job's
              // memory; or the socket, text, of who has that on this machine
  relay,      // Where, host, socket and another request, texts: what that is answered with. For a
              // part of this mpiexec or of another one on another machine

  // Asked by one part of an mpiexec of another, or by another mpiexec.
  start,    // SpawnParent and commands: as spawn
  describe, // none: generation, machines and their ranks (JobDescription)
  address,  // generation and rank: address
  watch,    // none: none, once the job has ended
  link,     // none, with a descriptor: none. It is a stream from another mpiexec (links.h)
};

// Which part of an mpiexec on several machines a request is for.
enum class Where : std::uint8_t {
  named, // who listens at the named socket of the named host
  first, // that of the first machine, where names are published
};

// Begins each request.
struct RequestHead {
  std::uint64_t magic = control_magic;
  std::uint32_t version = control_version;
  Request request = Request::meet;
  Secret job = {};        // of the caller; of the job that is asked about (meet)
  std::uint32_t rank = 0; // of the caller
};

// In place of an error class: nobody is there any more who could answer (Call::Whom).
inline constexpr std::int32_t nobody_there = -1;
// ... no answer, but an introduction.
inline constexpr std::int32_t an_introduction = -2;

// Begins each answer. A text follows that says what failed, or what the request asks for.
struct AnswerHead {
  std::uint64_t magic = control_magic;
  std::uint32_t version = control_version;
  std::int32_t error_class = MPI_SUCCESS;
};

// What a JobTicket holds.
struct Ticket {
  std::uint64_t magic = control_magic;
  std::uint32_t version = control_version;
  Secret job = {};
  std::array<char, longest_socket_name + 1> socket = {}; // null-terminated
  std::array<char, longest_host_name + 1> host = {};     // the same
};
JobTicket show_ticket(const Ticket& ticket);
JobTicket make_ticket(const Secret& job, std::string_view socket, std::string_view host);
// Throws MPI_ERR_OTHER for what is none, or that of another version.
Ticket read_ticket(const JobTicket& ticket);

// The unguessable part of a port's name.
using PortKey = Secret;
struct Port {
  std::string host;   // that it was opened on
  std::string socket; // of its owner's mpiexec
  PortKey key = {};
};
std::string show_port(const Port& port);
// Throws MPI_ERR_PORT.
Port read_port(std::string_view text);

// Random bytes of the system. Throws MPI_ERR_OTHER.
Secret random_secret();
std::string random_socket_name();
// The parts of an mpiexec on several machines listen at its name and the number of the machine.
std::string part_of(std::string_view mpiexec, std::uint32_t machine);
struct Part {
  std::string mpiexec;
  std::uint32_t machine = 0;
  bool operator==(const Part&) const = default;
};
// Whose name of a socket this is.
Part read_part(std::string_view socket);
std::uint32_t random_meeting();
// The name of the socket at which a service of this user can be looked up.
std::string socket_name_of(std::string_view service);

// Sockets with abstract names, non-blocking and closed on exec. -1 with errno.
int listen_at(std::string_view name);
int make_socket();
// EAGAIN if the other side is busy; may be called again.
int connect_to(int socket, std::string_view name);

// The user at the other end of a connection, or who listens there; nothing if unknown.
std::optional<uid_t> user_of(int socket);

// False with errno. `descriptor` goes along, unless -1.
bool send_packet(int socket, const std::vector<std::byte>& bytes, int descriptor = -1);
struct Packet {
  std::vector<std::byte> bytes;
  int descriptor = -1; // closed on exec; the receiver's
};
// Nothing, with errno 0 at the end of the connection. Does not wait.
std::optional<Packet> receive_packet(int socket);

} // namespace macadam::boot
