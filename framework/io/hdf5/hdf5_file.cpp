#include "lacuna/framework/io/hdf5/hdf5_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/io/hdf5/hdf5_internal.hpp"
#include "lacuna/framework/io/hdf5/hdf5_walk.hpp"

namespace lacuna {
namespace hdf5 {
namespace {

std::recursive_mutex first_lock;
std::recursive_mutex* library_lock = &first_lock;

// HDF5 1.10 crashes, or complains without end as the process ends, where it finds no memory for
// what it keeps of a file.
void require_memory_for_library() {
  constexpr size_t kRoom = size_t{16} << 20;
  void* const room =
      ::mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  ::munmap(room, kRoom);
}

}  // namespace

void renew_lock() {
  static std::recursive_mutex lock;
  library_lock = &lock;
}

Session::Session() : lock_(*library_lock) {
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}
Session::~Session() { H5Eset_auto2(H5E_DEFAULT, print_, print_data_); }

std::string library_reason() {
  std::string reason;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned depth, const H5E_error2_t* entry, void* text) -> herr_t {
        if (depth == 0 && entry->desc != nullptr) *static_cast<std::string*>(text) = entry->desc;
        return 0;
      },
      &reason);
  return reason.empty() ? "the HDF5 library gives no reason" : reason;
}

std::string absolute(std::string_view path) {
  return path.starts_with('/') ? std::string(path) : std::string("/").append(path);
}

Hdf5Type type_of(hid_t element) {
  switch (H5Tget_class(element)) {
    case H5T_FLOAT:
      return Hdf5Type::Float;
    case H5T_INTEGER:
    case H5T_ENUM:
      return Hdf5Type::Integer;
    case H5T_STRING:
      return Hdf5Type::Text;
    default:
      return Hdf5Type::Other;
  }
}

Id transfer_list(hid_t file_type, hid_t memory_type, int64_t count) {
  constexpr size_t kDefault = size_t{1} << 20;
  constexpr size_t kTextInFile = 16;  // a length and a place in a heap
  const size_t element = std::max({H5Tget_size(file_type), H5Tget_size(memory_type), kTextInFile});
  const auto elements = static_cast<size_t>(std::max<int64_t>(count, 1));
  Id transfer(H5Pcreate(H5P_DATASET_XFER));
  if (elements < kDefault && elements * element < kDefault) {
    H5Pset_buffer(transfer, elements * element, nullptr, nullptr);
  }
  return transfer;
}

// Called by the library at each external link; a negative answer ends the search. The flag tells
// the caller.
herr_t refuse_link(const char*, const char*, const char*, const char*, unsigned*, hid_t,
                   void* flag) {
  *static_cast<bool*>(flag) = true;
  return -1;
}

void OpenFile::follow_links(Hdf5Links links) {
  follows_links = links == Hdf5Links::Followed;
  may_be_asked = links == Hdf5Links::NotAskedFor;
  if (follows_links) return;
  link_access_list = Id(H5Pcreate(H5P_LINK_ACCESS));
  link_access = link_access_list;
  H5Pset_elink_cb(link_access, refuse_link, &is_refused);
}

OpenFile::~OpenFile() {
  {
    const Session session;
    link_access_list = Id();
    file = Id();
  }
  if (sink.descriptor >= 0) ::close(sink.descriptor);
}

void OpenFile::data_error(std::string_view where, std::string_view message) const {
  throw DataError(path + ": " + std::string(where) + ": " + std::string(message));
}

void OpenFile::write_error(std::string_view where, std::string_view message) const {
  throw StateError("cannot write '" + path + "': " + std::string(where) + ": " +
                   std::string(message));
}

void OpenFile::require_open() const {
  if (file < 0) throw StateError("'" + path + "' is closed");
}

bool OpenFile::exists(std::string_view name) const {
  const std::string full = absolute(name);
  is_refused = false;
  if (full == "/") return true;
  // Link after link, since the library calls a missing one on the way an error.
  for (size_t end = 0; end != std::string::npos;) {
    end = full.find('/', end + 1);
    if (H5Lexists(file, full.substr(0, end).c_str(), link_access) <= 0) return is_refused;
  }
  return H5Oexists_by_name(file, full.c_str(), link_access) > 0 || is_refused;
}

void OpenFile::refuse_foreign(std::string_view name, const char* what) const {
  data_error(
      name, std::string(what) + ", and only this file may be read; copy the linked data into it" +
                (may_be_asked ? ", or, for data that you trust, set data.follow_links: true" : ""));
}

