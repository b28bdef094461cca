// `lacuna inspect`, `lacuna list` and `lacuna info`: looking without training.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/config/schedule.h"
#include "lacuna/framework/core/arithmetic_revision.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/distributed/communicator.h"
#include "lacuna/framework/kernels/compiled_instruction_sets.hpp"
#include "lacuna/framework/kernels/dense/gemm.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/layouts/layout_registry.h"
#include "lacuna/framework/model/presets/presets.hpp"
#include "lacuna/framework/nn/layer_registry.h"
#include "lacuna/framework/nn/memory_report.hpp"
#include "lacuna/framework/param/saved_parameter.hpp"
#include "lacuna/framework/program/commands.hpp"
#include "lacuna/framework/program/output/quantize_report.hpp"
#include "lacuna/framework/program/settings/checkpoint_choice.hpp"
#include "lacuna/framework/quantize/float32_values.hpp"
#include "lacuna/optimizers/optimizer_registry.h"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/sparsifier.h"

namespace lacuna {
namespace {

// One line of the table: a parameter, or an optimizer state of one.
struct Row {
  std::string name;
  Shape shape;
  std::string layout;  // empty: of a state
  int64_t nnz = 0;
  int64_t value_bytes = 0, index_bytes = 0, state_bytes = 0;
  int64_t bytes() const { return value_bytes + index_bytes; }
  int64_t total() const { return bytes() + state_bytes; }
};

int64_t count_nonzeros(const Tensor& values) {
  int64_t count = 0;
  for (const float value : values.storage()) count += value != 0.0f ? 1 : 0;
  return count;
}

int64_t count_not_finite(const Tensor& values) {
  return std::ranges::count_if(values.storage(), [](float v) { return !std::isfinite(v); });
}

// Arrays of the state that hold NaN or infinite values, and how many. lacuna saves none.
std::vector<std::pair<std::string, int64_t>> find_not_finite(const StateDict& state) {
  std::vector<std::pair<std::string, int64_t>> found;
  for (const auto& [name, value] : state.values()) {
    const Tensor* values = std::get_if<Tensor>(&value);
    if (values == nullptr) continue;
    if (const int64_t count = count_not_finite(*values); count > 0) found.emplace_back(name, count);
  }
  return found;
}

std::vector<Row> optimizer_rows(const StateDict& optimizer) {
  std::vector<Row> rows;
  for (const auto& [name, value] : optimizer.values()) {
    if (const Tensor* values = std::get_if<Tensor>(&value)) {
      rows.push_back({name, values->shape(), "", count_nonzeros(*values), values->bytes()});
    }
  }
  return rows;
}

// The int8 values and the scales, and the float32 values where the checkpoint has them too.
void count_int8(const std::vector<QuantizedLayer>& layers, const StateDict& state,
                std::vector<Row>& rows) {
  for (const QuantizedLayer& layer : layers) {
    const auto row = std::ranges::find(rows, layer.weight, &Row::name);
    if (row == rows.end()) continue;
    const std::string place = "model/" + layer.weight;
    if (!state.contains(place) && !state.contains(place + "/values")) row->value_bytes = 0;
    row->value_bytes +=
        std::ssize(layer.values) + static_cast<int64_t>(layer.scales.size() * sizeof(float));
  }
}

// nnz of a sparse parameter is what its pattern holds.
std::vector<Row> parameter_rows(const StateDict& model, const std::vector<Row>& states) {
  std::vector<Row> rows;
  for (const std::string& name : saved_parameter_names(model)) {
    const SavedParameter saved(model, name);
    saved.require_fit();
    Row row{name,        saved.shape(),       std::string(saved.layout().name()),
            saved.nnz(), saved.value_bytes(), saved.index_bytes()};
    for (const Row& state : states) {
      if (state.name.starts_with(name + "/")) row.state_bytes += state.bytes();
    }
    rows.push_back(row);
  }
  return rows;
}

double density(const Row& row) {
  return row.shape.numel() == 0
             ? 1.0
             : static_cast<double>(row.nnz) / static_cast<double>(row.shape.numel());
}

Config to_config(const Row& row) {
  Config shape = Config::list();
  for (const int64_t size : row.shape.sizes()) shape.push_back(size);
  Config entry = Config::map({{"name", row.name}, {"shape", shape}});
  const bool is_state = row.layout.empty();
  if (!is_state) entry.set("layout", row.layout);
  entry.set("nnz", row.nnz);
  entry.set("density", density(row));
  entry.set("bytes", row.bytes());
  if (is_state) return entry;
  entry.set("value_bytes", row.value_bytes);
  entry.set("index_bytes", row.index_bytes);
  entry.set("state_bytes", row.state_bytes);
  entry.set("total_bytes", row.total());
  entry.set("bytes_per_nonzero", bytes_per_nonzero(row.total(), row.nnz));
  return entry;
}

void print_rows(const char* title, const std::vector<Row>& rows) {
  if (rows.empty()) return;
  int width = 20, shape_width = 16;
  for (const Row& row : rows) {
    width = std::max(width, static_cast<int>(row.name.size()));
    shape_width = std::max(shape_width, static_cast<int>(row.shape.to_string().size()));
  }
  std::printf("\n%-*s  %-*s %-8s %12s %9s %14s %14s %7s\n", width, title, shape_width, "shape",
              "layout", "nnz", "density", "bytes", "with states", "per nnz");
  for (const Row& row : rows) {
    std::printf("%-*s  %-*s %-8s %12lld %8.2f%% %14lld %14lld %7.1f\n", width, row.name.c_str(),
                shape_width, row.shape.to_string().c_str(), row.layout.c_str(),
                static_cast<long long>(row.nnz), 100 * density(row),
                static_cast<long long>(row.bytes()), static_cast<long long>(row.total()),
                bytes_per_nonzero(row.total(), row.nnz));
  }
}

// Names and their descriptions, in two columns.
using Lines = std::vector<std::pair<std::string, std::string>>;

void print_lines(const Lines& lines) {
  size_t width = 0;
  for (const auto& [name, help] : lines) width = std::max(width, name.size());
  for (const auto& [name, help] : lines) {
    std::printf("%-*s  %s\n", static_cast<int>(width), name.c_str(), help.c_str());
  }
}

template <class Registry>
Lines lines_of(const Registry& registry) {
  Lines lines;
  for (const auto& [name, entry] : registry.entries()) lines.emplace_back(name, entry.help);
  return lines;
}

// Each with a second line on when to use it, if its entry has one.
void print_algorithms() {
  Lines lines;
  for (const auto& [name, entry] : algorithm_registry().entries()) {
    lines.emplace_back(name, entry.help);
    if (!entry.make.when.empty()) lines.emplace_back("", "use it " + entry.make.when);
  }
  print_lines(lines);
}

}  // namespace

int run_inspect(const InspectCommand& command) {
  const CheckpointFile file = choose_checkpoint(command.checkpoint, command.last, print_note);
  const std::string& path = file.path();
  const Checkpoint checkpoint = file.read();
  const std::vector<Row> states = optimizer_rows(checkpoint.state.below("optimizer"));
  std::vector<Row> parameters;
  std::vector<QuantizedLayer> int8;
  naming_file(path, [&] {
    parameters = parameter_rows(model_state(checkpoint.state), states);
    int8 = quantized_layers(checkpoint.state.below("quantized"));
    count_int8(int8, checkpoint.state, parameters);
  });
  int64_t numel = 0, nnz = 0, bytes = 0;
  for (const Row& row : parameters) {
    numel += row.shape.numel();
    nnz += row.nnz;
    bytes += row.total();
  }
  const Config quantized = quantized_rows(int8);
  const auto not_finite = find_not_finite(checkpoint.state);
  const auto text = [&](const char* name) {
    return checkpoint.state.contains(name) ? checkpoint.state.get<std::string>(name) : "none";
  };
  if (command.json) {
    Config report = Config::map({{"checkpoint", path},
                                 {"format_version", checkpoint.format_version},
                                 {"lacuna_version", checkpoint.lacuna_version},
                                 {"step", checkpoint.step},
                                 {"numel", numel},
                                 {"nnz", nnz},
                                 {"total_bytes", bytes},
                                 {"bytes_per_nonzero", bytes_per_nonzero(bytes, nnz)},
                                 {"algorithm", text("algorithm/type")},
                                 {"optimizer", text("optimizer/type")},
                                 {"parameters", Config::list()},
                                 {"optimizer_states", Config::list()}});
    if (checkpoint.arithmetic_revision) {
      report.set("arithmetic_revision", *checkpoint.arithmetic_revision);
    }
    for (const Row& row : parameters) report.get("parameters").push_back(to_config(row));
    for (const Row& row : states) report.get("optimizer_states").push_back(to_config(row));
    Config damaged = Config::map();
    for (const auto& [name, count] : not_finite) damaged.set(name, count);
    report.set("not_finite", damaged);
    if (!quantized.items().empty()) report.set("quantized", quantized);
    print_json(report);
    return kDone;
  }
  std::printf("%s\nwritten by lacuna %s at step %lld; %lld parameters, %lld of them nonzeros\n",
              path.c_str(), checkpoint.lacuna_version.c_str(),
              static_cast<long long>(checkpoint.step), static_cast<long long>(numel),
              static_cast<long long>(nnz));
  std::printf("sparsity algorithm %s, optimizer %s\n", text("algorithm/type").c_str(),
              text("optimizer/type").c_str());
  std::printf("parameters and optimizer states take %lld bytes, %.1f per nonzero\n",
              static_cast<long long>(bytes), bytes_per_nonzero(bytes, nnz));
  for (const auto& [name, count] : not_finite) {
    std::printf("'%s' has %lld values that are NaN or infinite, so it cannot be used\n",
                name.c_str(), static_cast<long long>(count));
  }
  print_rows("parameter", parameters);
  print_rows("optimizer state", states);
  if (!quantized.items().empty()) std::printf("\nin int8\n%s", quantized_table(quantized).c_str());
  return kDone;
}

const std::vector<std::string>& listed_kinds() {
  static const std::vector<std::string> kinds = {"algorithms", "sparsifiers", "layouts",
                                                 "layers",     "optimizers",  "schedules",
                                                 "datasets",   "presets"};
  return kinds;
}

int run_list(const std::string& what) {
  if (what == "algorithms") {
    print_algorithms();
  } else if (what == "sparsifiers") {
    print_lines(lines_of(sparsifier_registry()));
  } else if (what == "layouts") {
    for (const std::string& name : layout_names()) std::printf("%s\n", name.c_str());
    std::puts("nm, block: for a pattern of that type");
  } else if (what == "layers") {
    Lines lines = lines_of(layer_registry());
    lines.emplace_back("sequential", "layers: one after the other, under a common name");
    lines.emplace_back("residual",
                       "layers, shortcut, when: adds its input to the output of its layers");
    lines.emplace_back("parallel",
                       "layers: gives its input to each, and concatenates their outputs");
    lines.emplace_back("qkv", "names, out_features, kv_features, bias, init: three linear layers");
    print_lines(lines);
  } else if (what == "optimizers") {
    print_lines(lines_of(optimizer_registry()));
  } else if (what == "schedules") {
    print_lines(lines_of(schedule_registry()));
  } else if (what == "datasets") {
    print_lines(lines_of(dataset_registry()));
  } else if (what == "presets") {
    print_lines(preset_list());
  } else {
    throw ConfigError("list: unknown '" + what + "'; " + suggest_name(what, listed_kinds()));
  }
  return kDone;
}

int run_info(bool json) {
  const std::vector<std::string> compiled = compiled_instruction_sets();
  const Config info =
      Config::map({{"version", kVersion},
                   {"arithmetic_revision", kArithmeticRevision},
                   {"threads", num_threads()},
                   {"instruction_set", active_instruction_set()},
                   {"compiled_instruction_sets", Config::list({compiled.begin(), compiled.end()})},
                   {"dense_provider", dense_provider()},
                   {"dense_blocks", most_dense_blocks()},
                   {"mpi", mpi_description()}});
  if (json) {
    print_json(info);
    return kDone;
  }
  std::printf(
      "lacuna %s\narithmetic       revision %lld\nthreads          %d\ninstruction set  %s\n"
      "kernels          %s%s\ndense products   %s, in up to %d blocks\n",
      kVersion, static_cast<long long>(kArithmeticRevision), num_threads(),
      active_instruction_set().c_str(), fmt::format("{}", fmt::join(compiled, ", ")).c_str(),
      compiled.size() == 1 ? " alone (LACUNA_KERNELS=machine)" : "", dense_provider().c_str(),
      static_cast<int>(most_dense_blocks()));
  if (dense_provider().starts_with("Eigen")) {
    std::printf(
        "                 (built without oneDNN; libdnnl-dev makes dense products faster)\n");
  }
  std::printf("MPI              %s\n", mpi_description().c_str());
  return kDone;
}

}  // namespace lacuna
