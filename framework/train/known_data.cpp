#include "lacuna/framework/train/known_data.hpp"

#include <cstdint>

#include "lacuna/framework/train/loss_function.h"

namespace lacuna {

KnownData known_data(const Config& config, const InputFormat& format, const Module& model) {
  KnownData known = format.known();
  int64_t& classes = known.num_classes;
  if (classes == 0) classes = model.output_shape(format.example_shape).features();
  if (loss_kind(config) == LossKind::BinaryCrossEntropy) classes = 2;
  if (config.peek("data.task").text() == "regression") classes = 0;
  return known;
}

}  // namespace lacuna
