// SavedParameter: a parameter in a state dict, with functions to save and restore it.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/layouts/layout_registry.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// Adds a parameter's values and pattern. Dense and masked ones are an array under their name, in
/// the logical shape, with the mask as "<name>_mask". Every other layout has "<name>/values",
/// "/indptr" (rows + 1) and "/indices" (columns), ascending by flat index, with "/layout" and
/// "/shape", as scipy.sparse.csr_matrix takes them. *Cost:* O(stored), in memory too.
void save_parameter(const Parameter& parameter, StateDict& state);

/// Names of the parameters in a state, in alphabetical order.
std::vector<std::string> saved_parameter_names(const StateDict& state);

/// A parameter in a saved state. It refers to the state, which must outlive it.
class SavedParameter {
 public:
  /// Checks a parameter; compressed ones completely. *Errors:* CheckpointError that names the
  /// parameter, what was expected and what was found, if it is missing, if its saved parts do not
  /// fit together, or if its layout is not known.
  SavedParameter(const StateDict& state, std::string name);
  SavedParameter(StateDict&& state, std::string name) = delete;

  const Shape& shape() const { return shape_; }
  /// The layout it was saved in.
  const Layout& layout() const { return *layout_; }
  int64_t nnz() const { return nnz_; }
  /// Bytes of values and positions in the state; a mask counts one bit per position.
  int64_t value_bytes() const;
  int64_t index_bytes() const;

  /// Its positions in a layout, or (null) in the layout in which it was saved. If some positions
  /// are missing and dense is requested, they are masked. *Errors:* CheckpointError if the layout
  /// cannot store them.
  PatternPtr pattern(const Layout* layout = nullptr) const;
  /// Whether the layout in which it was saved can hold its positions; for a state that is not
  /// compared with a model. *Errors:* CheckpointError.
  void require_fit() const;
  /// Sets the values of a parameter of this shape, and a pattern from `pattern`, with the lifetime
  /// of its present pattern.
  void restore(Parameter& parameter, const PatternPtr& pattern) const;

 private:
  bool is_compressed() const { return indices_ != nullptr; }
  void read_compressed();
  void read_flat();
  template <class T>
  const T& entry(const char* key, const char* what) const;
  [[noreturn]] void fail(const std::string& problem) const;
  Positions positions() const;

  const StateDict* state_;
  std::string name_;
  Shape shape_;
  const Layout* layout_ = nullptr;
  int64_t nnz_ = 0;
  const Tensor* values_ = nullptr;
  const ByteArray* mask_ = nullptr;                 // of a masked one
  const std::vector<int64_t>* indptr_ = nullptr;    // of a compressed one
  const std::vector<uint32_t>* indices_ = nullptr;  // of a compressed one
};

}  // namespace lacuna
