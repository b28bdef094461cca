// Results, sorted and grouped; how they are written is in text_table.cpp.
#include "lacuna/framework/report/run_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "lacuna/framework/report/tasks.hpp"

namespace lacuna {
namespace {

double number_or_none(const Config& map, const char* key) {
  if (!map.is_map()) return RunResult::kNone;
  const Config value = map.get(key);
  return value.is_number() ? value.as<double>() : RunResult::kNone;
}

const Curve* find_curve(const RunData& run, const std::string& split, const char* key) {
  const auto curves = run.splits.find(split);
  if (curves == run.splits.end()) return nullptr;
  const auto curve = curves->second.find(key);
  return curve == curves->second.end() || curve->second.empty() ? nullptr : &curve->second;
}

// From the last events, for sparse parameters alone, if a run has no summary.
void add_sizes(const RunData& run, RunResult& result) {
  result.nnz = number_or_none(run.summary, "nnz");
  result.density = result.nnz / number_or_none(run.summary, "numel");
  result.parameter_bytes = number_or_none(run.summary, "parameter_bytes");
  result.train_seconds = number_or_none(run.summary, "train_seconds");
  const Config int8 = run.summary.is_map() ? run.summary.get("int8") : Config();
  if (!int8.is_map()) return;
  result.parameter_bytes = number_or_none(int8, "bytes");
  result.examples_per_second = number_or_none(int8, "examples_per_second");
}

// The last step that any curve tells of.
double last_step(const RunData& run) {
  double last = number_or_none(run.summary, "steps");
  for (const auto& [split, curves] : run.splits) {
    for (const auto& [key, curve] : curves) {
      if (!curve.empty() && !(last >= curve.steps.back())) last = curve.steps.back();
    }
  }
  return last;
}

struct Moments {
  double mean = RunResult::kNone, spread = RunResult::kNone;
};

Moments moments_of(const std::vector<RunResult>& results, double RunResult::*member) {
  double sum = 0.0, squares = 0.0;
  int count = 0;
  for (const RunResult& result : results) {
    if (std::isnan(result.*member)) continue;
    sum += result.*member;
    ++count;
  }
  if (count == 0) return {};
  Moments moments{.mean = sum / count};
  for (const RunResult& result : results) {
    const double distance = result.*member - moments.mean;
    if (!std::isnan(distance)) squares += distance * distance;
  }
  if (count > 1) moments.spread = std::sqrt(squares / (count - 1));
  return moments;
}

// Whether the first number comes before the other: unknown ones last.
bool is_less(double one, double other) {
  if (std::isnan(one) != std::isnan(other)) return std::isnan(other);
  return one < other;
}

// What runs of one task are ranked by.
enum class Rank { Accuracy, Bits, Loss };

Rank rank_of(bool has_bits, bool is_language) {
  if (has_bits) return Rank::Bits;
  return is_language ? Rank::Loss : Rank::Accuracy;
}

bool is_language_model(const RunResult& result) {
  return !std::isnan(result.perplexity) || result.task.ends_with("language model");
}

struct Judged {
  double precision, accuracy, bits, loss;
};

// Whether the first one is better: precisions and accuracies before losses, unknown ones last.
bool is_better(Rank rank, const Judged& a, const Judged& b) {
  if (rank == Rank::Bits) return is_less(a.bits, b.bits);
  if (rank == Rank::Accuracy) {
    for (const auto member : {&Judged::precision, &Judged::accuracy}) {
      if (is_less(-(a.*member), -(b.*member))) return true;
      if (is_less(-(b.*member), -(a.*member))) return false;
    }
  }
  return is_less(a.loss, b.loss);
}

double value_at(const Curve& curve, double step) {
  const auto at = std::ranges::find(curve.steps, step);
  return at == curve.steps.end() ? RunResult::kNone
                                 : curve.values[static_cast<size_t>(at - curve.steps.begin())];
}

// A curve's value at a step, as it was told last before; before all of them the first one.
double last_until(const Curve& curve, double step) {
  const auto after = std::ranges::upper_bound(curve.steps, step) - curve.steps.begin();
  return curve.values[static_cast<size_t>(std::max<std::ptrdiff_t>(1, after) - 1)];
}

// By the updates of its mask; before the first one, what that had found.
double nonzeros_at(const LayerData& layer, double step) {
  const bool has_first =
      layer.dropped.steps == layer.nnz.steps && layer.grown.steps == layer.nnz.steps;
  if (has_first && step < layer.nnz.steps.front()) {
    return layer.nnz.values.front() + layer.dropped.values.front() - layer.grown.values.front();
  }
  return last_until(layer.nnz, step);
}

}  // namespace

// A layer without update events has none to count: its density is used.
double sum_of_nonzeros(const RunData& run, double step) {
  double sum = 0.0;
  for (const LayerData& layer : run.layers) {
    if (!layer.nnz.empty()) {
      sum += nonzeros_at(layer, step);
    } else if (!layer.actual.empty()) {
      sum += last_until(layer.actual, step) *
             (layer.shape.rank() > 0 ? static_cast<double>(layer.shape.numel()) : 1.0);
    }
  }
  return sum;
}

namespace {

// The step after which evaluations are of a quantized model; infinite without qat.
double quantized_from(const RunData& run) {
  const Config quantize = run.config.is_map() ? run.config.peek("quantize") : Config();
  const bool is_qat = quantize.is_map() && quantize.peek("algorithm").text() == "qat";
  if (!is_qat || run.epochs_of_a_step <= 0.0) return std::numeric_limits<double>::infinity();
  const double start = number_or_none(quantize, "start_epoch");
  return std::isnan(start) ? 0.0 : std::round(start / run.epochs_of_a_step);
}

// The evaluation that was the best, as the run's summary has it; of an unfinished run as a trainer
// judges: by the validation split where there is one, by accuracy or the precision at 1 (of equal
// ones the lower loss), or by loss where each token has a label, or nothing is right or wrong;
// judged again if more than 1 % of the nonzeros has gone, or when quantization (qat) begins.
double best_step_of(const RunData& run, const std::string& split) {
  const double summed_up = number_or_none(run.summary, "best_step");
  if (!std::isnan(value_at(*find_curve(run, split, "loss"), summed_up))) return summed_up;
  const std::string judged = find_curve(run, "validation", "loss") ? "validation" : split;
  const Curve* score = find_curve(run, judged, "accuracy");
  if (score == nullptr) score = find_curve(run, judged, "precision_at_1");
  const bool by_score = score != nullptr && find_curve(run, judged, "perplexity") == nullptr;
  const Curve& losses = *find_curve(run, judged, "loss");
  const Curve& curve = by_score ? *score : losses;
  const double begin = quantized_from(run);
  size_t best = 0;
  for (size_t i = 1; i < curve.values.size(); ++i) {
    const double gain =
        by_score ? curve.values[i] - curve.values[best] : curve.values[best] - curve.values[i];
    const double now = sum_of_nonzeros(run, curve.steps[i]),
                 then = sum_of_nonzeros(run, curve.steps[best]);
    const bool is_tie_of_lower_loss =
        gain == 0.0 && value_at(losses, curve.steps[i]) < value_at(losses, curve.steps[best]);
    const bool is_first_quantized = curve.steps[best] <= begin && curve.steps[i] > begin;
    if (gain > 0.0 || is_tie_of_lower_loss || now < 0.99 * then || is_first_quantized) best = i;
  }
  return curve.steps[best];
}

}  // namespace

RunResult result_of(const RunData& run) {
  RunResult result{.name = run.name, .folder = run.folder, .state = run.state};
  result.label = run.label.empty() ? run.name : run.label;
  result.task = task_of(run);
  result.step = last_step(run);
  const Config train = run.config.is_map() ? run.config.get("train") : Config();
  result.keeps_best = train.is_map() && !train.get("early_stopping").is_null();
  result.seed = run.config.is_map() ? number_or_none(run.config.get("train"), "seed") : result.seed;
  add_sizes(run, result);
  for (const char* split : {"test", "validation", "train"}) {
    const Curve* loss = find_curve(run, split, "loss");
    if (loss == nullptr) continue;
    result.split = split;
    result.loss = loss->values.back();
    result.best_step = best_step_of(run, split);
    result.best_loss = value_at(*loss, result.best_step);
    if (const Curve* accuracy = find_curve(run, split, "accuracy")) {
      result.accuracy = accuracy->values.back();
      result.best_accuracy = value_at(*accuracy, result.best_step);
    }
    const auto take = [&](const char* key, double& last, double& best) {
      const Curve* curve = find_curve(run, split, key);
      if (curve == nullptr) return;
      // An evaluation without R², of targets that are all the same, leaves it out.
      last = value_at(*curve, loss->steps.back());
      best = value_at(*curve, result.best_step);
    };
    take("precision_at_1", result.precision_at_1, result.best_precision_at_1);
    take("r2", result.r2, result.best_r2);
    take("mae", result.mae, result.best_mae);
    take("rmse", result.rmse, result.best_rmse);
    take("perplexity", result.perplexity, result.best_perplexity);
    take("bits_per_character", result.bits_per_character, result.best_bits_per_character);
    break;
  }
  return result;
}

std::vector<RunResult> sorted_by_result(std::vector<RunResult> results) {
  const auto has_none = [](const RunResult& r) { return std::isnan(r.loss); };
  const bool has_bits = std::ranges::all_of(results, [&](const RunResult& r) {
    return has_none(r) || !std::isnan(r.bits_per_character);
  });
  const bool is_language = std::ranges::any_of(results, is_language_model);
  const Rank rank = rank_of(has_bits, is_language);
  const auto judged = [](const RunResult& r) {
    return Judged{r.precision_at_1, r.accuracy, r.bits_per_character, r.loss};
  };
  std::ranges::stable_sort(results, [&](const RunResult& a, const RunResult& b) {
    return is_better(rank, judged(a), judged(b));
  });
  return results;
}

std::vector<SeedGroup> group_runs(const std::vector<RunData>& runs,
                                  const std::vector<std::string>& labels) {
  std::vector<RunResult> results;
  for (const RunData& run : runs) results.push_back(result_of(run));
  return group_results(results, labels);
}

std::vector<SeedGroup> group_results(const std::vector<RunResult>& results,
                                     const std::vector<std::string>& labels) {
  std::vector<SeedGroup> groups;
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& name = labels[i];
    auto group = std::ranges::find(groups, name, &SeedGroup::name);
    if (group == groups.end()) {
      groups.push_back({.name = name, .results = {}});
      group = groups.end() - 1;
    }
    group->results.push_back(results[i]);
  }
  for (SeedGroup& group : groups) {
    // Early stopping goes back to the best model: that is what these runs have come to.
    const bool is_best = std::ranges::all_of(group.results, &RunResult::keeps_best);
    const Moments accuracy =
        moments_of(group.results, is_best ? &RunResult::best_accuracy : &RunResult::accuracy);
    const Moments precision = moments_of(
        group.results, is_best ? &RunResult::best_precision_at_1 : &RunResult::precision_at_1);
    const Moments r2 = moments_of(group.results, is_best ? &RunResult::best_r2 : &RunResult::r2);
    const Moments rmse =
        moments_of(group.results, is_best ? &RunResult::best_rmse : &RunResult::rmse);
    const Moments loss =
        moments_of(group.results, is_best ? &RunResult::best_loss : &RunResult::loss);
    group.mean_accuracy = accuracy.mean, group.spread_accuracy = accuracy.spread;
    group.mean_precision = precision.mean, group.spread_precision = precision.spread;
    group.mean_r2 = r2.mean, group.spread_r2 = r2.spread;
    group.mean_rmse = rmse.mean, group.spread_rmse = rmse.spread;
    group.mean_loss = loss.mean, group.spread_loss = loss.spread;
    const Moments perplexity =
        moments_of(group.results, is_best ? &RunResult::best_perplexity : &RunResult::perplexity);
    const Moments bits = moments_of(group.results, is_best ? &RunResult::best_bits_per_character
                                                           : &RunResult::bits_per_character);
    group.mean_perplexity = perplexity.mean, group.spread_perplexity = perplexity.spread;
    group.mean_bits = bits.mean, group.spread_bits = bits.spread;
    group.mean_density = moments_of(group.results, &RunResult::density).mean;
    group.mean_seconds = moments_of(group.results, &RunResult::train_seconds).mean;
  }
  const bool has_bits = std::ranges::all_of(groups, [](const SeedGroup& g) {
    return std::isnan(g.mean_loss) || !std::isnan(g.mean_bits);
  });
  const bool is_language = std::ranges::any_of(
      groups, [](const SeedGroup& g) { return std::ranges::any_of(g.results, is_language_model); });
  const Rank rank = rank_of(has_bits, is_language);
  const auto judged = [](const SeedGroup& g) {
    return Judged{g.mean_precision, g.mean_accuracy, g.mean_bits, g.mean_loss};
  };
  std::ranges::stable_sort(groups, [&](const SeedGroup& a, const SeedGroup& b) {
    return is_better(rank, judged(a), judged(b));
  });
  return groups;
}

}  // namespace lacuna
