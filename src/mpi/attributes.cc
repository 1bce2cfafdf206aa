// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/attributes.h"

#include "mpi/callback.h"
#include "mpi/calls.h"
#include "mpi/process.h"
#include "mpi/types.h"
#include "mpi/window.h"

#include <algorithm>

namespace macadam::mpi {

using datatype::Type;

namespace {

const char* noun(AttributeOf of) {
  switch (of) {
  case AttributeOf::communicator:
    return "communicator";
  case AttributeOf::datatype:
    return "datatype";
  case AttributeOf::window:
    return "window";
  }
  return "";
}

constexpr auto key_of = [](const auto& entry) { return entry.keyval->key; };

// Calls the delete callback; what it refuses becomes the error of the MPI call.
void call_delete(void* object, const Keyval& keyval, void* value) {
  if (!keyval.delete_fn) return;
  const int code = run_callback_unlocked(anytime(), "the delete callback of an attribute", [&] {
    return keyval.delete_fn(object, keyval.key, value);
  });
  if (code != MPI_SUCCESS) {
    base::fail(code, "the delete callback of attribute key {} returned {}", keyval.key, code);
  }
}

// The callbacks of the ABI that are no functions: nothing is copied, or the value itself.
template <class Handle, class Function>
Keyval::Copy copy_callback(Function* function, void* extra_state) {
  const auto value = reinterpret_cast<std::uintptr_t>(function);
  if (value == reinterpret_cast<std::uintptr_t>(MPI_COMM_NULL_COPY_FN)) return {};
  if (value == reinterpret_cast<std::uintptr_t>(MPI_COMM_DUP_FN)) {
    return [](void*, int, void* attribute, void** copy, int* flag) {
      *copy = attribute;
      *flag = 1;
      return MPI_SUCCESS;
    };
  }
  return [=](void* object, int key, void* attribute, void** copy, int* flag) {
    return function(static_cast<Handle>(object), key, extra_state, attribute, copy, flag);
  };
}

template <class Handle, class Function>
Keyval::Delete delete_callback(Function* function, void* extra_state) {
  if (reinterpret_cast<std::uintptr_t>(function) ==
      reinterpret_cast<std::uintptr_t>(MPI_COMM_NULL_DELETE_FN)) {
    return {};
  }
  return [=](void* object, int key, void* attribute) {
    return function(static_cast<Handle>(object), key, attribute, extra_state);
  };
}

[[noreturn, gnu::cold]] void fail_not_set(int key) {
  base::fail(MPI_ERR_KEYVAL, "no attribute with key {} is set here", key);
}

} // namespace

// A callback may change the list, as may other threads while it runs.

template <class Entries>
auto Attributes::staying(Entries& entries, int key) -> decltype(entries.data()) {
  const auto found = std::ranges::find_if(
      entries, [key](const Entry& entry) { return key_of(entry) == key && !entry.is_leaving(); });
  return found == entries.end() ? nullptr : &*found;
}

template <class Entries>
auto Attributes::deleted_here(Entries& entries, int key) -> decltype(entries.data()) {
  const auto found = std::ranges::find_if(entries, [key](const Entry& entry) {
    return key_of(entry) == key && entry.deleting == std::this_thread::get_id();
  });
  return found == entries.end() ? nullptr : &*found;
}

const void* const* Attributes::find(int key) const {
  const Entry* entry = deleted_here(entries_, key);
  if (entry == nullptr) entry = staying(entries_, key);
  return entry != nullptr ? &entry->value : nullptr;
}

// Calls the delete callback of an entry, which goes unless that refuses. Then it stays in place of
// its successor, but not of one that the callback or another thread has set meanwhile.
void Attributes::delete_entry(void* object, Entry& entry, const void* const* successor) {
  entry.deleting = std::this_thread::get_id();
  const Entry deleted = entry;
  const auto find_again = [&](const void* value, std::thread::id by) {
    return std::ranges::find_if(entries_, [&](const Entry& each) {
      return key_of(each) == key_of(deleted) && each.value == value && each.deleting == by;
    });
  };
  const auto drop = [&](std::vector<Entry>::iterator found) {
    if (found != entries_.end()) entries_.erase(found);
  };
  try {
    call_delete(object, *deleted.keyval, deleted.value);
  } catch (...) {
    if (successor != nullptr) drop(find_again(*successor, {}));
    const auto kept = find_again(deleted.value, deleted.deleting);
    if (staying(entries_, key_of(deleted)) != nullptr)
      drop(kept);
    else if (kept != entries_.end())
      kept->deleting = {};
    throw;
  }
  drop(find_again(deleted.value, deleted.deleting));
}

void Attributes::set(void* object, std::shared_ptr<const Keyval> keyval, void* value) {
  const Entry* const before = staying(entries_, keyval->key);
  const std::ptrdiff_t at = before != nullptr ? before - entries_.data() : -1;
  entries_.push_back({std::move(keyval), value});
  if (at >= 0) delete_entry(object, entries_[static_cast<std::size_t>(at)], &value);
}

void Attributes::remove(void* object, int key) {
  Entry* const found = deleted_here(entries_, key) == nullptr ? staying(entries_, key) : nullptr;
  if (found == nullptr) fail_not_set(key);
  delete_entry(object, *found);
}

void Attributes::clear(void* object) {
  while (!entries_.empty())
    remove(object, entries_.back().keyval->key);
}

std::unique_ptr<Attributes> Attributes::copy(void* object) const {
  auto copies = std::make_unique<Attributes>();
  const std::vector<Entry> entries = entries_;
  for (const Entry& entry : entries) {
    const Entry* const now = staying(entries_, key_of(entry));
    if (!entry.keyval->copy || entry.is_leaving() || now == nullptr) continue;
    void* const original = now->value;
    void* value = nullptr;
    int flag = 0;
    const int code = run_callback_unlocked(anytime(), "the copy callback of an attribute", [&] {
      return entry.keyval->copy(object, entry.keyval->key, original, &value, &flag);
    });
    if (code != MPI_SUCCESS) {
      base::fail(code, "the copy callback of attribute key {} returned {}", entry.keyval->key,
                 code);
    }
    if (flag != 0) copies->entries_.push_back({entry.keyval, value});
  }
  return copies;
}

int Keyvals::add(AttributeOf of, Keyval::Copy copy, Keyval::Delete delete_fn) {
  if (keys_.size() >= next_sweep_) {
    std::erase_if(keys_, [](const auto& row) { return row.second.key.expired(); });
    next_sweep_ = 2 * keys_.size() + fewest_swept;
  }
  const int key = next_++;
  auto made =
      std::make_shared<const Keyval>(Keyval{of, key, std::move(copy), std::move(delete_fn)});
  keys_[key] = {made, made};
  return key;
}

std::shared_ptr<const Keyval> Keyvals::find(int key, AttributeOf of) const {
  const auto row = keys_.find(key);
  auto found = row != keys_.end() ? row->second.key.lock() : nullptr;
  if (!found) {
    base::fail(MPI_ERR_KEYVAL, "keyval is {}{}, which is no attribute key of a {}", key,
               key == MPI_KEYVAL_INVALID ? " (MPI_KEYVAL_INVALID)" : "", noun(of));
  }
  if (found->of != of) {
    base::fail(MPI_ERR_KEYVAL, "keyval {} was made for a {}; it cannot be used with a {}", key,
               noun(found->of), noun(of));
  }
  return found;
}

void Keyvals::free(int* key, AttributeOf of) {
  find(*key, of);
  keys_[*key].held.reset();
  *key = MPI_KEYVAL_INVALID;
}

int* PredefinedAttributes::find(int key) {
  switch (key) {
  case MPI_TAG_UB:
    return &tag_ub;
  case MPI_IO:
    return &io;
  case MPI_HOST:
    return &host;
  case MPI_WTIME_IS_GLOBAL:
    return &wtime_is_global;
  case MPI_APPNUM:
    return &appnum;
  case MPI_UNIVERSE_SIZE:
    return &universe_size;
  case MPI_LASTUSEDCODE:
    return &last_used_code;
  default:
    return nullptr;
  }
}

// The MPI functions: the same for every kind of object, but for where its attributes are, and
// which of them are predefined.
namespace {

constexpr AttributeOf kind_of(const Communicator&) {
  return AttributeOf::communicator;
}
constexpr AttributeOf kind_of(const Window&) {
  return AttributeOf::window;
}
constexpr AttributeOf kind_of(const Type&) {
  return AttributeOf::datatype;
}

// Null if there have been none.
template <class Object>
Attributes* attributes(const Object& object) {
  return object.attributes.get();
}
Attributes* attributes(const Type& type) {
  return static_cast<Attributes*>(type.attributes);
}

template <class Object>
void keep(Object& object, std::unique_ptr<Attributes> made) {
  object.attributes = std::move(made);
}
void keep(Type& type, std::unique_ptr<Attributes> made) {
  type.attributes = made.release();
}

bool is_predefined(Library& self, AttributeOf of, int key) {
  switch (of) {
  case AttributeOf::communicator:
    return self.attribute_values.find(key) != nullptr;
  case AttributeOf::window:
    return key == MPI_WIN_BASE || key == MPI_WIN_SIZE || key == MPI_WIN_DISP_UNIT ||
           key == MPI_WIN_CREATE_FLAVOR || key == MPI_WIN_MODEL;
  case AttributeOf::datatype:
    break;
  }
  return false;
}

// What a predefined attribute is. The base of a window is the value itself, all others are pointed
// to.
const void* predefined(Library& self, const Communicator&, int key) {
  return self.attribute_values.find(key);
}
const void* predefined(Library&, const Window& window, int key) {
  switch (key) {
  case MPI_WIN_BASE:
    return window.base;
  case MPI_WIN_SIZE:
    return &window.size;
  case MPI_WIN_DISP_UNIT:
    return &window.unit;
  case MPI_WIN_CREATE_FLAVOR:
    return &window.flavor;
  default:
    return &window.model;
  }
}
const void* predefined(Library&, const Type&, int) {
  return nullptr;
}

void refuse_predefined(Library& self, AttributeOf of, int key) {
  if (is_predefined(self, of, key))
    base::fail(MPI_ERR_KEYVAL, "attribute key {} is predefined; its attribute is read-only", key);
}

template <class Handle, class Copy, class Delete>
int create_key(Library& self, AttributeOf of, Copy* copy, Delete* delete_fn, void* extra_state) {
  return self.keyvals.add(of, copy_callback<Handle>(copy, extra_state),
                          delete_callback<Handle>(delete_fn, extra_state));
}

void free_key(Library& self, AttributeOf of, int* key) {
  refuse_predefined(self, of, *key);
  self.keyvals.free(key, of);
}

template <class Object>
void set_attribute(Library& self, Object& object, int key, void* value) {
  refuse_predefined(self, kind_of(object), key);
  auto keyval = self.keyvals.find(key, kind_of(object));
  if (attributes(object) == nullptr) keep(object, std::make_unique<Attributes>());
  attributes(object)->set(object.handle(), std::move(keyval), value);
}

template <class Object>
void get_attribute(Library& self, const Object& object, int key, void* value, int* flag) {
  const void* found = nullptr;
  if (is_predefined(self, kind_of(object), key)) {
    found = predefined(self, object, key);
  } else {
    self.keyvals.find(key, kind_of(object));
    const Attributes* const all = attributes(object);
    const void* const* const own = all != nullptr ? all->find(key) : nullptr;
    if (own == nullptr) {
      *flag = 0;
      return;
    }
    found = *own;
  }
  *flag = 1;
  *static_cast<const void**>(value) = found;
}

template <class Object>
void delete_attribute(Library& self, Object& object, int key) {
  refuse_predefined(self, kind_of(object), key);
  self.keyvals.find(key, kind_of(object));
  if (attributes(object) == nullptr) fail_not_set(key);
  attributes(object)->remove(object.handle(), key);
}

} // namespace

// Communicators.

void comm_create_keyval(Process& self, MPI_Comm_copy_attr_function* copy_fn,
                        MPI_Comm_delete_attr_function* delete_fn, int* keyval, void* extra_state) {
  *keyval = create_key<MPI_Comm>(self, AttributeOf::communicator, copy_fn, delete_fn, extra_state);
}
void comm_free_keyval(Process& self, int* keyval) {
  free_key(self, AttributeOf::communicator, keyval);
}
void comm_set_attr(Process& self, Communicator& comm, int keyval, void* value) {
  set_attribute(self, comm, keyval, value);
}
void comm_get_attr(Process& self, Communicator& comm, int keyval, void* value, int* flag) {
  get_attribute(self, comm, keyval, value, flag);
}
void comm_delete_attr(Process& self, Communicator& comm, int keyval) {
  delete_attribute(self, comm, keyval);
}

// Windows.

void win_create_keyval(Process& self, MPI_Win_copy_attr_function* copy_fn,
                       MPI_Win_delete_attr_function* delete_fn, int* keyval, void* extra_state) {
  *keyval = create_key<MPI_Win>(self, AttributeOf::window, copy_fn, delete_fn, extra_state);
}
void win_free_keyval(Process& self, int* keyval) {
  free_key(self, AttributeOf::window, keyval);
}
void win_set_attr(Process& self, Window& window, int keyval, void* value) {
  set_attribute(self, window, keyval, value);
}
void win_get_attr(Process& self, Window& window, int keyval, void* value, int* flag) {
  get_attribute(self, window, keyval, value, flag);
}
void win_delete_attr(Process& self, Window& window, int keyval) {
  delete_attribute(self, window, keyval);
}

// Datatypes.

void copy_attributes(const Type& from, Type& to) {
  if (attributes(from) != nullptr) keep(to, attributes(from)->copy(from.handle()));
}

void drop_attributes(Type& type) {
  if (attributes(type) == nullptr) return;
  attributes(type)->clear(type.handle());
  delete attributes(type);
  keep(type, nullptr);
}

void type_create_keyval(Library& self, MPI_Type_copy_attr_function* copy_fn,
                        MPI_Type_delete_attr_function* delete_fn, int* keyval, void* extra_state) {
  *keyval = create_key<MPI_Datatype>(self, AttributeOf::datatype, copy_fn, delete_fn, extra_state);
}
void type_free_keyval(Library& self, int* keyval) {
  free_key(self, AttributeOf::datatype, keyval);
}
void type_set_attr(Library& self, const Type& type, int keyval, void* value) {
  set_attribute(self, const_cast<Type&>(type), keyval, value);
}
void type_get_attr(Library& self, const Type& type, int keyval, void* value, int* flag) {
  get_attribute(self, type, keyval, value, flag);
}
void type_delete_attr(Library& self, const Type& type, int keyval) {
  delete_attribute(self, type, keyval);
}

} // namespace macadam::mpi
