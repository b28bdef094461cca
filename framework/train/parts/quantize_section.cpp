#include "lacuna/framework/train/parts/quantize_section.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/quantize/int8_candidates.hpp"
#include "lacuna/framework/quantize/quantization_aware.hpp"
#include "lacuna/framework/train/calibration_data.hpp"
#include "lacuna/optimizers/optimizer_registry.h"
#include "lacuna/sparsity/straight_through.h"

namespace lacuna {

void read_quantize_section(ExperimentBuild& b) {
  if (b.e.config.has("quantize")) QuantizeOptions::from_config(b.e.config.get("quantize"));
}

namespace {

// Scales are trained as the weights are, but for what is a matter of weights: their decay, groups,
// and the norm of all gradients together.
LearnedScales::MakeOptimizer scale_optimizer(const Config& optimizer) {
  Config own = optimizer.clone();
  for (const char* key : {"groups", "no_decay", "clip_norm"}) own.erase(key);
  if (own.has("weight_decay")) own.set("weight_decay", 0.0);
  return [own](std::vector<ParameterPtr> scales) { return make_optimizer(own, std::move(scales)); };
}

std::shared_ptr<QuantizationAware> trained_on_grids(ExperimentBuild& b,
                                                    const QuantizeOptions& options,
                                                    const std::vector<Int8Candidate>& candidates) {
  const auto steps = [&](double epochs) {
    return std::llround(epochs * static_cast<double>(b.e.steps_per_epoch()));
  };
  const int64_t begin = steps(options.start_epoch);
  if (begin > 0 && begin >= b.e.total_steps()) {
    b.e.config.get("quantize")
        .get("start_epoch")
        .error(
            fmt::format("qat begins at step {}, and the run has {}; begin earlier, or train longer",
                        begin, b.e.total_steps()));
  }
  CalibrationRun run;
  if (options.needs_examples()) {
    const CalibrationData data =
        calibration_data(b.e.data.train, b.e.train.seed, b.e.train.batch_size);
    const CalibrationOptions wanted =
        options.calibration_on(b.e.config.get("quantize"), data.examples, b.e.train.batch_size);
    run = [data, wanted](Module& model) { data.run(model, wanted); };
  }
  return std::make_shared<QuantizationAware>(*b.e.model, candidates, options, std::move(run), begin,
                                             begin + steps(options.freeze_after), steps(1.0),
                                             scale_optimizer(b.e.config.at("optimizer")));
}

bool keeps_masters(SparsityAlgorithm& algorithm) {
  if (dynamic_cast<StraightThrough*>(&algorithm) != nullptr) return true;
  return std::ranges::any_of(algorithm.parts(),
                             [](SparsityAlgorithm* part) { return keeps_masters(*part); });
}

}  // namespace

void check_quantize_section(ExperimentBuild& b) {
  if (!b.e.config.has("quantize")) return;
  const Config section = b.e.config.get("quantize");
  const QuantizeOptions options = QuantizeOptions::from_config(section);
  if (options.needs_examples()) {
    options.calibration_on(section, b.e.data.train->size(), b.e.train.batch_size);
  }
  if (options.scales == QuantizeOptions::Scales::Learned && b.e.sparsity != nullptr &&
      keeps_masters(*b.e.sparsity)) {
    section.get("scales").error(
        "scales of weights are learned from the gradients of their nonzeros, which ste and "
        "semi_sparse do not have: their gradients are those of the dense weights; use `observed`");
  }
  const std::vector<Int8Candidate> candidates =
      at_position(section, [&] { return int8_candidates(*b.e.model, options); });
  if (options.algorithm == QuantizeOptions::Algorithm::Qat) {
    b.e.quantization = trained_on_grids(b, options, candidates);
  }
}

}  // namespace lacuna
