#include "lacuna/framework/train/calibration_data.hpp"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/train/run_model.hpp"
#include "lacuna/sparsity/calibration/calibration_run.hpp"
#include "lacuna/sparsity/configure.h"

namespace lacuna {
namespace {

// The first numbers of 0 … size − 1 in an order drawn by the seed: Fisher and Yates's shuffle, of
// which only what has moved is kept.
std::vector<int64_t> first_of_order(int64_t count, int64_t size, uint64_t seed) {
  const CounterRng rng(seed, "calibration");
  std::unordered_map<int64_t, int64_t> moved;
  const auto at = [&](int64_t i) {
    const auto found = moved.find(i);
    return found == moved.end() ? i : found->second;
  };
  std::vector<int64_t> first;
  for (int64_t i = 0; i < count; ++i) {
    const auto left = static_cast<uint64_t>(size - i);
    const int64_t j = i + static_cast<int64_t>(rng.below(static_cast<uint64_t>(i), left));
    first.push_back(at(j));
    moved[j] = at(i);
  }
  return first;
}

// The maps of a section that may name an algorithm.
std::vector<Config> entries_of(const Config& section) {
  if (section.is_list()) return section.items();
  if (!section.is_map()) return {};
  if (section.peek("phases").is_null()) return {section};
  const Config phases = section.at("phases");
  return phases.is_list() ? phases.items() : std::vector<Config>();
}

bool calibrates(const Config& entry) {
  const Config type = entry.peek("type");
  const Config named = type.is_null() ? entry.peek("algorithm") : type;
  if (!named.is_scalar()) return false;
  const auto& algorithms = algorithm_registry().entries();
  const auto found = algorithms.find(to_lower(named.text()));
  if (found == algorithms.end()) return false;
  const AlgorithmType& algorithm = found->second.make;
  return algorithm.calibrates && algorithm.calibrates(entry);
}

}  // namespace

void write_calibration_defaults(const Config& sparsity, const Dataset& data, int64_t batch_size) {
  const int64_t examples = std::min(data.size(), CalibrationOptions::kDefaultExamples);
  for (Config entry : entries_of(sparsity)) {
    if (!calibrates(entry)) continue;
    Config calibration = entry.get("calibration");
    if (calibration.is_number()) {  // of examples
      const SourcePosition position = calibration.position();
      calibration = Config::map({{"examples", calibration.clone()}});
      calibration.set_position(position);
      entry.set("calibration", calibration);
    } else if (calibration.is_null()) {
      entry.set("calibration", Config::map());
      calibration = entry.get("calibration");
    } else if (!calibration.is_map()) {
      continue;
    }
    if (calibration.peek("examples").is_null() && calibration.peek("batches").is_null()) {
      calibration.set("examples", examples);
    }
    if (calibration.peek("batch_size").is_null()) calibration.set("batch_size", batch_size);
  }
}

void require_calibration_examples(const Config& sparsity, const Dataset& data, int64_t batch_size) {
  for (const Config& entry : entries_of(sparsity)) {
    if (!calibrates(entry)) continue;
    const auto options = CalibrationOptions::from_config(entry.get("calibration"));
    calibration_on(entry, options, data.size(), batch_size);
  }
}

CalibrationData calibration_data(std::shared_ptr<const Dataset> data, uint64_t seed,
                                 int64_t batch_size) {
  const int64_t size = data->size();
  const auto run = [data = std::move(data), seed, batch_size](Module& model,
                                                              const CalibrationOptions& options) {
    const std::vector<int64_t> all = first_of_order(options.examples.value(), data->size(), seed);
    const std::span<const int64_t> indices(all);
    const auto most = static_cast<size_t>(options.batch_size.value_or(batch_size));
    for (size_t i = 0; i < all.size(); i += most) {
      run_model(model, data->gather(indices.subspan(i, std::min(most, all.size() - i))));
    }
  };
  return {.examples = size, .run = run, .batch_size = batch_size};
}

}  // namespace lacuna
