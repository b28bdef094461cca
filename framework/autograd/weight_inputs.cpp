#include "lacuna/framework/autograd/weight_inputs.h"

#include <utility>

namespace lacuna {
namespace {

thread_local const WeightInputWatcher* current = nullptr;

}  // namespace

WatchWeightInputs::WatchWeightInputs(WeightInputWatcher watcher)
    : watcher_(std::move(watcher)), saved_(current) {
  current = &watcher_;
}

WatchWeightInputs::~WatchWeightInputs() { current = saved_; }

const WeightInputWatcher* weight_input_watcher() { return current; }

}  // namespace lacuna
