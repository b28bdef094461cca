// What `--over` of a sweep gives: values of a key, a range to draw from, or named settings of a
// file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lacuna {

/// One point of an axis.
struct SweepSetting {
  std::string label;                   ///< "optimizer.lr=0.1", or the name in a file
  std::vector<std::string> overrides;  ///< "path=value"
};

/// Numbers from `low` to `high`, ends among them.
struct SweepRange {
  double low = 0.0, high = 0.0;
  bool is_logarithmic = false;  ///< the logarithm is what is uniform
  bool is_whole = false;        ///< integers

  /// The number at a place in [0, 1), with four digits where it is no integer.
  std::string at(double place) const;
};

/// What a sweep goes through.
struct SweepAxis {
  std::string text;                    ///< as it was given
  std::vector<std::string> keys;       ///< that it sets
  std::vector<SweepSetting> settings;  ///< empty where there is a range
  std::vector<SweepRange> range = {};  ///< one at most
};

/// The values of "path=value,value": split at commas outside of brackets and quotes. The first
/// entry is the path. *Errors:* ConfigError when there is no path, or a value is empty or comes
/// twice.
std::vector<std::string> split_over(const std::string& over);

/// Reads "path=value,value"; "path=LOW..HIGH", "path=log:LOW..HIGH" and "path=linear:LOW..HIGH" (of
/// integers integers, but for `linear`); or the path of a YAML file, a map from names to maps of
/// dotted keys and values. *Errors:* ConfigError as `split_over`, on a range that ends before it
/// begins or is logarithmic and begins at 0 or below, and with the place in the file.
SweepAxis read_axis(const std::string& over);

}  // namespace lacuna
