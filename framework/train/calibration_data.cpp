#include "lacuna/framework/train/calibration_data.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/train/run_model.h"

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

}  // namespace

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
  return {.examples = size, .run = run};
}

}  // namespace lacuna
