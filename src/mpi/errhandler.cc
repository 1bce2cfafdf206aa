// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/errhandler.h"

#include "boot/streams.h"
#include "mpi/calls.h"
#include "mpi/process.h"
#include "mpi/request.h"
#include "mpi/window.h"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace macadam::mpi {
namespace {

using base::ObjectKind;

// One write, so that the blocks of several ranks do not mix.
void say(const std::string& text) {
  std::fflush(stdout);
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data() + written, text.size() - written);
    if (n <= 0) return;
    written += static_cast<std::size_t>(n);
  }
}

[[noreturn]] void end_process(int code) {
  boot::flush_streams();
  std::_Exit(code);
}

std::string code_name(Process& self, int code) {
  const ErrorClass* known = find_error_class(code);
  if (known != nullptr) return known->name;
  return self.error_codes.known(code)
             ? fmt::format("error {} ({})", code, self.error_codes.text(code))
             : fmt::format("error {}", code);
}

// The end of the job that MPI_ERRORS_ARE_FATAL and MPI_ERRORS_ABORT ask for.
[[noreturn]] void die(Process& self, const char* function, const Errhandler& handler, int code,
                      const std::string& text) {
  const std::string where =
      self.job != nullptr ? fmt::format("on rank {} of {} (host {}, process {})", self.job->rank(),
                                        self.job->size(), self.job->host(), ::getpid())
                          : fmt::format("in process {}", ::getpid());
  const char* way =
      handler.action == Errhandler::Action::abort ? "MPI_ERRORS_ABORT" : "MPI_ERRORS_ARE_FATAL";
  const std::string name = code_name(self, code);
  // That another rank is gone mpiexec tells, with the reason; what follows from it would hide that.
  const bool follows = code == MPI_ERR_PROC_ABORTED && self.job != nullptr && !self.job->alone();
  if (!follows) {
    say(fmt::format("macadam: {} failed {}\n"
                    "  {}: {}\n"
                    "  The job ends because the error handler is {}.\n",
                    function, where, name, text, way));
  }
  const int exit_code = code > 0 && code < 256 ? code : 1;
  if (self.job == nullptr) end_process(exit_code);
  self.job->abort(exit_code, fmt::format("failed in {}: {}", function, name),
                  follows ? boot::Blame::peer : boot::Blame::self);
}

int handle_error(Process& self, const char* function, const Errhandler& handler, MPI_Comm comm,
                 MPI_Win win, int code, const std::string& text) {
  switch (handler.action) {
  case Errhandler::Action::return_code:
    break;
  case Errhandler::Action::user:
    if (const auto* call = std::get_if<MPI_Comm_errhandler_function*>(&handler.function)) {
      (*call)(&comm, &code);
    } else if (const auto* on_window =
                   std::get_if<MPI_Win_errhandler_function*>(&handler.function)) {
      (*on_window)(&win, &code);
    }
    break;
  case Errhandler::Action::fatal:
  case Errhandler::Action::abort:
    die(self, function, handler, code, text);
  }
  return code;
}

void check_in_use(const Process& self, int errorcode) {
  if (!self.error_codes.known(errorcode)) {
    base::fail(MPI_ERR_ARG, "errorcode is {}, which is no error code in use", errorcode);
  }
}

} // namespace

Errhandler& share(Errhandler& handler) {
  ++handler.references;
  return handler;
}

void drop(Process& self, Errhandler* handler) {
  if (handler == nullptr || handler->constant != MPI_ERRHANDLER_NULL) return;
  if (--handler->references != 0) return;
  self.anytime_handles.forget(handler->handle());
  give_back(self.errhandlers, *handler);
}

int raise(Process& self, const char* function, const ErrorSource& source,
          const base::Error& error) {
  self.error_codes.remember(error.error_class, fmt::format("{}: {}", function, error.text));
  const auto* operation = dynamic_cast<const OperationError*>(&error);
  const ErrorSource& responsible = operation != nullptr ? operation->source : source;
  if (auto* window = self.find<Window>(responsible.win, ObjectKind::window)) {
    return handle_error(self, function, *window->errhandler, MPI_COMM_NULL, window->handle(),
                        error.error_class, error.text);
  }
  auto* comm = self.find<Communicator>(responsible.comm, ObjectKind::communicator);
  if (comm == nullptr) comm = self.self;
  const Errhandler& handler = comm != nullptr ? *comm->errhandler : self.errors_are_fatal;
  return handle_error(self, function, handler, comm != nullptr ? comm->handle() : MPI_COMM_NULL,
                      MPI_WIN_NULL, error.error_class, error.text);
}

