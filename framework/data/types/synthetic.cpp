#include "lacuna/framework/data/types/synthetic.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "lacuna/framework/config/integer_range.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/kernels/select/draws.hpp"

namespace lacuna {
namespace {

constexpr int64_t kMostFeatures = (int64_t{1} << 31) - 1;

void require_synthetic(bool holds, const std::string& what) {
  if (!holds) throw StateError("a synthetic dataset needs " + what);
}

SyntheticOptions checked(SyntheticOptions o) {
  require_synthetic(o.features >= 1 && o.features <= kMostFeatures,
                    fmt::format("1 to 2147483647 features, found {}", o.features));
  require_synthetic(o.classes >= 2 && o.classes <= kMaxClasses,
                    fmt::format("2 to {} classes, found {}", kMaxClasses, o.classes));
  require_synthetic(o.informative > 0.0 && o.informative <= 1.0,
                    fmt::format("an informative fraction in (0, 1], found {:f}", o.informative));
  require_synthetic(o.noise >= 0.0 && std::isfinite(o.noise),
                    fmt::format("noise of at least 0, found {:f}", o.noise));
  require_synthetic(o.size >= 1, fmt::format("at least 1 example, found {}", o.size));
  return o;
}

}  // namespace

SyntheticDataset::SyntheticDataset(SyntheticOptions options)
    : options_(checked(std::move(options))),
      shape_{options_.features},
      labels_(options_.seed, "synthetic." + options_.split + ".labels"),
      means_(static_cast<size_t>(options_.classes)) {
  const auto features = static_cast<double>(options_.features);
  const auto drawn =
      static_cast<size_t>(std::max(1.0, std::round(options_.informative * features)));
  for (size_t c = 0; c < means_.size(); ++c) {
    Draws draws(CounterRng(options_.seed, "synthetic.means", c));
    ClassMean& mean = means_[c];
    mean.features.resize(drawn);
    mean.signs.resize(drawn);
    for (size_t i = 0; i < drawn; ++i) {
      const uint64_t draw = draws.below(2 * static_cast<uint64_t>(options_.features));
      mean.features[i] = static_cast<uint32_t>(draw / 2);
      mean.signs[i] = draw % 2 == 0 ? 1 : -1;
    }
  }
}

int64_t SyntheticDataset::label(int64_t index) const {
  return static_cast<int64_t>(
      labels_.below(static_cast<uint64_t>(index), static_cast<uint64_t>(options_.classes)));
}

// Each word of the generator serves two features, with 16 bits each.
void SyntheticDataset::write_example(int64_t index, int64_t label, std::span<float> out) const {
  DrawnWords words(
      CounterRng(options_.seed, "synthetic." + options_.split, static_cast<uint64_t>(index)));
  // Uniform over ±√3 · noise has the standard deviation `noise`.
  const auto scale = static_cast<float>(options_.noise * std::numbers::sqrt3 / 32768.0);
  const auto value = [scale](uint32_t bits) {
    return scale * (static_cast<float>(bits & 0xFFFFu) - 32767.5f);
  };
  uint32_t word = 0;
  for (size_t f = 0; f < out.size(); ++f) {
    word = f % 2 == 0 ? words.next() : word >> 16;
    out[f] = value(word);
  }
  const ClassMean& mean = means_[static_cast<size_t>(label)];
  for (size_t i = 0; i < mean.features.size(); ++i) {
    out[mean.features[i]] += static_cast<float>(mean.signs[i]);
  }
}

Batch SyntheticDataset::gather(std::span<const int64_t> indices) const {
  const auto count = static_cast<int64_t>(indices.size());
  std::vector<int64_t> labels;
  labels.reserve(indices.size());
  for (const int64_t index : indices) {
    if (index < 0 || index >= options_.size) {
      throw StateError(fmt::format("example {} is out of range: the dataset has {} examples", index,
                                   options_.size));
    }
    labels.push_back(label(index));
  }
  Tensor inputs = Tensor::empty(Shape{count, options_.features});
  const std::span<float> values = inputs.mutable_storage();
  const auto width = static_cast<size_t>(options_.features);
  for (size_t i = 0; i < indices.size(); ++i) {
    write_example(indices[i], labels[i], values.subspan(i * width, width));
  }
  return {.inputs = std::move(inputs),
          .labels = IndexTensor(Shape{count}, std::move(labels)),
          .targets = {},
          .size = count};
}

DataSplits load_synthetic(const Config& data, uint64_t /*seed*/) {
  SyntheticOptions options;
  options.features = require_at_least(data, "features", data.get("features", options.features), 1);
  if (options.features > kMostFeatures) data.get("features").fail("at most 2147483647 features");
  options.classes = require_at_least(data, "classes", data.get("classes", options.classes), 2);
  if (options.classes > kMaxClasses) {
    data.get("classes").fail(fmt::format("at most {} classes", kMaxClasses));
  }
  options.informative = data.get("informative", options.informative);
  if (!(options.informative > 0.0 && options.informative <= 1.0)) {
    data.get("informative").fail("a fraction in (0, 1]");
  }
  options.noise = require_range(data, "noise", data.get("noise", options.noise), 0.0, 1e6);
  options.seed = read_seed(data);
  const auto split = [&](const std::string& name, int64_t fallback) {
    const std::string key = name + "_size";
    SyntheticOptions of = options;
    of.split = name;
    of.size = require_at_least(data, key, data.get(key, fallback), 1);
    return std::make_shared<const SyntheticDataset>(of);
  };
  DataSplits splits;
  splits.train = split("train", 20000);
  splits.test = split("test", 4000);
  return splits;
}

}  // namespace lacuna
