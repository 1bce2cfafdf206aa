// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "base/object.h"

#include <mpi.h>

#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace macadam::mpi {

class Library;
class Process;
struct Communicator;

// What is done about an error: one of the three predefined ways, or the user's function.
struct Errhandler : base::Object {
  enum class Action : unsigned char { fatal, abort, return_code, user };
  using Function =
      std::variant<std::monostate, MPI_Comm_errhandler_function*, MPI_Session_errhandler_function*,
                   MPI_Win_errhandler_function*, MPI_File_errhandler_function*>;

  explicit Errhandler(Action what, MPI_Errhandler predefined = MPI_ERRHANDLER_NULL)
      : base::Object(base::ObjectKind::errhandler), action(what), constant(predefined) {}

  [[nodiscard]] MPI_Errhandler handle() const {
    return constant != MPI_ERRHANDLER_NULL
               ? constant
               : reinterpret_cast<MPI_Errhandler>(const_cast<Errhandler*>(this));
  }

  Action action;
  MPI_Errhandler constant; // of a predefined one
  Function function;       // of a user's
};

// One more, one less user of an error handler; predefined ones stay.
Errhandler& share(Library& self, Errhandler& handler);
void drop(Library& self, Errhandler* handler);

// A reference to an error handler, for as long as it is looked for and called: others may set
// another meanwhile, and the object that had it may go.
class ErrhandlerRef {
 public:
  ErrhandlerRef() = default;
  explicit ErrhandlerRef(Errhandler& handler);
  ErrhandlerRef(const ErrhandlerRef& other);
  ErrhandlerRef& operator=(ErrhandlerRef other) noexcept {
    std::swap(handler_, other.handler_);
    return *this;
  }
  ~ErrhandlerRef();

  [[nodiscard]] Errhandler* get() const { return handler_; }

 private:
  Errhandler* handler_ = nullptr;
};

// Which error handler is to be called: that of the communicator, window, file or session that the
// call was made on, that of the request's or message's communicator, or the one that was passed to
// a call that makes such; without one, that of MPI_COMM_SELF (MPI 5.0, section 9.3) if the program
// has set it, else that of MPI_COMM_WORLD, as programs from before MPI 4 expect.
struct ErrorSource {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Win win = MPI_WIN_NULL;
  MPI_File file = nullptr; // MPI_FILE_NULL: files that are not open; null: no matter of files
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Errhandler passed = MPI_ERRHANDLER_NULL;
  ErrhandlerRef handler = {}; // once it is found
};

// That of a communicator, which operations keep when it has been freed: then its handle is not
// handed out any more.
[[nodiscard]] ErrorSource source_of(const Communicator& comm);

// An error that is not for the error handler of the call that finds it: mostly of an operation that
// an earlier call began, for which that operation's communicator answers.
class OperationError : public base::Error {
 public:
  OperationError(int code, std::string what_happened, ErrorSource of)
      : base::Error(code, std::move(what_happened)), source(std::move(of)) {}
  ErrorSource source;
};

// Keeps what is said about the last error, for MPI_Error_string.
void remember(Library& self, int code, const char* function, const std::string& text);

// Reports an error of the entry point `function` through the error handler, with the message
// "MPI_Send: <text>" kept for MPI_Error_string. Returns the error code that the function returns.
int raise(Process& self, const char* function, const ErrorSource& source, const base::Error& error);

// Calls an error handler with the object that `of` names, as its kind needs it. Returns the code
// that the MPI function returns. The handler may call MPI, and wait for other threads that do: to
// be called without the lock.
int call(Library& self, const char* function, const Errhandler& handler, ErrorSource of, int code,
         const std::string& text);

// Refuses a user's function that was made for another kind of object than a constructor makes. It
// is not called for that.
void check_for_communicator(const Errhandler& passed);
void check_for_session(const Errhandler& passed);

// An entry point was called before MPI_Init or after MPI_Finalize, with no session, or in a process
// that a fork has made: says so and ends the process.
[[noreturn, gnu::cold]] void not_initialized(const char* function);

// Error classes and codes with their texts: those of the standard and those that the program adds.
// A code of the library is its class; the details are in the text of the last error of that class.
class ErrorCodes {
 public:
  int add_class();
  int add_code(int error_class);
  void set_string(int code, std::string text);
  // Both refuse what still has a string, and a class that still has codes.
  void remove_class(int error_class);
  void remove_code(int code);
  void remove_string(int code);

  [[nodiscard]] bool known(int code) const;
  int class_of(int code) const; // throws MPI_ERR_ARG if the code is unknown
  [[nodiscard]] std::string text(int code) const;
  // The largest code ever in use (MPI_LASTUSEDCODE). Codes that were removed are given out again.
  [[nodiscard]] int last_used() const { return MPI_ERR_LASTCODE + static_cast<int>(added_.size()); }

  // Keeps what is said about the last error.
  void remember(int code, std::string message);

 private:
  struct Added {
    int error_class; // itself, for a class
    int codes;       // of a class: how many it has
    bool removed;
    std::string text;
  };
  // The place of a code in added_, in use or not.
  static std::size_t place(int code) {
    return static_cast<std::size_t>(code - MPI_ERR_LASTCODE - 1);
  }
  [[nodiscard]] bool is_added(int code) const;
  Added& added(int code, const char* what);
  static void refuse_string(const Added& row, const char* call, int code);
  void remove(Added& row, int code);

  std::vector<Added> added_; // codes MPI_ERR_LASTCODE + 1, ...
  std::vector<int> removed_; // codes of added_ that are not in use
  int last_code_ = MPI_SUCCESS;
  std::string last_message_;
};

// The name ("MPI_ERR_RANK") and the meaning of a class of the standard; null if it is none.
struct ErrorClass {
  int value;
  const char* name;
  const char* text;
};
const ErrorClass* find_error_class(int value);

} // namespace macadam::mpi
