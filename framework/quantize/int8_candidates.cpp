#include "lacuna/framework/quantize/int8_candidates.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/int8/int8.hpp"
#include "lacuna/framework/nn/shared_parameters.hpp"
#include "lacuna/layers/convolutions/conv2d.h"
#include "lacuna/layers/linear.h"
#include "lacuna/layers/tiled_linear.h"

namespace lacuna {
namespace {

constexpr const char* kNoProduct = "only linear layers and convolutions of images can run in int8";

std::vector<Int8Candidate> product_weights(Module& model, QuantizeOptions::When when) {
  std::map<const Parameter*, AffineLayer*> layers;
  const std::set<const Parameter*> shared = shared_parameters(model);
  for (Module* module : model.modules()) {
    auto* layer = dynamic_cast<AffineLayer*>(module);
    if (layer != nullptr) layers[layer->weight().get()] = layer;
  }
  std::vector<Int8Candidate> all;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->use != WeightUse::Linear && parameter->use != WeightUse::Convolution) continue;
    Int8Candidate candidate{.weight = parameter};
    const auto found = layers.find(parameter.get());
    if (found == layers.end()) {
      candidate.reason = kNoProduct;
    } else if (shared.contains(parameter.get())) {
      candidate.reason = "its weight is shared";
    } else {
      candidate.reason = reason_against_int8(*found->second, when);
    }
    if (candidate.reason.empty()) candidate.layer = found->second;
    all.push_back(candidate);
  }
  return all;
}

std::string names_of(const std::vector<Int8Candidate>& all) {
  std::vector<std::string> names;
  for (const Int8Candidate& candidate : all) {
    if (candidate.layer != nullptr) names.push_back(candidate.weight->name());
  }
  if (names.empty()) return "the model has no layer that can run in int8";
  const size_t more = names.size() > 8 ? names.size() - 8 : 0;
  names.resize(names.size() - more);
  return "there are " + join(names, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
}

// The tiles of a layer of very many outputs are one layer.
void keep_ends(Module& model, std::vector<Int8Candidate>& all) {
  std::map<const Parameter*, const Module*> tiled;
  for (const Module* module : model.modules()) {
    const auto* layer = dynamic_cast<const TiledLinear*>(module);
    if (layer == nullptr) continue;
    for (const ParameterPtr& tile : layer->tile_weights()) tiled[tile.get()] = layer;
  }
  const auto is_same_layer = [&](const Int8Candidate& a, const Int8Candidate& b) {
    const auto of_a = tiled.find(a.weight.get()), of_b = tiled.find(b.weight.get());
    if (of_a == tiled.end() || of_b == tiled.end()) return a.weight == b.weight;
    return of_a->second == of_b->second;
  };
  if (all.empty()) return;
  for (Int8Candidate& candidate : all) {
    if (!candidate.reason.empty()) continue;
    if (is_same_layer(candidate, all.front())) {
      candidate.reason = "the first layer";
    } else if (is_same_layer(candidate, all.back())) {
      candidate.reason = "the last layer";
    }
  }
}

void choose(std::vector<Int8Candidate>& all, const std::vector<std::string>& globs) {
  std::vector<bool> is_chosen(all.size(), false);
  for (const std::string& glob : globs) {
    bool matches = false;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!glob_match(glob, all[i].weight->name())) continue;
      matches = is_chosen[i] = true;
    }
    if (!matches) {
      throw ConfigError(
          fmt::format("param_filter '{}' matches no weight that a layer multiplies "
                      "with; {}",
                      glob, names_of(all)));
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (!is_chosen[i]) {
      if (all[i].reason.empty()) all[i].reason = "not in param_filter";
    } else if (all[i].layer == nullptr) {
      throw ConfigError(fmt::format("'{}' cannot be quantized: {}; leave it out of param_filter",
                                    all[i].weight->name(), all[i].reason));
    }
  }
}

}  // namespace

std::string reason_against_int8(const Module& layer, QuantizeOptions::When when) {
  if (dynamic_cast<const Linear*>(&layer) != nullptr) return "";
  const auto* convolution = dynamic_cast<const Conv2d*>(&layer);
  if (convolution == nullptr) return kNoProduct;
  const Conv2d::Options& o = convolution->options();
  if (o.groups != 1) return fmt::format("its convolution has {} groups", o.groups);
  if (o.in_channels % kInt8Group == 0 || when == QuantizeOptions::When::None) return "";
  return fmt::format("its {} input channels are not a multiple of {}", o.in_channels, kInt8Group);
}

std::vector<Int8Candidate> int8_candidates(Module& model, const QuantizeOptions& options) {
  std::vector<Int8Candidate> all = product_weights(model, options.when);
  options.param_filter.empty() ? keep_ends(model, all) : choose(all, options.param_filter);
  const bool has_some =
      std::ranges::any_of(all, [](const Int8Candidate& c) { return c.reason.empty(); });
  if (has_some) return all;
  throw ConfigError(fmt::format(
      "there is nothing to quantize: the first and the last layer stay float32 unless param_filter "
      "names them (quantize.param_filter); {}",
      names_of(all)));
}

}  // namespace lacuna
