// bench_one_shot: what one-shot pruning loses. Of damping on rows that were not calibrated with,
// and of ADMM with least squares next to SparseGPT. usage: bench_one_shot damping|ratio|--tiny
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/kernels/dense/gemm.hpp"
#include "lacuna/sparsity/one_shot/one_shot.h"

namespace lacuna::bench {
namespace {

struct Size {
  int64_t out, in;
};

/// How the variances of the inputs' directions fall from 1 to 1 / condition, and how far apart the
/// inputs' own sizes are.
struct Spectrum {
  double condition = 1.0;
  bool is_geometric = false;  // else a power of the direction's index
  double spread = 0.5;        // standard deviation of the sizes' logarithms
};

class Normal {
 public:
  explicit Normal(const std::string& name) : rng_(1, name) {}
  double next() { return rng_.normal(i_++); }

 private:
  CounterRng rng_;
  uint64_t i_ = 0;
};

/// A layer with its inputs, every `dead`th of which is zero (0: none).
struct Layer {
  Layer(Size size, int64_t rows, const Spectrum& spectrum, int64_t dead, int seed);

  Tensor weight;
  InputGram seen, held_out;
};

// A column of directions after the other, orthogonal to those before.
std::vector<double> directions(int64_t count, Normal& normal) {
  std::vector<double> all(static_cast<size_t>(count * count));
  for (int64_t i = 0; i < count; ++i) {
    double* row = all.data() + i * count;
    for (int64_t j = 0; j < count; ++j) row[j] = normal.next();
    for (int64_t other = 0; other < i; ++other) {
      const double* before = all.data() + other * count;
      const double along = std::inner_product(row, row + count, before, 0.0);
      for (int64_t j = 0; j < count; ++j) row[j] -= along * before[j];
    }
    const double norm = std::sqrt(std::inner_product(row, row + count, row, 0.0));
    for (int64_t j = 0; j < count; ++j) row[j] /= norm;
  }
  return all;
}

Layer::Layer(Size size, int64_t rows, const Spectrum& spectrum, int64_t dead, int seed)
    : weight(Tensor::empty(Shape{size.out, size.in})), seen(size.in), held_out(size.in) {
  Normal normal(fmt::format("{} {} {}", size.out, size.in, seed));
  for (float& w : weight.mutable_storage()) w = static_cast<float>(normal.next());
  std::vector<double> mix = directions(size.in, normal);
  std::vector<double> sizes;
  for (int64_t j = 0; j < size.in; ++j) {
    const bool is_dead = dead > 0 && j % dead == dead / 2;
    sizes.push_back(is_dead ? 0.0 : std::exp(spectrum.spread * normal.next()));
  }
  const auto last = static_cast<double>(size.in - 1);
  for (int64_t i = 0; i < size.in; ++i) {
    const auto index = static_cast<double>(i);
    const double part =
        spectrum.is_geometric ? index / last : std::log(index + 1.0) / std::log(last + 1.0);
    const double deviation = std::pow(spectrum.condition, -0.5 * part);
    for (int64_t j = 0; j < size.in; ++j) {
      mix[static_cast<size_t>(i * size.in + j)] *= deviation * sizes[static_cast<size_t>(j)];
    }
  }
  constexpr int64_t kHeldOut = 1000;
  const int64_t all = rows + kHeldOut;
  std::vector<float> amounts(static_cast<size_t>(all * size.in)), inputs(amounts.size());
  for (float& amount : amounts) amount = static_cast<float>(normal.next());
  const std::vector<float> mixed(mix.begin(), mix.end());
  gemm({.m = all,
        .n = size.in,
        .k = size.in,
        .a = amounts.data(),
        .b = mixed.data(),
        .c = inputs.data()});
  const std::span<const float> values(inputs);
  seen.add(values.first(static_cast<size_t>(rows * size.in)));
  held_out.add(values.subspan(static_cast<size_t>(rows * size.in)));
}

PrunedWeight prune(const Layer& layer, double sparsity, const OneShotOptions& options) {
  const auto keep =
      static_cast<int64_t>((1.0 - sparsity) * static_cast<double>(layer.weight.numel()));
  return prune_one_shot("layer", layer.weight, layer.seen,
                        MaskSelector({}, {}, layer.weight.shape()), keep, nullptr, options);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

// The authors set dead elements of the diagonal of 2 / rows · XᵀX to 1 before they take its mean:
// how much that is depends on how large the others are.
double authors_damping(const InputGram& gram, double mean_square) {
  const std::vector<double> squares = gram.squares();
  const auto dead = static_cast<double>(std::ranges::count(squares, 0.0));
  const auto all = static_cast<double>(squares.size());
  return 0.01 * (1.0 + dead / (all - dead) / (2.0 * mean_square));
}

void print_damping(bool is_tiny) {
  fmt::print("Held-out error of SparseGPT, by automatic damping = 1\n\n");
  fmt::print(
      "| rows / inputs | authors, x² = 1 | x² = 0.1 | x² = 0.01 | 0.003 | 0.01 | 0.03 | 0.1 |\n");
  fmt::print("|---|---|---|---|---|---|---|---|\n");
  const std::vector<Size> sizes =
      is_tiny ? std::vector<Size>{{8, 24}} : std::vector<Size>{{32, 64}, {24, 150}, {96, 96}};
  const std::vector<double> given = {0.003, 0.01, 0.03, 0.1}, mean_squares = {1.0, 0.1, 0.01};
  for (const double part :
       is_tiny ? std::vector<double>{2} : std::vector<double>{0.5, 1, 2, 4, 16}) {
    std::vector<std::vector<double>> ratios(given.size() + mean_squares.size());
    for (const Size size : sizes) {
      for (const double condition : {1e2, 1e4, 1e6}) {
        for (const bool is_geometric : {false, true}) {
          for (int seed = 0; seed < (is_tiny ? 1 : 3); ++seed) {
            const auto rows = static_cast<int64_t>(part * static_cast<double>(size.in));
            const Layer layer(size, rows, {.condition = condition, .is_geometric = is_geometric}, 7,
                              seed);
            for (const double sparsity : {0.5, 0.7}) {
              OneShotOptions options = OneShotOptions::defaults(OneShotMethod::SparseGpt);
              const auto lost = [&] {
                return relative_output_error(layer.weight, prune(layer, sparsity, options).weight,
                                             layer.held_out);
              };
              const double automatic = lost();
              size_t column = 0;
              for (const double mean_square : mean_squares) {
                options.damping = authors_damping(layer.seen, mean_square);
                ratios[column++].push_back(lost() / automatic);
              }
              for (const double damping : given) {
                options.damping = damping;
                ratios[column++].push_back(lost() / automatic);
              }
            }
          }
        }
      }
    }
    fmt::print("| {} |", part);
    for (const std::vector<double>& column : ratios)
      fmt::print(" {:.2f} |", geometric_mean(column));
    fmt::print("\n");
    std::fflush(stdout);
  }
}

void print_ratio(bool is_tiny) {
  fmt::print("\nError of ADMM with least squares by that of SparseGPT: median (largest)\n\n");
  fmt::print("| condition | spectrum | 50 % | 70 % |\n|---|---|---|---|\n");
  const std::vector<Size> sizes = is_tiny
                                      ? std::vector<Size>{{8, 24}}
                                      : std::vector<Size>{{24, 48}, {32, 64}, {16, 256}, {96, 128}};
  for (const double condition : {1e1, 1e2, 1e3, 1e4, 1e5, 1e6}) {
    for (const bool is_geometric : {false, true}) {
      std::string line;
      for (const double sparsity : {0.5, 0.7}) {
        std::vector<double> ratios;
        for (const Size size : sizes) {
          for (int seed = 0; seed < (is_tiny ? 1 : 12); ++seed) {
            const Layer layer(size, 6 * size.in,
                              {.condition = condition, .is_geometric = is_geometric}, 0, seed);
            OneShotOptions options = OneShotOptions::defaults(OneShotMethod::Admm);
            options.least_squares = true;
            const double found = prune(layer, sparsity, options).relative_error;
            options = OneShotOptions::defaults(OneShotMethod::SparseGpt);
            const double automatic = prune(layer, sparsity, options).relative_error;
            options.damping = 0.01;
            ratios.push_back(found /
                             std::min(automatic, prune(layer, sparsity, options).relative_error));
          }
        }
        line += fmt::format(" {:.3f} ({:.3f}) |", median(ratios), std::ranges::max(ratios));
      }
      fmt::print("| {:.0e} | {} |{}\n", condition, is_geometric ? "geometric" : "power", line);
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  const std::string table = argc > 1 ? argv[1] : "";
  const bool is_tiny = table == "--tiny";
  if (is_tiny || table == "damping") lacuna::bench::print_damping(is_tiny);
  if (is_tiny || table == "ratio") lacuna::bench::print_ratio(is_tiny);
  return 0;
}
