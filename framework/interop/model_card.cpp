#include "lacuna/framework/interop/model_card.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/io/progress.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/nn/memory_report.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = "<!-- written by lacuna export --card -->";

// "runs/mlp" of "runs/mlp/checkpoints/best.h5"; empty where the checkpoint lies elsewhere.
fs::path folder_of(const LoadedRun& run) {
  const fs::path checkpoints = fs::absolute(run.checkpoint).lexically_normal().parent_path();
  return checkpoints.filename() == "checkpoints" ? checkpoints.parent_path() : fs::path();
}

std::string name_of(const LoadedRun& run) {
  const fs::path folder = folder_of(run);
  return folder.empty() ? fs::path(run.checkpoint).stem().string() : folder.filename().string();
}

Config summary_of(const LoadedRun& run) {
  std::error_code error;
  const fs::path file = folder_of(run) / "summary.json";
  if (folder_of(run).empty() || !fs::is_regular_file(file, error)) return {};
  try {
    const Config summary = load_yaml(file.string());
    return summary.is_map() ? summary : Config();
  } catch (const ConfigError&) {
    return {};  // damaged: the card does without
  }
}

std::string text_at(const Config& config, const char* path) {
  const Config value = config.peek(path);
  return value.is_scalar() ? value.text() : "";
}

// In a cell of a table.
std::string cell(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.insert(at, "\\");
  }
  return text;
}

std::string row(const std::string& what, const std::string& value) {
  return value.empty() ? "" : "| " + cell(what) + " | " + cell(value) + " |\n";
}

std::string algorithm_of(const Config& config) {
  const Config sparsity = config.peek("sparsity");
  if (sparsity.is_list()) return "several algorithms";
  for (const char* key : {"sparsity.algorithm", "sparsity.type"}) {
    if (const std::string name = text_at(config, key); !name.empty()) return name;
  }
  return sparsity.is_map() && sparsity.has("phases") ? "several phases" : "";
}

struct Size {
  int64_t numel = 0, nnz = 0;
};

Size size_of(const LoadedRun& run) {
  Size size;
  for (const ParameterPtr& parameter : run.model->parameters()) {
    size.numel += parameter->numel();
    size.nnz += parameter->pattern()->nnz();
  }
  return size;
}

std::string percent(int64_t part, int64_t all) {
  return fmt::format("{:.2f} %", 100.0 * static_cast<double>(part) /
                                     static_cast<double>(std::max<int64_t>(all, 1)));
}

std::string classes_of(const LoadedRun& run) {
  constexpr size_t kMost = 20;
  std::vector<std::string> names = run.inputs.class_names;
  if (names.empty()) return "";
  const size_t count = names.size();
  names.resize(std::min(count, kMost));
  return fmt::format("{}: {}{}", count, join(names, ", "),
                     count > kMost ? fmt::format(" and {} more", count - kMost) : "");
}

std::string about_model(const LoadedRun& run) {
  const Size size = size_of(run);
  const std::string preset = text_at(run.config, "model.type");
  std::string normalization;
  if (!run.inputs.normalization.mean.empty()) {
    normalization = "(x - mean) / std with the values in the checkpoint, by channel or column";
  }
  return "## The model\n\n| | |\n|---|---|\n" +
         row("architecture", preset.empty() ? "layers, listed below" : preset) +
         row("parameters", grouped(size.numel)) +
         row("nonzeros", grouped(size.nnz) + " (" + percent(size.nnz, size.numel) + ")") +
         row("input", run.inputs.tokenizer != nullptr ? "tokens of text"
                                                      : run.inputs.example_shape.to_string()) +
         row("normalization", normalization) + row("inputs", join(run.inputs.columns, ", ")) +
         row("predicts", run.inputs.label_column) + row("classes", classes_of(run)) + "\n";
}

std::string about_data(const LoadedRun& run) {
  std::string text =
      "## Training data\n\n| | |\n|---|---|\n" + row("type", text_at(run.config, "data.type"));
  for (const char* key :
       {"path", "train", "test", "validation", "dir", "train_dir", "train_size"}) {
    std::string value = text_at(run.config, (std::string("data.") + key).c_str());
    if (value.starts_with('/')) value = fs::path(value).filename().string();
    text += row(key, value);
  }
  return text + "\nWhere the data comes from, and what may be done with it: *fill in*.\n\n";
}

// What summary.json has of the checkpoint's step: of the best evaluation or of the last.
std::vector<std::pair<std::string, std::string>> results_of(const LoadedRun& run) {
  const Config summary = summary_of(run);
  std::vector<std::pair<std::string, std::string>> results;
  if (!summary.is_map()) return results;
  const std::string step = std::to_string(run.step);
  const bool is_last = text_at(summary, "steps") == step;
  const bool is_best = text_at(summary, "best_step") == step;
  if (!is_last && !is_best) return results;
  constexpr std::array<std::pair<const char*, const char*>, 12> kMetrics{
      {{"accuracy", "accuracy"},
       {"top5_accuracy", "top-5 accuracy"},
       {"precision_at_1", "precision at 1"},
       {"precision_at_3", "precision at 3"},
       {"precision_at_5", "precision at 5"},
       {"r2", "R²"},
       {"rmse", "RMSE"},
       {"mae", "MAE"},
       {"loss", "loss"},
       {"perplexity", "perplexity"},
       {"bits_per_character", "bits per character"},
       {"unknown_tokens", "unknown tokens"}}};
  for (const char* split : {"test", "validation"}) {
    for (const auto& [key, name] : kMetrics) {
      const std::string full = std::string(is_last ? "" : "best_") + split + "_" + key;
      const Config value = summary.get(full);
      if (!value.is_number()) continue;
      const auto number = value.as<double>();
      const bool is_share = std::string_view(key).ends_with("accuracy") ||
                            std::string_view(key).starts_with("precision");
      results.emplace_back(std::string(split) + " " + name,
                           is_share ? fmt::format("{:.2f} %", 100.0 * number) : rounded(number));
    }
  }
  return results;
}

