// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/errhandler.h"

#include "boot/streams.h"
#include "mpi/callback.h"
#include "mpi/calls.h"
#include "mpi/file.h"
#include "mpi/process.h"
#include "mpi/request.h"
#include "mpi/window.h"

#include <cstdio>
#include <cstdlib>
#include <new>
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

// Where an error happened, for people.
std::string location(const Library& self) {
  if (self.job == nullptr) return fmt::format("in process {}", ::getpid());
  return fmt::format("on rank {} of {} (host {}, process {})", self.job->rank(), self.job->size(),
                     self.job->host(), ::getpid());
}

// `reason` follows the rank's number on mpiexec's line.
[[noreturn]] void end_job(Library& self, int code, const std::string& reason, boot::Blame blame) {
  if (self.job == nullptr || self.forked_from != 0) end_process(code);
  if (self.trace) {
    const Held held(self);
    self.trace->write();
  }
  self.job->abort(code, reason, blame);
}

std::string code_name(Library& self, int code) {
  const Held held(self);
  const ErrorClass* known = find_error_class(code);
  if (known != nullptr) return known->name;
  return self.error_codes.known(code)
             ? fmt::format("error {} ({})", code, self.error_codes.text(code))
             : fmt::format("error {}", code);
}

// Whether the error says that another rank is gone. Of several operations at once one may have
// failed for that.
bool tells_of_gone(Library& self, int code) {
  if (code != MPI_ERR_IN_STATUS) return code == MPI_ERR_PROC_ABORTED;
  const Held held(self);
  const Process* const process = running.load();
  return process != nullptr && process->instance && process->instance->engine->any_failed();
}

// For mpiexec's line. If all of a text has no room there, its last clauses have, which say why.
std::string reason_of(const char* function, std::string_view text) {
  const std::string beginning = fmt::format("failed in {}: ", function);
  while (beginning.size() + text.size() > boot::LaunchedJob::longest_reason) {
    const std::size_t clause = text.find(": ");
    if (clause == std::string_view::npos) break;
    text.remove_prefix(clause + 2);
  }
  return beginning + std::string(text);
}

// The end of the job that MPI_ERRORS_ARE_FATAL and MPI_ERRORS_ABORT ask for.
[[noreturn]] void die(Library& self, const char* function, const Errhandler& handler, int code,
                      const std::string& text) {
  const char* way =
      handler.action == Errhandler::Action::abort ? "MPI_ERRORS_ABORT" : "MPI_ERRORS_ARE_FATAL";
  const std::string name = code_name(self, code);
  // That another rank is gone mpiexec tells, with the reason; what follows from it would hide that.
  // If nobody can tell, as the rank was not mpiexec's, the text goes with the end.
  const bool follows = tells_of_gone(self, code) && self.job != nullptr && !self.job->alone();
  if (!follows) {
    say(fmt::format("macadam: {} failed {}\n"
                    "  {}: {}\n"
                    "  The {} ends because the error handler is {}.\n",
                    function, location(self), name, text, self.forked_from != 0 ? "process" : "job",
                    way));
  }
  const int exit_code = code > 0 && code < 256 ? code : 1;
  end_job(self, exit_code, reason_of(function, follows ? text : name),
          follows ? boot::Blame::peer : boot::Blame::self);
}

// Calls a user's function with the object that it is for.
struct UserCall {
  ErrorSource& of;
  int& code;

  void operator()(std::monostate) const {}
  void operator()(MPI_Comm_errhandler_function* function) const { function(&of.comm, &code); }
  void operator()(MPI_Session_errhandler_function* function) const { function(&of.session, &code); }
  void operator()(MPI_Win_errhandler_function* function) const { function(&of.win, &code); }
  void operator()(MPI_File_errhandler_function* function) const { function(&of.file, &code); }
};

} // namespace

