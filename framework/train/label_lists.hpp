// Examples that have any number of labels each: how many have one, and which classes a model gives
// the largest outputs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lacuna/framework/autograd/variable.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/train/evaluation.h"

namespace lacuna {

/// Examples of a batch with label lists that have a label.
int64_t count_labelled(const Batch& batch);

/// `count` classes for each example, by descending output; −1 where a model has fewer classes.
struct TopClasses {
  int64_t count = 0;
  std::vector<int64_t> classes = {};  ///< [examples, count]
  std::vector<float> outputs = {};    ///< [examples, count]
};

/// Of equal outputs the first class comes first. Outputs in tiles are never whole. *Shapes:* output
/// [examples, classes].
TopClasses top_classes(const Variable& output, int64_t count);

/// How many labels of the batch's examples are among their 1, 3 and 5 first classes (kPrecisions).
/// *Requires* label lists and as many classes.
std::array<double, kPrecisions.size()> count_hits(const TopClasses& top, const Batch& batch);

}  // namespace lacuna
