#include "lacuna/framework/nn/named_inputs.h"

#include <utility>

namespace lacuna {
namespace {

thread_local const NamedTensors* innermost = nullptr;

}  // namespace

NamedInputs::NamedInputs(const NamedTensors& tensors)
    : saved_(std::exchange(innermost, &tensors)) {}
NamedInputs::~NamedInputs() { innermost = saved_; }

const IndexTensor* named_input(std::string_view name) {
  if (innermost == nullptr) return nullptr;
  const auto found = innermost->find(name);
  return found == innermost->end() ? nullptr : &found->second;
}

}  // namespace lacuna
