// The one place that knows the HDF5 library.
#include "lacuna/framework/io/hdf5_file.h"

#include <fcntl.h>
#include <hdf5.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include "lacuna/framework/core/error.h"

namespace lacuna {
namespace {

std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

// Holds the library's lock, and keeps it from printing errors, which become our exceptions. The
// setting is put back, since the program may use HDF5 for itself.
class Session {
 public:
  Session() : lock_(library_mutex()) {
    H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Session() { H5Eset_auto2(H5E_DEFAULT, print_, print_data_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

// An HDF5 identifier of any kind, given back at the end of the scope.
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
  operator hid_t() const { return id_; }  // NOLINT: handed to the C functions
  hid_t release() { return std::exchange(id_, hid_t{-1}); }

 private:
  hid_t id_ = -1;
};

// The innermost message of the library's error stack: the cause, the others are its callers.
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
  return path.starts_with('/') ? std::string(path) : "/" + std::string(path);
}

hsize_t to_size(int64_t size) { return static_cast<hsize_t>(size); }

Id space_of(const Shape& shape) {
  if (shape.rank() == 0) return Id(H5Screate(H5S_SCALAR));
  std::array<hsize_t, Shape::kMaxRank> sizes{};
  std::ranges::transform(shape.sizes(), sizes.begin(), to_size);
  return Id(H5Screate_simple(shape.rank(), sizes.data(), nullptr));
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

Id text_type() {
  Id type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

// Conversions to a narrower type stop at the first value that does not fit, instead of clamping it.
Id strict_conversion() {
  Id properties(H5Pcreate(H5P_DATASET_XFER));
  H5Pset_type_conv_cb(
      properties,
      [](H5T_conv_except_t what, hid_t, hid_t, void*, void*, void*) {
        const bool out_of_range =
            what == H5T_CONV_EXCEPT_RANGE_HI || what == H5T_CONV_EXCEPT_RANGE_LOW;
        return out_of_range ? H5T_CONV_ABORT : H5T_CONV_UNHANDLED;
      },
      nullptr);
  return properties;
}

// Whole rows as far as they go into 1 MiB, else parts of rows.
void set_deflate(hid_t properties, const Shape& shape) {
  std::array<hsize_t, Shape::kMaxRank> chunk{};
  std::ranges::transform(shape.sizes(), chunk.begin(), to_size);
  int64_t rest = shape.numel();
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t inner = rest / shape[i];
    const int64_t fitting = std::clamp<int64_t>((int64_t{1} << 20) / inner, 1, shape[i]);
    chunk[static_cast<size_t>(i)] = to_size(fitting);
    rest = inner;
  }
  H5Pset_chunk(properties, shape.rank(), chunk.data());
  H5Pset_deflate(properties, 1);
}

}  // namespace

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

struct Hdf5File::Impl {
  std::string path;
  bool writable = false;
  Id file;

  Impl(std::string name, bool for_writing) : path(std::move(name)), writable(for_writing) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    const Session session;
    file = Id();
  }

  [[noreturn]] void data_error(std::string_view where, std::string_view message) const {
    throw DataError(path + ": " + std::string(where) + ": " + std::string(message));
  }
  [[noreturn]] void write_error(std::string_view where, std::string_view message) const {
    throw StateError("cannot write " + path + ": " + std::string(where) + ": " +
                     std::string(message));
  }
  void require_open() const {
    if (file < 0) throw StateError(path + " is closed");
  }
  void require_writable(std::string_view where) const {
    require_open();
    if (!writable) write_error(where, "the file was opened for reading");
  }

  // Every link of the path in turn, since the library reports a missing one in the middle as an
  // error.
  bool exists(std::string_view name) const {
    const std::string full = absolute(name);
    if (full == "/") return true;
    for (size_t end = 1; end != std::string::npos;) {
      end = full.find('/', end + 1);
      if (H5Lexists(file, full.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
    }
    return H5Oexists_by_name(file, full.c_str(), H5P_DEFAULT) > 0;
  }

  Id open_object(std::string_view name) const {
    require_open();
    if (!exists(name)) data_error(name, "there is nothing of that name");
    Id object(H5Oopen(file, absolute(name).c_str(), H5P_DEFAULT));
    if (object < 0) data_error(name, library_reason());
    return object;
  }

  Id open_dataset(std::string_view name) const {
    Id object = open_object(name);
    if (H5Iget_type(object) != H5I_DATASET) data_error(name, "expected a dataset, found a group");
    return object;
  }

  Shape shape_of(std::string_view where, hid_t space) const {
    const int rank = H5Sget_simple_extent_ndims(space);
    if (rank < 0) data_error(where, library_reason());
    if (H5Sget_simple_extent_type(space) == H5S_NULL) data_error(where, "the dataset is null");
    std::vector<hsize_t> sizes(static_cast<size_t>(rank));
    H5Sget_simple_extent_dims(space, sizes.data(), nullptr);
    std::vector<int64_t> signed_sizes(sizes.begin(), sizes.end());
    try {
      return Shape(signed_sizes);
    } catch (const ShapeError& error) {
      data_error(where, error.what());
    }
  }

  Id open_attribute(std::string_view where, std::string_view name) const {
    const Id object = open_object(where);
    const std::string key(name);
    if (H5Aexists(object, key.c_str()) <= 0) {
      data_error(where, "there is no attribute '" + key + "'");
    }
    Id attribute(H5Aopen(object, key.c_str(), H5P_DEFAULT));
    if (attribute < 0) data_error(where, library_reason());
    return attribute;
  }

  void require_type(std::string_view where, Hdf5Type found, Hdf5Type expected) const {
    if (found != expected) {
      data_error(where,
                 std::string("expected ") + to_string(expected) + ", found " + to_string(found));
    }
  }
  void require_number(std::string_view where, Hdf5Type found) const {
    if (found == Hdf5Type::Float || found == Hdf5Type::Integer) return;
    data_error(where, std::string("expected numbers, found ") + to_string(found));
  }
  void require_scalar(std::string_view where, const Shape& shape) const {
    if (shape.numel() != 1) {
      data_error(where, "expected a single value, found the shape " + shape.to_string());
    }
  }

  // Runs `read` on the storage that `allocate` makes.
  template <class Allocate>
  auto allocated(std::string_view where, const Shape& shape, Allocate allocate) const {
    try {
      return allocate();
    } catch (const std::bad_alloc&) {
      data_error(where, shape.to_string() + " elements do not fit in memory");
    } catch (const std::length_error&) {
      data_error(where, shape.to_string() + " elements do not fit in memory");
    }
  }

  // One element of text through `read(memory_type, pointer)`.
  template <class Read>
  std::string text_of(std::string_view where, hid_t file_type, hid_t space, Read read) const {
    require_type(where, type_of(file_type), Hdf5Type::Text);
    require_scalar(where, shape_of(where, space));
    const Id type(H5Tcopy(file_type));
    if (H5Tis_variable_str(type) > 0) {
      char* text = nullptr;
      if (read(type, static_cast<void*>(&text)) < 0) data_error(where, library_reason());
      const std::string copy = text == nullptr ? "" : text;
      H5free_memory(text);
      return copy;
    }
    std::string text(H5Tget_size(type), '\0');
    if (read(type, static_cast<void*>(text.data())) < 0) data_error(where, library_reason());
    switch (H5Tget_strpad(type)) {
      case H5T_STR_NULLTERM:
        return text.substr(0, text.find('\0'));
      case H5T_STR_SPACEPAD:
        return text.substr(0, text.find_last_not_of(' ') + 1);
      default:
        return text.substr(0, text.find_last_not_of('\0') + 1);
    }
  }

  void write_dataset(std::string_view where, const Shape& shape, hid_t file_type, hid_t memory_type,
                     const void* values, Compression compression) {
    require_writable(where);
    const Id links(H5Pcreate(H5P_LINK_CREATE));
    H5Pset_create_intermediate_group(links, 1);
    const Id properties(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_obj_track_times(properties, 0);
    // Chunks need a rank and elements.
    const bool can_deflate = shape.rank() > 0 && shape.numel() > 0;
    if (compression == Compression::Deflate && can_deflate) set_deflate(properties, shape);
    const Id space = space_of(shape);
    const Id dataset(H5Dcreate2(file, absolute(where).c_str(), file_type, space, links, properties,
                                H5P_DEFAULT));
    if (dataset < 0) write_error(where, library_reason());
    if (shape.numel() == 0) return;
    if (H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
      write_error(where, library_reason());
    }
  }

  void require_count(std::string_view where, const Shape& shape, size_t count) const {
    if (static_cast<size_t>(shape.numel()) != count) {
      write_error(where, std::to_string(count) + " values for the shape " + shape.to_string());
    }
  }
  void require_no_zero_byte(std::string_view where, std::string_view text) const {
    if (text.find('\0') != std::string_view::npos) write_error(where, "text with a zero byte");
  }

  void write_attribute(std::string_view where, std::string_view name, hid_t type,
                       const void* value) {
    require_writable(where);
    if (!exists(where)) write_error(where, "there is nothing of that name to hold an attribute");
    const Id space(H5Screate(H5S_SCALAR));
    const Id attribute(H5Acreate_by_name(file, absolute(where).c_str(), std::string(name).c_str(),
                                         type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    if (attribute < 0 || H5Awrite(attribute, type, value) < 0) {
      write_error(where, library_reason());
    }
  }
};

Hdf5File::Hdf5File(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Hdf5File::Hdf5File(Hdf5File&&) noexcept = default;
Hdf5File& Hdf5File::operator=(Hdf5File&&) noexcept = default;
Hdf5File::~Hdf5File() = default;

namespace {

Id access_properties() {
  Id properties(H5Pcreate(H5P_FILE_ACCESS));
  // Everything goes with the file's handle; locks are ignored where the file system has none.
  H5Pset_fclose_degree(properties, H5F_CLOSE_STRONG);
  H5Pset_file_locking(properties, 1, 1);
  return properties;
}

// Opens the file without the library, whose reasons are hard to read.
void require_readable(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    throw DataError("cannot open '" + path + "': " + std::strerror(errno));
  }
  struct stat facts {};
  const bool is_folder = ::fstat(descriptor, &facts) == 0 && S_ISDIR(facts.st_mode);
  ::close(descriptor);
  if (is_folder) throw DataError("cannot open '" + path + "': it is a folder");
}

}  // namespace

Hdf5File Hdf5File::open(const std::string& path) {
  require_readable(path);
  auto impl = std::make_unique<Impl>(path, false);
  const Session session;
  if (H5Fis_hdf5(path.c_str()) <= 0) {
    throw DataError("cannot open '" + path + "': it is not an HDF5 file");
  }
  impl->file = Id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access_properties()));
  if (impl->file < 0) throw DataError("cannot open '" + path + "': " + library_reason());
  return Hdf5File(std::move(impl));
}

Hdf5File Hdf5File::create(const std::string& path, const Hdf5CreateOptions& options) {
  auto impl = std::make_unique<Impl>(path, true);
  const Session session;
  const Id creation(H5Pcreate(H5P_FILE_CREATE));
  H5Pset_obj_track_times(creation, 0);
  if (H5Pset_userblock(creation, static_cast<hsize_t>(options.user_block_bytes)) < 0) {
    throw StateError("cannot write " + path + ": user_block_bytes must be 0 or a power of two " +
                     "from 512, found " + std::to_string(options.user_block_bytes));
  }
  impl->file = Id(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access_properties()));
  if (impl->file < 0) throw StateError("cannot write " + path + ": " + library_reason());
  return Hdf5File(std::move(impl));
}

void Hdf5File::close() {
  const Session session;
  const hid_t file = impl_->file.release();
  if (file >= 0 && H5Fclose(file) < 0) impl_->write_error("closing it", library_reason());
}

const std::string& Hdf5File::path() const { return impl_->path; }

std::vector<std::string> Hdf5File::children(std::string_view group) const {
  const Session session;
  const Id object = impl_->open_object(group);
  if (H5Iget_type(object) != H5I_GROUP) {
    impl_->data_error(group, "expected a group, found a dataset");
  }
  std::vector<std::string> names;
  const herr_t result = H5Literate(
      object, H5_INDEX_NAME, H5_ITER_INC, nullptr,
      [](hid_t, const char* name, const H5L_info_t*, void* data) -> herr_t {
        static_cast<std::vector<std::string>*>(data)->emplace_back(name);
        return 0;
      },
      &names);
  if (result < 0) impl_->data_error(group, library_reason());
  return names;
}

bool Hdf5File::exists(std::string_view path) const {
  const Session session;
  impl_->require_open();
  return impl_->exists(path);
}

bool Hdf5File::is_group(std::string_view path) const {
  const Session session;
  impl_->require_open();
  return impl_->exists(path) && H5Iget_type(impl_->open_object(path)) == H5I_GROUP;
}

Shape Hdf5File::shape(std::string_view path) const {
  const Session session;
  const Id dataset = impl_->open_dataset(path);
  return impl_->shape_of(path, Id(H5Dget_space(dataset)));
}

Hdf5Type Hdf5File::type(std::string_view path) const {
  const Session session;
  const Id dataset = impl_->open_dataset(path);
  return type_of(Id(H5Dget_type(dataset)));
}

bool Hdf5File::is_uint8(std::string_view path) const {
  const Session session;
  const Id dataset = impl_->open_dataset(path);
  return H5Tequal(Id(H5Dget_type(dataset)), H5T_STD_U8LE) > 0;
}

Tensor Hdf5File::read_floats(std::string_view path) const {
  const Session session;
  const Id dataset = impl_->open_dataset(path);
  impl_->require_number(path, type_of(Id(H5Dget_type(dataset))));
  const Shape found = impl_->shape_of(path, Id(H5Dget_space(dataset)));
  Tensor values = impl_->allocated(path, found, [&] { return Tensor::empty(found); });
  if (found.numel() > 0 && H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                                   values.mutable_data()) < 0) {
    impl_->data_error(path, library_reason());
  }
  return values;
}

std::vector<int64_t> Hdf5File::read_integers(std::string_view path) const {
  const Session session;
  const Id dataset = impl_->open_dataset(path);
  impl_->require_type(path, type_of(Id(H5Dget_type(dataset))), Hdf5Type::Integer);
  const Shape found = impl_->shape_of(path, Id(H5Dget_space(dataset)));
  auto values = impl_->allocated(
      path, found, [&] { return std::vector<int64_t>(static_cast<size_t>(found.numel())); });
  if (found.numel() > 0 && H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, strict_conversion(),
                                   values.data()) < 0) {
    impl_->data_error(path, library_reason());
  }
  return values;
}

std::vector<uint8_t> Hdf5File::read_bytes(std::string_view path) const {
  const Session session;
  if (!is_uint8(path)) {
    impl_->data_error(path, std::string("expected uint8, found other ") + to_string(type(path)));
  }
  const Id dataset = impl_->open_dataset(path);
  const Shape found = impl_->shape_of(path, Id(H5Dget_space(dataset)));
  auto values = impl_->allocated(
      path, found, [&] { return std::vector<uint8_t>(static_cast<size_t>(found.numel())); });
  if (found.numel() > 0 &&
      H5Dread(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
    impl_->data_error(path, library_reason());
  }
  return values;
}

double Hdf5File::read_number(std::string_view path) const {
  const Session session;
  const Id dataset = impl_->open_dataset(path);
  impl_->require_number(path, type_of(Id(H5Dget_type(dataset))));
  impl_->require_scalar(path, impl_->shape_of(path, Id(H5Dget_space(dataset))));
  double value = 0;
  if (H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0) {
    impl_->data_error(path, library_reason());
  }
  return value;
}

std::string Hdf5File::read_text(std::string_view path) const {
  const Session session;
  const Id dataset = impl_->open_dataset(path);
  return impl_->text_of(path, Id(H5Dget_type(dataset)), Id(H5Dget_space(dataset)),
                        [&](hid_t type, void* text) {
                          return H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text);
                        });
}

bool Hdf5File::has_attribute(std::string_view path, std::string_view name) const {
  const Session session;
  return H5Aexists(impl_->open_object(path), std::string(name).c_str()) > 0;
}

std::string Hdf5File::attribute_text(std::string_view path, std::string_view name) const {
  const Session session;
  const Id attribute = impl_->open_attribute(path, name);
  const std::string where = std::string(path) + "@" + std::string(name);
  return impl_->text_of(where, Id(H5Aget_type(attribute)), Id(H5Aget_space(attribute)),
                        [&](hid_t type, void* text) { return H5Aread(attribute, type, text); });
}

double Hdf5File::attribute_number(std::string_view path, std::string_view name) const {
  const Session session;
  const Id attribute = impl_->open_attribute(path, name);
  const std::string where = std::string(path) + "@" + std::string(name);
  impl_->require_number(where, type_of(Id(H5Aget_type(attribute))));
  impl_->require_scalar(where, impl_->shape_of(where, Id(H5Aget_space(attribute))));
  double value = 0;
  if (H5Aread(attribute, H5T_NATIVE_DOUBLE, &value) < 0) {
    impl_->data_error(where, library_reason());
  }
  return value;
}

int64_t Hdf5File::attribute_integer(std::string_view path, std::string_view name) const {
  const Session session;
  const Id attribute = impl_->open_attribute(path, name);
  const std::string where = std::string(path) + "@" + std::string(name);
  impl_->require_type(where, type_of(Id(H5Aget_type(attribute))), Hdf5Type::Integer);
  impl_->require_scalar(where, impl_->shape_of(where, Id(H5Aget_space(attribute))));
  int64_t value = 0;
  if (H5Aread(attribute, H5T_NATIVE_INT64, &value) < 0) {
    impl_->data_error(where, library_reason());
  }
  return value;
}

void Hdf5File::write(std::string_view path, const Tensor& values) {
  const Session session;
  if (!values.defined()) impl_->write_error(path, "an undefined tensor");
  const Tensor row_major = values.to(Order::RowMajor);
  impl_->write_dataset(path, values.shape(), H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, row_major.data(),
                       Compression::None);
}

void Hdf5File::write(std::string_view path, const Shape& shape, std::span<const uint8_t> values,
                     Compression compression) {
  const Session session;
  impl_->require_count(path, shape, values.size());
  impl_->write_dataset(path, shape, H5T_STD_U8LE, H5T_NATIVE_UINT8, values.data(), compression);
}

void Hdf5File::write(std::string_view path, const Shape& shape, std::span<const int64_t> values) {
  const Session session;
  impl_->require_count(path, shape, values.size());
  impl_->write_dataset(path, shape, H5T_STD_I64LE, H5T_NATIVE_INT64, values.data(),
                       Compression::None);
}

void Hdf5File::write_number(std::string_view path, double value) {
  const Session session;
  impl_->write_dataset(path, Shape(), H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value, Compression::None);
}

void Hdf5File::write_text(std::string_view path, std::string_view text) {
  const Session session;
  impl_->require_no_zero_byte(path, text);
  const std::string copy(text);
  const char* pointer = copy.c_str();
  const Id type = text_type();
  impl_->write_dataset(path, Shape(), type, type, &pointer, Compression::None);
}

void Hdf5File::write_attribute(std::string_view path, std::string_view name,
                               std::string_view text) {
  const Session session;
  impl_->require_no_zero_byte(path, text);
  const std::string copy(text);
  const char* pointer = copy.c_str();
  impl_->write_attribute(path, name, text_type(), &pointer);
}

void Hdf5File::write_attribute(std::string_view path, std::string_view name, int64_t value) {
  const Session session;
  impl_->write_attribute(path, name, H5T_NATIVE_INT64, &value);
}

void Hdf5File::write_attribute(std::string_view path, std::string_view name, double value) {
  const Session session;
  impl_->write_attribute(path, name, H5T_NATIVE_DOUBLE, &value);
}

}  // namespace lacuna
