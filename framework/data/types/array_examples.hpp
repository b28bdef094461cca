// Examples made of two arrays, of inputs and of labels or targets, whatever format these are in.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

/// What the elements of an array are; booleans are Integer.
enum class ArrayKind { Float, Integer, Text, Other };

/// Arrays by their names. *Errors:* DataError that begins with where(name).
class ArraySource {
 public:
  virtual ~ArraySource() = default;

  /// The file, and the array in it, as messages call it.
  virtual std::string where(const std::string& name) const = 0;
  /// *Errors:* DataError, with the nearest name, when it is not there.
  virtual void require(const std::string& name) const = 0;
  virtual Shape shape(const std::string& name) const = 0;
  virtual ArrayKind kind(const std::string& name) const = 0;
  virtual std::string type_name(const std::string& name) const = 0;
  /// Whether the elements are unsigned bytes, as images are.
  virtual bool is_uint8(const std::string& name) const = 0;
  /// Integers and floats of any width, as float32.
  virtual std::vector<float> read_floats(const std::string& name) const = 0;
  virtual std::vector<int64_t> read_integers(const std::string& name) const = 0;
  virtual std::vector<uint8_t> read_bytes(const std::string& name) const = 0;
  virtual std::vector<std::string> read_texts(const std::string& name) const = 0;
};

/// The position of the channels of images.
enum class Channels { First, Last };
/// Reads `channels`: first | last. *Errors:* ConfigError.
Channels read_channels(const Config& data);

/// The arrays of one split.
struct ArrayNames {
  std::string inputs, targets;
};

/// What is expected of arrays. Names of classes are those of labels that are text: none where any
/// are good.
struct ArrayKeys {
  TaskKeys task;
  Channels channels = Channels::First;
  std::vector<std::string> class_names = {};
};

/// Inputs as examples without answers: bytes stay bytes, all else becomes float32. *Errors:*
/// DataError on shapes without examples, empty ones and numbers that are not finite.
Examples read_array_inputs(const ArraySource& source, const std::string& name, Channels channels);

/// The examples of a split. Labels are integers of any type [n] or [n, 1], the same as floats that
/// are whole, one-hot rows [n, classes], or texts, which are names of classes and numbered in their
/// order. Targets are numbers [n] or [n, outputs]. *Errors:* DataError.
std::shared_ptr<const ArrayDataset> read_array_split(const ArraySource& source,
                                                     const ArrayNames& names,
                                                     const ArrayKeys& keys);

/// The splits, where the test split has the classes of the training split. *Errors:* DataError when
/// its examples have another shape.
DataSplits read_array_splits(const ArraySource& source, const ArrayNames& train,
                             const std::optional<ArrayNames>& test, ArrayKeys keys);

/// The arrays of the test split, of the keys `test_inputs` and `test_targets`, or what they are
/// called. *Errors:* ConfigError where one of them is without the other.
std::optional<ArrayNames> read_test_names(const Config& data,
                                          const ArrayNames& keys = {"test_inputs", "test_targets"});

/// Warns if the sizes look like channels that come last, and `channels` is not given.
void report_channels_last(const Config& data, const char* key, const Shape& shape);

}  // namespace lacuna
