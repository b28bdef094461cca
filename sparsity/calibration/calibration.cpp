#include "lacuna/sparsity/calibration/calibration.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "lacuna/framework/autograd/weight_inputs.h"
#include "lacuna/framework/config/integer_range.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/evaluation_mode.hpp"
#include "lacuna/framework/nn/named_inputs.h"
#include "lacuna/framework/nn/whole_forward.hpp"
#include "lacuna/sparsity/calibration/unfold.hpp"

namespace lacuna {
namespace {

// Thrown to end a forward pass whose rest nobody needs, and a run after its first pass.
struct EndOfForward {};
struct EndOfRun {};

// The model as a calibration run is given it: its forward passes may end early.
class CalibratedModel final : public Module {
 public:
  enum class Passes { One, All };
  CalibratedModel(Module& model, Passes passes) : model_(model), passes_(passes) {}

  std::string_view type() const override { return "calibration"; }
  /// Forward passes that have begun.
  int64_t passes() const { return passes_begun_; }
  /// Whether a pass of it is running, so that an end of it is caught.
  bool is_running() const { return is_running_; }

 protected:
  Variable forward(const Variable& input) override { return pass(std::span(&input, 1)); }
  Variable forward_all(std::span<const Variable> inputs) override { return pass(inputs); }

 private:
  Variable pass(std::span<const Variable> inputs) {
    struct Running {
      bool& is;
      explicit Running(bool& flag) : is(flag) { is = true; }
      ~Running() { is = false; }
    };
    ++passes_begun_;
    Variable output(Tensor::zeros(Shape{1}));
    try {
      const Running running(is_running_);
      output = model_(inputs);
    } catch (const EndOfForward&) {  // all that was wanted has been seen
    }
    if (passes_ == Passes::One) throw EndOfRun();
    return output;
  }

