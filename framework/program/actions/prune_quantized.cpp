#include "lacuna/framework/program/actions/prune_quantized.hpp"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/program/actions/quantized_parts.hpp"
#include "lacuna/framework/program/output/quantize_report.hpp"
#include "lacuna/framework/train/parts/float32_model.hpp"

namespace lacuna {
namespace {

QuantizeOptions options_of(const Experiment& e) {
  const Config section = e.config.get("quantize");
  const QuantizeOptions options = QuantizeOptions::from_config(section);
  if (options.algorithm == QuantizeOptions::Algorithm::Qat) {
    section.get("algorithm")
        .error("prune does not train: give gptq or nearest, and train the pruned run with qat");
  }
  if (options.smooth > 0.0) {
    section.get("smooth").error(
        "prune does not smooth; leave it out, or prune first and quantize with `smooth` "
        "afterwards");
  }
  return options;
}

}  // namespace

void prune_to_grids(const Experiment& e, const std::vector<OneShotPruning*>& algorithms) {
  const QuantizeOptions options = options_of(e);
  const Config section = e.config.get("quantize");
  const auto candidates = at_position(section, [&] { return int8_candidates(*e.model, options); });
  std::set<std::string> names;
  for (const Int8Candidate& candidate : candidates) {
    if (candidate.reason.empty()) names.insert(candidate.weight->name());
  }
  for (OneShotPruning* one : algorithms) {
    one->bring_to_grid(names, options.clip,
                       options.algorithm == QuantizeOptions::Algorithm::Nearest);
  }
}

PrunedInt8 quantize_pruned(const Experiment& e, const std::vector<OneShotPruning*>& algorithms) {
  const QuantizeOptions options = options_of(e);
  const Config section = e.config.get("quantize");
  std::vector<KnownGrid> known;
  for (const OneShotPruning* one : algorithms) {
    for (const auto& [name, scales] : one->grid_scales()) {
      known.push_back(known_grid(*e.model->parameter(name), scales, std::nullopt));
      for (const MaskUpdate& update : one->pruned()) {
        if (update.parameter == name) {
          known.back().layer.relative_error = update.relative_error.value_or(0.0);
        }
      }
    }
  }
  PrunedInt8 pruned{.state = e.state_dict(), .report = {}};
  const Shape example = e.data.train->example_shape();
  const auto model = rebuild_float32_model(e.config, pruned.state, example);
  const Config float32 = measured_precision(*model, e.loss, e.data, e.train);
  const auto candidates = at_position(section, [&] { return int8_candidates(*model, options); });
  const Config products = planned_products(*model, options);
  const CalibrationRun run = quantize_calibration(section, options, e.data.train, e.train);
  const QuantizedModel quantized = quantize_model(*model, candidates, options, run, known);
  for (const std::string& message : quantized.messages) log_warning(message);
  pruned.state.merge("quantized", state_of(quantized.layers));
  keep_model_state(pruned.state);
  const auto in_int8 = rebuild_model(e.config, pruned.state, example);
  const Config int8 = measured_precision(*in_int8, e.loss, e.data, e.train);
  pruned.report = quantize_report(*model, options, quantized, products, float32, int8);
  return pruned;
}

}  // namespace lacuna
