#include "lacuna/sparsity/sparsify.h"

#include <algorithm>
#include <utility>

#include "lacuna/framework/autograd/ops/keep.h"
#include "lacuna/framework/autograd/ops/shape.h"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/group.h"
#include "lacuna/sparsity/straight_through.h"

namespace lacuna {
namespace {

enum class Part { Input, Output, InputGradient, OutputGradient, Weight };

/// "fc1.output.grad" as the layers' glob "fc1" and its part.
struct Tensors {
  std::string layers;
  Part part;
};

Tensors parse(const std::string& tensor) {
  static const std::vector<std::pair<std::string, Part>> parts = {
      {".input.grad", Part::InputGradient},
      {".output.grad", Part::OutputGradient},
      {".input", Part::Input},
      {".output", Part::Output},
      {".weight", Part::Weight}};
  for (const auto& [ending, part] : parts) {
    if (tensor.size() > ending.size() && tensor.ends_with(ending)) {
      return {tensor.substr(0, tensor.size() - ending.size()), part};
    }
  }
  throw ConfigError("'" + tensor +
                    "' names no tensor; expected a layer, or a glob, followed by .input, .output, "
                    ".input.grad, .output.grad or .weight");
}

void attach(Module& module, Part part, const SparsifierPtr& sparsifier, const std::string& name) {
  const KeepFunction choose = [sparsifier, name](const Tensor& rows) {
    return sparsifier->keep(rows, name);
  };
  const bool gradient = part == Part::InputGradient || part == Part::OutputGradient;
  const bool input = part == Part::Input || part == Part::InputGradient;
  const auto sparsified = [choose, gradient, sparsifier, name](const Variable& x) {
    const std::optional<PatternShape> nm = sparsifier->as_nm();
    if (!gradient && !nm) return keep(x, choose);
    sparsifier->require_fit(x.shape(), name);  // the gradient will have the same shape
    return gradient ? keep_gradient(x, choose) : keep_nm(x, nm->n(), nm->m());
  };
  const bool is_elementwise = sparsifier->scope() == Sparsifier::Scope::Streaming;
  auto transform = [sparsified, is_elementwise](const Variable& x) {
    return is_elementwise ? sparsified(x) : with_channels_last(x, sparsified);
  };
  input ? module.register_input_transform(std::move(transform))
        : module.register_output_transform(std::move(transform));
}

/// As SemiSparse, for any sparsifier: straight-through training of a dense master weight. It lets
/// parameters go as they are used, sparse.
class SparsifiedWeight final : public StraightThrough {
 public:
  SparsifiedWeight(const SparsifyEntry& entry, ParameterFilter filter)
      : StraightThrough(
            "sparsify",
            {.param_filter = std::move(filter),
             .pattern = entry.sparsifier->pattern(),
             .layout = entry.layout},
            entry.every, MasterWeight::Remains::Part,
            [sparsifier = entry.sparsifier](const SparseWeight& weight) {
              return MaskSet(weight.shape(),
                             sparsifier->keep_weight(weight.master()->values(), weight.name()))
                  .known_to_have(sparsifier->pattern());
            }),
        is_elementwise_(entry.sparsifier->scope() == Sparsifier::Scope::Streaming) {}

  std::string_view type() const override { return "sparsify"; }

  void forecast(Forecast& forecast) const override {
    forecast.is_exact = !is_elementwise_;  // what is judged alone may come back
    std::vector<int64_t> nnz;
    for (const PlannedParameter& p : forecast.parameters) nnz.push_back(p.initial_nnz);
    StraightThrough::forecast(forecast);
    // How many positions it will keep of weights to come is not known.
    for (size_t i = 0; i < nnz.size(); ++i) {
      forecast.parameters[i].final_nnz = nnz[i];
      forecast.parameters[i].changes.clear();
    }
  }

 private:
  bool is_elementwise_;
};

}  // namespace

bool SparsifyEntry::is_weight() const { return parse(tensor).part == Part::Weight; }

std::vector<SparsifyEntry> sparsify_from_config(const Config& list, uint64_t seed) {
  std::vector<SparsifyEntry> entries;
  if (list.is_null()) return entries;
  if (!list.is_list()) list.fail("a list of maps with `tensor` and `sparsifier`");
  for (const Config& item : list.items()) {
    if (!item.is_map()) item.fail("a map with `tensor` and `sparsifier`");
    SparsifyEntry entry{.tensor = item.required<std::string>("tensor"),
                        .sparsifier = make_sparsifier(item.at("sparsifier"), seed)};
    if (at_position(item.at("tensor"), [&] { return entry.is_weight(); })) {
      entry.layout = LayoutOption::from_config(item, entry.sparsifier->pattern());
      entry.every = require_at_least(item, "every", item.get<int64_t>("every", 1), 1);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

void sparsify_activations(Module& model, const std::vector<SparsifyEntry>& entries) {
  std::vector<std::string> paths;
  for (const Module* module : model.modules()) {
    if (!module->path().empty()) paths.push_back(module->path());
  }
  for (const SparsifyEntry& entry : entries) {
    const Tensors tensors = parse(entry.tensor);
    if (tensors.part == Part::Weight) continue;
    bool found = false;
    for (Module* module : model.modules()) {
      if (module->path().empty() || !glob_match(tensors.layers, module->path())) continue;
      found = true;
      const std::string part = entry.tensor.substr(tensors.layers.size());
      attach(*module, tensors.part, entry.sparsifier, module->path() + part);
    }
    if (!found) {
      throw ConfigError("'" + entry.tensor + "' matches no layer; " +
                        suggest_name(tensors.layers, paths));
    }
  }
}

std::unique_ptr<SparsityAlgorithm> sparsify_weights(const std::vector<SparsifyEntry>& entries) {
  auto group = std::make_unique<Group>();
  for (const SparsifyEntry& entry : entries) {
    if (!entry.is_weight()) continue;
    if (entry.sparsifier == nullptr) {
      throw ConfigError("the entry '" + entry.tensor +
                        "' of the sparsifiers has none: the pointer is null");
    }
    const ParameterFilter filter({entry.tensor});
    group->add(filter, std::make_unique<SparsifiedWeight>(entry, filter));
  }
  if (group->algorithms().empty()) return nullptr;
  return group;
}

}  // namespace lacuna
