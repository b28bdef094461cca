#include "lacuna/sparsity/calibration/layer_losses.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/calibration/prune_layer.hpp"

namespace lacuna {
namespace {

// Gives a parameter its values back, also after an error.
class KeptValues {
 public:
  explicit KeptValues(Parameter& parameter)
      : parameter_(parameter), values_(parameter.to_dense().clone()) {}
  ~KeptValues() { parameter_.assign(values_); }
  KeptValues(const KeptValues&) = delete;
  KeptValues& operator=(const KeptValues&) = delete;

  const Tensor& values() const { return values_; }

 private:
  Parameter& parameter_;
  Tensor values_;
};

int64_t positions_at(double sparsity, int64_t numel, int64_t unit, int64_t present) {
  const auto wanted =
      static_cast<int64_t>(std::floor((1.0 - sparsity) * static_cast<double>(numel / unit))) * unit;
  return std::clamp(wanted, std::min(unit, present), present / unit * unit);
}

}  // namespace

double finite_loss(const std::function<double()>& loss, std::string_view type,
                   std::string_view when) {
  const double value = loss();
  if (std::isfinite(value)) return value;
  throw ConfigError(fmt::format(
      "{}: the loss on the calibration examples is {} {}, so that no sparsity can be chosen by it; "
      "give another distribution",
      type, value, when));
}

LossTable::Row losses_of_layer(Parameter& parameter, const std::vector<InputGram>& grams,
                               const MaskSelector& selector, const OneShotOptions& options,
                               const std::vector<double>& sparsities, double unpruned,
                               const std::function<double()>& loss) {
  LossTable::Row row{.parameter = parameter.name(),
                     .shape = parameter.shape(),
                     .sparsities = sparsities,
                     .losses = {}};
  const MaskSet present(parameter.pattern());
  const int64_t unit = selector.pattern().unit_size() * selector.groups().count();
  const KeptValues kept(parameter);
  for (const double sparsity : sparsities) {
    const int64_t keep = positions_at(sparsity, parameter.numel(), unit, present.count());
    if (keep == present.count()) {
      row.losses.push_back(unpruned);
      continue;
    }
    parameter.assign(
        prune_layer(parameter.name(), kept.values(), grams, selector, keep, present, options)
            .weight);
    row.losses.push_back(
        finite_loss(loss, to_string(options.method),
                    fmt::format("when '{}' is pruned to {:g}", parameter.name(), sparsity)));
  }
  return row;
}

}  // namespace lacuna