std::string about_results(const LoadedRun& run) {
  std::string text = "## Results\n\n";
  const auto results = results_of(run);
  if (results.empty()) {
    return text + fmt::format("The run folder has no result of step {}.\n\n", run.step);
  }
  text += "| | |\n|---|---|\n";
  for (const auto& [what, value] : results) text += row(what, value);
  return text + fmt::format("\nAfter {} optimizer steps{}.\n\n", run.step,
                            run.is_averaged ? ", of the average of the weights" : "");
}

std::string about_sparsity(const LoadedRun& run) {
  const std::string algorithm = algorithm_of(run.config);
  std::string text = "## Sparsity by layer\n\n";
  if (!algorithm.empty()) text += "Made sparse by `" + algorithm + "`.\n\n";
  text += "| parameter | shape | nonzeros | density | stored as |\n|---|---|---|---|---|\n";
  for (const Config& entry : memory_report(*run.model).items()) {
    int64_t numel = 1;
    std::vector<std::string> sizes;
    for (const Config& size : entry.at("shape").items()) {
      numel *= size.as<int64_t>();
      sizes.push_back(size.text());
    }
    const auto nnz = entry.required<int64_t>("nnz");
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", cell(entry.at("name").text()),
                        join(sizes, " × "), grouped(nnz), percent(nnz, numel),
                        entry.at("layout").text());
  }
  return text + "\n";
}

std::string about_loading(const LoadedRun& run, const std::string& format) {
  const std::string name = name_of(run);
  std::string text = "## How to load it\n\n";
  if (format == "hf") {
    text +=
        "```python\nfrom transformers import AutoModel\n\nmodel = AutoModel.from_pretrained(\".\")"
        "  # the folder of this file\n```\n\nPruned weights are zeros in model.safetensors. ";
  }
  const bool is_text = run.inputs.tokenizer != nullptr && run.inputs.class_names.empty();
  const std::string use = is_text ? "lacuna generate " + name + " --prompt \"...\""
                                  : "lacuna predict " + name + " INPUT --out predictions.csv";
  return text + fmt::format(
                    "With lacuna, next to the run's folder:\n\n```sh\nlacuna eval {0}\n{1}\n"
                    "lacuna export {0} --format safetensors --out weights.safetensors\n```\n\n"
                    "In C++: `lacuna::load_run(\"{0}\")` (docs/guides/interop.md).\n\n",
                    name, use);
}

// Where files lay on the machine is nobody's matter.
Config without_folders(const Config& node) {
  if (node.is_list()) {
    Config list = Config::list();
    for (const auto& [index, child] : node.children()) list.push_back(without_folders(child));
    return list;
  }
  if (node.is_map()) {
    Config map = Config::map();
    for (const auto& [key, child] : node.children()) map.set(key, without_folders(child));
    return map;
  }
  const bool is_path = node.is_scalar() && node.text().starts_with('/');
  return is_path ? Config(fs::path(node.text()).filename().string()) : node.clone();
}

std::string about_training(const LoadedRun& run) {
  return "## How it was trained\n\nThe whole configuration; `lacuna train FILE` repeats it. Paths "
         "are cut to "
         "their last names.\n\n"
         "```yaml\n" +
         without_folders(run.config).to_yaml() + "```\n\n";
}

}  // namespace

std::string model_card(const LoadedRun& run, const std::string& format) {
  const Size size = size_of(run);
  const std::string algorithm = algorithm_of(run.config);
  std::string tags = "  - lacuna\n  - sparse\n";
  if (!algorithm.empty() && algorithm.find(' ') == std::string::npos)
    tags += "  - " + algorithm + "\n";
  return fmt::format(
             "---\nlicense: unknown  # fill in: apache-2.0, cc-by-4.0, ...\nlibrary_name: "
             "{}\ntags:\n"
             "{}---\n{}\n\n# {}\n\nA network with {} weights, {} of them nonzero ({}), trained "
             "with "
             "lacuna {}. *Fill in: what it is for, and what it should not be used for.*\n\n",
             format == "hf" ? "transformers" : "lacuna", tags, kMark, name_of(run),
             grouped(size.numel), grouped(size.nnz), percent(size.nnz, size.numel), kVersion) +
         about_model(run) + about_data(run) + about_results(run) + about_sparsity(run) +
         about_loading(run, format) + about_training(run) +
         "## Licence\n\n*Fill in, here and at the top of this file.*\n";
}

bool is_model_card(const std::string& path) {
  constexpr size_t kBytes = 4096;
  std::ifstream stream(path, std::ios::binary);
  std::string begin(kBytes, '\0');
  stream.read(begin.data(), static_cast<std::streamsize>(kBytes));
  begin.resize(static_cast<size_t>(stream.gcount()));
  return begin.find(kMark) != std::string::npos;
}

}  // namespace lacuna
