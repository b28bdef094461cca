#include "lacuna/framework/model/presets/foreign_names.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace lacuna {
namespace {

constexpr std::array<std::string_view, 5> kPrefixes = {"transformer.", "bert.", "distilbert.",
                                                       "vit.", "model."};

// The name itself, and with endings that have changed over the years.
std::vector<std::string> with_other_endings(const std::string& name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kEndings{{
      {".gamma", ".weight"},
      {".beta", ".bias"},
      {"cls.predictions.bias", "cls.predictions.decoder.bias"},
  }};
  std::vector<std::string> names{name};
  for (const auto& [old, present] : kEndings) {
    if (!name.ends_with(old)) continue;
    names.push_back(name.substr(0, name.size() - old.size()) + std::string(present));
  }
  return names;
}

}  // namespace

std::optional<std::string> foreign_name(const std::string& name,
                                        const std::set<std::string>& known) {
  for (const std::string& spelling : with_other_endings(name)) {
    std::vector<std::string> candidates{spelling};
    for (const std::string_view prefix : kPrefixes) {
      if (spelling.starts_with(prefix)) candidates.push_back(spelling.substr(prefix.size()));
    }
    for (const std::string_view prefix : kPrefixes) {
      candidates.push_back(std::string(prefix) + spelling);
    }
    for (const std::string& candidate : candidates) {
      if (candidate != name && known.contains(candidate)) return candidate;
    }
  }
  return std::nullopt;
}

std::string hugging_face_name(const std::string& name) {
  return name == "cls.predictions.decoder.bias" ? "cls.predictions.bias" : name;
}

bool is_bookkeeping(std::string_view name, int rank) {
  if (name.ends_with(".attn.bias") && rank == 1) return false;
  static constexpr std::array<std::string_view, 6> kEndings = {
      ".num_batches_tracked", ".attn.bias",      ".masked_bias",
      ".position_ids",        ".token_type_ids", ".rotary_emb.inv_freq"};
  return name == "num_batches_tracked" || name == "position_ids" ||
         std::ranges::any_of(kEndings, [&](auto ending) { return name.ends_with(ending); });
}

bool is_conv1d_weight(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kEndings = {
      ".attn.c_attn.weight", ".attn.c_proj.weight", ".mlp.c_fc.weight", ".mlp.c_proj.weight"};
  return std::ranges::any_of(kEndings, [&](auto ending) { return name.ends_with(ending); });
}

namespace {

// Rows and columns exchanged, from one array into another.
template <class T>
void transpose(const T* from, T* into, int64_t rows, int64_t columns) {
  constexpr int64_t kTile = 32;  // two tiles of floats lie in the first cache
  for (int64_t top = 0; top < rows; top += kTile) {
    for (int64_t left = 0; left < columns; left += kTile) {
      for (int64_t i = top; i < std::min(top + kTile, rows); ++i) {
        for (int64_t j = left; j < std::min(left + kTile, columns); ++j) {
          into[j * rows + i] = from[i * columns + j];
        }
      }
    }
  }
}

}  // namespace

Tensor transposed(const Tensor& matrix) {
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  Tensor result = Tensor::empty(Shape{columns, rows});
  transpose(matrix.data(), result.mutable_data(), rows, columns);
  return result;
}

ByteArray transposed(const ByteArray& matrix) {
  const int64_t rows = matrix.shape[0], columns = matrix.shape[1];
  ByteArray result{.shape = Shape{columns, rows}, .values = {}};
  result.values.resize(matrix.values.size());
  transpose(matrix.values.data(), result.values.data(), rows, columns);
  return result;
}

}  // namespace lacuna
