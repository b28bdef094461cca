// UnitGraph: which indices of which parameters belong to one unit of a model (a neuron, a channel,
// an attention head), so that they can only be removed together; and how a layer declares it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// One dimension of a layer's input or output: the unit that each index belongs to.
struct UnitAxis {
  int dim = 0;                      ///< of an example's shape
  std::vector<int32_t> units = {};  ///< one for each index
};

/// Units, found by a walk over a model's layers. A layer makes units for its outputs, unites those
/// that depend on each other, and states which indices of its parameters belong to them.
class UnitGraph {
 public:
  using Units = std::vector<int32_t>;

  /// Indices of one dimension of a parameter.
  struct Slice {
    ParameterPtr parameter;
    int dim = 0;
    bool is_input = false;  ///< units of the layer's input, else of its output
    Units units;            ///< one for each index
  };
  /// A buffer with one element for each unit, under its full name.
  struct BufferSlice {
    std::string name;
    Units units;
  };
  /// A key of a layer's configuration that counts units.
  struct Size {
    std::string path, key;
    bool is_required = false;  ///< it is written even if it is absent
    Units units;
  };
  /// The units that a layer made.
  struct Made {
    std::string path;
    Units units;
  };

  /// New units for a layer's output.
  Units make(const Module& layer, int64_t count);
  /// New units that cannot be removed.
  Units make_fixed(int64_t count, const std::string& why);
  /// Units cannot be removed; the first reason given counts.
  void fix(const Units& units, const std::string& why);
  /// a[i] and b[i] are removed together. *Requires* equal sizes.
  void unite(const Units& a, const Units& b);

  /// The units of a dimension of a layer's input. Units along another dimension become fixed, and
  /// the layer gets fixed ones.
  Units along(const Module& layer, const UnitAxis& input, const Shape& example, int dim);

  /// A dimension of a parameter belongs to the layer's output, or to its input. A null parameter is
  /// ignored; giving the same dimension again (a tied weight) unites units.
  void gives(const ParameterPtr& parameter, int dim, const Units& units);
  void takes(const ParameterPtr& parameter, int dim, const Units& units);
  void add_buffer(const Module& layer, std::string_view name, const Units& units);
  /// The layer's key counts these. `counts` is written if the key exists, `sets` always.
  void counts(const Module& layer, std::string key, const Units& units);
  void sets(const Module& layer, std::string key, const Units& units);

  const std::vector<Slice>& slices() const { return slices_; }
  const std::vector<BufferSlice>& buffers() const { return buffers_; }
  const std::vector<Size>& sizes() const { return sizes_; }
  const std::vector<Made>& made() const { return made_; }
  int64_t count() const { return static_cast<int64_t>(parent_.size()); }
  /// The same number for all units that were united.
  int32_t root(int32_t unit) const;
  /// Why a unit cannot be removed; empty if it can.
  const std::string& why_fixed(int32_t unit) const { return why_[static_cast<size_t>(root(unit))]; }

 private:
  Units add(int64_t count, const std::string& why);
  void add_slice(const ParameterPtr& parameter, int dim, bool is_input, const Units& units);

  mutable std::vector<int32_t> parent_;  // of united ones
  std::vector<std::string> why_;
  std::vector<Slice> slices_;
  std::vector<BufferSlice> buffers_;
  std::vector<Size> sizes_;
  std::vector<Made> made_;
};

/// Follows units through a layer with the input `input`, of examples of that shape. *Returns* the
/// units of its output.
using UnitForm = std::function<UnitAxis(UnitGraph& graph, const Module& layer,
                                        const UnitAxis& input, const Shape& example)>;

/// For layers that treat each channel, or each feature, independently and keep their order.
UnitForm units_kept();
/// The same for layers whose units are the last dimension of input and output.
UnitForm units_of_features();
/// For layers that mix all units, so that removing one would change the others. `why` completes
/// "layer 'ln' (layer_norm) …".
UnitForm units_fixed(std::string why);

/// "layer 'ln' (layer_norm) takes …".
std::string unit_reason(const Module& layer, const std::string& why);

/// The form of one class of layers; units of a layer of another class are fixed.
template <class Layer>
UnitForm unit_form(UnitAxis (*follow)(UnitGraph&, const Layer&, const UnitAxis&, const Shape&)) {
  return [follow](UnitGraph& graph, const Module& module, const UnitAxis& input,
                  const Shape& example) {
    const auto* layer = dynamic_cast<const Layer*>(&module);
    if (layer != nullptr) return follow(graph, *layer, input, example);
    return units_fixed("has an unknown class")(graph, module, input, example);
  };
}

}  // namespace lacuna
