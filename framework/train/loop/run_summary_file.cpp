// What a reporter writes at the end of a run: summary.json.
#include <fmt/core.h>
#include <sys/resource.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "lacuna/framework/core/arithmetic_revision.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/kernels/instruction_set.hpp"
#include "lacuna/framework/nn/memory_report.hpp"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/nn/neurons.hpp"
#include "lacuna/framework/train/loop/run_reporter.hpp"
#include "lacuna/framework/train/unknown_tokens.hpp"

namespace lacuna {
namespace {

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

double examples_per_second(const RunState& state) {
  return state.train_seconds > 0.0 ? static_cast<double>(state.examples) / state.train_seconds
                                   : 0.0;
}

// Parameters that are not trained.
int64_t frozen_numel(const Module& model) {
  int64_t total = 0;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (!parameter->trainable) total += parameter->numel();
  }
  return total;
}

// `data` is the split's.
void add_unknown(const std::string& split, const Dataset& data, Config& summary) {
  const double unknown = share_of_unknown(data);
  if (!std::isnan(unknown)) summary.set(split + "_unknown_tokens", unknown);
}

void add_evaluation(const std::string& split, const std::optional<Evaluation>& result,
                    const LossFunction& loss, const std::shared_ptr<const Dataset>& data,
                    Config& summary) {
  if (!result) return;
  if (loss.has_accuracy()) summary.set(split + "_accuracy", result->accuracy);
  if (!std::isnan(result->top5_accuracy)) {
    summary.set(split + "_top5_accuracy", result->top5_accuracy);
  }
  for (const auto& [name, value] : other_results(*result)) {
    summary.set(split + "_" + name, value);
  }
  summary.set(split + "_loss", result->loss);
  const double perplexity = std::exp(result->loss);
  if (loss.has_token_labels() && std::isfinite(perplexity)) {
    summary.set(split + "_perplexity", perplexity);
  }
  const double bits = bits_per_character(result->loss, *data);
  if (!std::isnan(bits)) summary.set(split + "_bits_per_character", bits);
  add_unknown(split, *data, summary);
}

// Of one example, with all weights and with those that there were.
void add_flops(const Experiment& e, const RunState& state, Config& summary) {
  const Flops flops = count_flops(e.rows, [](const Parameter& p) { return p.pattern()->nnz(); });
  const Flops dense = count_flops(e.rows, [](const Parameter& p) { return p.numel(); });
  const auto set = [&](const char* key, double value) {
    summary.set(key, static_cast<int64_t>(std::llround(value)));
  };
  set("inference_flops", flops.forward);
  set("dense_inference_flops", dense.forward);
  if (state.training_flops && state.examples > 0) {
    set("training_flops", *state.training_flops / static_cast<double>(state.examples));
  }
  set("dense_training_flops", dense.training);
}

// Next to a dense run of the same network.
void add_times(const RunState& state, const std::optional<DenseStep>& dense, Config& summary) {
  if (state.step == 0) return;
  const double step = state.train_seconds / static_cast<double>(state.step);
  summary.set("step_seconds", step);
  if (!dense || step <= 0.0) return;
  summary.set("dense_step_seconds", dense->seconds);
  summary.set("dense_step_is_measured", dense->is_measured);
  summary.set("speedup", dense->seconds / step);
}

}  // namespace

void RunReporter::write_summary(SummaryFile file) {
  if (!is_writing_) return;
  Config summary = Config::map();
  const DataSplits& data = experiment_.data;
  add_evaluation("test", state_.test, experiment_.loss, data.test, summary);
  add_evaluation("validation", state_.validation, experiment_.loss, data.validation, summary);
  add_unknown("train", *data.train, summary);
  for (const char* key : {"test_bits_per_character", "validation_bits_per_character"}) {
    if (summary.has(key) && !summary.has("bits_per_character")) {
      summary.set("bits_per_character", summary.required<double>(key));
    }
  }
  add_best(summary);
  const bool within_epoch = state_.epoch.examples > 0;
  summary.set("train_loss", within_epoch ? state_.epoch.mean_loss() : state_.last_epoch_loss);
  summary.set("epochs", epochs_done());
  summary.set("steps", state_.step);
  summary.set("train_seconds", state_.train_seconds);
  summary.set("examples_per_second", examples_per_second(state_));
  summary.set("peak_rss_bytes", peak_rss_bytes());
  summary.set("numel", experiment_.numel());
  summary.set("nnz", experiment_.nnz());
  add_sparsity(summary);
  add_flops(experiment_, state_, summary);
  add_times(state_, dense_step_, summary);
  if (const int64_t frozen = frozen_numel(*experiment_.model); frozen > 0) {
    summary.set("frozen", frozen);
  }
  int64_t bytes = 0;
  for (const ParameterPtr& parameter : experiment_.model->parameters()) bytes += parameter->bytes();
  summary.set("parameter_bytes", bytes);
  summary.set("dense_parameter_bytes", dense_bytes(*experiment_.model));
  summary.set("bytes_per_nonzero", bytes_per_nonzero(bytes, experiment_.nnz()));
  summary.set("parameters", memory_report(*experiment_.model));
  if (const auto counts = count_neurons(*experiment_.model)) {
    summary.set("neurons", counts->neurons);
    summary.set("neurons_on_path", counts->on_path);
  }
  summary.set("seed", static_cast<int64_t>(experiment_.train.seed));
  summary.set("threads", num_threads());
  if (experiment_.parallel != nullptr) {
    summary.set("processes", experiment_.parallel->processes());
    summary.set("shards", experiment_.parallel->shards());
  }
  summary.set("instruction_set", active_instruction_set());
  summary.set("version", kVersion);
  summary.set("arithmetic_revision", kArithmeticRevision);
  summary.set("stopped_early", state_.stopping.has_stopped());
  summary_ = summary;
  if (file == SummaryFile::Kept) {
    try {
      const Config kept = load_yaml(summary_path_);
      if (kept.is_map()) summary_ = kept;
    } catch (const ConfigError&) {  // a damaged file stays; the run's last lines use the new counts
    }
    return;
  }
  record_masks();  // wherever a run ends: one stopped early, or made shorter
  write_file_atomically(summary_path_, summary.to_json_indented());
  progress_.clear();
  for (const std::string& line : memory_lines(*experiment_.model)) log_detail(line);
}

// The parameters that an algorithm makes sparse, where there are some.
void RunReporter::add_sparsity(Config& summary) const {
  if (experiment_.sparsity == nullptr) return;
  int64_t numel = 0, nnz = 0;
  for (const ParameterPtr& parameter : experiment_.sparsity->sparse_parameters()) {
    numel += parameter->numel();
    nnz += parameter->pattern()->nnz();
  }
  if (numel == 0) return;
  summary.set("sparse_numel", numel);
  summary.set("sparse_nnz", nnz);
}

void RunReporter::add_best(Config& summary) const {
  if (!state_.best) return;
  summary.set("best_step", state_.best->step);
  summary.set("best_epoch", static_cast<double>(state_.best->step) /
                                static_cast<double>(experiment_.steps_per_epoch()));
  const DataSplits& data = experiment_.data;
  add_evaluation("best_test", state_.best->test, experiment_.loss, data.test, summary);
  add_evaluation("best_validation", state_.best->validation, experiment_.loss, data.validation,
                 summary);
}

}  // namespace lacuna
