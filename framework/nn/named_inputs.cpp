#include "lacuna/framework/nn/named_inputs.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/module.h"

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

const IndexTensor* named_input(const Module& layer, const std::string& name,
                               std::string_view usual) {
  if (name.empty()) return nullptr;
  const IndexTensor* found = named_input(name);
  if (found != nullptr || innermost == nullptr || name == usual) return found;
  std::vector<std::string> names;
  for (const auto& [there, tensor] : *innermost) names.push_back(there);
  throw DataError(
      fmt::format("layer '{}' ({}): the batch has no '{}'; it has {}{}", layer.path(), layer.type(),
                  name, names.empty() ? "only its inputs" : join(names, ", "),
                  innermost->contains(usual) ? "" : fmt::format(", and '{}' is optional", usual)));
}

}  // namespace lacuna
