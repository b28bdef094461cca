// One-shot pruning against the authors' own code.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "golden/golden.h"
#include "golden/models.h"
#include "lacuna/sparsity/one_shot/one_shot.h"
#include "lacuna/sparsity/options/counting.hpp"

namespace lacuna::one_shot_test {
namespace {

using golden::ModelKind;

/// A layer of a golden file, and one sparsity of it.
struct Layer {
  const Hdf5File& file;
  std::string path;
  Tensor weight;
  InputGram gram;

  Layer(const Hdf5File& of, const std::string& name)
      : file(of), path(name), weight(of.read_floats(name + "/weight")), gram(weight.shape()[1]) {
    gram.add(of.read_floats(name + "/inputs").storage());
  }
  int64_t rows() const { return weight.shape()[0]; }
  int64_t columns() const { return weight.shape()[1]; }
  /// The cases of a method: none where the layer lacks the method.
  std::vector<std::string> cases(const std::string& method) const {
    return file.exists(path + "/" + method) ? file.children(path + "/" + method)
                                            : std::vector<std::string>{};
  }
};

/// "0.5", or "2:4" with the zeros first.
struct Sparsity {
  explicit Sparsity(const std::string& text) {
    const size_t colon = text.find(':');
    if (colon == std::string::npos) {
      fraction = std::stod(text);
      return;
    }
    const int zeros = std::stoi(text), of = std::stoi(text.substr(colon + 1));
    pattern = PatternShape::nm(of - zeros, of);
    fraction = static_cast<double>(zeros) / of;
  }
  double fraction = 0.0;
  PatternShape pattern;
};

MaskSelector selector(const Layer& layer, const Sparsity& sparsity) {
  return MaskSelector({}, sparsity.pattern, layer.weight.shape());
}

BitMask nonzeros(const Tensor& weight) {
  BitMask mask = BitMask::zeros(weight.numel());
  for (int64_t i = 0; i < weight.numel(); ++i) {
    if (weight.data()[i] != 0.0f) mask.set(i);
  }
  return mask;
}

/// Prunes with the counts of a golden mask: of its rows, or of its blocks of columns.
PrunedWeight prune_as(const Layer& layer, const Sparsity& sparsity, OneShotOptions options,
                      const BitMask& mask) {
  int64_t keep = mask.count();
  if (sparsity.pattern.is_structured()) {
    keep = layer.weight.numel() * sparsity.pattern.n() / sparsity.pattern.m();
  } else {
    const bool by_rows = options.granularity == OneShotGranularity::Row;
    const int64_t blocks = (layer.columns() + options.block - 1) / options.block;
    options.keep_of_parts.assign(static_cast<size_t>(by_rows ? layer.rows() : blocks), 0);
    mask.for_each([&](int64_t i) {
      const int64_t part = by_rows ? i / layer.columns() : i % layer.columns() / options.block;
      ++options.keep_of_parts[static_cast<size_t>(part)];
    });
  }
  return prune_one_shot(layer.path, layer.weight, layer.gram, selector(layer, sparsity), keep,
                        nullptr, options);
}

/// SparseGPT by its definition, in double, with a mask that is given: its scores when they are
/// asked for, and its weights.
struct SparseGptByDefinition {
  std::vector<double> scores, weights;

  /// `group`: columns whose scores are asked for at a time.
  SparseGptByDefinition(const Layer& layer, double damping, int64_t group, const BitMask& mask) {
    const auto n = static_cast<size_t>(layer.columns()), rows = static_cast<size_t>(layer.rows());
    std::vector<double> h(layer.gram.matrix().begin(), layer.gram.matrix().end());
    double mean = 0.0;
    for (size_t i = 0; i < n; ++i) mean += h[i * n + i] / static_cast<double>(n);
    std::vector<bool> dead(n);
    for (size_t i = 0; i < n; ++i) {
      dead[i] = h[i * n + i] == 0.0;
      h[i * n + i] += damping * mean + (dead[i] ? mean : 0.0);
    }
    const std::vector<double> upper = inverse_upper(n, h);
    weights.assign(layer.weight.storage().begin(), layer.weight.storage().end());
    scores.resize(weights.size());
    for (size_t r = 0; r < rows; ++r) {
      double* w = weights.data() + r * n;
      for (size_t j = 0; j < n; ++j) w[j] = dead[j] ? 0.0 : w[j];
      for (size_t j = 0; j < n; ++j) {
        if (j % static_cast<size_t>(group) == 0) {
          for (size_t l = j; l < std::min(n, j + static_cast<size_t>(group)); ++l) {
            scores[r * n + l] = std::pow(w[l] / upper[l * n + l], 2);
          }
        }
        if (mask.test(static_cast<int64_t>(r * n + j))) continue;
        const double error = w[j] / upper[j * n + j];
        for (size_t l = j; l < n; ++l) w[l] -= error * upper[j * n + l];
        w[j] = 0.0;
      }
    }
  }

