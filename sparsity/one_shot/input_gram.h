// InputGram: the second moments of a layer's inputs, from calibration.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lacuna {

/// XᵀX of the inputs X [rows, features] of a layer, summed over all added rows: all that one-shot
/// pruning needs of the inputs. The output error of a change D of the weight [out, features] is ‖X
/// Dᵀ‖² = Σ over the rows d of D of d XᵀX dᵀ.
///
/// The features of a convolution are the columns of its weight as a matrix (core/shape.h): feature
/// c·taps + t is tap t of input channel c, which is how an image is unfolded. So the rules for
/// patterns of weights of rank 4 (config/pattern_shape.h) apply to both Gram matrix and weight.
class InputGram {
 public:
  /// *Errors:* ShapeError if `features` is negative.
  explicit InputGram(int64_t features);
  /// The number of rows of a matrix whose rows were not counted: so large that one more would not
  /// matter.
  static constexpr int64_t kManyRows = int64_t{1} << 32;
  /// An existing Gram matrix, and the number of rows in its sum. *Shapes:* matrix [features,
  /// features], symmetric (its lower triangle is used). *Errors:* ShapeError unless it has
  /// features² values.
  static InputGram of_matrix(int64_t features, std::span<const double> matrix,
                             int64_t rows = kManyRows);
  /// The Gram matrix of independent inputs of equal size, the identity: the assumption if nothing
  /// is known about the inputs. *Cost:* no memory until `matrix` is called or rows are added.
  static InputGram of_independent(int64_t features);

  /// Adds rows, row-major. Products are taken in float32 over 1,024 rows at a time and summed in
  /// double; the sum depends only on the rows and their order, not on their division into calls or
  /// the number of threads. *Errors:* ShapeError if the values are not whole rows. *Cost:* rows ·
  /// features² operations.
  void add(std::span<const float> rows);

  int64_t features() const { return features_; }
  int64_t rows() const { return rows_; }
  /// Whether the matrix is the identity of `of_independent`, to which no rows were added.
  bool is_independent() const { return is_independent_; }
  /// [features, features], both triangles. *Cost:* the products of the waiting rows. Not
  /// thread-safe.
  std::span<const double> matrix() const;
  /// Its diagonal: Σ x² of each feature.
  std::vector<double> squares() const;

 private:
  void allocate() const;
  void take_waiting() const;
  void take_last() const;

  int64_t features_, rows_ = 0;
  mutable std::vector<float> waiting_;  // rows that are not in the sum yet
  mutable std::vector<double> matrix_;  // the lower triangle, or both; empty until it is needed
  mutable bool is_whole_ = true;        // both
  bool is_independent_ = false;
};

}  // namespace lacuna
