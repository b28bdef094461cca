#include "lacuna/framework/layouts/cost_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/kernels/instruction_set.h"
#include "lacuna/framework/kernels/pointwise/optimizer_update.h"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// A weight is measured by one of at most this size and its cost scaled with the elements.
constexpr int64_t kLargestSide = 1024, kLargestBatch = 256;
// The smallest density that is measured: 2^(−kSparsest / 2).
constexpr int kSparsest = 16;

double density_of(int half_powers) { return std::exp2(-0.5 * half_powers); }

struct WeightClass {
  const Layout* compressed;
  PatternUse use;
  int64_t out, in, batch;
  int half_powers;

  double density() const { return density_of(half_powers); }
  std::string key() const {
    std::ostringstream text;
    text << out << "x" << in << "/" << batch << "/" << half_powers << "/" << num_threads() << "/"
         << active_instruction_set();
    if (compressed != &csr_layout()) text << "/" << compressed->name();
    if (use == PatternUse::OneStep) text << "/one step";
    std::string key = text.str();
    std::ranges::replace(key, ' ', '_');
    return key;
  }
};

// A side of the sample: as large as the weight's up to a limit, in the layout's granularity.
int64_t sampled_side(int64_t side, int64_t granularity) {
  const int64_t most = std::max(kLargestSide / granularity * granularity, granularity);
  return std::min(side, most);
}

WeightClass class_of(const Layout& compressed, PatternUse use, const Shape& shape, int half_powers,
                     int64_t batch) {
  const Shape unit = compressed.granularity();
  return {.compressed = &compressed,
          .use = use,
          .out = sampled_side(shape[0], unit[0]),
          .in = sampled_side(shape[1], unit[1]),
          .batch = std::min(batch, kLargestBatch),
          .half_powers = half_powers};
}

Tensor random(const Shape& shape, std::string_view name, Order order = Order::RowMajor) {
  const CounterRng rng(0, name);
  Tensor tensor = Tensor::empty(shape, order);
  uint64_t i = 0;
  for (float& value : tensor.mutable_storage()) value = 2.0f * rng.uniform(i++) - 1.0f;
  tensor.clear_padding();
  return tensor;
}

// One layout's step: what a linear layer and Adam do with the weight.
class Step {
 public:
  Step(const WeightClass& c, PatternPtr pattern)
      : pattern_(std::move(pattern)),
        values_(random(Shape{pattern_->stored_size()}, "values")),
        gradient_(random(values_.shape(), "gradient")),
        first_(Tensor::zeros(values_.shape())),
        second_(Tensor::zeros(values_.shape())) {
    const Order order = pattern_->layout().order(c.batch, std::max(c.out, c.in));
    x_ = random(Shape{c.batch, c.in}, "x", order);
    dy_ = random(Shape{c.batch, c.out}, "dy", order);
  }

  void operator()() {
    const Layout& layout = pattern_->layout();
    const WeightView weight{.pattern = *pattern_,
                            .values = values_.storage(),
                            .version = ++version_,
                            .derived = &derived_};
    layout.forward(weight, x_, Tensor());
    layout.input_gradient(weight, dy_);
    layout.weight_gradient(*pattern_, dy_, x_, Accumulate::No, gradient_.mutable_storage());
    adam_update({.beta1 = 0.9f,
                 .one_minus_beta1 = 0.1f,
                 .beta2 = 0.999f,
                 .one_minus_beta2 = 0.001f,
                 .root_scale = 1.0f,
                 .eps = 1e-8f},
                values_.mutable_storage(), gradient_.storage(), first_.mutable_storage(),
                second_.mutable_storage());
  }

 private:
  PatternPtr pattern_;
  Tensor values_, gradient_, first_, second_, x_, dy_;
  DerivedValues derived_;
  uint64_t version_ = 0;
};

// The same of a pattern for one step.
class NewPatternStep {
 public:
  NewPatternStep(const WeightClass& c, const Layout& layout, BitMask mask)
      : layout_(layout),
        mask_(std::move(mask)),
        master_(random(Shape{c.out, c.in}, "values")),
        x_(random(Shape{c.batch, c.in}, "x")),
        dy_(random(Shape{c.batch, c.out}, "dy")) {}

