#include "lacuna/sparsity/calibration/prune_layer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"

namespace lacuna {
namespace {

Shape shape_of_group(const Shape& weight, int64_t groups) {
  std::vector<int64_t> sizes(weight.sizes().begin(), weight.sizes().end());
  sizes[0] /= groups;
  return Shape(sizes);
}

// The positions of one group, whose elements follow each other.
MaskSet mask_of_group(const MaskSet& mask, const Shape& shape, int64_t group) {
  const int64_t size = shape.numel();
  BitMask bits = BitMask::zeros(size);
  for (int64_t i = 0; i < size; ++i) {
    if (mask.test(group * size + i)) bits.set(i);
  }
  return MaskSet(shape, std::move(bits));
}

// As many positions for each as for any other, in whole units, as far as they are present.
std::vector<int64_t> share_out(int64_t keep, int64_t unit, std::vector<int64_t> present) {
  std::vector<int64_t> shares(present.size(), 0);
  for (bool has_room = true; keep >= unit && has_room;) {
    has_room = false;
    const auto groups = static_cast<int64_t>(present.size());
    const int64_t each = std::max<int64_t>(keep / unit / groups, 1) * unit;
    for (size_t g = 0; g < present.size() && keep >= unit; ++g) {
      const int64_t more = std::min({each, (present[g] - shares[g]) / unit * unit, keep});
      shares[g] += more;
      keep -= more;
      has_room = has_room || more > 0;
    }
  }
  return shares;
}

// The positions of each group among the largest |w| of the whole weight.
std::vector<int64_t> shares_by_magnitude(const Tensor& weight, const MaskSelector& selector,
                                         int64_t keep, const MaskSet& present, int64_t groups) {
  std::vector<float> magnitudes;
  const std::span<const float> values = weight.storage();
  present.bits().for_each(
      [&](int64_t at) { magnitudes.push_back(std::abs(values[static_cast<size_t>(at)])); });
  std::vector<int64_t> shares(static_cast<size_t>(groups), 0);
  const int64_t size = weight.numel() / groups;
  selector.keep(present, magnitudes, keep).bits().for_each([&](int64_t at) {
    ++shares[static_cast<size_t>(at / size)];
  });
  return shares;
}

PrunedWeight prune_groups(const std::string& layer, const Tensor& weight,
                          const std::vector<InputGram>& grams, const MaskSelector& selector,
                          int64_t keep, const MaskSet& present, const OneShotOptions& options) {
  if (selector.groups().count() > 1) {
    throw ConfigError(
        "layer '" + layer +
        "': balance_in_groups and balance_out_groups cannot be combined with one-shot pruning of a "
        "convolution in groups; leave them out, or the layer out of param_filter");
  }
  const auto groups = static_cast<int64_t>(grams.size());
  const Shape shape = shape_of_group(weight.shape(), groups);
  selector.pattern().require_fit("a group of layer '" + layer + "'", shape);
  const MaskSelector own(ScoreGroups(), selector.pattern(), shape);
  std::vector<MaskSet> masks;
  std::vector<int64_t> counts;
  for (int64_t g = 0; g < groups; ++g) {
    masks.push_back(mask_of_group(present, shape, g));
    counts.push_back(masks.back().count());
  }
  // `magnitude` compares all weights of a layer; the others compare errors of outputs, which differ
  // between groups in scale.
  const bool compares_all = options.method == OneShotMethod::Magnitude &&
                            options.granularity == OneShotGranularity::Layer;
  const std::vector<int64_t> shares =
      compares_all ? shares_by_magnitude(weight, selector, keep, present, groups)
                   : share_out(keep, selector.pattern().unit_size(), counts);
  PrunedWeight all{.weight = Tensor::zeros(weight.shape()), .mask = MaskSet(weight.shape())};
  BitMask kept = BitMask::zeros(weight.numel());
  OutputError error;
  for (int64_t g = 0; g < groups; ++g) {
    const auto i = static_cast<size_t>(g);
    const Tensor part =
        Tensor::from(shape, weight.storage().subspan(i * static_cast<size_t>(shape.numel()),
                                                     static_cast<size_t>(shape.numel())));
    PrunedWeight pruned = prune_one_shot(layer, part, grams[i], own, shares[i], &masks[i], options);
    std::ranges::copy(pruned.weight.storage(), all.weight.mutable_data() + g * shape.numel());
    pruned.mask.bits().for_each([&](int64_t at) { kept.set(g * shape.numel() + at); });
    std::ranges::move(pruned.messages, std::back_inserter(all.messages));
    const OutputError of_group = output_error(part, pruned.weight, grams[i]);
    error.outputs += of_group.outputs;
    error.lost += of_group.lost;
  }
  all.mask = MaskSet(weight.shape(), std::move(kept));
  all.relative_error = error.relative();
  return all;
}

// What of the calibration the user should know.
void add_messages(const std::string& layer, const std::vector<InputGram>& grams,
                  const OneShotOptions& options, std::vector<std::string>& messages) {
  int64_t dead = 0, features = 0;
  const InputGram* lacking = nullptr;  // the first with fewer rows than inputs that are not zero
  for (const InputGram& gram : grams) {
    const int64_t zeros = std::ranges::count(gram.squares(), 0.0);
    features += gram.features();
    dead += zeros;
    if (lacking == nullptr && gram.rows() < gram.features() - zeros) lacking = &gram;
  }
  const bool judges_inputs = options.least_squares || options.method != OneShotMethod::Magnitude;
  if (dead > 0 && judges_inputs) {
    messages.push_back(fmt::format(
        "layer '{}': {} of {} {} zero in all calibration examples, so the weights of {} are judged "
        "useless; more calibration examples may show otherwise",
        layer, dead, plural(features, "input"), dead == 1 ? "is" : "are",
        dead == 1 ? "that input" : "these inputs"));
  }
  const bool inverts = options.least_squares || options.method == OneShotMethod::SparseGpt ||
                       options.method == OneShotMethod::Admm;
  if (inverts && lacking != nullptr) {
    messages.push_back(fmt::format(
        "layer '{}': the calibration has {} for {}, so some weights are determined only by "
        "damping; give more examples (calibration.examples), if the data has them",
        layer, plural(lacking->rows(), "row"), plural(lacking->features(), "input")));
  }
}

}  // namespace

PrunedWeight prune_layer(const std::string& layer, const Tensor& weight,
                         const std::vector<InputGram>& grams, const MaskSelector& selector,
                         int64_t keep, const MaskSet& present, const OneShotOptions& options) {
  const MaskSet* given = present.count() == present.size() ? nullptr : &present;
  PrunedWeight pruned =
      grams.size() == 1
          ? prune_one_shot(layer, weight, grams.front(), selector, keep, given, options)
          : prune_groups(layer, weight, grams, selector, keep, present, options);
  // A weight that has no more nonzeros than it is to have stays as it is, whatever its inputs.
  const bool is_as_before = pruned.mask.count() == present.count() && pruned.relative_error == 0.0;
  if (!is_as_before) add_messages(layer, grams, options, pruned.messages);
  return pruned;
}

}  // namespace lacuna
