#include "lacuna/sparsity/weights/master_weight.h"

#include <utility>

#include "lacuna/sparsity/weights/mask_installer.h"

namespace lacuna {
namespace {

constexpr const char* kSlot = "shadow";

}  // namespace

MasterWeight::MasterWeight(Parameter& parameter, Remains remains)
    : parameter_(parameter), remains_(remains) {
  parameter_.dense_slot(kSlot).values = parameter_.to_dense();
  seen_ = parameter_.version();
}

MasterWeight::~MasterWeight() {
  if (remains_ == Remains::Master) {
    take_part();
    parameter_.replace(Pattern::dense(parameter_.shape()), values());
  }
  parameter_.slots().erase(kSlot);
  const Pattern& pattern = *parameter_.pattern();
  for (auto& [name, slot] : parameter_.slots()) {
    if (std::exchange(slot.requires_dense, false) && !pattern.stores_every_position()) {
      const Tensor whole = std::exchange(slot.values, Tensor::empty(Shape{pattern.stored_size()}));
      pattern.layout().from_dense(pattern, whole.storage(), slot.values.mutable_storage());
    }
  }
  parameter_.prune();
}

const Tensor& MasterWeight::values() const {
  return std::as_const(parameter_).slots().at(kSlot).values;
}

void MasterWeight::take_part() {
  if (parameter_.version() == seen_) return;
  const Tensor whole = parameter_.to_dense();
  float* into = parameter_.slots().at(kSlot).values.mutable_data();
  const auto take = [&](int64_t i) { into[i] = whole.data()[i]; };
  parameter_.pattern()->positions().for_each(take);
  seen_ = parameter_.version();
}

void MasterWeight::note_part() {
  parameter_.prune();  // so that what prunes it later is no change
  seen_ = parameter_.version();
}

void MasterWeight::restore(Tensor values) {
  parameter_.dense_slot(kSlot).values = std::move(values);
  for (auto& [name, slot] : parameter_.slots()) slot.requires_dense = true;
}

const Tensor* master_of(const Parameter& parameter) {
  const auto found = parameter.slots().find(kSlot);
  return found == parameter.slots().end() ? nullptr : &found->second.values;
}

MasterSwap::MasterSwap(Parameter& parameter, MasterWeight& master, Tensor gradient, Then then)
    : parameter_(parameter),
      master_weight_(master),
      master_(master.values()),
      pattern_(parameter.pattern()),
      values_(parameter.values()),
      then_(then) {
  // The optimizer changes the master itself: both share one array.
  parameter_.replace(Pattern::dense(parameter_.shape()), master_, std::move(gradient));
}

void MasterSwap::commit() {
  // States that the optimizer has made in this step are dense and stay so.
  for (auto& [name, slot] : parameter_.slots()) slot.requires_dense = true;
  const PatternPtr pattern = std::exchange(pattern_, nullptr);
  if (then_ == Then::ChooseMask) {
    parameter_.replace(pattern, Tensor::empty(pattern->stored_shape()));
    master_weight_.note_part();
  } else {
    take_values(parameter_, pattern, master_);
    master_weight_.note_part();
  }
}

MasterSwap::~MasterSwap() {
  if (pattern_ == nullptr) return;
  for (auto& [name, slot] : parameter_.slots()) slot.requires_dense = true;
  parameter_.replace(std::move(pattern_), std::move(values_));
}

}  // namespace lacuna