int call(Library& self, const char* function, const Errhandler& handler, ErrorSource of, int code,
         const std::string& text) {
  switch (handler.action) {
  case Errhandler::Action::return_code:
    break;
  case Errhandler::Action::user:
    run_callback(
        "an error handler",
        [&] {
          std::visit(UserCall{of, code}, handler.function);
        },
        function);
    break;
  case Errhandler::Action::fatal:
  case Errhandler::Action::abort:
    die(self, function, handler, code, text);
  }
  return code;
}

namespace {

// The text of an error code that the program gives.
std::string text_of(Library& self, int errorcode) {
  const Held held(self);
  if (!self.error_codes.known(errorcode)) {
    base::fail(MPI_ERR_ARG, "errorcode is {}, which is no error code in use", errorcode);
  }
  return self.error_codes.text(errorcode);
}

// An error handler for the program.
void call_for_program(Library& self, const char* function, Errhandler& handler,
                      const ErrorSource& of, int errorcode) {
  const std::string text = text_of(self, errorcode);
  const ErrhandlerRef kept(handler);
  const LetGo let_go(self);
  call(self, function, handler, of, errorcode, text);
}

template <class Function>
void make_handler(Library& self, Function* function, MPI_Errhandler* errhandler) {
  const Held held(self);
  Errhandler* made = self.errhandlers.make(Errhandler::Action::user);
  made->function = function;
  *errhandler = made->handle();
}

} // namespace

void escaped(const char* callback, const char* what, const char* function) {
  Process& self = anytime();
  if (function == nullptr) function = self.function;
  say(fmt::format("macadam: {} ended with a C++ exception{}{}, called by {} {}\n"
                  "  MPI passes no exceptions on; catch it inside of the callback.\n",
                  callback, what != nullptr ? ": " : "", what != nullptr ? what : "", function,
                  location(self)));
  end_job(self, 1, fmt::format("let an exception out of {} in {}", callback, function),
          boot::Blame::self);
}

Errhandler& share(Library& self, Errhandler& handler) {
  const Held held(self);
  ++handler.references;
  return handler;
}

void drop(Library& self, Errhandler* handler) {
  const Held held(self);
  if (handler == nullptr || handler->constant != MPI_ERRHANDLER_NULL) return;
  if (--handler->references != 0) return;
  self.anytime_handles.forget(handler->handle());
  give_back(self.errhandlers, *handler);
}

ErrhandlerRef::ErrhandlerRef(Errhandler& handler) : handler_(&share(anytime(), handler)) {}
ErrhandlerRef::ErrhandlerRef(const ErrhandlerRef& other) : handler_(other.handler_) {
  if (handler_ != nullptr) share(anytime(), *handler_);
}
ErrhandlerRef::~ErrhandlerRef() {
  if (handler_ != nullptr) drop(anytime(), handler_);
}

ErrorSource source_of(const Communicator& comm) {
  return {.comm = comm.kind == ObjectKind::freed ? MPI_COMM_NULL : comm.handle(),
          .handler = ErrhandlerRef(*comm.errhandler)};
}

void remember(Library& self, int code, const char* function, const std::string& text) {
  const Held held(self);
  try {
    self.error_codes.remember(code, fmt::format("{}: {}", function, text));
  } catch (const std::bad_alloc&) { // then the code is told without words
  }
}

