// Comparing the states of two checkpoints bit for bit.
#pragma once

#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "lacuna/framework/config/state_dict.h"

namespace lacuna {

/// Whether two values have the same type, shape and bits.
inline bool is_identical(const StateDict::Value& a, const StateDict::Value& b) {
  if (a.index() != b.index()) return false;
  const Tensor* x = std::get_if<Tensor>(&a);
  const Tensor* y = std::get_if<Tensor>(&b);
  if (x != nullptr) {
    if (x->shape() != y->shape() || x->numel() == 0) return x->shape() == y->shape();
    return std::memcmp(x->storage().data(), y->storage().data(), x->storage().size_bytes()) == 0;
  }
  if (std::holds_alternative<double>(a)) {
    return std::memcmp(&std::get<double>(a), &std::get<double>(b), sizeof(double)) == 0;
  }
  if (const auto* bytes = std::get_if<ByteArray>(&a)) return *bytes == std::get<ByteArray>(b);
  if (const auto* bytes = std::get_if<SignedBytes>(&a)) return *bytes == std::get<SignedBytes>(b);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&a)) {
    return *list == std::get<std::vector<int64_t>>(b);
  }
  if (const auto* list = std::get_if<std::vector<uint32_t>>(&a)) {
    return *list == std::get<std::vector<uint32_t>>(b);
  }
  if (const auto* integer = std::get_if<int64_t>(&a)) return *integer == std::get<int64_t>(b);
  return std::get<std::string>(a) == std::get<std::string>(b);
}

/// The names that are in one state only, or differ.
inline std::vector<std::string> differences(const StateDict& a, const StateDict& b) {
  std::vector<std::string> names;
  for (const auto& [name, value] : a.values()) {
    const auto other = b.values().find(name);
    if (other == b.values().end() || !is_identical(value, other->second)) names.push_back(name);
  }
  for (const auto& [name, value] : b.values()) {
    if (!a.contains(name)) names.push_back(name);
  }
  return names;
}

}  // namespace lacuna
