#include "lacuna/framework/program/output/quantize_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/kernels/int8/int8.hpp"
#include "lacuna/framework/program/output/evaluation_report.hpp"
#include "lacuna/framework/quantize/int8_candidates.hpp"

namespace lacuna {
namespace {

constexpr const char* kFloat32Inputs =
    "activations are not rounded, so files become smaller, and products not faster";

// Groups of four inputs, of a convolution at one tap, in which a weight has one position or more.
// *Cost:* O(nnz).
int64_t groups_of(const Pattern& pattern) {
  const Shape& shape = pattern.shape();
  const int64_t columns = matrix_columns(shape), taps = columns / shape[1];
  if (pattern.is_dense()) return matrix_rows(shape) * int8_quads(shape[1]) * taps;
  const Positions positions = pattern.positions();
  int64_t groups = 0;
  std::vector<int64_t> last(static_cast<size_t>(taps));  // quad of each tap
  for (int64_t row = 0; row < positions.rows(); ++row) {
    std::ranges::fill(last, -1);
    for (const uint32_t column : positions.row(row)) {
      int64_t& of_tap = last[static_cast<size_t>(column % taps)];
      const int64_t quad = column / taps / kInt8Group;
      groups += quad != of_tap ? 1 : 0;
      of_tap = quad;
    }
  }
  return groups;
}

// How a layer's product stores the weight. Convolutions always have groups.
Int8Form form_of(const Pattern& pattern) {
  if (pattern.shape().rank() > 2) return Int8Form::Groups;
  const Positions positions =
      pattern.is_dense() ? Positions::all(pattern.shape()) : pattern.positions();
  return int8_form(positions.rows(), positions.columns(), positions.row_begin(),
                   positions.column());
}

// The name of a product's kernel in the output.
std::string kernel_name(Int8Form form) {
  switch (form) {
    case Int8Form::Groups:
      break;
    case Int8Form::Cells:
      return "int8 4x4 " + int8_kernels_name();
    case Int8Form::GatheredCells:
      return "int8 4x4 gathered " + int8_kernels_name();
    case Int8Form::Floats:
      return "float32 csr of the int8 values";
  }
  return "int8 1x4 " + int8_kernels_name();
}

// What to do where int8 gains little; empty: nothing.
std::string advice_for(const Pattern& pattern, Int8Form form, double filled) {
  constexpr const char* kGroups = "train with pattern {type: block, rows: 1, cols: 4}";
  const PatternShape shape = pattern.layout().pattern_shape();
  if (form == Int8Form::Floats) {
    const std::string reason = fmt::format("int8 with {} would be slower", int8_kernels_name());
    return filled < 3.5 ? reason + "; " + kGroups : reason;
  }
  if (form == Int8Form::GatheredCells) {
    if (int8_kernels_name() != "avx2" || !shape.is_nm()) return "";
    const int64_t enough = 4 * shape.n() == shape.m() ? 16 : 8;  // rows (bench_int8)
    if (shape.unit_rows() >= enough) return "";
    return fmt::format("less than 1.2 times faster than float32 with avx2; group: {} is faster",
                       enough);
  }
  const bool is_full = filled >= 3.5;
  const std::string instead = is_full ? "" : std::string("; ") + kGroups;
  const double gain = filled / int8_group_nonzeros();
  if (gain < 1.0) return "slower than float32 csr" + instead;
  if (gain < 1.2) return "about as fast as float32 csr" + instead;
  if (is_full) return "";
  const bool can_share = shape.is_nm() && !shape.is_transposable() && pattern.shape().rank() == 2;
  return fmt::format("groups are filled to {:.0f} %; pattern {{type: block, rows: 1, cols: 4}}{}",
                     100.0 * filled / static_cast<double>(kInt8Group),
                     can_share ? ", or the same one with group: 8, fill them" : " fills them");
}

}  // namespace

Config quantized_rows(const std::vector<QuantizedLayer>& layers) {
  Config rows = Config::list();
  for (const QuantizedLayer& layer : layers) {
    float least = 0.0f, largest = 0.0f;  // of outputs that have weights
    for (const float scale : layer.scales) {
      if (scale > 0.0f && (least == 0.0f || scale < least)) least = scale;
      largest = std::max(largest, scale);
    }
    Config row = Config::map({{"parameter", layer.weight},
                              {"scale_min", least},
                              {"scale_max", largest},
                              {"clipped_weights", layer.clipped_weights},
                              {"clipped_inputs", layer.clipped_inputs},
                              {"relative_error", layer.relative_error}});
    if (!layer.rounds_inputs) row.set("input_scale", 0.0);
    if (layer.input) {
      row.set("input_scale", layer.input->scale);
      row.set("input_zero", static_cast<int64_t>(layer.input->zero));
    }
    rows.push_back(row);
  }
  return rows;
}

std::string quantized_table(const Config& rows) {
  size_t width = 9;
  for (const Config& row : rows.items()) {
    width = std::max(width, row.required<std::string>("parameter").size());
  }
  std::string text =
      fmt::format("{:<{}}  {:>21} {:>9} {:>18} {:>9} {:>9}\n", "parameter", width, "weight scales",
                  "clipped", "input scale, zero", "clipped", "error");
  for (const Config& row : rows.items()) {
    std::string input = row.has("input_scale") ? "float32" : "each example's";
    if (row.has("input_zero")) {
      input = fmt::format("{:.4g}, {}", row.required<double>("input_scale"),
                          row.required<int64_t>("input_zero"));
    }
    const std::string scales = fmt::format("{:.3g} to {:.3g}", row.required<double>("scale_min"),
                                           row.required<double>("scale_max"));
    text += fmt::format("{:<{}}  {:>21} {:>8.3f}% {:>18} {:>8.3f}% {:>9.2g}\n",
                        row.required<std::string>("parameter"), width, scales,
                        100 * row.required<double>("clipped_weights"), input,
                        100 * row.required<double>("clipped_inputs"),
                        row.required<double>("relative_error"));
  }
  return text;
}

std::string slow_int8_note(const StateDict& checkpoint) {
  if (int8_kernels_name() != "plain") return "";
  const std::vector<QuantizedLayer> layers = quantized_layers(checkpoint.below("quantized"));
  if (layers.empty() || have_float32_inputs(layers)) return "";
  return fmt::format(
      "int8 is slow with the instruction set '{}' (fast: AVX2, AVX-VNNI, AVX512-VNNI): linear "
      "layers run as float32 csr, convolutions and small batches in plain C++; the sums are the "
      "same",
      active_instruction_set());
}

Config planned_products(Module& model, const QuantizeOptions& options) {
  Config rows = Config::list();
  for (const Int8Candidate& candidate : int8_candidates(model, options)) {
    const Pattern& pattern = *candidate.weight->pattern();
    Config row = Config::map({{"parameter", candidate.weight->name()}, {"kernel", "float32"}});
    if (!candidate.reason.empty()) {
      row.set("because", candidate.reason);
      rows.push_back(row);
      continue;
    }
    if (options.when == QuantizeOptions::When::None) {
      row.set("kernel", fmt::format("{}, float32 of int8 weights", pattern.layout().name()));
      row.set("because", kFloat32Inputs);
      rows.push_back(row);
      continue;
    }
    const int64_t groups = groups_of(pattern);
    const double filled =
        groups == 0 ? 0.0 : static_cast<double>(pattern.nnz()) / static_cast<double>(groups);
    const Int8Form form = form_of(pattern);
    row.set("kernel", kernel_name(form));
    row.set("weights_in_group", filled);
    const std::string advice = groups == 0 ? "" : advice_for(pattern, form, filled);
    if (!advice.empty()) row.set("advice", advice);
    rows.push_back(row);
  }
  return rows;
}

std::string planned_lines(const Config& rows) {
  std::string text;
  for (const Config& row : rows.items()) {
    text += fmt::format("{} runs as {}", row.required<std::string>("parameter"),
                        row.required<std::string>("kernel"));
    for (const char* key : {"because", "advice"}) {
      if (row.has(key)) text += ": " + row.required<std::string>(key);
    }
    text += '\n';
  }
  return text;
}

Config precision_result(const Config& splits, Module& model) {
  Config kept = Config::list();
  for (const Config& split : splits.items()) {
    Config without = split.clone();
    without.erase("confusion_matrix");
    kept.push_back(without);
  }
  return Config::map({{"splits", kept}, {"bytes", product_bytes(model)}});
}

std::string precision_lines(const std::string& name, const Config& result) {
  std::string text;
  for (const Config& split : result.at("splits").items()) {
    text += fmt::format("{:<8} {}, {} bytes of weights", name, describe_evaluation(split),
                        result.required<int64_t>("bytes"));
    if (result.has("examples_per_second")) {
      text += fmt::format(", {:.0f} examples/s", result.required<double>("examples_per_second"));
    }
    text += ")\n";
  }
  return text;
}

int64_t product_bytes(Module& model) {
  std::map<const Parameter*, int64_t> quantized;
  const auto count = [&](const AffineLayer& layer, const auto& int8) {
    if (int8 == nullptr) return;
    quantized[layer.weight().get()] =
        int8->weight.bytes() + static_cast<int64_t>(int8->weight_scales.size() * sizeof(float));
  };
  for (const Module* module : model.modules()) {
    if (const auto* linear = dynamic_cast<const Linear*>(module)) count(*linear, linear->int8());
    if (const auto* conv = dynamic_cast<const Conv2d*>(module)) count(*conv, conv->int8());
  }
  int64_t bytes = 0;
  for (const ParameterPtr& parameter : model.parameters()) {
    const auto found = quantized.find(parameter.get());
    const Pattern& pattern = *parameter->pattern();
    bytes +=
        found != quantized.end()
            ? found->second
            : pattern.stored_size() * static_cast<int64_t>(sizeof(float)) + pattern.index_bytes();
  }
  return bytes;
}

}  // namespace lacuna
