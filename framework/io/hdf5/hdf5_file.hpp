// Hdf5File: named arrays, text and attributes in an HDF5 file, behind a handle that closes itself.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/core/tensor.h"

namespace lacuna {

namespace hdf5 {
struct OpenFile;
}

/// How deep groups may nest in a file that is read as a whole.
inline constexpr int kMostHdf5Groups = 32;

/// The type of a dataset's elements. Numpy's booleans are Integer; compounds, references and the
/// like are Other, which nothing here reads.
enum class Hdf5Type { Float, Integer, Text, Other };
const char* to_string(Hdf5Type type);

enum class Compression {
  None,
  Deflate,  ///< zlib's, in chunks of at most 1 MiB: for masks
};

/// Whether what a file places in others (external links, external storage, virtual datasets)
/// is read from there. A file from elsewhere could name any file of this machine.
enum class Hdf5Links {
  Refused,
  NotAskedFor,  ///< refused as well; the error names data.follow_links, which could allow it
  Followed
};

struct Hdf5CreateOptions {
  /// Bytes left free in front of the HDF5 content, which readers of HDF5 skip: 0, or a power of two
  /// from 512.
  int64_t user_block_bytes = 0;
};

/// An open HDF5 file, for reading (`open`) or for writing (`create`).
///
/// Paths are slash-separated from the root ("/model/fc1.weight"; the first slash may be left out,
/// "/" is the root); dots are ordinary characters. Calls are serialized by one lock for the
/// process, because the HDF5 library is not thread safe; all the same one object is for one thread
/// at a time. The same calls give the same bytes: no time stamps are stored.
///
/// *Errors:* reading throws DataError and writing StateError, each with the file, the path inside
/// it, and the HDF5 library's reason. A damaged file can crash that library: verify a checksum
/// before `open` where there is one.
class Hdf5File {
 public:
  /// *Errors:* DataError when the file is missing, unreadable, a folder or not HDF5.
  /// Of what is outside of it, where `links` are refused, reading gives a DataError.
  static Hdf5File open(const std::string& path, Hdf5Links links = Hdf5Links::Refused);
  /// Creates the file, or empties an existing one. *Errors:* StateError.
  static Hdf5File create(const std::string& path, const Hdf5CreateOptions& options = {});

  Hdf5File(Hdf5File&&) noexcept;
  Hdf5File& operator=(Hdf5File&&) noexcept;
  /// Closes the file; what fails then is not reported, so after writing call `close()`.
  ~Hdf5File();

  /// The name the file was opened by.
  const std::string& path() const;

  // Structure.
  /// Names directly below a group, in alphabetical order. *Errors:* DataError when it is no group.
  std::vector<std::string> children(std::string_view group) const;
  /// Paths of all datasets, without a slash in front, in alphabetical order group by group.
  /// *Errors:* DataError on groups that nest deeper than kMostHdf5Groups, on an object that has
  /// several names (a group inside of itself could be gone through without end), and on links that
  /// are not plain ones. *Cost:* one pass over the groups, whatever their depth.
  std::vector<std::string> datasets() const;
  bool exists(std::string_view path) const;
  bool is_group(std::string_view path) const;
  /// Rank 0 for a scalar. *Errors:* DataError when there is no dataset of that name.
  Shape shape(std::string_view path) const;
  Hdf5Type type(std::string_view path) const;
  /// Whether the elements are unsigned bytes, as in masks and images that are not scaled yet.
  bool is_uint8(std::string_view path) const;
  /// Whether they are signed integers of 8 bits.
  bool is_int8(std::string_view path) const;
  /// Whether they are unsigned integers of 32 bits, as for column indices.
  bool is_uint32(std::string_view path) const;
  /// Size of one element in the file.
  size_t element_bytes(std::string_view path) const;

  // Datasets, whole. *Errors:* DataError when absent, of another type, damaged, or too large.
  /// Integers and floats of any width, converted to float32.
  Tensor read_floats(std::string_view path) const;
  /// The same, row-major.
  std::vector<float> read_float_values(std::string_view path) const;
  /// Row-major elements of an integer dataset of any width; refuses floats and values beyond 63
  /// bits.
  std::vector<int64_t> read_integers(std::string_view path) const;
  /// Row-major elements of a dataset of uint8.
  std::vector<uint8_t> read_bytes(std::string_view path) const;
  /// Row-major elements of a dataset of int8.
  std::vector<int8_t> read_signed_bytes(std::string_view path) const;
  /// Row-major elements of a dataset of uint32.
  std::vector<uint32_t> read_indices(std::string_view path) const;
  /// A scalar of any numeric type.
  double read_number(std::string_view path) const;
  /// Row-major elements of a dataset of text, of fixed or variable length.
  std::vector<std::string> read_texts(std::string_view path) const;
  /// A scalar of text, of fixed or variable length.
  std::string read_text(std::string_view path) const;

  // Attributes of a group or dataset ("/" for the file's). *Errors:* as above.
  bool has_attribute(std::string_view path, std::string_view name) const;
  std::string attribute_text(std::string_view path, std::string_view name) const;
  double attribute_number(std::string_view path, std::string_view name) const;
  int64_t attribute_integer(std::string_view path, std::string_view name) const;

  // Writing. Groups on the way are made. *Errors:* StateError when the name is taken, the file is
  // open for reading only, the sizes do not fit, or the disk is full. After an error the file is of
  // no use any more.
  /// float32, row-major. *Cost:* no copy, unless the tensor lies in batch slabs.
  void write(std::string_view path, const Tensor& values);
  void write(std::string_view path, const Shape& shape, std::span<const uint8_t> values,
             Compression compression = Compression::None);
  void write(std::string_view path, const Shape& shape, std::span<const int8_t> values,
             Compression compression = Compression::None);
  void write(std::string_view path, const Shape& shape, std::span<const int64_t> values);
  void write(std::string_view path, const Shape& shape, std::span<const uint32_t> values);
  void write_number(std::string_view path, double value);
  /// UTF-8 of variable length. *Errors:* StateError also when the text holds a zero byte.
  void write_text(std::string_view path, std::string_view text);
  void write_attribute(std::string_view path, std::string_view name, std::string_view text);
  void write_attribute(std::string_view path, std::string_view name, int64_t value);
  void write_attribute(std::string_view path, std::string_view name, double value);

  /// Writes out what is buffered and closes; further calls are a StateError. Does nothing on a
  /// closed file. *Errors:* StateError when not everything could be written.
  void close();

 private:
  explicit Hdf5File(std::unique_ptr<hdf5::OpenFile> file);
  std::unique_ptr<hdf5::OpenFile> file_;
};

}  // namespace lacuna