  void operator()() {
    const PatternPtr pattern = Pattern::make(layout_, master_.shape(), mask_);
    Tensor values = Tensor::empty(pattern->stored_shape());
    layout_.from_dense(*pattern, master_.storage(), values.mutable_storage());
    DerivedValues derived;
    const WeightView weight{.pattern = *pattern,
                            .values = values.storage(),
                            .version = 1,
                            .derived = &derived,
                            .changes_every_step = true};
    layout_.forward(weight, x_, Tensor());
    layout_.input_gradient(weight, dy_);
  }

 private:
  const Layout& layout_;
  BitMask mask_;
  Tensor master_, x_, dy_;
};

template <class Step>
double milliseconds(Step& step) {
  const auto start = std::chrono::steady_clock::now();
  step();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// Both in turn, so that what else the machine does hits both; the least of each, because that only
// adds.
template <class Step>
LayoutCosts measure(Step masked, Step compressed) {
  const FlushDenormals flush;
  milliseconds(masked);
  milliseconds(compressed);
  LayoutCosts least{.masked_ms = INFINITY, .compressed_ms = INFINITY};
  double total = 0.0;
  for (int turn = 0; turn < 3 || (total < 20.0 && turn < 15); ++turn) {
    const double masked_ms = milliseconds(masked), compressed_ms = milliseconds(compressed);
    least.masked_ms = std::min(least.masked_ms, masked_ms);
    least.compressed_ms = std::min(least.compressed_ms, compressed_ms);
    total += masked_ms + compressed_ms;
  }
  return least;
}

LayoutCosts measure(const WeightClass& c) {
  const Shape shape{c.out, c.in};
  const Positions positions = c.compressed->sample(shape, c.density());
  if (c.use == PatternUse::OneStep) {
    const BitMask mask = positions.to_mask();
    return measure(NewPatternStep(c, masked_layout(), mask),
                   NewPatternStep(c, *c.compressed, mask));
  }
  return measure(Step(c, Pattern::make(masked_layout(), shape, positions)),
                 Step(c, Pattern::make(*c.compressed, shape, positions)));
}

fs::path cache_file() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  fs::path folder = variable("LACUNA_CACHE_DIR");
  if (folder.empty() && !variable("XDG_CACHE_HOME").empty()) {
    folder = fs::path(variable("XDG_CACHE_HOME")) / "lacuna";
  }
  if (folder.empty() && !variable("HOME").empty()) {
    folder = fs::path(variable("HOME")) / ".cache" / "lacuna";
  }
  return folder.empty() ? folder : folder / ("step-costs-" + std::string(kVersion) + ".txt");
}

// What has been measured, by class key; each line of the file is "key masked_ms compressed_ms".
class CostTable {
 public:
  LayoutCosts find(const WeightClass& c, bool& measured_now) {
    const std::lock_guard lock(mutex_);
    if (!read_) read();
    const std::string key = c.key();
    const auto found = costs_.find(key);
    measured_now = found == costs_.end();
    if (!measured_now) return found->second;
    const LayoutCosts costs = measure(c);
    costs_[key] = costs;
    append(key, costs);
    return costs;
  }

 private:
  void read() {
    read_ = true;
    std::ifstream file(cache_file());
    for (std::string line; std::getline(file, line);) {
      std::istringstream fields(line);
      std::string key;
      LayoutCosts costs;
      if (fields >> key >> costs.masked_ms >> costs.compressed_ms && costs.masked_ms > 0.0 &&
          costs.compressed_ms > 0.0) {
        costs_.emplace(key, costs);  // the first of two that ran at once
      }
    }
  }

  // A line is one write: processes that run at once do not tear each other's lines. A cache that
  // cannot be written is done without.
  static void append(const std::string& key, const LayoutCosts& costs) {
    const fs::path path = cache_file();
    if (path.empty()) return;
    std::error_code ignored;
    fs::create_directories(path.parent_path(), ignored);
    std::ostringstream line;
    line << key << " " << costs.masked_ms << " " << costs.compressed_ms << "\n";
    std::ofstream(path, std::ios::app) << line.str() << std::flush;
  }

  std::mutex mutex_;
  bool read_ = false;
  std::map<std::string, LayoutCosts> costs_;
};