// The storage of a dataset: in this file, or, where links may be followed, wherever it states.
void OpenFile::require_own_storage(std::string_view name, hid_t dataset) const {
  if (follows_links) return;
  const Id creation(H5Dget_create_plist(dataset));
  if (creation < 0) data_error(name, library_reason());
  if (H5Pget_layout(creation) == H5D_VIRTUAL) {
    refuse_foreign(name, "it is a virtual dataset, whose values are in other files");
  }
  if (H5Pget_external_count(creation) > 0) {
    refuse_foreign(name, "its values are in another file (external storage)");
  }
}

Id OpenFile::open_object(std::string_view name) const {
  require_open();
  if (!exists(name)) data_error(name, "there is no object of that name");
  Id object(H5Oopen(file, absolute(name).c_str(), link_access));
  if (object < 0) {
    const std::string reason = library_reason();
    if (is_refused) refuse_foreign(name, "it is reached by an external link, to another file");
    data_error(name, reason);
  }
  return object;
}

Id OpenFile::open_dataset(std::string_view name) const {
  Id object = open_object(name);
  if (H5Iget_type(object) != H5I_DATASET) data_error(name, "expected a dataset, found a group");
  require_own_storage(name, object);
  return object;
}

Shape OpenFile::shape_of(std::string_view where, hid_t space) const {
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0) data_error(where, library_reason());
  if (H5Sget_simple_extent_type(space) == H5S_NULL) data_error(where, "it holds no value (null)");
  std::vector<hsize_t> sizes(static_cast<size_t>(rank));
  H5Sget_simple_extent_dims(space, sizes.data(), nullptr);
  const std::vector<int64_t> signed_sizes(sizes.begin(), sizes.end());
  try {
    return Shape(signed_sizes);
  } catch (const ShapeError& error) {
    data_error(where, error.what());
  }
}

namespace {

// Where the format has its first bytes: at 0, or at a power of two from 512 on.
bool has_signature(int descriptor) {
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  std::array<char, kSignature.size()> found{};
  for (off_t offset = 0;; offset = offset == 0 ? 512 : offset * 2) {
    const ssize_t count = ::pread(descriptor, found.data(), found.size(), offset);
    if (count < static_cast<ssize_t>(found.size())) return false;
    if (std::string_view(found.data(), found.size()) == kSignature) return true;
  }
}

// Opens the file without the library, whose reasons are hard to read.
void require_readable(const std::string& path) {
  if (const std::string reason = why_no_file(path); !reason.empty()) {
    throw DataError("cannot open '" + path + "': it " + reason);
  }
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    throw DataError("cannot open '" + path + "': " + std::strerror(errno));
  }
  struct stat facts {};
  const bool is_folder = ::fstat(descriptor, &facts) == 0 && S_ISDIR(facts.st_mode);
  const bool is_hdf5 = !is_folder && has_signature(descriptor);
  ::close(descriptor);
  if (is_folder) throw DataError("cannot open '" + path + "': it is a folder");
  if (!is_hdf5) throw DataError("cannot open '" + path + "': it is not an HDF5 file");
}

Id access_properties() {
  Id access(H5Pcreate(H5P_FILE_ACCESS));
  // Everything goes with the file's handle; locks are ignored where the file system has none.
  H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
  H5Pset_file_locking(access, 1, 1);
  return access;
}

}  // namespace
}  // namespace hdf5

using hdf5::Id;
using hdf5::OpenFile;
using hdf5::Session;

const char* to_string(Hdf5Type type) {
  switch (type) {
    case Hdf5Type::Float:
      return "floating-point numbers";
    case Hdf5Type::Integer:
      return "integers";
    case Hdf5Type::Text:
      return "text";
    case Hdf5Type::Other:
      break;
  }
  return "elements of another type";
}

Hdf5File::Hdf5File(std::unique_ptr<OpenFile> file) : file_(std::move(file)) {}
Hdf5File::Hdf5File(Hdf5File&&) noexcept = default;
Hdf5File& Hdf5File::operator=(Hdf5File&&) noexcept = default;
Hdf5File::~Hdf5File() = default;

