#include "lacuna/framework/train/weights/int8_weight.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/weights/bitmask_weight.hpp"

namespace lacuna {
namespace {

constexpr int32_t kSignedZero = 128;  // less than the byte, where bytes have a sign

constexpr const char* kFoldedScale = "_folded_scale";

[[noreturn]] void refuse_int8(const ArrayFile& file, const Int8Places& places,
                              const std::string& problem) {
  throw DataError(
      fmt::format("the int8 weight '{}' in '{}': {}", places.name, file.path(), problem));
}

SignedBytes read_values(const ArrayFile& file, const Int8Places& places) {
  if (places.shape.rank() < 2) {
    refuse_int8(file, places,
                "it has shape " + places.shape.to_string() +
                    "; expected [outputs, inputs] or [outputs, inputs, kernel...]");
  }
  // Read first: it compares the shape, which is any number that a file has, with what else is
  // there.
  std::optional<BitMask> mask;
  if (places.bitmask) mask = read_bitmask(file, places);
  SignedBytes bytes{.shape = places.shape,
                    .values = std::vector<int8_t>(static_cast<size_t>(places.shape.numel()), 0)};
  const std::vector<int64_t> values = file.read_integers(places.values);
  if (mask) {
    size_t next = 0;
    mask->for_each([&](int64_t position) {
      bytes.values[static_cast<size_t>(position)] = static_cast<int8_t>(values[next++]);
    });
  } else {
    std::ranges::transform(values, bytes.values.begin(),
                           [](int64_t value) { return static_cast<int8_t>(value); });
  }
  return bytes;
}

struct Scales {
  Tensor values;
  bool run_along_columns = false;
  float at(int64_t row, int64_t column) const {
    if (values.numel() == 1) return values.data()[0];
    return values.data()[run_along_columns ? column : row];
  }
};

// Scales from 0. *Errors:* DataError.
void require_scales(const ArrayFile& file, const Int8Places& places, const Tensor& scales) {
  for (const float scale : scales.storage()) {
    if (std::isfinite(scale) && scale >= 0.0f) continue;
    refuse_int8(file, places, fmt::format("a scale is {}, and must be a number from 0", scale));
  }
}

Scales read_scales(const ArrayFile& file, const Int8Places& places, const Shape& weight) {
  Scales scales{.values = file.read(places.scale)};
  const Shape& shape = scales.values.shape();
  const int64_t rows = weight[0], columns = matrix_columns(weight), count = scales.values.numel();
  const bool is_row = shape.rank() == 2 && shape[0] == 1 && count == columns;
  const bool is_column = count == rows && shape.rank() >= 1 && shape[0] == rows;
  scales.run_along_columns = is_row && !is_column;
  if (!is_row && !is_column && count != 1) {
    refuse_int8(file, places,
                fmt::format("its scales have shape {}, which is not one for each output of a "
                            "weight {}; quantize it per channel or per tensor",
                            shape.to_string(), weight.to_string()));
  }
  require_scales(file, places, scales.values);
  return scales;
}

std::vector<float> read_folded(const ArrayFile& file, const Int8Places& places, int64_t outputs) {
  if (!places.folded_scale) return {};
  const Tensor scales = file.read(*places.folded_scale);
  if (scales.numel() != outputs) {
    refuse_int8(file, places,
                fmt::format("there are {} scales with a batch_norm for {} outputs", scales.numel(),
                            outputs));
  }
  require_scales(file, places, scales);
  return scales.to_vector();
}

std::optional<Int8Weight::Input> read_input(const ArrayFile& file, const Int8Places& places) {
  if (!places.input_scale) return std::nullopt;
  const Tensor scale = file.read(*places.input_scale);
  Int8Weight::Input input;
  if (scale.numel() == 1) input.scale = scale.data()[0];
  if (scale.numel() != 1 || !std::isfinite(input.scale) || !(input.scale > 0.0f)) {
    refuse_int8(file, places, "the scale of its inputs is not a number above 0");
  }
  const bool is_signed =
      !places.input_zero || file.arrays()[*places.input_zero].type == ElementType::I8;
  int64_t zero = 0;
  if (places.input_zero) {
    const std::vector<int64_t> values = file.read_integers(*places.input_zero);
    if (values.size() != 1) refuse_int8(file, places, "its inputs have more than one zero point");
    zero = values.front();
  }
  if (is_signed) zero = zero < -kSignedZero || zero > 255 ? -1 : zero + kSignedZero;
  if (zero < 0 || zero > 255) {
    refuse_int8(file, places, "the zero point of its inputs is not a byte");
  }
  input.zero = static_cast<int32_t>(zero);
  return input;
}

bool read_rounds_inputs(const ArrayFile& file, const Int8Places& places) {
  const auto stated = file.metadata().find(kRoundsInputs);
  if (stated == file.metadata().end() || stated->second == "true") return true;
  if (stated->second != "false") {
    refuse_int8(file, places,
                fmt::format("the file's metadata has {} '{}'; expected true or false",
                            kRoundsInputs, printable(stated->second)));
  }
  if (!places.input_scale) return false;
  refuse_int8(file, places,
              fmt::format("its inputs have a scale, but the file's metadata has {} 'false'",
                          kRoundsInputs));
}

}  // namespace

bool is_int8_weight(const ArrayFile& file, const std::map<std::string, size_t>& places,
                    const std::string& name, size_t values) {
  if (file.arrays()[values].type != ElementType::I8) return false;
  const auto scale = places.find(name + "_scale");
  return scale != places.end() && is_float(file.arrays()[scale->second].type);
}

std::map<std::string, Int8Places> find_int8(const ArrayFile& file,
                                            std::map<std::string, size_t>& places,
                                            std::map<std::string, Int8Places> sparse) {
  std::map<std::string, Int8Places> found = std::move(sparse);
  for (const auto& [name, place] : places) {
    if (!is_int8_weight(file, places, name, place)) continue;
    found[name] = {.name = name, .shape = file.arrays()[place].shape, .values = place};
  }
  for (auto& [name, of_weight] : found) {
    of_weight.scale = places.at(name + "_scale");
    if (const auto at = places.find(name + kFoldedScale); at != places.end()) {
      of_weight.folded_scale = at->second;
    }
    const std::string stem = name.substr(0, name.rfind('.') + 1);
    if (const auto at = places.find(stem + "input_scale"); at != places.end()) {
      of_weight.input_scale = at->second;
      const auto zero = places.find(stem + "input_zero_point");
      if (zero != places.end()) of_weight.input_zero = zero->second;
    }
  }
  for (const auto& [name, weight] : found) {
    const std::string stem = name.substr(0, name.rfind('.') + 1);
    for (const std::string& part : {name, name + "_scale", name + kFoldedScale,
                                    stem + "input_scale", stem + "input_zero_point"}) {
      places.erase(part);
    }
  }
  return found;
}

BitMask read_bitmask(const ArrayFile& file, const Int8Places& places) {
  const int64_t values = file.arrays()[places.values].shape.numel();
  try {
    return bitmask_of(places.shape, file.read_integers(*places.bitmask), values);
  } catch (const DataError& error) {
    refuse_int8(file, places, error.what());
  }
}

Int8Weight read_int8(const ArrayFile& file, const Int8Places& places, bool is_turned) {
  const SignedBytes values = read_values(file, places);
  const Scales scales = read_scales(file, places, values.shape);
  const int64_t rows = values.shape[0], columns = matrix_columns(values.shape);
  Int8Weight weight{.name = places.name, .values = {}, .scales = {}};
  weight.input = read_input(file, places);
  weight.rounds_inputs = read_rounds_inputs(file, places);
  if (scales.values.numel() > 1 && scales.run_along_columns != is_turned) {
    refuse_int8(file, places, "its scales are those of inputs, and must be those of outputs");
  }
  if (is_turned && values.shape.rank() != 2) {
    refuse_int8(file, places,
                "it has shape " + values.shape.to_string() + "; expected [inputs, outputs]");
  }
  const int64_t outputs = is_turned ? columns : rows;
  for (int64_t i = 0; i < outputs; ++i) weight.scales.push_back(scales.at(i, i));
  weight.folded_scales = read_folded(file, places, outputs);
  if (!is_turned) {
    weight.values = values;
    return weight;
  }
  weight.values = {.shape = Shape{columns, rows}, .values = {}};
  weight.values.values.resize(values.values.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      weight.values.values[static_cast<size_t>(j * rows + i)] =
          values.values[static_cast<size_t>(i * columns + j)];
    }
  }
  return weight;
}

bool states_float32_inputs(const std::string& folder) {
  const std::string path = folder + "/config.json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return false;
  const Config groups = load_yaml(path).peek("quantization_config.config_groups");
  size_t rounding = 0, all = 0;
  if (groups.is_map()) {
    for (const auto& [name, group] : groups.entries()) {
      rounding += group.peek("input_activations").is_null() ? 0 : 1;
      ++all;
    }
  }
  if (rounding > 0 && rounding < all) {
    groups.error(
        "some groups have input_activations and others do not; lacuna rounds the inputs of all "
        "int8 layers, or of none");
  }
  return all > 0 && rounding == 0;
}

Tensor read_dequantized(const ArrayFile& file, const Int8Places& places) {
  const SignedBytes bytes = read_values(file, places);
  const Scales scales = read_scales(file, places, bytes.shape);
  Tensor floats = Tensor::empty(bytes.shape);
  float* into = floats.mutable_data();
  const int64_t columns = matrix_columns(bytes.shape);
  for (int64_t i = 0; i < floats.numel(); ++i) {
    into[i] = scales.at(i / columns, i % columns) *
              static_cast<float>(bytes.values[static_cast<size_t>(i)]);
  }
  return floats;
}

}  // namespace lacuna
