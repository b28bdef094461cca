#include "lacuna/framework/train/loop/dense_timing.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "lacuna/framework/core/arithmetic_revision.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/profile.hpp"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/kernels/dense/gemm.hpp"
#include "lacuna/framework/kernels/float_instruction_set.hpp"
#include "lacuna/framework/layouts/cost/cost_model.hpp"
#include "lacuna/framework/layouts/cost/kept_times.hpp"
#include "lacuna/framework/nn/memory_report.hpp"
#include "lacuna/framework/nn/tiled_output.h"
#include "lacuna/framework/train/loop/run_timing.hpp"
#include "lacuna/framework/train/parts/experiment_on_data.hpp"

namespace lacuna {
namespace {

constexpr const char* kFile = "dense-steps";
constexpr double kLongest = 30.0;  // seconds that measuring may take

// FNV-1a.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

// What a step's time depends on: neither rates nor seeds, nor where the data lies.
std::string key_of(const Experiment& e) {
  Config parts = Config::map();
  Config model = e.config.get("model").clone();
  if (model.is_map()) model.erase("init_from");
  parts.set("model", model);
  parts.set("loss", e.config.get("loss").clone());
  for (const char* key : {"type", "momentum", "clip_norm"}) {
    parts.set(key, e.config.get("optimizer").peek(key).clone());
  }
  for (const char* key : {"batch_size", "accumulate", "shards", "reduction", "batch_norm", "ema",
                          "prefetch", "drop_last"}) {
    parts.set(std::string("train.") + key, e.config.get("train").peek(key).clone());
  }
  for (const char* key : {"type", "augment"}) {
    parts.set(std::string("data.") + key, e.config.get("data").peek(key).clone());
  }
  parts.set("algorithms", e.config.get("convolution_algorithms").clone());
  const Config quantize = e.config.get("quantize");  // on grids a step takes longer
  if (!quantize.is_null()) parts.set("quantize", quantize.clone());
  const std::string text = fmt::format(
      "{} {} {} {} {} {} {} {}", parts.to_json(), e.data.train->example_shape().to_string(),
      e.data.train->size(), e.data.train->vocabulary_size(), num_threads(), float_instruction_set(),
      dense_provider(), kArithmeticRevision);
  return fmt::format("{:016x}", hash_of(text));
}

double predicted(const Experiment& e, double sparse_step) {
  const CompressionLimits& limits = e.sparsity->compression();
  double more = 0.0;  // milliseconds, in one thread
  for (const ParameterPtr& parameter : e.sparsity->parameters()) {
    const Pattern& pattern = *parameter->pattern();
    const Layout& layout = pattern.layout();
    if (&layout == &masked_layout() || &layout == &dense_layout()) continue;
    const LayoutCosts costs =
        parameter->convolution
            ? compare_layouts(limits.convolution_of(*parameter), pattern.nnz()).costs
            : compare_layouts(parameter->shape(), pattern.nnz(), limits.rows_of(*parameter), layout,
                              pattern.lifetime())
                  .costs;
    more += costs.masked_ms - costs.compressed_ms;
  }
  return std::max(0.1 * sparse_step, sparse_step + 1e-3 * more / num_threads());
}

// Values, gradients, states and, as for the sparse network, activations.
bool fits(const Experiment& e) {
  return 1.5 * static_cast<double>(dense_bytes(*e.model)) < static_cast<double>(available_memory());
}

// Weights in tiles are never made dense.
bool has_tiles(const Experiment& e) {
  return std::ranges::any_of(e.model->modules(), [](const Module* module) {
    return dynamic_cast<const TiledOutput*>(module) != nullptr;
  });
}

std::optional<double> measured(const Experiment& e, double budget) {
  Config config = e.config.clone();
  for (const char* section : {"sparsity", "sparsifiers", "csr_up_to"}) config.erase(section);
  // First values are drawn: whose they are costs nothing else.
  const auto dense = build_experiment_on(e.data, config, Start::FromCheckpoint);
  return measure_step(*dense, budget);
}

bool is_sparse(const Experiment& e) {
  return e.sparsity != nullptr &&
         std::ranges::any_of(e.sparsity->parameters(), [&](const ParameterPtr& parameter) {
           return e.sparsity->makes_sparse(parameter);
         });
}

}  // namespace

std::optional<DenseStep> dense_step(const Experiment& e, double sparse_step, double budget) {
  const Communicator* job = e.communicator();
  const ProfilePause pause;
  if (!is_sparse(e) || (job != nullptr && job->size() > 1)) return std::nullopt;
  try {
    const std::string key = key_of(e);
    const double expected = predicted(e, sparse_step);
    // In longer steps another program had the processor, as in the run it did not.
    constexpr double kLeastBudget = 0.5, kMostOverExpected = 3.0;
    const auto kept = kept_time(kFile, key);
    if (kept && *kept <= kMostOverExpected * expected) return DenseStep{*kept, true};
    if (fits(e) && !has_tiles(e) && 3.0 * expected < kLongest) {
      const auto seconds = measured(e, budget);
      if (seconds && *seconds <= kMostOverExpected * expected) {
        if (budget >= kLeastBudget) keep_time(kFile, key, *seconds);  // others are of few steps
        return DenseStep{*seconds, true};
      }
    }
    return DenseStep{expected, false};
  } catch (const std::bad_alloc&) {
    return DenseStep{predicted(e, sparse_step), false};
  } catch (const MemoryError&) {
    return DenseStep{predicted(e, sparse_step), false};
  } catch (const std::exception& error) {  // a run that has ended well does not fail by it
    log_detail(std::string("the dense network was not timed: ") + error.what());
    return std::nullopt;
  }
}

}  // namespace lacuna
