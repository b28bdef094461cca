// Masks of arrays, by the rules of the algorithms, and values of schedules: for what Python's
// algorithms compute themselves.
#include <algorithm>
#include <memory>
#include <string>

#include "callables.hpp"
#include "handles.hpp"
#include "lacuna/framework/config/schedule.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/sparsity/masks/mask_init.h"
#include "lacuna/sparsity/masks/mask_selector.h"
#include "lacuna/sparsity/options/counting.hpp"
#include "parameter_arrays.hpp"

namespace lacuna::python {
namespace {

ScoreGroups score_groups(const std::string& along, int64_t count, const Shape& shape) {
  if (count < 1) throw py::value_error("a score shaper has at least one group");
  ScoreGroups groups;
  if (along == "rows") groups = ScoreGroups::rows(count);
  if (along == "columns") groups = ScoreGroups::columns(count);
  groups.require_fit("score", shape);
  return groups;
}

float fraction(const char* name, double value) {
  if (value >= 0.0 && value <= 1.0) return static_cast<float>(value);
  throw py::value_error(std::string(name) + " is a fraction from 0 to 1, found " +
                        std::string(py::str(py::float_(value))));
}

int64_t target_in_groups(float sparsity, const Shape& shape, const ScoreGroups& groups) {
  return target_nnz(sparsity, shape.numel() / groups.count) * groups.count;
}

// The scores at a mask's positions, ascending.
Tensor scores_at(const MaskSet& mask, const Tensor& scores) {
  Tensor chosen = Tensor::empty(Shape{mask.count()});
  float* to = chosen.mutable_data();
  mask.positions().for_each([&](int64_t position) { *to++ = scores.data()[position]; });
  return chosen;
}

py::array mask_of_largest(const Tensor& scores, double sparsity, const std::string& along,
                          int64_t count) {
  const ScoreGroups groups = score_groups(along, count, scores.shape());
  const int64_t nnz = target_in_groups(fraction("sparsity", sparsity), scores.shape(), groups);
  const MaskSelector selector(groups, {}, scores.shape());
  return to_array(selector.keep(MaskSet::all(scores.shape()), scores.storage(), nnz));
}

py::array mask_without_smallest(const Tensor& scores, const py::object& mask, double drop_fraction,
                                const std::string& along, int64_t count) {
  const MaskSet present = to_mask(mask, scores.shape(), "make_mask_drop_minimum: the mask");
  const MaskSelector selector(score_groups(along, count, scores.shape()), {}, scores.shape());
  const int64_t kept =
      selector.kept_after_drop(fraction("drop_fraction", drop_fraction), present.count());
  return to_array(selector.keep(present, scores_at(present, scores).storage(), kept));
}

// In order, and none below 0, as growth by the largest |score| takes them.
Tensor raised(const Tensor& scores) {
  const bool is_positive = std::ranges::none_of(scores.storage(), [](float s) { return s < 0.0f; });
  if (is_positive) return scores;
  const auto numpy = py::module_::import("numpy");
  const py::object ranks =
      numpy.attr("unique")(to_array(scores), py::arg("return_inverse") = true).cast<py::tuple>()[1];
  return to_tensor(ranks.attr("reshape")(to_tuple(scores.shape())));
}

py::array mask_with_largest(const Tensor& scores, const py::object& mask, double sparsity,
                            const std::string& along, int64_t count) {
  const MaskSet present = to_mask(mask, scores.shape(), "make_mask_grow_maximum: the mask");
  const ScoreGroups groups = score_groups(along, count, scores.shape());
  const int64_t nnz = target_in_groups(fraction("sparsity", sparsity), scores.shape(), groups);
  if (nnz <= present.count()) return to_array(present);
  const MaskSelector selector(groups, {}, scores.shape());
  return to_array(selector.grow_maximum(rows_of(raised(scores)), nnz, present));
}

py::array first_mask(const std::string& method, const py::object& given, double sparsity,
                     const std::string& along, int64_t count) {
  const auto make = [&](const Parameter& parameter) {
    const ScoreGroups groups = score_groups(along, count, parameter.shape());
    const float wanted = fraction("sparsity", sparsity);
    return to_array(
        InitMethod(method).make({.parameter = parameter,
                                 .sparsity = wanted,
                                 .nnz = target_in_groups(wanted, parameter.shape(), groups),
                                 .groups = groups}));
  };
  if (py::isinstance<Parameter>(given)) return make(given.cast<const Parameter&>());
  const Tensor values = to_tensor(given);
  Parameter parameter(values.shape(), Initializer::constant(0.0));
  parameter.assign(values);
  return make(parameter);
}

}  // namespace

void bind_mask_functions(py::module_& module) {
  module.def("_mask_of_largest", &mask_of_largest, py::arg("score"), py::arg("sparsity"),
             py::arg("along"), py::arg("groups"));
  module.def("_mask_without_smallest", &mask_without_smallest, py::arg("score"), py::arg("mask"),
             py::arg("drop_fraction"), py::arg("along"), py::arg("groups"));
  module.def("_mask_with_largest", &mask_with_largest, py::arg("score"), py::arg("mask"),
             py::arg("sparsity"), py::arg("along"), py::arg("groups"));
  module.def("_first_mask", &first_mask, py::arg("method"), py::arg("p"), py::arg("sparsity"),
             py::arg("along"), py::arg("groups"));
  module.def(
      "_schedule_value",
      [](const py::object& schedule, int64_t step, int64_t updates) {
        return Schedule::from_config(to_config_with_callables(schedule)).value_at(step, updates);
      },
      py::arg("schedule"), py::arg("step"), py::arg("updates"));
  module.def(
      "_is_update_step",
      [](const Config& update, int64_t step) {
        const UpdateSchedule schedule = UpdateSchedule::from_config(update);
        update.require_all_read();
        return schedule.is_update(step);
      },
      py::arg("update"), py::arg("step"));
}

}  // namespace lacuna::python
