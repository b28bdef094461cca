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
#include "lacuna/framework/kernels/optimizer_update.h"
#include "lacuna/framework/layouts/pattern.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// A weight is measured by one of at most this size and its cost scaled with the elements.
constexpr int64_t kLargestSide = 1024, kLargestBatch = 256;
// The class of the smallest densities, 2^(−kSparsest / 2) and below.
constexpr int kSparsest = 16;

struct WeightClass {
  const Layout* compressed;
  int64_t out, in, batch;
  int half_powers;  // density = 2^(−half_powers / 2)

  double density() const { return std::exp2(-0.5 * half_powers); }
  std::string key() const {
    std::ostringstream text;
    text << out << "x" << in << "/" << batch << "/" << half_powers << "/" << num_threads() << "/"
         << active_instruction_set();
    if (compressed != &csr_layout()) text << "/" << compressed->name();
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

WeightClass class_of(const Layout& compressed, const Shape& shape, int64_t nnz, int64_t batch) {
  const double density = std::max(static_cast<double>(nnz), 1.0) /
                         static_cast<double>(std::max<int64_t>(shape.numel(), 1));
  const Shape unit = compressed.granularity();
  return {.compressed = &compressed,
          .out = sampled_side(shape[0], unit[0]),
          .in = sampled_side(shape[1], unit[1]),
          .batch = std::min(batch, kLargestBatch),
          .half_powers =
              std::clamp(static_cast<int>(std::lround(-2.0 * std::log2(density))), 0, kSparsest)};
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
    for (Tensor* array : {&values_, &gradient_, &first_, &second_}) {
      layout.prune(*pattern_, array->mutable_storage());
    }
  }

 private:
  PatternPtr pattern_;
  Tensor values_, gradient_, first_, second_, x_, dy_;
  DerivedValues derived_;
  uint64_t version_ = 0;
};

double milliseconds(Step& step) {
  const auto start = std::chrono::steady_clock::now();
  step();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double>& times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

// Both in turn, so that what else the machine does hits both.
LayoutCosts measure(const WeightClass& c) {
  const FlushDenormals flush;
  const Shape shape{c.out, c.in};
  const Positions positions = c.compressed->sample(shape, c.density());
  Step masked(c, Pattern::make(masked_layout(), shape, positions));
  Step compressed(c, Pattern::make(*c.compressed, shape, positions));
  std::vector<double> masked_ms, compressed_ms;
  milliseconds(masked);
  milliseconds(compressed);
  for (double total = 0.0; masked_ms.size() < 3 || (total < 20.0 && masked_ms.size() < 15);) {
    masked_ms.push_back(milliseconds(masked));
    compressed_ms.push_back(milliseconds(compressed));
    total += masked_ms.back() + compressed_ms.back();
  }
  return {.masked_ms = median(masked_ms), .compressed_ms = median(compressed_ms)};
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
  return folder.empty() ? folder : folder / ("layout-costs-" + std::string(kVersion) + ".txt");
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

LayoutChoice compare_layouts(const Shape& shape, int64_t nnz, int64_t batch,
                             const Layout& compressed) {
  if (shape.rank() != 2 || shape.numel() == 0) {
    return {.layout = &masked_layout(), .costs = {}, .reason = "masked: no matrix"};
  }
  const WeightClass c = class_of(compressed, shape, nnz, std::max<int64_t>(batch, 1));
  bool measured_now = false;
  LayoutCosts costs = table().find(c, measured_now);
  const double scale = static_cast<double>(shape.numel()) / static_cast<double>(c.out * c.in) *
                       static_cast<double>(std::max<int64_t>(batch, 1)) /
                       static_cast<double>(c.batch);
  costs.masked_ms *= scale;
  costs.compressed_ms *= scale;
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

double density_limit(const Shape& shape, int64_t batch, const Layout& compressed) {
  const auto is_faster = [&](int half_powers) {
    const double nnz = static_cast<double>(shape.numel()) * std::exp2(-0.5 * half_powers);
    return compare_layouts(shape, std::llround(nnz), batch, compressed).layout == &compressed;
  };
  int slower = -1, faster = kSparsest + 1;  // bisection over the classes of density
  while (faster - slower > 1) {
    const int middle = (slower + faster) / 2;
    (is_faster(middle) ? faster : slower) = middle;
  }
  if (faster > kSparsest) return 0.0;
  return std::min(1.0, std::exp2(-0.5 * (faster - 0.5)));  // the upper edge of the class
}

std::string density_limit_key(const std::string& parameter, const Layout& compressed) {
  if (&compressed == &csr_layout()) return parameter;
  return parameter + " in " + std::string(compressed.name());
}

const Layout& choose_layout(const Shape& shape, int64_t nnz, int64_t batch) {
  return *compare_layouts(shape, nnz, batch).layout;
}

}  // namespace lacuna
