// What is saved of a model and of its optimizer, without the units that are removed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/shrink/model_units.hpp"

namespace lacuna {

/// Which indices of each dimension of a parameter stay.
class ParameterCuts {
 public:
  ParameterCuts(const ModelUnits& units, const KeptUnits& kept);

  /// An array of a parameter's shape, or one aligned to it, without what is removed.
  Tensor cut(const Parameter& parameter, const Tensor& values) const;
  ByteArray cut(const Parameter& parameter, const ByteArray& mask) const;
  /// Positions of a mask that stay. *Cost:* O(numel) where it is masked.
  int64_t nonzeros(const Parameter& parameter) const;
  /// Whether it has a mask with zeros, and what stays of it has none.
  bool fills(const Parameter& parameter) const;
  /// Its shape without what is removed.
  Shape shape_of(const Parameter& parameter) const;

 private:
  using Dimensions = std::map<int, std::vector<int64_t>>;
  std::vector<int64_t> positions(const Parameter& parameter) const;

  std::map<std::string, Dimensions> dimensions_;  // by the parameter's name
};

/// The state of a model as Module::state_dict has it, with masked weights in layout masked. Weights
/// whose masks had zeros and have none left are dense.
StateDict cut_model_state(Module& model, const ModelUnits& units, const KeptUnits& kept);

/// Whether weights have masks with zeros, and none that stay has: whole units had been masked.
bool removes_all_zeros(const Module& model, const ModelUnits& units, const KeptUnits& kept);

/// An optimizer's saved states of the model's parameters, whose patterns are those of when they
/// were saved; arrays have the smaller parameters' shapes. "step", by which schedules go, is 0,
/// while each parameter's own updates count on. Ages of weights are left out.
StateDict cut_optimizer_state(const StateDict& saved, const Module& model, const ModelUnits& units,
                              const KeptUnits& kept);

}  // namespace lacuna
