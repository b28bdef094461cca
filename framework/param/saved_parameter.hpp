// SavedParameter: a parameter as a state dict holds it, and the way there and back.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/layouts/layout_registry.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// Adds a parameter's values and pattern. Dense and masked ones are an array under their name, in
/// the logical shape, with the mask next to it as "<name>_mask". In every other layout there are
/// "<name>/values", "/indptr" (rows + 1) and "/indices" (columns), ascending by flat index, with
/// "/layout" and "/shape": what scipy.sparse.csr_matrix takes. *Cost:* O(stored), in memory too.
void save_parameter(const Parameter& parameter, StateDict& state);

/// Names of the parameters that a state holds, in alphabetical order.
std::vector<std::string> saved_parameter_names(const StateDict& state);

/// A parameter in a saved state, which it refers to and which must outlive it.
class SavedParameter {
 public:
  /// Looks a parameter over; compressed ones in full. *Errors:* CheckpointError that names the
  /// parameter, what was expected and what was found, when it is missing or what is saved of it
  /// does not fit together, or is in a layout that is not known.
  SavedParameter(const StateDict& state, std::string name);
  SavedParameter(StateDict&& state, std::string name) = delete;

  const Shape& shape() const { return shape_; }
  /// The layout it was saved in.
  const Layout& layout() const { return *layout_; }
  int64_t nnz() const { return nnz_; }
  /// Bytes that values and positions take in the state; a mask counts a bit a position.
  int64_t value_bytes() const;
  int64_t index_bytes() const;

  /// Its positions in a layout, or (null) in that it was saved in. Positions that are not all there
  /// are masked where dense is asked for. *Errors:* CheckpointError when the layout cannot store
  /// them.
  PatternPtr pattern(const Layout* layout = nullptr) const;
  /// Whether the layout it was saved in can hold its positions. For a state that is not compared
  /// with a model. *Errors:* CheckpointError.
  void require_fit() const;
  /// Gives a parameter of this shape a pattern that `pattern` made, for as long as its present one
  /// was for, and the values.
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