namespace {

// The object whose error handler answers, and that handler.
ErrorSource answering(Process& self, const ErrorSource& source) {
  if (source.handler.get() != nullptr) return source;
  if (auto* window = self.find<Window>(source.win, ObjectKind::window))
    return {.win = window->handle(), .handler = ErrhandlerRef(*window->errhandler)};
  if (source.file != nullptr) {
    if (auto* file = self.find<File>(source.file, ObjectKind::file))
      return {.file = file->handle(), .handler = ErrhandlerRef(*file->errhandler)};
    return {.file = MPI_FILE_NULL, .handler = ErrhandlerRef(*self.errors_of_files)};
  }
  if (auto* session = self.find<Session>(source.session, ObjectKind::session))
    return {.session = session->handle(), .handler = ErrhandlerRef(*session->errhandler)};
  if (auto* passed = self.find<Errhandler>(source.passed, ObjectKind::errhandler))
    return {.handler = ErrhandlerRef(*passed)};
  if (auto* request = self.find<engine::Request>(source.request, ObjectKind::request))
    return answering(self, source_of(*request));
  auto* comm = self.find<Communicator>(source.comm, ObjectKind::communicator);
  if (auto* message = self.find<engine::Message>(source.message, ObjectKind::message))
    comm = static_cast<Communicator*>(message->owner);
  if (comm == nullptr) comm = self.world.self_has_errhandler ? self.world.self : self.world.all;
  return comm != nullptr ? source_of(*comm)
                         : ErrorSource{.handler = ErrhandlerRef(self.errors_are_fatal)};
}

} // namespace

int raise(Process& self, const char* function, const ErrorSource& source,
          const base::Error& error) {
  remember(self, error.error_class, function, error.text);
  const auto* operation = dynamic_cast<const OperationError*>(&error);
  ErrorSource of;
  {
    const Held held(self);
    of = answering(self, operation != nullptr ? operation->source : source);
  }
  return call(self, function, *of.handler.get(), of, error.error_class, error.text);
}

void not_initialized(const char* function) {
  Process& self = anytime();
  std::string text = "called before MPI_Init; call MPI_Init or MPI_Init_thread first";
  if (self.forked_from != 0) {
    text = fmt::format("called in process {}, which process {} has made by fork; MPI is for the "
                       "process that called MPI_Init alone: do what needs MPI there, or start "
                       "another program here (exec)",
                       ::getpid(), self.forked_from);
  } else if (self.world.phase == World::Phase::finalized) {
    text = "called after MPI_Finalize; only a few functions may be, such as MPI_Finalized";
  }
  remember(self, MPI_ERR_OTHER, function, text);
  die(self, function, self.errors_are_fatal, MPI_ERR_OTHER, text);
}

// The MPI functions about error handlers.

void comm_create_errhandler(Process& self, MPI_Comm_errhandler_function* function,
                            MPI_Errhandler* errhandler) {
  make_handler(self, function, errhandler);
}

void session_create_errhandler(Library& self, MPI_Session_errhandler_function* function,
                               MPI_Errhandler* errhandler) {
  make_handler(self, function, errhandler);
}

void win_create_errhandler(Process& self, MPI_Win_errhandler_function* function,
                           MPI_Errhandler* errhandler) {
  make_handler(self, function, errhandler);
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

void check_made_for_communicators(const Errhandler& errhandler) {
  check_made_for<MPI_Comm_errhandler_function*>(errhandler, "communicator",
                                                "MPI_Comm_create_errhandler");
}

void check_made_for_sessions(const Errhandler& errhandler) {
  check_made_for<MPI_Session_errhandler_function*>(errhandler, "session",
                                                   "MPI_Session_create_errhandler");
}

void check_passed(const Errhandler& passed, void (*check)(const Errhandler&)) {
  try {
    check(passed);
  } catch (const base::Error& error) {
    throw OperationError(error.error_class, error.text, {});
  }
}

void replace(Library& self, Errhandler*& place, Errhandler& handler) {
  Errhandler* const before = place;
  place = &share(self, handler);
  drop(self, before);
}

} // namespace

void check_for_communicator(const Errhandler& passed) {
  check_passed(passed, &check_made_for_communicators);
}

void check_for_session(const Errhandler& passed) {
  check_passed(passed, &check_made_for_sessions);
}

void comm_set_errhandler(Process& self, Communicator& comm, Errhandler& errhandler) {
  check_made_for_communicators(errhandler);
  replace(self, comm.errhandler, errhandler);
  if (&comm == self.world.self) self.world.self_has_errhandler = true;
}

void session_set_errhandler(Library& self, Session& session, Errhandler& errhandler) {
  check_made_for_sessions(errhandler);
  replace(self, session.errhandler, errhandler);
}

