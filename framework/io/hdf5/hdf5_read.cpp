// Reading datasets and attributes.
#include <fmt/core.h>

#include <new>
#include <stdexcept>

#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/io/hdf5/hdf5_internal.hpp"

namespace lacuna {

using hdf5::Id;
using hdf5::OpenFile;
using hdf5::Session;

namespace {

// A dataset or an attribute: both have a type, a shape and one way to be read.
class Item {
 public:
  static Item dataset(const OpenFile& file, std::string_view path) {
    Item item(file, std::string(path));
    item.object_ = file.open_dataset(path);
    item.type_ = Id(H5Dget_type(item.object_));
    item.shape_ = file.shape_of(path, Id(H5Dget_space(item.object_)));
    return item;
  }

  static Item attribute(const OpenFile& file, std::string_view path, std::string_view name) {
    const std::string key(name);
    const Id owner = file.open_object(path);
    if (H5Aexists(owner, key.c_str()) <= 0) {
      file.data_error(path, "there is no attribute '" + key + "'");
    }
    Item item(file, std::string(path) + "@" + key);
    item.is_attribute_ = true;
    item.object_ = Id(H5Aopen(owner, key.c_str(), H5P_DEFAULT));
    item.type_ = Id(H5Aget_type(item.object_));
    item.shape_ = file.shape_of(item.where_, Id(H5Aget_space(item.object_)));
    return item;
  }

  const Shape& shape() const { return shape_; }
  hid_t type() const { return type_; }

  void require_integers() const {
    if (hdf5::type_of(type_) != Hdf5Type::Integer) expected(to_string(Hdf5Type::Integer));
  }
  void require_numbers() const {
    const Hdf5Type found = hdf5::type_of(type_);
    if (found != Hdf5Type::Float && found != Hdf5Type::Integer) expected("numbers");
  }
  void require_bytes() const {
    if (H5Tequal(type_, H5T_STD_U8LE) <= 0) expected("unsigned bytes (uint8)");
  }
  void require_signed_bytes() const {
    if (H5Tequal(type_, H5T_STD_I8LE) <= 0) expected("integers of 8 bits (int8)");
  }
  void require_indices() const {
    if (H5Tequal(type_, H5T_STD_U32LE) <= 0) expected("unsigned integers of 32 bits (uint32)");
  }
  void require_text() const {
    if (hdf5::type_of(type_) != Hdf5Type::Text) expected(to_string(Hdf5Type::Text));
  }
  void require_single() const {
    if (shape_.numel() != 1) {
      file_.data_error(where_, "expected a single value, found the shape " + shape_.to_string());
    }
  }

  // Storage for all elements from `allocate`, filled.
  template <class Allocate>
  auto read_into(hid_t memory_type, Allocate allocate) const {
    require_memory(H5Tget_size(memory_type));
    try {
      auto values = allocate();
      if (shape_.numel() > 0) read(memory_type, pointer(values));
      return values;
    } catch (const std::bad_alloc&) {
      too_large();
    } catch (const std::length_error&) {
      too_large();
    }
  }

  template <class T>
  std::vector<T> read_vector(hid_t memory_type) const {
    const auto count = static_cast<size_t>(shape_.numel());
    return read_into(memory_type, [&] { return std::vector<T>(count); });
  }

  template <class T>
  T read_one(hid_t memory_type) const {
    require_single();
    T value{};
    read(memory_type, &value);
    return value;
  }

  std::string read_text() const {
    require_text();
    require_single();
    if (H5Tis_variable_str(type_) > 0) {
      char* text = nullptr;
      read(type_, static_cast<void*>(&text));
      return taken(text);
    }
    std::string text(H5Tget_size(type_), '\0');
    read(type_, text.data());
    return without_padding(text);
  }

  std::vector<std::string> read_texts() const {
    require_text();
    const auto count = static_cast<size_t>(shape_.numel());
    const size_t width = H5Tget_size(type_);
    std::vector<std::string> texts;
    if (H5Tis_variable_str(type_) > 0) {
      const auto pointers = read_into(type_, [&] { return std::vector<char*>(count); });
      for (char* text : pointers) texts.push_back(taken(text));
      return texts;
    }
    const auto bytes = read_into(type_, [&] { return std::vector<char>(count * width); });
    for (size_t i = 0; i < count; ++i) {
      texts.push_back(without_padding(std::string(bytes.data() + i * width, width)));
    }
    return texts;
  }

 private:
  Item(const OpenFile& file, std::string where) : file_(file), where_(std::move(where)) {}

  // The library's memory is given back to it.
  static std::string taken(char* text) {
    const std::string copy = text == nullptr ? "" : text;
    H5free_memory(text);
    return copy;
  }
  std::string without_padding(const std::string& text) const {
    switch (H5Tget_strpad(type_)) {
      case H5T_STR_NULLTERM:
        return text.substr(0, text.find('\0'));
      case H5T_STR_SPACEPAD:
        return text.substr(0, text.find_last_not_of(' ') + 1);
      default:
        return text.substr(0, text.find_last_not_of('\0') + 1);
    }
  }

  static void* pointer(Tensor& values) { return values.mutable_data(); }
  template <class T>
  static void* pointer(std::vector<T>& values) {
    return values.data();
  }

