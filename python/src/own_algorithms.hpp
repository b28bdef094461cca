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
/// Whether it is of a class in Python that decides itself what is dropped.
bool is_own_dynamic(const SparsityAlgorithm& algorithm);

/// What an algorithm of a class in Python does as the class that it is derived from.
class OwnBase {
 public:
  OwnBase();
  virtual ~OwnBase();
  OwnBase(const OwnBase&) = delete;
  OwnBase& operator=(const OwnBase&) = delete;

  virtual SparsityAlgorithm& algorithm() = 0;
  virtual void update_of_base(Optimizer& optimizer) = 0;
  virtual MaskSet mask_of_base(const SparseWeight& weight, const MaskSet& mask, float sparsity) = 0;
  virtual bool base_wants_dense_gradient(int64_t step) const = 0;
  virtual StateDict state_of_base() const = 0;
  virtual void load_state_of_base(const StateDict& state) = 0;
};

/// Sets a flag while it exists.
class Within {
 public:
  explicit Within(bool& flag) : flag_(flag) { flag_ = true; }
  ~Within() { flag_ = false; }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  bool& flag_;
};

/// As the class that Python's is derived from, or that it is.
StateDict state_of(const SparsityAlgorithm& algorithm);
void load_state(SparsityAlgorithm& algorithm, const StateDict& state);

/// Whether Python's class, or the object, has an update() of its own.
bool defines_update(SparsityAlgorithm& algorithm);
/// Calls an update() of Python's, which may take no optimizer.
void call_update(const py::function& override, Optimizer& optimizer);

template <class Base>
class OwnAlgorithm : public Base, public OwnBase {
 public:
  explicit OwnAlgorithm(SparsityOptions options) : Base(std::move(options)) {}

  std::string_view type() const override {
    if (type_.empty()) type_ = name_of_class(*this);
    return type_;
  }
  SparsityAlgorithm& algorithm() override { return *this; }
  void update(Optimizer& optimizer) override {
    const AlgorithmCode code;
    const py::function override = py::get_override(static_cast<const Base*>(this), "update");
    if (!override) return update_of_base(optimizer);
    begin_step();
    const Within scope(is_updating_);
    call_update(override, optimizer);
  }
  void update_of_base(Optimizer& optimizer) override {
    if constexpr (kIsPlain) {
      if (!defines_update(*this)) {
        throw py::type_error("the class '" + std::string(type()) + "' defines no update()");
      }
      if (!is_updating_) begin_step();
    } else {
      if (is_updating_) this->uncount_step();  // the base counts it
      const py::gil_scoped_release released;
      Base::update(optimizer);
    }
  }
  MaskSet mask_of_base(const SparseWeight&, const MaskSet&, float) override {
    throw py::type_error("the class '" + std::string(type()) + "' defines no update_mask()");
  }
  bool base_wants_dense_gradient(int64_t) const override { return false; }
  StateDict state_of_base() const override { return Base::state_dict(); }
  void load_state_of_base(const StateDict& state) override { Base::load_state_dict(state); }
  StateDict state_dict() const override { PYBIND11_OVERRIDE(StateDict, Base, state_dict, ); }
  void load_state_dict(const StateDict& state) override {
    PYBIND11_OVERRIDE(void, Base, load_state_dict, state);
  }

 protected:
  void require_settable(const SparsityTarget& sparsity) const override {
    if constexpr (!kIsPlain) Base::require_settable(sparsity);
  }

 private:
  static constexpr bool kIsPlain = std::is_same_v<Base, SparsityAlgorithm>;

  // Counts a step, and aims at what the schedule has for it.
  void begin_step() {
    this->count_step();
    if constexpr (kIsPlain) {
      if (!this->options().sparsity.is_constant()) this->refresh_targets();
    }
  }

  mutable std::string type_;
  bool is_updating_ = false;  // within an update() of Python's
};

template <class Base>
class OwnDynamicAlgorithm : public OwnAlgorithm<Base> {
 public:
  using OwnAlgorithm<Base>::OwnAlgorithm;

  MaskSet mask_of_base(const SparseWeight& weight, const MaskSet& mask, float sparsity) override {
    if constexpr (std::is_same_v<Base, DynamicSparsityAlgorithm>) {
      return OwnAlgorithm<Base>::mask_of_base(weight, mask, sparsity);
    } else {
      return Base::update_mask(weight, mask, sparsity);
    }
  }
  bool base_wants_dense_gradient(int64_t step) const override {
    return Base::wants_dense_gradient(step);
  }

 protected:
  MaskSet update_mask(const SparseWeight& weight, const MaskSet& mask, float sparsity) override {
    {
      const AlgorithmCode code;
      if (is_choosing_) {
        throw StateError("sparsity algorithm '" + std::string(this->type()) +
                         "': update_mask called an update or a step of the optimizer; call it "
                         "after the optimizer's step");
      }
      const py::function override = py::get_override(static_cast<const Base*>(this), "update_mask");
      if (override) {
        const Within scope(is_choosing_);
        const std::string what =
            "update_mask of " + std::string(this->type()) + " for '" + weight.name() + "'";
        return to_mask(override(weight_object(*this, weight), to_array(mask), sparsity),
                       weight.shape(), what);
      }
    }
    return mask_of_base(weight, mask, sparsity);
  }
  bool wants_dense_gradient(int64_t step) const override {
    PYBIND11_OVERRIDE(bool, Base, wants_dense_gradient, step);
  }

 private:
  bool is_choosing_ = false;  // within an update_mask() of Python's
};

/// One that drops and grows.
template <class Base>
class OwnDropGrow : public OwnDynamicAlgorithm<Base> {
 public:
  using OwnDynamicAlgorithm<Base>::OwnDynamicAlgorithm;

 protected:
  MaskSet grow(const SparseWeight& weight, const MaskSet& kept, int64_t count) override {
    {
      const AlgorithmCode code;
      const py::function override = py::get_override(static_cast<const Base*>(this), "grow");
      if (override) {
        const std::string what =
            "grow of " + std::string(this->type()) + " for '" + weight.name() + "'";
        return to_mask(override(weight_object(*this, weight), to_array(kept), count),
                       weight.shape(), what);
      }
    }
    return Base::grow(weight, kept, count);
  }
};

}  // namespace lacuna::python