Hdf5File Hdf5File::open(const std::string& path, Hdf5Links links) {
  hdf5::require_readable(path);
  hdf5::require_memory_for_library();
  auto opened = std::make_unique<OpenFile>(path, false);
  const Session session;
  opened->follow_links(links);
  const Id access = hdf5::access_properties();
  hdf5::read_by_own_driver(access);
  opened->file = Id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access));
  if (opened->file < 0) throw DataError("cannot open '" + path + "': " + hdf5::library_reason());
  return Hdf5File(std::move(opened));
}

Hdf5File Hdf5File::create(const std::string& path, const Hdf5CreateOptions& options) {
  hdf5::require_memory_for_library();
  auto created = std::make_unique<OpenFile>(path, true);
  const Session session;
  const Id creation(H5Pcreate(H5P_FILE_CREATE));
  H5Pset_obj_track_times(creation, 0);
  if (H5Pset_userblock(creation, static_cast<hsize_t>(options.user_block_bytes)) < 0) {
    throw StateError(fmt::format(
        "cannot write '{}': user_block_bytes must be 0 or a power of two from 512, found {}", path,
        options.user_block_bytes));
  }
  created->sink.descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
                                    S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH);
  if (created->sink.descriptor < 0) {
    throw StateError("cannot write '" + path + "': " + std::strerror(errno));
  }
  const Id access = hdf5::access_properties();
  hdf5::use_sink(access, created->sink);
  created->file = Id(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access));
  if (created->file < 0) created->write_error("creating it", hdf5::library_reason());
  return Hdf5File(std::move(created));
}

void Hdf5File::close() {
  const Session session;
  OpenFile& file = *file_;
  const hid_t id = file.file.release();
  if (id < 0) return;
  const bool closed = H5Fclose(id) >= 0;
  const int descriptor = std::exchange(file.sink.descriptor, -1);
  if (descriptor >= 0 && ::close(descriptor) != 0 && file.sink.error == 0) file.sink.error = errno;
  if (file.sink.error != 0) file.write_error("closing it", std::strerror(file.sink.error));
  if (!closed) file.write_error("closing it", hdf5::library_reason());
}

const std::string& Hdf5File::path() const { return file_->path; }

std::vector<std::string> Hdf5File::children(std::string_view group) const {
  const Session session;
  const Id object = file_->open_object(group);
  if (H5Iget_type(object) != H5I_GROUP) {
    file_->data_error(group, "expected a group, found a dataset");
  }
  std::vector<std::string> names;
  const herr_t result = H5Literate(
      object, H5_INDEX_NAME, H5_ITER_INC, nullptr,
      [](hid_t, const char* name, const H5L_info_t*, void* data) -> herr_t {
        static_cast<std::vector<std::string>*>(data)->emplace_back(name);
        return 0;
      },
      &names);
  if (result < 0) file_->data_error(group, hdf5::library_reason());
  return names;
}

std::vector<std::string> Hdf5File::datasets() const {
  const Session session;
  file_->require_open();
  return hdf5::Walk(*file_).datasets();
}

bool Hdf5File::exists(std::string_view path) const {
  const Session session;
  file_->require_open();
  return file_->exists(path);
}

bool Hdf5File::is_group(std::string_view path) const {
  const Session session;
  file_->require_open();
  return file_->exists(path) && H5Iget_type(file_->open_object(path)) == H5I_GROUP;
}

Shape Hdf5File::shape(std::string_view path) const {
  const Session session;
  const Id dataset = file_->open_dataset(path);
  return file_->shape_of(path, Id(H5Dget_space(dataset)));
}

Hdf5Type Hdf5File::type(std::string_view path) const {
  const Session session;
  return hdf5::type_of(Id(H5Dget_type(file_->open_dataset(path))));
}

bool Hdf5File::is_uint8(std::string_view path) const {
  const Session session;
  return H5Tequal(Id(H5Dget_type(file_->open_dataset(path))), H5T_STD_U8LE) > 0;
}

bool Hdf5File::is_int8(std::string_view path) const {
  const Session session;
  return H5Tequal(Id(H5Dget_type(file_->open_dataset(path))), H5T_STD_I8LE) > 0;
}

bool Hdf5File::is_uint32(std::string_view path) const {
  const Session session;
  return H5Tequal(Id(H5Dget_type(file_->open_dataset(path))), H5T_STD_U32LE) > 0;
}

size_t Hdf5File::element_bytes(std::string_view path) const {
  const Session session;
  return H5Tget_size(Id(H5Dget_type(file_->open_dataset(path))));
}

}  // namespace lacuna
