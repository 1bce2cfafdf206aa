// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace macadam::mpi {

class Process;

enum class AttributeOf : unsigned char { communicator, datatype, window };

// A key for attributes. The user's MPI_*_free_keyval only takes the key away; attributes that hold
// it keep it alive for their callbacks.
struct Keyval {
  // The object is passed as the handle's bits: MPI_Comm, MPI_Datatype or MPI_Win.
  using Copy = std::function<int(void* object, int keyval, void* value, void** copy, int* flag)>;
  using Delete = std::function<int(void* object, int keyval, void* value)>;

  AttributeOf of;
  int key;
  Copy copy;        // empty: not copied (MPI_*_NULL_COPY_FN)
  Delete delete_fn; // empty: nothing to do (MPI_*_NULL_DELETE_FN)
};

// The attributes of one object, in the order in which they were set. A value that is deleted is
// found by its own delete callback, but not by other threads, to which it may be gone already; and
// it is not copied or deleted again. It stays if the callback refuses.
class Attributes {
 public:
  [[nodiscard]] const void* const* find(int key) const;
  // Replaces a value, and calls the delete callback of the old one, which finds that; at all times
  // there is one for others. Throws base::Error with the callback's code if that refuses: the old
  // one is back.
  void set(void* object, std::shared_ptr<const Keyval> keyval, void* value);
  // Throws MPI_ERR_KEYVAL if there is no such attribute, or the callback's code.
  void remove(void* object, int key);
  // Removes all, the last set first (the order the standard asks for at MPI_Finalize). Stops at a
  // callback that refuses and throws its code; the attributes before it are kept.
  void clear(void* object);
  // The copy for a duplicate of `object`. Throws the code of a copy callback that fails; what had
  // been copied so far is dropped without callbacks.
  [[nodiscard]] std::unique_ptr<Attributes> copy(void* object) const;
  [[nodiscard]] bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    std::shared_ptr<const Keyval> keyval;
    void* value;
    std::thread::id deleting = {}; // the thread that runs its delete callback
    [[nodiscard]] bool is_leaving() const { return deleting != std::thread::id(); }
  };
  // The one with the key that is not leaving; null if there is none. For const and other lists.
  template <class Entries>
  [[nodiscard]] static auto staying(Entries& entries, int key) -> decltype(entries.data());
  // The one with the key that this thread is deleting.
  template <class Entries>
  [[nodiscard]] static auto deleted_here(Entries& entries, int key) -> decltype(entries.data());
  void delete_entry(void* object, Entry& entry, const void* const* successor = nullptr);

  std::vector<Entry> entries_;
};

// The keys that the program has made. One that it has freed still works where it is in use, until
// the last attribute with it is gone.
class Keyvals {
 public:
  int add(AttributeOf of, Keyval::Copy copy, Keyval::Delete delete_fn);
  // Both throw MPI_ERR_KEYVAL, naming what was found, if `key` is no key of this kind of object.
  std::shared_ptr<const Keyval> find(int key, AttributeOf of) const;
  void free(int* key, AttributeOf of);

 private:
  static constexpr int first_key = 0x1000; // above all predefined ones
  struct Row {
    std::shared_ptr<const Keyval> held; // until the program frees it
    std::weak_ptr<const Keyval> key;
  };
  int next_ = first_key;
  std::map<int, Row> keys_;
  // Those that are gone are swept out when there are twice as many as after the last time.
  static constexpr std::size_t fewest_swept = 64;
  std::size_t next_sweep_ = fewest_swept;
};

// Values behind the predefined attributes of MPI_COMM_WORLD.
struct PredefinedAttributes {
  int tag_ub = 0x7fffffff;
  int io = MPI_ANY_SOURCE; // every process can
  int host = MPI_PROC_NULL;
  int wtime_is_global = 0; // the monotonic clock, if all ranks are on one host
  int appnum = 0;
  int universe_size = 1;
  int last_used_code = MPI_ERR_LASTCODE;

  // Null if `key` is none of them.
  [[nodiscard]] int* find(int key);
};

} // namespace macadam::mpi
