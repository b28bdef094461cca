// InputGram: what calibration saw of a layer's inputs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lacuna {

/// XᵀX of the inputs X [rows, features] of a layer, summed over all rows that were added: all that
/// one-shot pruning needs to know of them. The output error of a change D of the weight [out,
/// features] is ‖X Dᵀ‖² = Σ over the rows d of D of d XᵀX dᵀ.
///
/// The features of a convolution are the columns of its weight as a matrix (core/shape.h): feature
/// c·taps + t is tap t of input channel c, which is how an image is unfolded. So the rules for
/// patterns of weights of rank 4 (config/pattern_shape.h) hold for Gram and weight alike.
class InputGram {
 public:
  explicit InputGram(int64_t features);
  /// The rows of a matrix that nobody counted: so many that another one would change nothing.
  static constexpr int64_t kManyRows = int64_t{1} << 32;
  /// A Gram matrix that is there already, and the number of rows that it is the sum of. *Shapes:*
  /// matrix [features, features], symmetric (its lower triangle is taken). *Errors:* ShapeError
  /// when it is not square.
  static InputGram of_matrix(int64_t features, std::span<const double> matrix,
                             int64_t rows = kManyRows);
  /// That of inputs which are independent and of one size, the identity: what is assumed where
  /// nothing is known of them. *Cost:* no memory until `matrix` is called or rows are added.
  static InputGram of_independent(int64_t features);

  /// Adds rows, row-major. Products are taken in float32 over 1,024 rows at a time and summed in
  /// double; the sum depends on the rows and their order alone, not on how they were cut into calls
  /// nor on the number of threads. *Errors:* ShapeError when the values are not whole rows.
  /// *Cost:* rows · features² operations.
  void add(std::span<const float> rows);

  int64_t features() const { return features_; }
  int64_t rows() const { return rows_; }
  /// Whether the matrix is the identity of `of_independent`, to which no rows were added.
  bool is_independent() const { return is_independent_; }
  /// [features, features], both triangles. *Cost:* the products of the rows that wait. Not
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
