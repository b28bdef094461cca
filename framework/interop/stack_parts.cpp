#include "lacuna/framework/interop/stack_parts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/model/presets/foreign_names.hpp"

namespace lacuna {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// "0012" → "12", so that numbers compare by length and then as text.
std::string_view without_zeros(std::string_view digits) {
  const size_t first = digits.find_first_not_of('0');
  return first == std::string_view::npos ? digits.substr(digits.size() - 1) : digits.substr(first);
}

std::string_view digits_at(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  return text.substr(at, end - at);
}

[[noreturn]] void refuse(const std::string& name, const Shape& shape) {
  throw CheckpointError(fmt::format(
      "'{}' {} does not belong to a linear layer, convolution or norm", name, shape.to_string()));
}

StackPart part_of(const std::string& name, const std::map<std::string, Shape>& arrays) {
  const auto weight = arrays.find("weight");
  if (weight == arrays.end()) refuse(name + "." + arrays.begin()->first, arrays.begin()->second);
  const Shape& shape = weight->second;
  StackPart part{.name = name, .weight = shape, .has_bias = arrays.contains("bias")};
  const bool has_moments = arrays.contains("running_mean") && arrays.contains("running_var");
  if (shape.numel() == 0) refuse(name + ".weight", shape);
  if (shape.rank() == 2) {
    part.kind = StackPart::Kind::Linear;
  } else if (shape.rank() == 4) {
    part.kind = StackPart::Kind::Convolution;
  } else if (shape.rank() == 1) {
    part.kind = has_moments     ? StackPart::Kind::BatchNorm
                : part.has_bias ? StackPart::Kind::LayerNorm
                                : StackPart::Kind::RmsNorm;
  } else {
    refuse(name + ".weight", shape);
  }
  const size_t known = 1 + (part.has_bias ? 1 : 0) + (has_moments ? 2 : 0);
  for (const auto& [last, own] : arrays) {
    const bool fits = last == "weight" || own == Shape{shape[0]};
    const bool is_known = last == "weight" || last == "bias" ||
                          (has_moments && (last == "running_mean" || last == "running_var"));
    if (!fits || !is_known) refuse(name + "." + last, own);
  }
  if (arrays.size() != known || (has_moments && shape.rank() != 1)) {
    refuse(name + ".weight", shape);
  }
  return part;
}

}  // namespace

bool is_before(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    const std::string_view one = digits_at(a, i), other = digits_at(b, j);
    const std::string_view x = without_zeros(one), y = without_zeros(other);
    if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
    i += one.size();
    j += other.size();
  }
  return a.size() - i < b.size() - j;
}

std::string numbers_in(const std::string& name) {
  std::string numbers;
  for (size_t i = 0; i < name.size(); ++i) {
    if (!is_digit(name[i])) continue;
    const std::string_view digits = digits_at(name, i);
    numbers += std::string(without_zeros(digits)) + " ";
    i += digits.size();
  }
  return numbers;
}

int64_t place_in_sequence(const std::string& name) {
  constexpr size_t kMostDigits = 6;
  const std::string last = name.substr(name.rfind('.') + 1);
  const bool is_number = !last.empty() && last.size() <= kMostDigits &&
                         std::ranges::all_of(last, [](char c) { return is_digit(c); });
  return is_number ? std::stoll(last) : -1;
}

std::string parent_of_layer(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

std::vector<StackPart> stack_parts(const StoredValues& stored) {
  std::map<std::string, std::map<std::string, Shape>> layers;
  for (const auto& [name, item] : stored.items()) {
    if (is_bookkeeping(name, item.shape.rank())) continue;
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos || !item.type.empty()) refuse(name, item.shape);
    layers[name.substr(0, dot)][name.substr(dot + 1)] = item.shape;
  }
  std::vector<StackPart> parts;
  for (const auto& [name, arrays] : layers) parts.push_back(part_of(name, arrays));
  std::ranges::sort(parts, is_before, &StackPart::name);
  return parts;
}

}  // namespace lacuna