  Module& model_;
  Passes passes_;
  int64_t passes_begun_ = 0;
  bool is_running_ = false;
};

// Whether what one layer is given is what another is given, taken in the same way.
bool is_same_input(const CalibratedLayer& a, const CalibratedLayer& b) {
  if (!a.convolution || !b.convolution) return !a.convolution && !b.convolution;
  return a.convolution->groups == 1 && b.convolution->groups == 1 &&
         a.convolution->window == b.convolution->window;
}

// [rows, features], without the tokens that only fill a batch up.
void add_rows(const Tensor& x, InputGram& gram) {
  const IndexTensor* mask = named_input("attention_mask");
  const Shape& shape = x.shape();
  const bool is_masked = mask != nullptr && shape.rank() == 3 && mask->shape().rank() == 2 &&
                         mask->shape()[0] == shape[0] && mask->shape()[1] == shape[1];
  if (!is_masked) return gram.add({x.data(), static_cast<size_t>(x.numel())});
  const auto features = static_cast<size_t>(shape.features());
  std::vector<float> rows;
  for (size_t i = 0; i < mask->values().size(); ++i) {
    if (mask->values()[i] == 0) continue;
    const float* row = x.data() + i * features;
    rows.insert(rows.end(), row, row + features);
  }
  gram.add(rows);
}

}  // namespace

CalibrationOptions CalibrationOptions::from_config(const Config& calibration) {
  if (calibration.is_null()) return {};
  if (calibration.is_number()) {
    const auto examples = calibration.as<int64_t>();
    if (examples < 1) calibration.fail("a number of examples of at least 1");
    if (examples > kMostInteger) {
      calibration.fail(fmt::format("at most {} examples", kMostInteger));
    }
    return {.examples = examples};
  }
  if (!calibration.is_map()) {
    calibration.fail(
        "a number of examples, or a map with `examples` or `batches`, and `batch_size`");
  }
  const auto count = [&](const char* key) {
    std::optional<int64_t> found = calibration.optional<int64_t>(key);
    if (found) require_at_least(calibration, key, *found, 1);
    return found;
  };
  CalibrationOptions options{.examples = count("examples"),
                             .batches = count("batches"),
                             .batch_size = count("batch_size")};
  if (options.examples && options.batches) {
    calibration.error(
        "give the number of `examples` or of `batches`, not both (null leaves one out)");
  }
  return options;
}

CalibrationOptions CalibrationOptions::completed(int64_t there,
                                                 std::optional<int64_t> training_batch_size) const {
  CalibrationOptions all = *this;
  if (!all.batch_size) all.batch_size = training_batch_size;
  if (all.examples) return all;
  if (!batches) {
    all.examples = std::min(there, kDefaultExamples);
    return all;
  }
  if (!all.batch_size) {
    throw ConfigError("calibration: give batch_size, too: the size of the batches is not known");
  }
  all.examples = std::min(*batches, kMostInteger / *all.batch_size) * *all.batch_size;
  return all;
}

std::string calibration_needs(int64_t examples, int64_t there) {
  return fmt::format("calibration needs {} examples, and the training data has {}", examples,
                     there);
}

std::vector<CalibratedLayer> layers_in_order(Module& model, const CalibrationRun& run,
                                             const std::vector<ParameterPtr>& weights) {
  std::vector<CalibratedLayer> layers;
  Tensor last;  // the input of the layer that came last, kept so that no other takes its memory
  const auto see = [&](const ParameterPtr& weight, const Variable& x,
                       const ConvolutionShape* convolution) {
    if (std::ranges::find(weights, weight) == weights.end()) return;
    const auto met = std::ranges::find(layers, weight, &CalibratedLayer::weight);
    if (met != layers.end()) {
      ++met->uses;
      met->shares_input = false;
      if (met + 1 != layers.end()) (met + 1)->shares_input = false;
      return;
    }
    CalibratedLayer layer{.weight = weight};
    if (convolution != nullptr) layer.convolution = *convolution;
    const Tensor input = x.value();
    layer.shares_input = !layers.empty() && last.defined() && layers.back().uses == 1 &&
                         input.shape() == last.shape() && input.shares_storage_with(last) &&
                         is_same_input(layers.back(), layer);
    last = input;
    layers.push_back(std::move(layer));
  };
  const EvaluationMode mode(model);
  const WatchWeightInputs watch(see);
  CalibratedModel calibrated(model, CalibratedModel::Passes::One);
  try {
    run(calibrated);
  } catch (const EndOfRun&) {
  }
  if (calibrated.passes() == 0) {
    throw StateError("the calibration function has not called the module that it was given");
  }
  return layers;
}

std::vector<InputGram> collect_inputs(Module& model, const CalibrationRun& run,
                                      const CalibratedLayer& layer) {
  const int64_t groups = layer.convolution ? layer.convolution->groups : 1;
  std::vector<InputGram> grams(static_cast<size_t>(groups),
                               InputGram(matrix_columns(layer.weight->shape())));
  CalibratedModel calibrated(model, CalibratedModel::Passes::All);
  int64_t seen = 0, pass = 0;  // uses in this pass
  const auto see = [&](const ParameterPtr& weight, const Variable& x,
                       const ConvolutionShape* convolution) {
    if (weight != layer.weight) return;
    const Tensor input = x.value().to(Order::RowMajor);
    for (int64_t g = 0; g < groups; ++g) {
      InputGram& gram = grams[static_cast<size_t>(g)];
      convolution == nullptr ? add_rows(input, gram) : add_unfolded(input, *convolution, g, gram);
    }
    if (pass != calibrated.passes()) seen = 0;
    pass = calibrated.passes();
    const bool may_end = calibrated.is_running() && !WholeForward::is_required();
    if (++seen == layer.uses && may_end) throw EndOfForward();
  };
  const EvaluationMode mode(model);
  const WatchWeightInputs watch(see);
  run(calibrated);
  return grams;
}

}  // namespace lacuna
