// Random 2:4 matrices, all slots in use.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/framework/core/random.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/kernels/nm/nm.hpp"
#include "lacuna/framework/kernels/nm/nm_columns.hpp"
#include "random_values.h"

namespace lacuna::test {

/// Two random columns of each group of four.
struct TwoOfFour {
  TwoOfFour(int64_t rows, int64_t columns) : form{.rows = rows, .columns = columns} {
    const CounterRng rng(11, "pairs");
    uint64_t draw = 0;
    std::vector<int64_t> begin = {0};
    std::vector<uint32_t> kept;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t first = 0; first < columns; first += 4) {
        for (const int column : NmColumns::kPairs[static_cast<size_t>(rng.below(draw++, 6))]) {
          kept.push_back(static_cast<uint32_t>(first + column));
        }
      }
      begin.push_back(static_cast<int64_t>(kept.size()));
    }
    matrix = nm_matrix(form, begin, kept);
    values = random_tensor(Shape{form.stored()}, "values");
    dense.resize(static_cast<size_t>(rows * columns));
    nm_to_dense(matrix, values.data(), dense.data());
  }

  NmMatrixForm form;
  NmMatrix matrix;
  Tensor values;
  std::vector<float> dense;
};

}  // namespace lacuna::test