CostTable& table() {
  static CostTable table;
  return table;
}

}  // namespace

namespace {

// The costs of a weight at one of the measured densities.
LayoutCosts costs_at(const Shape& shape, int half_powers, int64_t batch, const Layout& compressed,
                     PatternUse use, bool& measured_now) {
  const WeightClass c = class_of(compressed, use, shape, half_powers, std::max<int64_t>(batch, 1));
  bool is_new = false;
  LayoutCosts costs = table().find(c, is_new);
  measured_now |= is_new;
  const double scale = static_cast<double>(shape.numel()) / static_cast<double>(c.out * c.in) *
                       static_cast<double>(std::max<int64_t>(batch, 1)) /
                       static_cast<double>(c.batch);
  costs.masked_ms *= scale;
  costs.compressed_ms *= scale;
  return costs;
}

// Between the two nearest measured densities, on a line: what runs is proportional to the density
// but for a part that does not depend on it.
LayoutCosts costs_between(const Shape& shape, double density, int64_t batch,
                          const Layout& compressed, PatternUse use, bool& measured_now) {
  const double half_powers =
      std::clamp(-2.0 * std::log2(density), 0.0, static_cast<double>(kSparsest));
  const auto denser = static_cast<int>(half_powers);
  const LayoutCosts dense = costs_at(shape, denser, batch, compressed, use, measured_now);
  if (denser == kSparsest || half_powers == denser) return dense;
  const LayoutCosts sparse = costs_at(shape, denser + 1, batch, compressed, use, measured_now);
  const double low = density_of(denser + 1), share = (density - low) / (density_of(denser) - low);
  return {.masked_ms = std::lerp(sparse.masked_ms, dense.masked_ms, share),
          .compressed_ms = std::lerp(sparse.compressed_ms, dense.compressed_ms, share)};
}

}  // namespace

LayoutChoice compare_layouts(const Shape& shape, int64_t nnz, int64_t batch,
                             const Layout& compressed, PatternUse use) {
  if (shape.rank() != 2 || shape.numel() == 0) {
    return {.layout = &masked_layout(), .costs = {}, .reason = "masked: no matrix"};
  }
  const double density =
      std::max(static_cast<double>(nnz), 1.0) / static_cast<double>(shape.numel());
  bool measured_now = false;
  const LayoutCosts costs = costs_between(shape, density, batch, compressed, use, measured_now);
  const bool faster = costs.compressed_ms < costs.masked_ms;
  const std::string name(compressed.name());
  char numbers[120];
  std::snprintf(numbers, sizeof numbers, "%s %.3g ms a step, masked %.3g ms (%s)", name.c_str(),
                costs.compressed_ms, costs.masked_ms,
                measured_now ? "measured now" : "measured before");
  return {.layout = faster ? &compressed : &masked_layout(),
          .costs = costs,
          .reason = (faster ? name : "masked") + ": " + numbers};
}

double density_limit(const Shape& shape, int64_t batch, const Layout& compressed, PatternUse use) {
  if (shape.rank() != 2 || shape.numel() == 0) return 0.0;
  // By how much the compressed layout is slower.
  const auto lag = [&](int half_powers) {
    bool ignored = false;
    const LayoutCosts costs = costs_at(shape, half_powers, batch, compressed, use, ignored);
    return costs.compressed_ms - costs.masked_ms;
  };
  int slower = -1, faster = kSparsest + 1;  // bisection over the measured densities
  while (faster - slower > 1) {
    const int middle = (slower + faster) / 2;
    (lag(middle) < 0.0 ? faster : slower) = middle;
  }
  if (faster > kSparsest) return 0.0;
  if (slower < 0) return 1.0;
  const double gain = -lag(faster), loss = lag(slower);  // the line between them crosses zero
  return std::lerp(density_of(faster), density_of(slower), gain / (gain + loss));
}

std::string density_limit_key(const std::string& parameter, const Layout& compressed,
                              PatternUse use) {
  const bool one_step = use == PatternUse::OneStep;
  if (&compressed == &csr_layout() && !one_step) return parameter;
  return parameter + " in " + std::string(compressed.name()) + (one_step ? ", for one step" : "");
}

}  // namespace lacuna
