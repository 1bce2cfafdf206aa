// SPDX-License-Identifier: BSD-3-Clause
// The entry points of gravel.h.
#pragma GCC visibility push(default) // what it declares is exported
#include "libgravel/gravel.h"
#pragma GCC visibility pop

#include "libgravel/library.h"

#include <memory>
#include <new>
#include <string>

namespace {

using namespace macadam;
using gravel::Code;
using gravel::Core;
using gravel::Driver;
using libgravel::Library;

static_assert(GRAVEL_SUCCESS == static_cast<int>(Code::success));
static_assert(GRAVEL_ERR_STATE == static_cast<int>(Code::state));
static_assert(GRAVEL_ERR_ARGUMENT == static_cast<int>(Code::argument));
static_assert(GRAVEL_ERR_MEMORY == static_cast<int>(Code::memory));
static_assert(GRAVEL_ERR_RANGE == static_cast<int>(Code::range));
static_assert(GRAVEL_ERR_REQUEST == static_cast<int>(Code::request));
static_assert(GRAVEL_ERR_BUFFER == static_cast<int>(Code::buffer));
static_assert(GRAVEL_ERR_INCOMPLETE == static_cast<int>(Code::incomplete));
static_assert(GRAVEL_ERR_TRANSFER == static_cast<int>(Code::transfer));
static_assert(GRAVEL_ERR_PEER == static_cast<int>(Code::peer));
static_assert(GRAVEL_ERR_SYSTEM == static_cast<int>(Code::system));
static_assert(GRAVEL_ANY_SOURCE == gravel::any_source && GRAVEL_ANY_TAG == gravel::any_tag);

std::unique_ptr<Library> running;
std::string last_error;

int remember(const char* function, Code code, const char* text) {
  last_error = std::string(function) + ": " + text;
  return static_cast<int>(code);
}

// Nothing that is thrown leaves the library.
template <class Body>
int guarded(const char* function, Body&& body) {
  try {
    body();
    return GRAVEL_SUCCESS;
  } catch (const gravel::Error& error) {
    return remember(function, error.code, error.what());
  } catch (const base::Error& error) {
    return remember(function, Code::system, error.what());
  } catch (const std::bad_alloc&) {
    return remember(function, Code::system, "there is no memory left");
  } catch (const std::exception& error) {
    return remember(function, Code::system, error.what());
  }
}

template <class Body>
int call(const char* function, Body&& body) {
  return guarded(function, [&] {
    if (running == nullptr)
      gravel::fail(Code::state, "Gravel is not running; call gravel_init() first");
    body(running->driver(), running->driver().core());
  });
}

template <class Value>
void need(Value* pointer, const char* name) {
  if (pointer == nullptr) gravel::fail(Code::argument, "{} is a null pointer", name);
}

template <class Value, class Found>
void tell(Value* where, Found found) {
  if (where != nullptr) *where = static_cast<Value>(found);
}

std::uint64_t id_of(std::int64_t handle) {
  return static_cast<std::uint64_t>(handle);
}

// Hands the request out; without a place for it, waits.
void hand_out(Driver& driver, std::uint64_t id, gravel_request* request) {
  driver.push();
  if (request == nullptr) return driver.finish(id);
  *request = static_cast<gravel_request>(id);
}

// Without a place for its request, that of the FIN stands for a fragment.
Core::Asked asked(const gravel_request* request) {
  return request == nullptr ? Core::Asked::no : Core::Asked::yes;
}

void hand_out_fragment(Driver& driver, std::uint64_t id, gravel_request* request) {
  tell(request, id);
  driver.push();
}

// Takes an announcement of `source` if there is one.
template <class Take>
auto look(Driver& driver, int source, int* flag, Take&& take) {
  auto found = take();
  if (!found && driver.look(source)) found = take();
  *flag = found.has_value() ? 1 : 0;
  return found;
}

} // namespace

