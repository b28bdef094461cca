// Works by blocks of 64 rows: plain loops factor and invert the blocks on the diagonal. All else,
// including the solves with these inverses, is products (double_product.hpp).
#include "lacuna/framework/kernels/dense/cholesky.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/kernels/dense/double_product.hpp"

namespace lacuna {
namespace {

constexpr int64_t kBlock = 64;  // of rows
constexpr int64_t kTile = 256;  // of the products
using BlockInverse = std::array<double, kBlock * kBlock>;

// For n ≤ kBlock rows with leading dimension `stride`; returns n if all pivots are valid.
int64_t factor_block(int64_t n, int64_t stride, double* a, std::span<const double> floors) {
  for (int64_t j = 0; j < n; ++j) {
    double* row = a + j * stride;
    for (int64_t c = 0; c < j; ++c) {
      const double* other = a + c * stride;
      double sum = row[c];
      for (int64_t l = 0; l < c; ++l) sum -= row[l] * other[l];
      row[c] = sum / other[c];
    }
    double pivot = row[j];
    for (int64_t l = 0; l < j; ++l) pivot -= row[l] * row[l];
    if (!(pivot > floors[static_cast<size_t>(j)])) return j;
    row[j] = std::sqrt(pivot);
  }
  return n;
}

// The inverse of a lower triangular block, [n][kBlock] with zeros above the diagonal.
void invert_block(int64_t n, int64_t stride, const double* lower, BlockInverse& inverse) {
  inverse.fill(0.0);
  for (int64_t i = 0; i < n; ++i) {
    const double* row = lower + i * stride;
    double* into = inverse.data() + i * kBlock;
    for (int64_t l = 0; l < i; ++l) {
      const double* other = inverse.data() + l * kBlock;
      for (int64_t c = 0; c <= l; ++c) into[c] -= row[l] * other[c];
    }
    for (int64_t c = 0; c < i; ++c) into[c] /= row[i];
    into[i] = 1.0 / row[i];
  }
}

}  // namespace

int64_t cholesky(int64_t n, double* a, double smallest) {
  std::vector<double> floors(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) floors[static_cast<size_t>(i)] = smallest * a[i * n + i];
  BlockInverse inverse;
  std::vector<double> below;
  for (int64_t j = 0; j < n; j += kBlock) {
    const int64_t width = std::min(kBlock, n - j), next = j + width, rest = n - next;
    // If the floor is NaN, no pivot is above it.
    const int64_t done =
        factor_block(width, n, a + j * n + j, std::span(floors).subspan(static_cast<size_t>(j)));
    if (done < width) return j + done;
    if (rest == 0) break;
    invert_block(width, n, a + j * n + j, inverse);
    below.assign(static_cast<size_t>(rest * width), 0.0);
    add_product({.m = rest,
                 .n = width,
                 .k = width,
                 .transpose_b = Transpose::Yes,
                 .a = a + next * n + j,
                 .b = inverse.data(),
                 .c = below.data(),
                 .lda = n,
                 .ldb = kBlock,
                 .ldc = width});
    for (int64_t r = 0; r < rest; ++r) {
      std::copy_n(below.data() + r * width, width, a + (next + r) * n + j);
    }
    // The remaining lower triangle, by bands of rows and columns.
    const int64_t bands = (rest + kTile - 1) / kTile;
    const auto update = [&](int64_t r, int64_t height, int64_t c, int64_t columns) {
      add_product({.m = height,
                   .n = columns,
                   .k = width,
                   .transpose_b = Transpose::Yes,
                   .alpha = -1.0,
                   .a = below.data() + r * width,
                   .b = below.data() + c * width,
                   .c = a + (next + r) * n + next + c,
                   .lda = width,
                   .ldb = width,
                   .ldc = n});
    };
    parallel_blocks(bands * (bands + 1) / 2, [&](int64_t index) {
      int64_t band = 0;
      while ((band + 1) * (band + 2) / 2 <= index) ++band;
      const int64_t r = band * kTile, c = (index - band * (band + 1) / 2) * kTile;
      const int64_t height = std::min(kTile, rest - r);
      if (c < r) {
        update(r, height, c, std::min(kTile, rest - c));
        return;
      }
      for (int64_t s = r; s < r + height; s += kBlock) {  // the tile on the diagonal, by strips
        const int64_t strip = std::min(kBlock, r + height - s);
        if (s > r) update(s, strip, r, s - r);
        std::vector<double> corner(static_cast<size_t>(strip * strip), 0.0);
        add_product({.m = strip,
                     .n = strip,
                     .k = width,
                     .transpose_b = Transpose::Yes,
                     .a = below.data() + s * width,
                     .b = below.data() + s * width,
                     .c = corner.data(),
                     .lda = width,
                     .ldb = width,
                     .ldc = strip});
        for (int64_t row = 0; row < strip; ++row) {
          double* into = a + (next + s + row) * n + next + s;
          for (int64_t column = 0; column <= row; ++column) {
            into[column] -= corner[static_cast<size_t>(row * strip + column)];
          }
        }
      }
    });
  }
  return n;
}

void invert_lower(int64_t n, double* a) {
  BlockInverse inverse;
  std::vector<double> products;
  products.reserve(static_cast<size_t>(std::min(kBlock, n) * n));
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t height = std::min(kBlock, n - i);
    invert_block(height, n, a + i * n + i, inverse);
    // L_i,0:i times the inverse so far, by its columns, whose parts above the diagonal are zero.
    products.assign(static_cast<size_t>(height * i), 0.0);
    parallel_blocks((i + kTile - 1) / kTile, [&](int64_t tile) {
      const int64_t j = tile * kTile;
      add_product({.m = height,
                   .n = std::min(kTile, i - j),
                   .k = i - j,
                   .a = a + i * n + j,
                   .b = a + j * n + j,
                   .c = products.data() + j,
                   .lda = n,
                   .ldb = n,
                   .ldc = i});
    });
    for (int64_t r = 0; r < height; ++r) {
      std::fill_n(a + (i + r) * n, i, 0.0);
      std::copy_n(inverse.data() + r * kBlock, r + 1, a + (i + r) * n + i);
    }
    add_product({.m = height,
                 .n = i,
                 .k = height,
                 .alpha = -1.0,
                 .a = inverse.data(),
                 .b = products.data(),
                 .c = a + i * n,
                 .lda = kBlock,
                 .ldb = i,
                 .ldc = n});
  }
}

