// The module lacuna._lacuna: what the package `lacuna` is made of.
#include "binding.hpp"
#include "callables.hpp"
#include "handles.hpp"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/train/builtins.h"

PYBIND11_MODULE(_lacuna, module) {
  namespace lp = lacuna::python;
  lacuna::register_builtins();
  module.doc() = "The parts of lacuna that are written in C++.";
  module.attr("__version__") = lacuna::kVersion;
  lp::bind_errors(module);
  lp::bind_core(module);
  lp::bind_variables(module);
  lp::bind_parameters(module);
  lp::bind_parameter_operators(module);
  lp::bind_callables(module);
  lp::bind_data(module);
  lp::bind_modules(module);
  lp::bind_optimizers(module);
  lp::bind_sparsity(module);
  lp::bind_mask_functions(module);
  lp::bind_runs(module);
  lp::bind_loaded_run(module);
  lp::refuse_unmade_objects(module);
}