void session_get_errhandler(Library& self, Session& session, MPI_Errhandler* errhandler) {
  *errhandler = share(self, *session.errhandler).handle();
}

void session_call_errhandler(Library& self, Session& session, int errorcode) {
  call_for_program(self, "MPI_Session_call_errhandler", *session.errhandler,
                   {.session = session.handle()}, errorcode);
}

void win_set_errhandler(Process& self, Window& window, Errhandler& errhandler) {
  check_made_for<MPI_Win_errhandler_function*>(errhandler, "window", "MPI_Win_create_errhandler");
  replace(self, window.errhandler, errhandler);
}

void win_get_errhandler(Process& self, Window& window, MPI_Errhandler* errhandler) {
  *errhandler = share(self, *window.errhandler).handle();
}

void win_call_errhandler(Process& self, Window& window, int errorcode) {
  call_for_program(self, "MPI_Win_call_errhandler", *window.errhandler, {.win = window.handle()},
                   errorcode);
}

void file_create_errhandler(Process& self, MPI_File_errhandler_function* function,
                            MPI_Errhandler* errhandler) {
  make_handler(self, function, errhandler);
}

// Of MPI_FILE_NULL: what files get when they are opened, and what answers until then.
void file_set_errhandler(Process& self, File* file, Errhandler& errhandler) {
  check_made_for<MPI_File_errhandler_function*>(errhandler, "file", "MPI_File_create_errhandler");
  replace(self, file != nullptr ? file->errhandler : self.errors_of_files, errhandler);
}

void file_get_errhandler(Process& self, File* file, MPI_Errhandler* errhandler) {
  *errhandler = share(self, file != nullptr ? *file->errhandler : *self.errors_of_files).handle();
}

void file_call_errhandler(Process& self, File& file, int errorcode) {
  call_for_program(self, "MPI_File_call_errhandler", *file.errhandler, {.file = file.handle()},
                   errorcode);
}

void comm_get_errhandler(Process& self, Communicator& comm, MPI_Errhandler* errhandler) {
  *errhandler = share(self, *comm.errhandler).handle();
}

void errhandler_free(Library& self, MPI_Errhandler* errhandler) {
  // A predefined one too: MPI_Comm_get_errhandler hands it out to be freed.
  drop(self, self.find<Errhandler>(*errhandler, ObjectKind::errhandler));
  *errhandler = MPI_ERRHANDLER_NULL;
}

void comm_call_errhandler(Process& self, Communicator& comm, int errorcode) {
  call_for_program(self, "MPI_Comm_call_errhandler", *comm.errhandler, {.comm = comm.handle()},
                   errorcode);
}

void add_error_class(Library& self, int* errorclass) {
  *errorclass = self.error_codes.add_class();
  self.attribute_values.last_used_code = self.error_codes.last_used();
}

void add_error_code(Library& self, int errorclass, int* errorcode) {
  *errorcode = self.error_codes.add_code(errorclass);
  self.attribute_values.last_used_code = self.error_codes.last_used();
}

void add_error_string(Library& self, int errorcode, const char* string) {
  self.error_codes.set_string(errorcode, string);
}

void remove_error_class(Library& self, int errorclass) {
  self.error_codes.remove_class(errorclass);
}
void remove_error_code(Library& self, int errorcode) {
  self.error_codes.remove_code(errorcode);
}
void remove_error_string(Library& self, int errorcode) {
  self.error_codes.remove_string(errorcode);
}

void error_class(Library& self, int errorcode, int* errorclass) {
  *errorclass = self.error_codes.class_of(errorcode);
}

void error_string(Library& self, int errorcode, char* string, int* resultlen) {
  const std::string text = self.error_codes.text(errorcode);
  *resultlen = static_cast<int>(text.copy(string, MPI_MAX_ERROR_STRING - 1));
  string[*resultlen] = '\0';
}

} // namespace macadam::mpi