extern "C" {

int gravel_init(MPI_Comm comm) {
  return guarded("gravel_init", [&] {
    if (running != nullptr) gravel::fail(Code::state, "Gravel is running already");
    running = std::make_unique<Library>(comm);
  });
}

int gravel_finalize(void) {
  return call("gravel_finalize", [](Driver& driver, Core& core) {
    if (const std::string left = core.unfinished(); !left.empty())
      gravel::fail(Code::incomplete,
                   "{} not finished; wait for requests, and send the FIN of "
                   "buffers that were taken",
                   left);
    driver.leave();
    running.reset();
  });
}

const char* gravel_error_message(void) {
  return last_error.c_str();
}

int gravel_register(void* memory, size_t bytes) {
  return call("gravel_register", [&](Driver&, Core& core) { core.register_memory(memory, bytes); });
}

int gravel_unregister(void* memory) {
  return call("gravel_unregister", [&](Driver&, Core& core) { core.unregister_memory(memory); });
}

int gravel_post_recv_buffer_rdma(int producer, void* memory, size_t bytes, int tag,
                                 gravel_request* request) {
  return call("gravel_post_recv_buffer_rdma", [&](Driver& driver, Core& core) {
    need(request, "request");
    hand_out(driver, core.post_receive_buffer(producer, memory, bytes, tag), request);
  });
}

int gravel_promise_recv_buffers(int producer, size_t bytes, int tag, size_t count) {
  return call("gravel_promise_recv_buffers", [&](Driver& driver, Core& core) {
    core.promise_receive_buffers(producer, bytes, tag, count);
    driver.push();
  });
}

int gravel_test_recv_buffer(int consumer, int tag, gravel_buffer* buffer, int* flag) {
  return call("gravel_test_recv_buffer", [&](Driver& driver, Core& core) {
    need(buffer, "buffer");
    need(flag, "flag");
    const auto found =
        look(driver, consumer, flag, [&] { return core.take_receive_buffer(consumer, tag); });
    if (found) tell(buffer, *found);
  });
}

int gravel_wait_recv_buffer(int consumer, int tag, gravel_buffer* buffer) {
  return call("gravel_wait_recv_buffer", [&](Driver& driver, Core& core) {
    need(buffer, "buffer");
    tell(buffer,
         driver.wait_for(consumer, [&] { return core.take_receive_buffer(consumer, tag); }));
  });
}

int gravel_post_os_put(gravel_buffer buffer, const void* memory, size_t bytes, size_t offset,
                       gravel_request* request) {
  return call("gravel_post_os_put", [&](Driver& driver, Core& core) {
    hand_out_fragment(driver, core.put(id_of(buffer), memory, bytes, offset, asked(request)),
                      request);
  });
}

int gravel_post_os_get(gravel_buffer buffer, void* memory, size_t bytes, size_t offset,
                       gravel_request* request) {
  return call("gravel_post_os_get", [&](Driver& driver, Core& core) {
    hand_out_fragment(driver, core.get(id_of(buffer), memory, bytes, offset, asked(request)),
                      request);
  });
}

int gravel_send_fin(gravel_buffer buffer, gravel_request* request) {
  return call("gravel_send_fin", [&](Driver& driver, Core& core) {
    hand_out(driver, core.send_fin(id_of(buffer)), request);
  });
}

int gravel_post_send_request_rdma(int consumer, size_t bytes, int tag, gravel_request* request) {
  return call("gravel_post_send_request_rdma", [&](Driver& driver, Core& core) {
    hand_out(driver, core.post_send_request(consumer, bytes, tag), request);
  });
}

int gravel_test_send_request(int producer, int tag, int* from, int* found_tag, size_t* bytes,
                             int* flag) {
  return call("gravel_test_send_request", [&](Driver& driver, Core& core) {
    need(flag, "flag");
    const auto found =
        look(driver, producer, flag, [&] { return core.take_send_request(producer, tag); });
    if (!found) return;
    tell(from, found->producer);
    tell(found_tag, found->tag);
    tell(bytes, found->bytes);
  });
}

int gravel_wait_send_request(int producer, int tag, int* from, int* found_tag, size_t* bytes) {
  return call("gravel_wait_send_request", [&](Driver& driver, Core& core) {
    const auto found =
        driver.wait_for(producer, [&] { return core.take_send_request(producer, tag); });
    tell(from, found.producer);
    tell(found_tag, found.tag);
    tell(bytes, found.bytes);
  });
}

int gravel_post_send_buffer_rdma(int consumer, const void* memory, size_t bytes, int tag,
                                 gravel_request* request) {
  return call("gravel_post_send_buffer_rdma", [&](Driver& driver, Core& core) {
    need(request, "request");
    hand_out(driver, core.post_send_buffer(consumer, memory, bytes, tag), request);
  });
}

int gravel_test_send_buffer(int producer, int tag, gravel_buffer* buffer, int* flag) {
  return call("gravel_test_send_buffer", [&](Driver& driver, Core& core) {
    need(buffer, "buffer");
    need(flag, "flag");
    const auto found =
        look(driver, producer, flag, [&] { return core.take_send_buffer(producer, tag); });
    if (found) tell(buffer, *found);
  });
}

int gravel_wait_send_buffer(int producer, int tag, gravel_buffer* buffer) {
  return call("gravel_wait_send_buffer", [&](Driver& driver, Core& core) {
    need(buffer, "buffer");
    tell(buffer, driver.wait_for(producer, [&] { return core.take_send_buffer(producer, tag); }));
  });
}

int gravel_get_buffer(gravel_buffer buffer, int* peer, int* tag, size_t* bytes) {
  return call("gravel_get_buffer", [&](Driver&, Core& core) {
    const gravel::Buffer& found = core.buffer(id_of(buffer));
    tell(peer, found.peer->rank);
    tell(tag, found.tag);
    tell(bytes, found.bytes);
  });
}

int gravel_wait(gravel_request* request) {
  return call("gravel_wait", [&](Driver& driver, Core& core) {
    need(request, "request");
    if (*request == GRAVEL_REQUEST_NULL) return;
    gravel::Request& its = core.request(id_of(*request)); // a wrong one stays as it is
    *request = GRAVEL_REQUEST_NULL;
    driver.finish(its);
  });
}

int gravel_test(gravel_request* request, int* flag) {
  return call("gravel_test", [&](Driver& driver, Core& core) {
    need(request, "request");
    need(flag, "flag");
    if (*request == GRAVEL_REQUEST_NULL) {
      *flag = 1;
      return;
    }
    gravel::Request& its = core.request(id_of(*request)); // a wrong one leaves the flag as it is
    if (!its.complete) driver.look(static_cast<int>(its.peer->rank));
    *flag = its.complete ? 1 : 0;
    if (*flag == 0) return;
    *request = GRAVEL_REQUEST_NULL;
    core.finish(its);
  });
}

int gravel_waitall(int count, gravel_request requests[]) {
  int first = call("gravel_waitall", [&](Driver&, Core&) {
    if (count < 0) gravel::fail(Code::argument, "{} requests", count);
    if (count > 0) need(requests, "requests");
  });
  if (first != GRAVEL_SUCCESS) return first;
  std::string first_error;
  for (int i = 0; i < count; ++i) {
    const int code = gravel_wait(&requests[i]);
    if (code == GRAVEL_SUCCESS || first != GRAVEL_SUCCESS) continue;
    first = code;
    first_error = "gravel_waitall: request " + std::to_string(i) + ": " + last_error;
  }
  if (first != GRAVEL_SUCCESS) last_error = first_error;
  return first;
}

} // extern "C"
