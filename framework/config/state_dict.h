// StateDict: named arrays and numbers, the form in which everything with state is saved.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lacuna/framework/core/tensor.h"

namespace lacuna {

/// An array of bytes with a shape: masks (0 or 1).
struct ByteArray {
  Shape shape;
  std::vector<uint8_t> values;
  friend bool operator==(const ByteArray&, const ByteArray&) = default;
};

/// Integers of 8 bits with a shape: the values of a quantized weight.
struct SignedBytes {
  Shape shape;
  std::vector<int8_t> values;
  friend bool operator==(const SignedBytes&, const SignedBytes&) = default;
};

/// Values under slash-separated names ("fc1.weight", "fc1.weight/exp_avg"); in a checkpoint each
/// slash is a group. Ordered by name.
class StateDict {
 public:
  using Value = std::variant<Tensor, ByteArray, SignedBytes, std::vector<int64_t>,
                             std::vector<uint32_t>, int64_t, double, std::string>;

  void set(std::string name, Value value) {
    values_.insert_or_assign(std::move(name), std::move(value));
  }
  void erase(const std::string& name) { values_.erase(name); }
  bool contains(std::string_view name) const { return values_.find(name) != values_.end(); }
  bool empty() const { return values_.empty(); }
  /// Of a temporary state, a copy. *Errors:* CheckpointError when the name is absent or holds
  /// another type.
  template <class T>
  const T& get(std::string_view name) const& {
    const Value& value = find(name);
    const T* typed = std::get_if<T>(&value);
    if (typed == nullptr) wrong_type(name);
    return *typed;
  }
  template <class T>
  T get(std::string_view name) const&& {
    return get<T>(name);
  }
  /// A count from 0 to `most`. *Errors:* those of `get`; CheckpointError, with the full name and
  /// the value, if it is out of range.
  int64_t count(std::string_view name, int64_t most = kMostCounted) const;
  /// A number in [least, most]. *Errors:* as `count`. NaN is out of range.
  double number(std::string_view name, double least = -kLargestNumber,
                double most = kLargestNumber) const;
  static constexpr int64_t kMostCounted = int64_t{1} << 62;  ///< which still can be counted up
  static constexpr double kLargestNumber = 1e300;            ///< finite, and so are a few of them

  const std::map<std::string, Value, std::less<>>& values() const& { return values_; }
  std::map<std::string, Value, std::less<>> values() && { return std::move(values_); }

  /// Adds all of `other` below `prefix` + "/"; and returns the entries below a prefix, without the
  /// prefix, which messages still include.
  void merge(std::string_view prefix, StateDict other);
  StateDict below(std::string_view prefix) const;

 private:
  const Value& find(std::string_view name) const;
  [[noreturn]] void wrong_type(std::string_view name) const;
  [[noreturn]] void refuse(std::string_view name, const std::string& problem) const;

  std::string prefix_;  // of what is below one
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace lacuna
