// Operations of sequences in an order of images, as a convolution of sequences gives them: what
// they compute is the same as of row-major ones.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/autograd/ops/image_orders.h"
#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/batch_norm.h"
#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/autograd/ops/pooling.h"

namespace lacuna::sequence_orders_test {
namespace {

using test::ImageOperation;
using test::normal_parameter;

const Shape kSequences{17, 16, 6};  // two slabs, of which one has one example; one block

const std::vector<ImageOperation>& operations() {
  static const auto all = test::with_operations_of_any_rank(
      kSequences,
      {
          {"batch_norm, + x, relu",
           [](const Variable& x) {
             const Variable y = batch_norm(x, test::normal_tensor("w", {16}), {},
                                           channel_moments(x), MomentsOf::Batch, {.eps = 0.1});
             return relu(add(y, x));
           }},
          {"max_pool2d",
           [](const Variable& x) {
             return max_pool2d(x, {.kernel = {1, 3}, .stride = {1, 2}});
           }},
          {"avg_pool2d",
           [](const Variable& x) {
             return avg_pool2d(x, {.kernel = {1, 2}, .padding = {0, 1}});
           }},
          {"global_average_pool", [](const Variable& x) { return global_average_pool(x); }},
          {"conv1d",
           [](const Variable& x) {
             return conv1d(x, normal_parameter("next", {4, 16, 3}), {}, {.padding = 1});
           }},
          {"sparse conv1d",
           [](const Variable& x) {
             const ParameterPtr next = normal_parameter("next", {4, 16, 3});
             next->set_pattern(
                 Pattern::make(csr_layout(), next->shape(), BitMask::ones(next->numel())));
             return conv1d(x, next, {}, {.padding = 1});
           }},
      });
  return all;
}

TEST(SequenceOrders, AnyOperationTakesSequencesAsTheyLie) {
  for (const ImageOperation& operation : operations()) {
    test::expect_same_in_every_order(operation, kSequences);  // sums of up to 102 floats
  }
}

}  // namespace
}  // namespace lacuna::sequence_orders_test