  // Before it is allocated: a file can name sizes that the system grants until they are filled.
  void require_memory(size_t element_bytes) const {
    constexpr int64_t kAsksNothing = int64_t{1} << 20;
    if (shape_.numel() <= kAsksNothing) return;
    if (shape_.numel() > available_memory() / static_cast<int64_t>(element_bytes)) too_large();
  }

  void read(hid_t memory_type, void* values) const {
    // A value that does not fit ends the reading instead of being clamped, but for floats: those
    // become infinite, as in numpy.
    bool is_out_of_range = false;
    const Id transfer = hdf5::transfer_list(type_, memory_type, shape_.numel());
    if (H5Tget_class(memory_type) == H5T_INTEGER) {
      H5Pset_type_conv_cb(transfer, stop_out_of_range, &is_out_of_range);
    }
    const herr_t result = is_attribute_
                              ? H5Aread(object_, memory_type, values)
                              : H5Dread(object_, memory_type, H5S_ALL, H5S_ALL, transfer, values);
    if (is_out_of_range)
      file_.data_error(where_, "a value does not fit in a signed 64-bit integer");
    if (result < 0) file_.data_error(where_, hdf5::library_reason());
  }

  static H5T_conv_ret_t stop_out_of_range(H5T_conv_except_t what, hid_t, hid_t, void*, void*,
                                          void* is_out_of_range) {
    if (what != H5T_CONV_EXCEPT_RANGE_HI && what != H5T_CONV_EXCEPT_RANGE_LOW) {
      return H5T_CONV_UNHANDLED;
    }
    *static_cast<bool*>(is_out_of_range) = true;
    return H5T_CONV_ABORT;
  }

  [[noreturn]] void expected(const std::string& what) const {
    std::string found = to_string(hdf5::type_of(type_));
    if (hdf5::type_of(type_) == Hdf5Type::Integer) {
      found += fmt::format(" of {} bits", 8 * H5Tget_size(type_));
    }
    file_.data_error(where_, "expected " + what + ", found " + found);
  }
  [[noreturn]] void too_large() const {
    file_.data_error(where_, "its " + shape_.to_string() + " elements do not fit in memory");
  }

  const OpenFile& file_;
  std::string where_;
  bool is_attribute_ = false;
  Id object_;
  Id type_;
  Shape shape_;
};

}  // namespace

Tensor Hdf5File::read_floats(std::string_view path) const {
  const Session session;
  const Item item = Item::dataset(*file_, path);
  item.require_numbers();
  return item.read_into(H5T_NATIVE_FLOAT, [&] { return Tensor::empty(item.shape()); });
}

std::vector<float> Hdf5File::read_float_values(std::string_view path) const {
  const Session session;
  const Item item = Item::dataset(*file_, path);
  item.require_numbers();
  return item.read_vector<float>(H5T_NATIVE_FLOAT);
}

std::vector<int64_t> Hdf5File::read_integers(std::string_view path) const {
  const Session session;
  const Item item = Item::dataset(*file_, path);
  item.require_integers();
  return item.read_vector<int64_t>(H5T_NATIVE_INT64);
}

std::vector<uint8_t> Hdf5File::read_bytes(std::string_view path) const {
  const Session session;
  const Item item = Item::dataset(*file_, path);
  item.require_bytes();
  return item.read_vector<uint8_t>(H5T_NATIVE_UINT8);
}

std::vector<int8_t> Hdf5File::read_signed_bytes(std::string_view path) const {
  const Session session;
  const Item item = Item::dataset(*file_, path);
  item.require_signed_bytes();
  return item.read_vector<int8_t>(H5T_NATIVE_INT8);
}

std::vector<uint32_t> Hdf5File::read_indices(std::string_view path) const {
  const Session session;
  const Item item = Item::dataset(*file_, path);
  item.require_indices();
  return item.read_vector<uint32_t>(H5T_NATIVE_UINT32);
}

double Hdf5File::read_number(std::string_view path) const {
  const Session session;
  const Item item = Item::dataset(*file_, path);
  item.require_numbers();
  return item.read_one<double>(H5T_NATIVE_DOUBLE);
}

std::vector<std::string> Hdf5File::read_texts(std::string_view path) const {
  const Session session;
  return Item::dataset(*file_, path).read_texts();
}

std::string Hdf5File::read_text(std::string_view path) const {
  const Session session;
  return Item::dataset(*file_, path).read_text();
}

bool Hdf5File::has_attribute(std::string_view path, std::string_view name) const {
  const Session session;
  return H5Aexists(file_->open_object(path), std::string(name).c_str()) > 0;
}

std::string Hdf5File::attribute_text(std::string_view path, std::string_view name) const {
  const Session session;
  return Item::attribute(*file_, path, name).read_text();
}

double Hdf5File::attribute_number(std::string_view path, std::string_view name) const {
  const Session session;
  const Item item = Item::attribute(*file_, path, name);
  item.require_numbers();
  return item.read_one<double>(H5T_NATIVE_DOUBLE);
}

int64_t Hdf5File::attribute_integer(std::string_view path, std::string_view name) const {
  const Session session;
  const Item item = Item::attribute(*file_, path, name);
  item.require_integers();
  return item.read_one<int64_t>(H5T_NATIVE_INT64);
}

}  // namespace lacuna