int not_running(const char* function) {
  Process& self = anytime();
  const char* text =
      self.phase == Process::Phase::finalized
          ? "called after MPI_Finalize; only a few functions may be, such as MPI_Finalized"
          : "called before MPI_Init; call MPI_Init or MPI_Init_thread first";
  self.error_codes.remember(MPI_ERR_OTHER, fmt::format("{}: {}", function, text));
  die(self, function, self.errors_are_fatal, MPI_ERR_OTHER, text);
}

// The MPI functions about error handlers.

void comm_create_errhandler(Process& self, MPI_Comm_errhandler_function* function,
                            MPI_Errhandler* errhandler) {
  Errhandler* made = self.errhandlers.make(Errhandler::Action::user);
  made->function = function;
  *errhandler = made->handle();
}

void session_create_errhandler(Process& self, MPI_Session_errhandler_function* function,
                               MPI_Errhandler* errhandler) {
  Errhandler* made = self.errhandlers.make(Errhandler::Action::user);
  made->function = function;
  *errhandler = made->handle();
}

void win_create_errhandler(Process& self, MPI_Win_errhandler_function* function,
                           MPI_Errhandler* errhandler) {
  Errhandler* made = self.errhandlers.make(Errhandler::Action::user);
  made->function = function;
  *errhandler = made->handle();
}

namespace {

// Refuses a user's function that was made for another kind of object.
template <class Function>
void check_made_for(const Errhandler& errhandler, const char* object, const char* call) {
  if (errhandler.action != Errhandler::Action::user ||
      std::holds_alternative<Function>(errhandler.function))
    return;
  base::fail(MPI_ERR_ERRHANDLER,
             "the error handler was made for something else; a {} needs one of {}", object, call);
}

void replace(Process& self, Errhandler*& place, Errhandler& handler) {
  Errhandler* const before = place;
  place = &share(handler);
  drop(self, before);
}

} // namespace

void comm_set_errhandler(Process& self, Communicator& comm, Errhandler& errhandler) {
  check_made_for<MPI_Comm_errhandler_function*>(errhandler, "communicator",
                                                "MPI_Comm_create_errhandler");
  replace(self, comm.errhandler, errhandler);
}

void win_set_errhandler(Process& self, Window& window, Errhandler& errhandler) {
  check_made_for<MPI_Win_errhandler_function*>(errhandler, "window", "MPI_Win_create_errhandler");
  replace(self, window.errhandler, errhandler);
}

void win_get_errhandler(Process&, Window& window, MPI_Errhandler* errhandler) {
  *errhandler = share(*window.errhandler).handle();
}

void win_call_errhandler(Process& self, Window& window, int errorcode) {
  check_in_use(self, errorcode);
  handle_error(self, "MPI_Win_call_errhandler", *window.errhandler, MPI_COMM_NULL, window.handle(),
               errorcode, self.error_codes.text(errorcode));
}

void comm_get_errhandler(Process&, Communicator& comm, MPI_Errhandler* errhandler) {
  *errhandler = share(*comm.errhandler).handle();
}

void errhandler_free(Process& self, MPI_Errhandler* errhandler) {
  // A predefined one too: MPI_Comm_get_errhandler hands it out to be freed.
  drop(self, self.find<Errhandler>(*errhandler, ObjectKind::errhandler));
  *errhandler = MPI_ERRHANDLER_NULL;
}

void comm_call_errhandler(Process& self, Communicator& comm, int errorcode) {
  check_in_use(self, errorcode);
  handle_error(self, "MPI_Comm_call_errhandler", *comm.errhandler, comm.handle(), MPI_WIN_NULL,
               errorcode, self.error_codes.text(errorcode));
}

void add_error_class(Process& self, int* errorclass) {
  *errorclass = self.error_codes.add_class();
  self.attribute_values.last_used_code = self.error_codes.last_used();
}

void add_error_code(Process& self, int errorclass, int* errorcode) {
  *errorcode = self.error_codes.add_code(errorclass);
  self.attribute_values.last_used_code = self.error_codes.last_used();
}

void add_error_string(Process& self, int errorcode, const char* string) {
  self.error_codes.set_string(errorcode, string);
}

void remove_error_class(Process& self, int errorclass) {
  self.error_codes.remove_class(errorclass);
}
void remove_error_code(Process& self, int errorcode) {
  self.error_codes.remove_code(errorcode);
}
void remove_error_string(Process& self, int errorcode) {
  self.error_codes.remove_string(errorcode);
}

void error_class(Process& self, int errorcode, int* errorclass) {
  *errorclass = self.error_codes.class_of(errorcode);
}

void error_string(Process& self, int errorcode, char* string, int* resultlen) {
  const std::string text = self.error_codes.text(errorcode);
  *resultlen = static_cast<int>(text.copy(string, MPI_MAX_ERROR_STRING - 1));
  string[*resultlen] = '\0';
}

} // namespace macadam::mpi
