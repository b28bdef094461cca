// Shape: the sizes of a tensor's dimensions.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace lacuna {

/// Sizes of up to kMaxRank dimensions, outermost first. A value type without heap storage; rank 0
/// is a scalar (numel 1).
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  /// *Errors:* ShapeError on a negative size, on more than kMaxRank dimensions, and when the number
  /// of elements does not fit in 62 bits.
  Shape(std::initializer_list<int64_t> sizes);
  explicit Shape(std::span<const int64_t> sizes);

  int rank() const { return rank_; }
  /// Size of dimension `i`; negative counts from the end. *Errors:* ShapeError when out of range.
  int64_t operator[](int i) const;
  int64_t numel() const { return numel_; }
  std::span<const int64_t> sizes() const { return {sizes_.data(), static_cast<size_t>(rank_)}; }

  /// Size of the last dimension (1 for a scalar), and the product of all before it.
  int64_t features() const { return rank_ == 0 ? 1 : sizes_[static_cast<size_t>(rank_ - 1)]; }
  int64_t batch() const;
  /// This shape with the last dimension replaced. *Errors:* ShapeError on rank 0.
  Shape with_features(int64_t features) const;
  /// This shape without its first dimension. *Errors:* ShapeError on rank 0.
  Shape without_batch() const;

  /// "[128, 784]".
  std::string to_string() const;
  friend bool operator==(const Shape& a, const Shape& b);

 private:
  void assign(std::span<const int64_t> sizes);

  std::array<int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
  int64_t numel_ = 1;
};

/// A weight's shape as a matrix: dimension 0 is the rows, all others together are the columns.
/// *Errors:* ShapeError when there are 2³² columns or more.
int64_t matrix_rows(const Shape& shape);
int64_t matrix_columns(const Shape& shape);
/// *Errors:* ShapeError, which begins with `what`, unless all `rows` are rows of that matrix and
/// `values` is the number of values in them.
void require_rows(const Shape& shape, std::span<const int64_t> rows, size_t values,
                  std::string_view what);
/// The taps of a convolution's weight [out, in / groups, kh, kw]: kh·kw, in general the product of
/// the dimensions from the third on; 1 for a matrix, and for an empty shape. Column c·taps + t of
/// such a weight as a matrix is tap t of input channel c.
int64_t matrix_taps(const Shape& shape);

}  // namespace lacuna