void square_lower(int64_t n, double* a) {
  std::vector<double> band;
  band.reserve(static_cast<size_t>(std::min(kTile, n) * n));
  // Rows i … of the product need only rows i … of L, so they can replace these.
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t height = std::min(kTile, n - i), width = i + height;
    band.assign(static_cast<size_t>(height * width), 0.0);
    parallel_blocks((width + kTile - 1) / kTile, [&](int64_t tile) {
      const int64_t j = tile * kTile;
      add_product({.m = height,
                   .n = std::min(kTile, width - j),
                   .k = n - i,
                   .transpose_a = Transpose::Yes,
                   .a = a + i * n + i,
                   .b = a + i * n + j,
                   .c = band.data() + j,
                   .lda = n,
                   .ldb = n,
                   .ldc = width});
    });
    for (int64_t r = 0; r < height; ++r) {
      std::copy_n(band.data() + r * width, i + r + 1, a + (i + r) * n);
    }
  }
}

void solve_factored(int64_t n, const double* lower, double* x) {
  for (int64_t i = 0; i < n; ++i) {
    const double* row = lower + i * n;
    double sum = x[i];
    for (int64_t l = 0; l < i; ++l) sum -= row[l] * x[l];
    x[i] = sum / row[i];
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    const double* row = lower + i * n;
    x[i] /= row[i];
    for (int64_t l = 0; l < i; ++l) x[l] -= row[l] * x[i];
  }
}

}  // namespace lacuna
