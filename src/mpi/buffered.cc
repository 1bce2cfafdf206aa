// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/buffered.h"

#include "datatype/cursor.h"
#include "mpi/calls.h"
#include "mpi/checked_message.h"
#include "mpi/communicator.h"
#include "mpi/process.h"

#include <cstring>
#include <iterator>

namespace macadam::mpi {

namespace {

constexpr std::size_t alignment = 64;
static_assert(2 * alignment + sizeof(Note) <= MPI_BSEND_OVERHEAD);

std::byte* aligned(std::byte* place) {
  const auto address = reinterpret_cast<std::uintptr_t>(place);
  return place + (alignment - address % alignment) % alignment;
}

void destroy_flush(Process& self, LayerRequest& request) {
  give_back(self.instance->requests.flushes, static_cast<Flush&>(request));
}

constexpr RequestClass flush_class{.name = "buffer flush", .destroy = destroy_flush};

} // namespace

Flush::Flush(Process& process_of, std::uint64_t last_send)
    : LayerRequest(engine::Role::combined, flush_class), process(process_of), last(last_send) {}

void BufferedSends::attach(Process& self, void* memory, std::size_t bytes) {
  if (attached_) {
    base::fail(MPI_ERR_BUFFER,
               "a buffer is attached already (address {}, {} bytes); detach it first", memory_,
               bytes_);
  }
  if (memory == nullptr && bytes > 0)
    base::fail(
        MPI_ERR_BUFFER,
        "buffer is a null pointer, and size {}; give memory, or MPI_BUFFER_AUTOMATIC for that "
        "of the library",
        bytes);
  process_ = &self;
  automatic_ = memory == MPI_BUFFER_AUTOMATIC;
  memory_ = memory;
  bytes_ = automatic_ ? 0 : bytes;
  attached_ = true;
}

void BufferedSends::detach(void** memory, MPI_Count* bytes) {
  // Also for those that other threads begin meanwhile.
  if (attached_) process_->instance->wait_until([&] { return copies_.empty(); });
  *memory = memory_;
  *bytes = static_cast<MPI_Count>(bytes_);
  memory_ = nullptr;
  bytes_ = 0;
  attached_ = false;
}

void BufferedSends::send(engine::Peer& peer, const engine::Envelope& envelope,
                         const engine::Data& data) {
  if (!attached_) // perhaps never, and then there is no process
    base::fail(MPI_ERR_BUFFER, "no buffer is attached for buffered sends; attach one with "
                               "MPI_Buffer_attach (MPI_BUFFER_AUTOMATIC for one of the library)");
  const std::size_t note = note_bytes(*process_);
  const auto copy = reserve(note + data.bytes());
  engine::SendRequest* request;
  try {
    if (note != 0) {
      const Note mine = note_of(*process_, data);
      std::memcpy(copy->place, &mine, sizeof mine);
    }
    datatype::PackCursor(*data.type, data.address, data.count)
        .pack(copy->place + note, copy->bytes - note);
    const engine::Data packed{copy->place, static_cast<MPI_Count>(copy->bytes),
                              &process_->types[MPI_PACKED]};
    request = process_->instance->engine->send(peer, envelope, packed, engine::SendMode::standard);
  } catch (...) {
    remove(copy);
    throw;
  }
  if (request == nullptr || request->complete) {
    if (request != nullptr) process_->instance->engine->release(request);
    remove(copy);
    return;
  }
  request->argument = &*copy;
  request->continuation = [](engine::Request& done, void* argument) noexcept {
    const Copy& left = *static_cast<Copy*>(argument);
    left.owner->process_->instance->engine->release(&done);
    left.owner->sent(left.self);
  };
}

// Room for a copy that is numbered as the next send.
BufferedSends::Copies::iterator BufferedSends::reserve(std::size_t bytes) {
  auto copy = find_room(bytes);
  while (copy == copies_.end() && process_->instance->engine->progress())
    copy = find_room(bytes);
  if (copy != copies_.end()) return copy;
  if (automatic_) {
    base::fail(MPI_ERR_BUFFER,
               "the automatic buffer has no room for {} bytes: {} of {} bytes hold "
               "sends that have not left; set MACADAM_BUFFERED higher, or call "
               "MPI_Buffer_flush in between",
               bytes, used_, process_->settings.buffered);
  }
  base::fail(MPI_ERR_BUFFER,
             "the attached buffer of {} bytes has no room for {} bytes: {} bytes hold "
             "sends that have not left; attach a larger one (the data and "
             "MPI_BSEND_OVERHEAD for each send that is on its way)",
             bytes_, bytes, used_);
}

// copies_.end() if there is none. In the user's memory a copy goes behind the last one made, else
// to the start: so there is room whenever a circular buffer has it, as the standard promises
// (MPI 5.0, section 3.6). Else it goes into any gap.
BufferedSends::Copies::iterator BufferedSends::find_room(std::size_t bytes) {
  if (spare_.empty()) spare_.emplace_back();
  auto before = copies_.end();
  std::byte* place = nullptr;
  if (automatic_) {
    if (used_ + bytes > static_cast<std::size_t>(process_->settings.buffered)) return copies_.end();
    place = process_->instance->requests.staging.take(bytes);
  } else {
    auto* const start = static_cast<std::byte*>(memory_);
    if (copies_.empty()) {
      tail_ = start;
      behind_tail_ = copies_.end();
    }
    const auto fits = [&](std::byte* from, Copies::iterator next) {
      before = next;
      place = aligned(from);
      std::byte* const end = next == copies_.end() ? start + bytes_ : next->place;
      return place <= end && static_cast<std::size_t>(end - place) >= bytes;
    };
    if (!fits(tail_, behind_tail_) && !fits(start, copies_.begin())) {
      auto copy = copies_.begin();
      while (copy != copies_.end() && !fits(copy->place + copy->bytes, std::next(copy)))
        ++copy;
      if (copy == copies_.end()) return copy;
    }
    tail_ = place + bytes;
    behind_tail_ = before;
  }
  const auto copy = spare_.begin();
  copies_.splice(before, spare_, copy);
  copy->owner = this;
  copy->self = copy;
  copy->place = place;
  copy->bytes = bytes;
  copy->number = ++sends_;
  begun_.push_back(*copy);
  used_ += bytes;
  return copy;
}

void BufferedSends::remove(Copies::iterator copy) {
  if (automatic_) process_->instance->requests.staging.give(copy->place, copy->bytes);
  used_ -= copy->bytes;
  begun_.erase(*copy);
  if (behind_tail_ == copy) ++behind_tail_;
  spare_.splice(spare_.begin(), copies_, copy);
}

// The copy has left.
void BufferedSends::sent(Copies::iterator copy) {
  remove(copy);
  while (!flushes_.empty() && gone(flushes_.front()->last)) {
    Flush& flush = *flushes_.front();
    flushes_.pop_front();
    complete(flush.process, flush, {});
  }
}

void BufferedSends::flush() {
  const std::uint64_t last = sends_;
  if (!copies_.empty()) process_->instance->wait_until([&] { return gone(last); });
}

Flush* BufferedSends::start_flush(Process& self) {
  if (copies_.empty()) return nullptr;
  Flush* flush = self.instance->requests.flushes.make(self, sends_);
  flushes_.push_back(flush);
  return flush;
}

BufferedSends& buffer_for(Process& self, Communicator& comm) {
  if (comm.buffered != nullptr && comm.buffered->attached()) return *comm.buffered;
  if (Session* const session = comm.local->session)
    if (session->buffered != nullptr && session->buffered->attached()) return *session->buffered;
  return self.instance->requests.buffered;
}

void drain(BufferedSends& buffer) {
  void* memory;
  MPI_Count bytes;
  buffer.detach(&memory, &bytes);
}

namespace {

template <class Object> // a communicator or a session
BufferedSends& own_buffer(Object& object) {
  if (object.buffered == nullptr) object.buffered = std::make_unique<BufferedSends>();
  return *object.buffered;
}

void hand_out(Process& self, Flush* flush, MPI_Request* request) {
  *request = flush == nullptr ? handle(self.instance->requests.done) : handle(*flush);
}

} // namespace

void buffer_attach(Process& self, void* buffer, MPI_Count size) {
  self.instance->requests.buffered.attach(self, buffer, static_cast<std::size_t>(size));
}

void buffer_detach(Process& self, void* buffer_addr, MPI_Count* size) {
  self.instance->requests.buffered.detach(static_cast<void**>(buffer_addr), size);
}

void buffer_flush(Process& self) {
  self.instance->requests.buffered.flush();
}

void buffer_iflush(Process& self, MPI_Request* request) {
  hand_out(self, self.instance->requests.buffered.start_flush(self), request);
}

void comm_attach_buffer(Process& self, Communicator& comm, void* buffer, MPI_Count size) {
  own_buffer(comm).attach(self, buffer, static_cast<std::size_t>(size));
}

void comm_detach_buffer(Process&, Communicator& comm, void* buffer_addr, MPI_Count* size) {
  own_buffer(comm).detach(static_cast<void**>(buffer_addr), size);
}

void comm_flush_buffer(Process&, Communicator& comm) {
  own_buffer(comm).flush();
}

void comm_iflush_buffer(Process& self, Communicator& comm, MPI_Request* request) {
  hand_out(self, own_buffer(comm).start_flush(self), request);
}

void session_attach_buffer(Process& self, Session& session, void* buffer, MPI_Count size) {
  own_buffer(session).attach(self, buffer, static_cast<std::size_t>(size));
}

void session_detach_buffer(Process&, Session& session, void* buffer_addr, MPI_Count* size) {
  own_buffer(session).detach(static_cast<void**>(buffer_addr), size);
}

void session_flush_buffer(Process&, Session& session) {
  own_buffer(session).flush();
}

void session_iflush_buffer(Process& self, Session& session, MPI_Request* request) {
  hand_out(self, own_buffer(session).start_flush(self), request);
}

} // namespace macadam::mpi