  // The upper triangular U with H⁻¹ = Uᵀ·U: eliminating from the first row on gives that of each
  // step's inverse.
  static std::vector<double> inverse_upper(size_t n, const std::vector<double>& h) {
    std::vector<double> inverse = inverted(n, h), upper(n * n, 0.0);
    for (size_t i = 0; i < n; ++i) {
      const double root = std::sqrt(inverse[i * n + i]);
      for (size_t j = i; j < n; ++j) upper[i * n + j] = inverse[i * n + j] / root;
      for (size_t r = i + 1; r < n; ++r) {
        for (size_t c = r; c < n; ++c) inverse[r * n + c] -= upper[i * n + r] * upper[i * n + c];
      }
    }
    return upper;
  }

  static std::vector<double> inverted(size_t n, std::vector<double> a) {
    std::vector<double> b(n * n, 0.0);
    for (size_t i = 0; i < n; ++i) b[i * n + i] = 1.0;
    for (size_t i = 0; i < n; ++i) {
      const double pivot = a[i * n + i];
      for (size_t c = 0; c < n; ++c) {
        a[i * n + c] /= pivot;
        b[i * n + c] /= pivot;
      }
      for (size_t r = 0; r < n; ++r) {
        const double factor = a[r * n + i];
        if (r == i || factor == 0.0) continue;
        for (size_t c = 0; c < n; ++c) {
          a[r * n + c] -= factor * a[i * n + c];
          b[r * n + c] -= factor * b[i * n + c];
        }
      }
    }
    return b;
  }
};

// Where a mask is another than the golden one first, in its row, its score is as near to those of
// the other side as rounding in float32 is.
void expect_differences_within_rounding(const Layer& layer, double damping, int64_t group,
                                        const PatternShape& pattern, const BitMask& found,
                                        const BitMask& expected, const std::string& what) {
  if (found == expected) return;
  const SparseGptByDefinition exact(layer, damping, group, expected);
  const int64_t columns = layer.columns();
  // The best score that the golden mask prunes, of a block, or of a cell of each row.
  const auto cell = [&](int64_t i) { return pattern.is_nm() ? i / group : i % columns / group; };
  std::vector<double> pruned(static_cast<size_t>(layer.weight.numel()), 0.0);
  std::vector<double> kept(pruned.size(), std::numeric_limits<double>::infinity());
  for (int64_t i = 0; i < layer.weight.numel(); ++i) {
    const auto place = static_cast<size_t>(cell(i));
    const double score = exact.scores[static_cast<size_t>(i)];
    if (expected.test(i)) {
      kept[place] = std::min(kept[place], score);
    } else {
      pruned[place] = std::max(pruned[place], score);
    }
  }
  for (int64_t row = 0; row < layer.rows(); ++row) {
    int64_t first = -1;
    for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
      if (found.test(i) == expected.test(i)) continue;
      if (first >= 0 && i / group != first) break;  // what follows from it
      first = i / group;
      const auto place = static_cast<size_t>(cell(i));
      const double score = exact.scores[static_cast<size_t>(i)];
      const double other = expected.test(i) ? pruned[place] : kept[place];
      EXPECT_NEAR(score, other, 1e-3 * std::max(score, other)) << what << ", position " << i;
    }
  }
}

// Rows do not know of each other once their masks are there.
void expect_rows_near(const Layer& layer, const Tensor& found, const Tensor& expected,
                      const BitMask& found_mask, const BitMask& expected_mask,
                      const std::string& what) {
  float largest = 0.0f;
  for (const float value : expected.storage()) largest = std::max(largest, std::abs(value));
  int64_t rows = 0;
  for (int64_t r = 0; r < layer.rows(); ++r) {
    const int64_t begin = r * layer.columns(), end = begin + layer.columns();
    bool is_same = true;
    for (int64_t i = begin; i < end; ++i) is_same &= found_mask.test(i) == expected_mask.test(i);
    if (!is_same) continue;
    ++rows;
    for (int64_t i = begin; i < end; ++i) {
      ASSERT_NEAR(found.data()[i], expected.data()[i], 1e-3f * largest) << what << ", " << i;
    }
  }
  EXPECT_GT(2 * rows, layer.rows()) << what << ": the masks of too many rows differ";
}

void check_sparse_gpt(const Layer& layer, const std::string& name) {
  const std::string path = layer.path + "/sparsegpt/" + name;
  const Sparsity sparsity(name);
  const Tensor expected = layer.file.read_floats(path + "/pruned");
  OneShotOptions options = OneShotOptions::defaults(OneShotMethod::SparseGpt);
  options.block = layer.file.attribute_integer(path, "block");
  options.damping = layer.file.attribute_number(path, "damp");
  const BitMask mask = nonzeros(expected);
  const PrunedWeight found = prune_as(layer, sparsity, options, mask);
  EXPECT_TRUE(found.messages.empty()) << path;
  const int64_t group = sparsity.pattern.is_nm() ? sparsity.pattern.m() : options.block;
  const BitMask kept = nonzeros(found.weight);
  expect_differences_within_rounding(layer, options.damping, group, sparsity.pattern, kept, mask,
                                     path);
  expect_rows_near(layer, found.weight, expected, kept, mask, path);
  if (kept == mask) {
    EXPECT_NEAR(found.relative_error, layer.file.attribute_number(path, "error"),
                1e-3 * found.relative_error)
        << path;
  }
  // Whatever was chosen, the others make up for it as the definition says.
  const SparseGptByDefinition exact(layer, options.damping, group, found.mask.bits());
  const std::vector<float> weights(exact.weights.begin(), exact.weights.end());
  golden::expect_near_largest(found.weight, Tensor::from(layer.weight.shape(), weights), path,
                              1e-4f);
}

void check_wanda(const Layer& layer, const std::string& name) {
  const std::string path = layer.path + "/wanda/" + name;
  const BitMask mask = BitMask::from_bytes(layer.file.read_bytes(path + "/mask"));
  const PrunedWeight found =
      prune_as(layer, Sparsity(name), OneShotOptions::defaults(OneShotMethod::Wanda), mask);
  EXPECT_EQ(found.mask.bits(), mask) << path;
  EXPECT_NEAR(found.relative_error, layer.file.attribute_number(path, "error"),
              1e-4 * found.relative_error)
      << path;
}

void check_least_squares(const Layer& layer, const std::string& name) {
  const std::string path = layer.path + "/wanda_least_squares/" + name;
  const BitMask mask =
      BitMask::from_bytes(layer.file.read_bytes(layer.path + "/wanda/" + name + "/mask"));
  OneShotOptions options = OneShotOptions::defaults(OneShotMethod::Wanda);
  options.least_squares = true;
  const PrunedWeight found = prune_as(layer, Sparsity(name), options, mask);
  EXPECT_TRUE(found.messages.empty()) << path;
  golden::expect_near_largest(found.weight, layer.file.read_floats(path + "/weight"), path, 1e-3f);
}

void check_admm(const Layer& layer, const std::string& name) {
  const std::string path = layer.path + "/admm/" + name;
  const BitMask mask = nonzeros(layer.file.read_floats(path + "/pruned"));
  OneShotOptions options = OneShotOptions::defaults(OneShotMethod::Admm);
  options.granularity = OneShotGranularity::Row;
  options.sparsity = Sparsity(name).fraction;
  const PrunedWeight found = prune_as(layer, Sparsity(name), options, mask);
  const double expected = layer.file.attribute_number(path, "error");
  EXPECT_NEAR(found.relative_error, expected, 0.03 * expected) << path;
}

TEST(GoldenOneShot, MethodsAgreeWithTheirAuthorsCode) {
  for (const std::string& name : golden::models(ModelKind::OneShot)) {
    const Hdf5File file = Hdf5File::open(golden::model_path(name + ".h5"));
    int count = 0;
    for (const std::string& path : golden::cases(file, "/")) {
      const Layer layer(file, path);
      for (const std::string& method : file.children(path)) {
        if (!file.is_group(path + "/" + method)) continue;
        for (const std::string& sparsity : golden::cases(file, path + "/" + method)) {
          if (method == "sparsegpt") {
            check_sparse_gpt(layer, sparsity);
          } else if (method == "wanda") {
            check_wanda(layer, sparsity);
          } else if (method == "wanda_least_squares") {
            check_least_squares(layer, sparsity);
          } else if (method == "admm") {
            check_admm(layer, sparsity);
          } else {
            ADD_FAILURE() << path << ": no test knows the method " << method;
          }
          ++count;
        }
      }
    }
    golden::report(name, count);
  }
}

// What our best method may leave of SparseGPT's error, where that is promised.
double promised(const Sparsity& sparsity) {
  constexpr double kRounding = 1e-4;
  if (sparsity.fraction < 0.5 - kRounding || sparsity.fraction > 0.9 + kRounding) return 1.0;
  if (sparsity.pattern.is_nm()) return 0.90;
  return sparsity.fraction < 0.7 + kRounding ? 0.70 : 0.85;
}

TEST(GoldenOneShot, AdmmWithLeastSquaresLosesMuchLessThanSparseGpt) {
  for (const std::string& name : golden::models(ModelKind::OneShot)) {
    const Hdf5File file = Hdf5File::open(golden::model_path(name + ".h5"));
    int count = 0;
    for (const std::string& path : golden::cases(file, "/")) {
      const Layer layer(file, path);
      for (const std::string& of : layer.cases("sparsegpt")) {
        const Sparsity sparsity(of);
        OneShotOptions options = OneShotOptions::defaults(OneShotMethod::Admm);
        options.least_squares = true;
        const int64_t all = layer.weight.numel();
        const PatternShape& pattern = sparsity.pattern;
        const int64_t keep = pattern.is_nm()
                                 ? all * pattern.n() / pattern.m()
                                 : target_nnz(static_cast<float>(sparsity.fraction), all);
        const PrunedWeight found = prune_one_shot(
            path, layer.weight, layer.gram, selector(layer, sparsity), keep, nullptr, options);
        const double theirs = file.attribute_number(path + "/sparsegpt/" + of, "error");
        EXPECT_EQ(found.mask.count(), keep) << path << ", " << of;
        EXPECT_LE(found.relative_error, promised(sparsity) * theirs) << path << ", " << of;
        std::cout << path << ", " << of << ": " << found.relative_error / theirs
                  << " of SparseGPT's error\n";
        ++count;
      }
    }
    golden::report(name, count);
  }
}

// Of the inputs, or the matrix itself where the file has that; the scale of it does not matter.
InputGram given_gram(const Hdf5File& file, const std::string& path, int64_t columns) {
  if (file.exists(path + "/hessian")) {
    const Tensor hessian = file.read_floats(path + "/hessian");
    const std::vector<double> matrix(hessian.storage().begin(), hessian.storage().end());
    return InputGram::of_matrix(columns, matrix);
  }
  InputGram gram(columns);
  gram.add(file.read_floats(path + "/inputs").storage());
  return gram;
}

TEST(GoldenOneShot, SparseGptMasksOfModelOptAgree) {
  const Hdf5File file = golden::open("post_training.h5");
  int count = 0;
  for (const std::string& name : golden::cases(file, "sparsegpt_2_4")) {
    const std::string path = "sparsegpt_2_4/" + name;
    const Tensor weight = file.read_floats(path + "/weight");
    const InputGram gram = given_gram(file, path, weight.shape()[1]);
    OneShotOptions options = OneShotOptions::defaults(OneShotMethod::SparseGpt);
    options.damping = file.attribute_number(path, "hessian_damp");
    options.block = file.attribute_integer(path, "col_block_size");
    const MaskSelector of_pattern({}, PatternShape::nm(2, 4), weight.shape());
    const PrunedWeight found =
        prune_one_shot(path, weight, gram, of_pattern, weight.numel() / 2, nullptr, options);
    EXPECT_EQ(found.mask.bits(), BitMask::from_bytes(file.read_bytes(path + "/mask"))) << path;
    ++count;
  }
  golden::report("post_training.h5: sparsegpt_2_4", count);
}

}  // namespace
}  // namespace lacuna::one_shot_test
