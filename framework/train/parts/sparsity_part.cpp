// What is sparse in an experiment: the algorithm, sparsifiers, and how weights are stored and
// multiplied.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/input_checks.hpp"
#include "lacuna/framework/train/calibration_data.hpp"
#include "lacuna/framework/train/checks/model_checks.hpp"
#include "lacuna/framework/train/parts/convolution_algorithms.hpp"
#include "lacuna/framework/train/parts/density_limits.hpp"
#include "lacuna/framework/train/parts/experiment_part.hpp"
#include "lacuna/framework/train/parts/quantize_section.hpp"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/example_user.hpp"
#include "lacuna/sparsity/sparsify.h"

namespace lacuna {
namespace {

// Activations are sparsified by the model itself; weights by an algorithm of their own.
void apply_sparsify(Experiment& e) {
  const Config section = e.config.get("sparsifiers");
  const std::vector<SparsifyEntry> entries = sparsify_from_config(section, e.train.seed);
  for (size_t i = 0; i < entries.size(); ++i) {
    try {
      sparsify_activations(*e.model, {entries[i]});
    } catch (const ConfigError& error) {
      section.items()[i].at("tensor").error(error.what());
    }
  }
  auto algorithm = sparsify_weights(entries);
  if (algorithm == nullptr) return;
  if (e.sparsity != nullptr) {
    section.error("weights are sparsified here and by `sparsity`; keep one of the two");
  }
  e.sparsity = std::move(algorithm);
}

void build_sparsity(ExperimentBuild& b) {
  Experiment& e = b.e;
  const Config section = e.config.get("sparsity");
  if (b.is_fresh()) write_calibration_defaults(section, *e.data.train, e.train.batch_size);
  e.sparsity = configure(section, e.train.seed);
  if (b.is_fresh()) require_calibration_examples(section, *e.data.train, e.train.batch_size);
  apply_sparsify(e);
  DensityLimits limits = read_density_limits(e.config, *e.model);
  if (e.sparsity != nullptr) e.sparsity->compression().compress_below = std::move(limits);
  e.config.get("convolution_algorithms").mark_read();
}

// Here and in its parts.
void give_model(SparsityAlgorithm& algorithm, const Experiment& e) {
  if (auto* user = dynamic_cast<ExampleUser*>(&algorithm)) {
    user->use_model(*e.model, e.data.train->example_shape(), e.rows);
  }
  for (SparsityAlgorithm* part : algorithm.parts()) give_model(*part, e);
}

// An algorithm that does not fit the model is a mistake in the configuration.
void apply_algorithm(Experiment& e) {
  const Config section = e.config.get(e.config.has("sparsity") ? "sparsity" : "sparsifiers");
  CompressionLimits& limits = e.sparsity->compression();
  limits.batch = e.train.batch_size;
  for (const auto& [parameter, uses] : uses_of_weights(e.rows)) {
    limits.rows[parameter] = std::llround(uses * static_cast<double>(e.train.batch_size));
  }
  limits.are_measured = e.parallel == nullptr;
  try {
    e.sparsity->calibrate_on(calibration_data(e.data.train, e.train.seed, e.train.batch_size));
    give_model(*e.sparsity, e);
    e.model->apply(*e.sparsity);
  } catch (const ConfigError& error) {
    section.error(error.what());
  } catch (const ShapeError& error) {
    section.error(error.what());
  } catch (const MemoryError& error) {
    throw MemoryError(section.where() + ": " + error.what());
  }
  e.optimizer->apply(*e.sparsity);
  e.write_layouts();
}

void finish_sparsity(ExperimentBuild& b) {
  Experiment& e = b.e;
  warn_about_greedy_search(e.config);
  if (e.sparsity != nullptr) apply_algorithm(e);
  // Before any value is drawn and anything is measured; a checkpoint's masks are not there yet.
  if (b.is_fresh()) require_values_fit(*e.model, e.layers, total_memory());
  choose_algorithms(e.config, *e.model, e.train.batch_size,
                    e.parallel == nullptr ? Choice::Measured : Choice::Plain);
  b.first.add_mask_notes(*e.model, e.sparsity.get());
  e.notes = std::move(b.first.notes);
  e.warnings = std::move(b.first.warnings);
  if (!b.is_fresh() || e.sparsity == nullptr) return;
  e.plan();           // refuses what can only be a mistake
  e.write_layouts();  // with what planning found for later phases
}

}  // namespace

ExperimentPart sparsity_part() {
  return {.read = read_quantize_section,
          .build = build_sparsity,
          .check = check_quantize_section,
          .finish = finish_sparsity};
}

}  // namespace lacuna
