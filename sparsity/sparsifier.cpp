#include "lacuna/sparsity/sparsifier.h"

#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/kernels/select/draws.hpp"
#include "lacuna/framework/kernels/select/kth_largest.hpp"
#include "lacuna/sparsity/masks/mask_selector.h"
#include "lacuna/sparsity/options/counting.hpp"

namespace lacuna {
namespace {

// The rows of a tensor as a matrix [batch, features].
Shape as_matrix(const Shape& rows) { return Shape{rows.batch(), rows.features()}; }

// A bit for each element that `stays`, asked for in order.
template <class Stays>
BitMask bits_where(int64_t numel, Stays&& stays) {
  constexpr size_t kWord = 64;
  const auto size = static_cast<size_t>(numel);
  std::vector<uint64_t> words((size + kWord - 1) / kWord);
  for (size_t i = 0; i < size; ++i) {  // added up, not branched on
    words[i / kWord] |= uint64_t{stays(i)} << (i % kWord);
  }
  return BitMask::from_words(numel, std::move(words));
}

struct KeepAll final : Sparsifier {
  std::string_view type() const override { return "keep_all"; }
  Scope scope() const override { return Scope::Streaming; }
  BitMask keep(const Tensor& rows, const std::string&) const override {
    return BitMask::ones(rows.numel());
  }
};

// A stream for each content, so that no counter of draws is needed.
uint64_t content_stream(const Tensor& rows) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const float value : rows.storage()) {
    hash = (hash ^ std::bit_cast<uint32_t>(value)) * 0x100000001b3u;
  }
  return hash;
}

class RandomFraction final : public Sparsifier {
 public:
  RandomFraction(double fraction, uint64_t seed) : fraction_(fraction), seed_(seed) {}
  std::string_view type() const override { return "random_fraction"; }
  Scope scope() const override { return Scope::Streaming; }
  BitMask keep(const Tensor& rows, const std::string& name) const override {
    DrawnWords words(CounterRng(seed_, name + "/random_fraction", content_stream(rows)));
    return bits_where(rows.numel(), [&](size_t) {
      return static_cast<double>(CounterRng::uniform_of(words.next())) >= fraction_;
    });
  }

 private:
  double fraction_;
  uint64_t seed_;
};

class ScalarThreshold final : public Sparsifier {
 public:
  explicit ScalarThreshold(double threshold) : threshold_(static_cast<float>(threshold)) {}
  std::string_view type() const override { return "scalar_threshold"; }
  Scope scope() const override { return Scope::Streaming; }
  BitMask keep(const Tensor& rows, const std::string&) const override {
    const std::span<const float> values = rows.storage();
    return bits_where(rows.numel(), [&](size_t i) { return std::abs(values[i]) >= threshold_; });
  }

 private:
  float threshold_;
};

class ScalarFraction final : public Sparsifier {
 public:
  explicit ScalarFraction(double fraction) : fraction_(static_cast<float>(fraction)) {}
  std::string_view type() const override { return "scalar_fraction"; }
  Scope scope() const override { return Scope::Materializing; }
  BitMask keep(const Tensor& rows, const std::string&) const override {
    return largest_mask(magnitudes(rows.storage()), target_nnz(fraction_, rows.numel()));
  }

 private:
  float fraction_;
};

/// N:M along the features, or a fraction of blocks.
class Structured final : public Sparsifier {
 public:
  Structured(const PatternShape& pattern, double fraction)
      : pattern_(pattern), fraction_(static_cast<float>(fraction)) {}
  std::string_view type() const override { return pattern_.is_nm() ? "nm" : "block_fraction"; }
  Scope scope() const override { return pattern_.is_nm() ? Scope::Blocking : Scope::Materializing; }
  BitMask keep(const Tensor& rows, const std::string& name) const override {
    require_fit(rows.shape(), name);
    return largest(rows.reshape(as_matrix(rows.shape())));
  }
  BitMask keep_weight(const Tensor& weight, const std::string& name) const override {
    pattern_.require_fit("tensor '" + name + "'", weight.shape());
    return largest(weight);
  }
  PatternShape pattern() const override { return pattern_; }
  std::optional<PatternShape> as_nm() const override {
    if (!pattern_.is_nm() || pattern_.is_transposable() || pattern_.unit_rows() != 1) return {};
    return pattern_;
  }
  void require_fit(const Shape& rows, const std::string& name) const override {
    pattern_.require_fit("tensor '" + name + "'", as_matrix(rows));
  }

 private:
  BitMask largest(const Tensor& weight) const {
    const int64_t units = pattern_.units(weight.shape()).numel();
    const int64_t count = target_nnz(fraction_, units) * pattern_.unit_size();
    return MaskSelector({}, pattern_, weight.shape()).largest(weight, count).bits();
  }

  PatternShape pattern_;
  float fraction_;
};

double fraction_of(const Config& options) {
  return require_range(options, "fraction", options.required<double>("fraction"), 0.0, 1.0);
}

SparsifierPtr make_nm(const Config& options, uint64_t) {
  const PatternShape s = PatternShape::from_config(options);  // its type is "nm" too
  return std::make_shared<Structured>(s, 1.0 - s.full_density());
}

SparsifierPtr make_block_fraction(const Config& options, uint64_t) {
  return std::make_shared<Structured>(PatternShape::block_from_config(options),
                                      fraction_of(options));
}

}  // namespace

BitMask Sparsifier::keep_weight(const Tensor& weight, const std::string& name) const {
  const Shape& shape = weight.shape();
  return keep(weight.reshape(Shape{matrix_rows(shape), matrix_columns(shape)}), name);
}

SparsifierRegistry& sparsifier_registry() {
  static SparsifierRegistry registry("sparsifier");
  return registry;
}

void register_sparsifiers(SparsifierRegistry& r) {
  r.add("keep_all", "keeps every element",
        [](const Config&, uint64_t) { return std::make_shared<KeepAll>(); });
  r.add("random_fraction", "drops each element with probability `fraction`",
        [](const Config& options, uint64_t seed) {
          return std::make_shared<RandomFraction>(fraction_of(options), seed);
        });
  r.add("scalar_threshold", "keeps |x| of at least `threshold`",
        [](const Config& options, uint64_t) {
          const auto threshold = options.required<double>("threshold");
          return std::make_shared<ScalarThreshold>(
              require_range(options, "threshold", threshold, 0.0, 1e38));
        });
  r.add("nm", "keeps the `n` largest |x| of every `m` along the features", make_nm);
  r.add("scalar_fraction", "drops the smallest |x|, a `fraction` of the tensor",
        [](const Config& options, uint64_t) {
          return std::make_shared<ScalarFraction>(fraction_of(options));
        });
  r.add("block_fraction", "drops the smallest blocks of `rows` x `cols`, a `fraction` of them",
        make_block_fraction);
}

SparsifierPtr make_sparsifier(const Config& config, uint64_t seed) {
  if (config.is_scalar()) {
    const auto name = config.as<std::string>();
    const auto& entry = sparsifier_registry().find_any_case(name, config);
    const Config options = Config::map({{"type", name}});
    return at_position(config, [&] { return entry.make(options, seed); });
  }
  if (!config.is_map()) config.fail("a sparsifier: its name, or a map with `type`");
  const auto type = config.required<std::string>("type");
  const auto& entry = sparsifier_registry().find_any_case(type, config.at("type"));
  return at_position(config, [&] { return entry.make(config, seed); });
}

}  // namespace lacuna
