// What the hdf5_*.cpp files share. Not installed, and included by nothing else: it shows the HDF5
// library.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "lacuna/framework/io/hdf5/hdf5_file.hpp"

namespace lacuna::hdf5 {

/// Holds the library's lock, and keeps it from printing errors, which become our exceptions. The
/// setting is put back, since the program may use HDF5 for itself.
class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

/// Another lock, for a process that was forked while this one was held: the thread that holds it is
/// not there any more, by its number.
void renew_lock();

/// An HDF5 identifier of any kind, given back at the end of the scope. Giving one back clears the
/// library's error stack: name the ones that a call takes, or its reason is gone with them.
class Id {
 public:
  Id() = default;
  explicit Id(hid_t id) : id_(id) {}
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, hid_t{-1})) {}
  Id& operator=(Id&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Id() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  operator hid_t() const { return id_; }  // NOLINT: it is handed to the C functions
  hid_t release() { return std::exchange(id_, hid_t{-1}); }

 private:
  hid_t id_ = -1;
};

/// The innermost message of the library's error stack: the cause; the others are its callers.
std::string library_reason();

/// With a slash in front, as the library's path walks want it.
std::string absolute(std::string_view path);

Hdf5Type type_of(hid_t element);

/// The property list with which `count` values are read or written. Where the library converts
/// them, strings above all, it would clear two buffers of 1 MiB for each call: these are no larger
/// than the values.
Id transfer_list(hid_t file_type, hid_t memory_type, int64_t count);

/// Where a file that is being written goes.
struct Sink {
  int descriptor = -1;
  int error = 0;  ///< errno of the first write that failed
};

/// Has `access` (a file access property list) write to `sink`, which must outlive the HDF5 file.
///
/// The driver tells the library that every write went well and keeps the first errno for us: HDF5
/// 1.10 crashes, or loops at exit, when a write fails below it (a full disk), because it cannot
/// close a file that it cannot flush.
void use_sink(hid_t access, Sink& sink);

/// Has `access` read through a driver that never fails to close: where the library's own does (a
/// network file system, for example), HDF5 1.10 keeps half of the file and crashes as the process
/// ends. It opens files alone, so that a link to a pipe does not wait.
void read_by_own_driver(hid_t access);

/// The state of an Hdf5File. Its functions want a Session around them.
struct OpenFile {
  std::string path;
  bool writable = false;
  Sink sink;
  Id file;
  bool follows_links = true, may_be_asked = false;
  /// The last search came upon an external link, which was not followed.
  mutable bool is_refused = false;
  Id link_access_list;
  hid_t link_access = H5P_DEFAULT;

  OpenFile(std::string name, bool for_writing) : path(std::move(name)), writable(for_writing) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();

  [[noreturn]] void data_error(std::string_view where, std::string_view message) const;
  [[noreturn]] void write_error(std::string_view where, std::string_view message) const;
  /// *Errors:* StateError when the file was closed.
  void require_open() const;

  void follow_links(Hdf5Links links);
  /// *Errors:* DataError, always: "what", and what may be done.
  [[noreturn]] void refuse_foreign(std::string_view name, const char* what) const;
  /// *Errors:* DataError where the values of a dataset are elsewhere and links are not followed.
  void require_own_storage(std::string_view name, hid_t dataset) const;

  /// True also where an external link that is not followed may lead to it.
  bool exists(std::string_view name) const;
  /// *Errors:* DataError when there is nothing of that name.
  Id open_object(std::string_view name) const;
  /// *Errors:* DataError also when it is a group.
  Id open_dataset(std::string_view name) const;
  /// *Errors:* DataError when lacuna's Shape cannot hold it.
  Shape shape_of(std::string_view where, hid_t space) const;
};

}  // namespace lacuna::hdf5
