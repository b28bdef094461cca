// Algorithms whose parts a subclass in Python overrides. Each override takes the GIL, so that
// training need not hold it.
#pragma once

#include <string>
#include <utility>

#include "sparsity_binding.hpp"

namespace lacuna::python {

/// The name of an algorithm of a class in Python: the one that it was registered under, or the
/// class's own.
std::string name_of_class(const SparsityAlgorithm& algorithm);
/// A weight as update_mask gets it.
py::object weight_object(SparsityAlgorithm& algorithm, const SparseWeight& weight);
/// All of an algorithm's, without those of its parts.
py::list weights_of(const std::shared_ptr<SparsityAlgorithm>& algorithm);

template <class Base>
class OwnAlgorithm : public Base {
 public:
  explicit OwnAlgorithm(SparsityOptions options) : Base(std::move(options)) {}

  std::string_view type() const override {
    if (type_.empty()) type_ = name_of_class(*this);
    return type_;
  }
  void update(Optimizer& optimizer) override {
    const py::gil_scoped_acquire gil;
    const py::function override = py::get_override(static_cast<const Base*>(this), "update");
    if (override) {
      this->count_step();
      override(py::cast(&optimizer, py::return_value_policy::reference));
      return;
    }
    if constexpr (std::is_same_v<Base, SparsityAlgorithm>) {
      throw py::type_error("the class '" + std::string(type()) + "' defines no update()");
    } else {
      const py::gil_scoped_release released;
      Base::update(optimizer);
    }
  }
  StateDict state_dict() const override { PYBIND11_OVERRIDE(StateDict, Base, state_dict, ); }
  void load_state_dict(const StateDict& state) override {
    PYBIND11_OVERRIDE(void, Base, load_state_dict, state);
  }

 private:
  mutable std::string type_;
};

template <class Base>
class OwnDynamicAlgorithm : public OwnAlgorithm<Base> {
 public:
  using OwnAlgorithm<Base>::OwnAlgorithm;

 protected:
  MaskSet update_mask(const SparseWeight& weight, const MaskSet& mask, float sparsity) override {
    {
      const py::gil_scoped_acquire gil;
      const py::function override = py::get_override(static_cast<const Base*>(this), "update_mask");
      if (override) {
        const std::string what =
            "update_mask of " + std::string(this->type()) + " for '" + weight.name() + "'";
        return to_mask(override(weight_object(*this, weight), to_array(mask), sparsity),
                       weight.shape(), what);
      }
      if constexpr (std::is_same_v<Base, DynamicSparsityAlgorithm>) {
        throw py::type_error("the class '" + std::string(this->type()) +
                             "' defines no update_mask()");
      }
    }
    if constexpr (!std::is_same_v<Base, DynamicSparsityAlgorithm>) {
      return Base::update_mask(weight, mask, sparsity);
    }
    return mask;
  }
  bool wants_dense_gradient(int64_t step) const override {
    PYBIND11_OVERRIDE(bool, Base, wants_dense_gradient, step);
  }
};

}  // namespace lacuna::python
