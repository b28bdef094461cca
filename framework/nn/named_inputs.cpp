#include "lacuna/framework/nn/named_inputs.h"

#include <utility>

namespace lacuna {
namespace {

thread_local const NamedTensors* current = nullptr;

}  // namespace

NamedInputs::NamedInputs(const NamedTensors& tensors) : saved_(std::exchange(current, &tensors)) {}

NamedInputs::~NamedInputs() { current = saved_; }

const IndexTensor* named_input(std::string_view name) {
  if (current == nullptr) return nullptr;
  const auto found = current->find(name);
  return found == current->end() ? nullptr : &found->second;
}

}  // namespace lacuna
