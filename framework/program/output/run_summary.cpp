#include "lacuna/framework/program/output/run_summary.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/progress.h"
#include "lacuna/framework/io/shell_word.hpp"
#include "lacuna/framework/kernels/dense/gemm.hpp"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/nn/batch_user.h"
#include "lacuna/framework/program/output/time_table.hpp"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/parts/sparsity_defaults.hpp"

namespace lacuna {
namespace {

// Three digits, in the unit that suits.
std::string in_units(double value, double step, const std::vector<const char*>& units) {
  size_t unit = 0;
  while (value >= step * 0.9995 && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  return fmt::format("{:.3g} {}", value, units[unit]);
}

std::string bytes_in_words(double bytes) {
  return in_units(bytes, 1000.0, {"bytes", "kB", "MB", "GB", "TB"});
}

std::string flops_in_words(double flops) {
  return in_units(flops, 1000.0, {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"});
}

// With enough digits to differ from 0 and 100 %: "10.0 %", "0.00021 %".
std::string percent(int64_t part, int64_t whole) {
  const double value =
      whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (value > 0.0 && value < 0.1) return fmt::format("{:.2g} %", value);
  return value > 99.9 && part < whole ? fmt::format("{:.5g} %", value)
                                      : fmt::format("{:.1f} %", value);
}

std::string grouped_plural(int64_t count, const std::string& what) {
  return grouped(count) + " " + what + (count == 1 ? "" : "s");
}

double number(const Config& summary, const std::string& key) {
  return summary.required<double>(key);
}

// "accuracy 98.58 %, loss 0.0603" of a split; empty if the run has none.
std::string result_of(const Config& summary, const std::string& split) {
  if (!summary.has(split + "_loss")) return "";
  std::vector<std::string> parts;
  if (summary.has(split + "_accuracy")) {
    parts.push_back(fmt::format("accuracy {:.2f} %", 100.0 * number(summary, split + "_accuracy")));
  }
  if (summary.has(split + "_perplexity")) {
    parts.push_back(fmt::format("perplexity {:.4g}", number(summary, split + "_perplexity")));
  }
  if (const std::string first = split + "_" + kPrecisions.front().name; summary.has(first)) {
    parts.push_back(fmt::format("P@1 {:.2f} %", 100.0 * number(summary, first)));
  }
  if (summary.has(split + "_r2")) {
    parts.push_back(fmt::format("R² {:.4f}", number(summary, split + "_r2")));
  }
  if (summary.has(split + "_mae")) {
    parts.push_back(fmt::format("MAE {}", rounded(number(summary, split + "_mae"))));
  }
  if (summary.has(split + "_rmse")) {
    parts.push_back(fmt::format("RMSE {}", rounded(number(summary, split + "_rmse"))));
  }
  if (summary.has(split + "_bits_per_character")) {
    const std::string unknown = split + "_unknown_tokens";
    parts.push_back(bits_in_words(number(summary, split + "_bits_per_character"),
                                  summary.has(unknown) ? number(summary, unknown)
                                                       : std::numeric_limits<double>::quiet_NaN()));
  }
  parts.push_back("loss " + rounded(number(summary, split + "_loss")));
  return join(parts, ", ");
}

// Both splits: "validation accuracy …; test accuracy …".
std::string results(const Config& summary, const std::string& prefix) {
  std::vector<std::string> parts;
  for (const char* split : {"validation", "test"}) {
    const std::string result = result_of(summary, prefix + split);
    if (!result.empty()) parts.push_back(split + (" " + result));
  }
  return parts.empty() ? "training loss " + rounded(number(summary, "train_loss"))
                       : join(parts, "; ");
}

struct Counts {
  int64_t parameters = 0, numel = 0, nnz = 0;
};

Counts counts_of(const std::vector<ParameterPtr>& parameters) {
  Counts counts;
  for (const ParameterPtr& parameter : parameters) {
    ++counts.parameters;
    counts.numel += parameter->numel();
    counts.nnz += parameter->pattern()->nnz();
  }
  return counts;
}

// Weights whose masks came with their values, where no algorithm is in charge of them.
std::vector<ParameterPtr> with_kept_masks(const Experiment& e) {
  std::vector<ParameterPtr> kept = e.model->parameters();
  std::erase_if(kept, [](const ParameterPtr& parameter) {
    return !parameter->sparsified_by.empty() || parameter->pattern()->nnz() == parameter->numel();
  });
  return kept;
}

std::string sparsity_in_words(int64_t nnz, int64_t numel) {
  return fmt::format("{} of {} weights (sparsity {}, density {})", grouped(nnz), grouped(numel),
                     percent(numel - nnz, numel), percent(nnz, numel));
}

// "csr (12 weights), dense (3 weights)".
std::string layouts_in_words(const Experiment& e) {
  std::map<std::string, int64_t> weights;
  for (const ParameterPtr& parameter : e.sparsity->parameters()) {
    ++weights[std::string(parameter->pattern()->layout().name())];
  }
  std::vector<std::string> parts;
  for (const auto& [layout, count] : weights) {
    parts.push_back(fmt::format("{} ({})", layout, grouped_plural(count, "weight")));
  }
  return join(parts, ", ");
}

// "fc3.weight (the output layer)": weights that stay dense, the first of each reason.
std::string dense_weights_in_words(const Experiment& e) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (const ParameterPtr& parameter : e.model->parameters()) {
    const std::string reason = why_dense(e, *parameter);
    if (reason.empty() || reason == "frozen") continue;  // these have a line of their own
    auto found = std::ranges::find(by_reason, reason, &decltype(by_reason)::value_type::first);
    if (found == by_reason.end()) found = by_reason.insert(found, {reason, {}});
    found->second.push_back(parameter->name());
  }
  std::vector<std::string> parts;
  for (const auto& [reason, names] : by_reason) {
    const std::string more =
        names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : std::string();
    parts.push_back(fmt::format("{}{} ({})", names.front(), more, reason));
  }
  return join(parts, ", ");
}

// What a weight is stored by, as it was measured.
std::string limit_in_words(const std::string& layout, double limit) {
  if (limit >= 1.0) return layout + " is faster at every density";
  if (limit <= 0.0) return "masked is faster at every density";
  return fmt::format("{} is faster up to a density of {:.2g} %", layout, 100.0 * limit);
}

}  // namespace

namespace {

bool has_batch_norm(Module& model) {
  return std::ranges::any_of(model.modules(), [](const Module* module) {
    return dynamic_cast<const BatchUser*>(module) != nullptr;
  });
}

std::string sharing_in_words(const Experiment& e) {
  const int64_t processes = e.parallel->processes();
  std::string text = processes == 1 ? "by one process" : fmt::format("by {} processes", processes);
  const bool is_local = e.train.batch_norm == NormBatch::Local && has_batch_norm(*e.model);
  if (e.train.reduction == Reduction::Fast) {
    text += ", each in one pass (reduction: fast); last digits depend on the number of processes";
  } else {
    text += fmt::format(", in {}", grouped_plural(e.parallel->shards(), "shard"));
    // Sums have another order than in a run without shards, and so other last digits.
    if (!is_local) {
      text += fmt::format(
          ": any number of processes gives the same results, those of train.shards: {} in one "
          "process, not of train.shards: 0",
          e.parallel->shards());
    }
  }
  if (!is_local) return text;
  return text +
         "; each process normalizes over its own examples (batch_norm: local), so results depend "
         "on the number of processes";
}

}  // namespace

std::vector<std::string> run_header(const Experiment& e) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("data      {} of shape {}, batches of {}; {}",
                              grouped_plural(e.data.train->size(), "training example"),
                              e.data.train->example_shape().to_string(), e.train.batch_size,
                              grouped_plural(e.total_steps(), "step")));
  const auto tensors = static_cast<int64_t>(e.model->parameters().size());
  lines.push_back(fmt::format("model     {} in {}", grouped_plural(e.numel(), "parameter"),
                              grouped_plural(tensors, "tensor")));
  const Counts kept = counts_of(with_kept_masks(e));
  const std::string kept_masks =
      kept.parameters == 0 ? ""
                           : fmt::format("the masks that came with the weights are kept, {} in {}",
                                         sparsity_in_words(kept.nnz, kept.numel),
                                         grouped_plural(kept.parameters, "tensor"));
  if (e.sparsity == nullptr) {
    lines.push_back("sparsity  " +
                    (kept_masks.empty() ? "none: dense training" : "no algorithm; " + kept_masks));
  } else {
    const Counts counts = counts_of(e.sparsity->sparse_parameters());
    lines.push_back(counts.numel == 0
                        ? fmt::format("sparsity  {}: no weight is made sparse", e.sparsity->type())
                        : fmt::format("sparsity  {}: at first {} in {}", e.sparsity->type(),
                                      sparsity_in_words(counts.nnz, counts.numel),
                                      grouped_plural(counts.parameters, "tensor")));
    if (!kept_masks.empty()) lines.back() += "; of the others " + kept_masks;
    lines.push_back("stored    " + layouts_in_words(e));
    if (const std::string dense = dense_weights_in_words(e); !dense.empty()) {
      lines.push_back("dense     " + dense);
    }
    if (!e.chosen.empty()) lines.push_back("chosen    " + e.chosen);
    const std::vector<std::string> frozen = e.sparsity->frozen_choices(e.model->parameters());
    if (!frozen.empty()) lines.push_back("frozen    not made sparse: " + join(frozen, ", "));
  }
  lines.push_back(fmt::format("runs on   {}, {} kernels, dense products by {}",
                              grouped_plural(num_threads(), "thread"), active_instruction_set(),
                              dense_provider()));
  if (e.parallel != nullptr) lines.push_back("shared    " + sharing_in_words(e));
  return lines;
}

std::vector<std::string> parameter_lines(const Experiment& e) {
  std::vector<std::string> lines;
  for (const ParameterPtr& parameter : e.model->parameters()) {
    std::string line = "  " + parameter->name() + " " + parameter->shape().to_string();
    if (!parameter->sparsified_by.empty()) {
      line += fmt::format(", {}, {} nonzeros, stored as {}", parameter->sparsified_by,
                          parameter->pattern()->nnz(), parameter->pattern()->layout().name());
      for (const auto& [key, limit] : e.sparsity->compression().compress_below) {
        if (key.parameter != parameter->name()) continue;
        line +=
            fmt::format(" ({}{})", limit_in_words(std::string(key.layout), limit),
                        key.lifetime == PatternLifetime::OneStep ? ", for masks of one step" : "");
      }
    }
    lines.push_back(line);
  }
  return lines;
}

NextUse next_use(const Dataset& trained_on) {
  const TokenLabel label = trained_on.token_label();
  if (label == TokenLabel::None) return NextUse::Predict;
  if (trained_on.tokenizer() == nullptr) return NextUse::Evaluation;
  return label == TokenLabel::Next ? NextUse::Generate : NextUse::Predict;
}

std::vector<std::string> result_table(const Config& summary, const std::string& run_folder,
                                      bool has_best_checkpoint, NextUse next) {
  std::vector<std::string> lines;
  const auto add = [&](const char* name, const std::string& text) {
    lines.push_back(fmt::format("{:<9} {}", name, text));
  };
  const auto at = [](double epoch, int64_t step) {
    return fmt::format(
        " (epoch {}, step {})",
        epoch == std::round(epoch) ? fmt::format("{:.0f}", epoch) : epochs_in_words(epoch),
        grouped(step));
  };
  if (summary.has("best_step")) {
    const bool is_kept = has_best_checkpoint || summary.required<int64_t>("best_step") ==
                                                    summary.required<int64_t>("steps");
    add("best", results(summary, "best_") +
                    at(number(summary, "best_epoch"), summary.required<int64_t>("best_step")) +
                    (is_kept ? "" : "; not kept (train.checkpoint.keep_best)"));
  }
  add("last", results(summary, "") +
                  at(number(summary, "epochs"), summary.required<int64_t>("steps")) +
                  (summary.get("stopped_early", false) ? ", stopped early" : ""));
  const double seconds = number(summary, "train_seconds");
  const auto each = [&](const char* key) {
    const double count = number(summary, key);
    return time_in_words(count > 0.0 ? seconds / count : 0.0);
  };
  add("time",
      fmt::format("{} of training, {} per step, {} per epoch, {}/s; memory at most {}",
                  format_duration(seconds), each("steps"), each("epochs"),
                  grouped_plural(std::llround(number(summary, "examples_per_second")), "example"),
                  bytes_in_words(number(summary, "peak_rss_bytes"))));
  const auto numel = summary.required<int64_t>("numel"), nnz = summary.required<int64_t>("nnz");
  if (summary.has("sparse_numel")) {
    add("sparsity", sparsity_in_words(summary.required<int64_t>("sparse_nnz"),
                                      summary.required<int64_t>("sparse_numel")));
  }
  add("model", nnz == numel ? grouped_plural(numel, "parameter") + ", all dense"
                            : fmt::format("{} of {} in all", grouped(nnz),
                                          grouped_plural(numel, "parameter")));
  const double bytes = number(summary, "parameter_bytes"),
               dense = number(summary, "dense_parameter_bytes");
  add("bytes", fmt::format("{} of values, gradients and optimizer states{}", bytes_in_words(bytes),
                           nnz == numel ? ""
                                        : fmt::format("; dense {}, {:.3g} times larger",
                                                      bytes_in_words(dense), dense / bytes)));
  if (summary.has("training_flops") && nnz != numel && number(summary, "training_flops") > 0) {
    const auto flops = [&](const char* key) { return flops_in_words(number(summary, key)); };
    const double training = number(summary, "training_flops"),
                 whole = number(summary, "dense_training_flops");
    add("work", fmt::format("inference {}, training {} per example; dense {} and {}, {:.3g} times "
                            "more in training",
                            flops("inference_flops"), flops("training_flops"),
                            flops("dense_inference_flops"), flops("dense_training_flops"),
                            whole / training));
  }
  if (summary.has("speedup")) {
    const double less =
        summary.has("training_flops") && number(summary, "training_flops") > 0
            ? number(summary, "dense_training_flops") / number(summary, "training_flops")
            : 0.0;
    add("speed",
        fmt::format("{} ({} per step, dense {}, {})",
                    speedup_in_words(number(summary, "speedup"), less),
                    time_in_words(number(summary, "step_seconds")),
                    time_in_words(number(summary, "dense_step_seconds")),
                    summary.required<bool>("dense_step_is_measured") ? "measured" : "predicted"));
  }
  add("results", run_folder + ": summary.json, metrics.jsonl, log.txt, checkpoints/" +
                     (has_best_checkpoint ? " (best.h5 is the best)" : ""));
  const std::string run = shell_word(run_folder);
  std::string use;
  if (next == NextUse::Predict) use = fmt::format(", lacuna predict {} INPUT --out FILE", run);
  if (next == NextUse::Generate) use = fmt::format(", lacuna generate {} --prompt TEXT", run);
  add("next", fmt::format("lacuna report {}, lacuna eval {}{}", run, run, use));
  return lines;
}

std::string result_line(const Config& summary, const std::string& run_folder) {
  std::string line = results(summary, "");
  if (summary.has("best_step") &&
      summary.required<int64_t>("best_step") != summary.required<int64_t>("steps")) {
    line += fmt::format(" (best: {} at step {})", results(summary, "best_"),
                        grouped(summary.required<int64_t>("best_step")));
  }
  if (summary.has("sparse_numel")) {
    const auto numel = summary.required<int64_t>("sparse_numel");
    line += ", sparsity " + percent(numel - summary.required<int64_t>("sparse_nnz"), numel);
  }
  return line + ", " + run_folder;
}

}  // namespace lacuna
