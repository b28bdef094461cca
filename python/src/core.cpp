// Threads, random numbers and the log.
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "binding.hpp"
#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/io/log.h"

namespace lacuna::python {
namespace {

void set_log(const py::object& level, const py::object& file) {
  static const std::map<std::string, LogLevel> levels = {{"detail", LogLevel::Detail},
                                                         {"info", LogLevel::Info},
                                                         {"warning", LogLevel::Warning},
                                                         {"error", LogLevel::Error},
                                                         {"off", LogLevel::Off}};
  stop_logging();
  if (!file.is_none()) log_to_file(py::str(py::module_::import("os").attr("fspath")(file)));
  if (level.is_none()) return;
  const auto found = levels.find(level.cast<std::string>());
  if (found == levels.end()) {
    throw py::value_error("log: expected 'detail', 'info', 'warning', 'error', 'off' or None");
  }
  if (found->second != LogLevel::Off) log_to_console(found->second);
}

}  // namespace

void bind_core(py::module_& module) {
  module.def("num_threads", &num_threads, "Number of threads that products and training use.");
  module.def("set_num_threads", &set_num_threads, py::arg("threads"),
             "Sets the number of threads that products and training use, at least 1. Results do "
             "not depend on it. Raises StateError.");
  module.def("log", &set_log, py::arg("level") = "info", py::arg("file") = py::none(),
             "Prints messages of at least `level` ('detail', 'info', 'warning', 'error'; log.txt "
             "calls the first one debug) to the standard error, and appends all messages to "
             "`file`, if given. 'off' or None ends the printing. lacuna prints nothing until this "
             "is called.");

  py::class_<CounterRng>(module, "Random",
                         "Random numbers as a function of seed, name, step and index. They are the "
                         "same in a resumed run, for any number of threads and any order of calls.")
      .def(py::init<uint64_t, std::string_view, uint64_t>(), py::arg("seed"), py::arg("name"),
           py::arg("step") = 0)
      .def(
          "uniform",
          [](const CounterRng& rng, const Shape& shape) {
            Tensor values = Tensor::empty(shape);
            float* to = values.mutable_data();
            for (int64_t i = 0; i < shape.numel(); ++i)
              to[i] = rng.uniform(static_cast<uint64_t>(i));
            return values;
          },
          py::arg("shape"), ReleaseGil(),
          "Returns an array of numbers in [0, 1), multiples of 2**-24: float32.")
      .def(
          "normal",
          [](const CounterRng& rng, const Shape& shape) {
            Tensor values = Tensor::empty(shape);
            float* to = values.mutable_data();
            for (int64_t i = 0; i < shape.numel(); ++i) {
              to[i] = static_cast<float>(rng.normal(static_cast<uint64_t>(i)));
            }
            return values;
          },
          py::arg("shape"), ReleaseGil(), "Returns an array of standard normal numbers: float32.")
      .def(
          "integers",
          [](const CounterRng& rng, uint64_t bound, const Shape& shape) {
            if (bound == 0) throw py::value_error("integers: bound must be at least 1");
            std::vector<int64_t> values(static_cast<size_t>(shape.numel()));
            for (size_t i = 0; i < values.size(); ++i) {
              values[i] = static_cast<int64_t>(rng.below(i, bound));
            }
            return IndexTensor(shape, std::move(values));
          },
          py::arg("bound"), py::arg("shape"), "Returns an array of integers in [0, bound): int64.");
  module.def(
      "random",
      [](uint64_t seed, std::string_view name, uint64_t step) {
        return CounterRng(seed, name, step);
      },
      py::arg("seed"), py::arg("name"), py::arg("step") = 0,
      "Random numbers for a parameter `name` at a step, as lacuna's own algorithms draw them. Use "
      "them in your own algorithms, so that a resumed run draws the same masks.");
}

}  // namespace lacuna::python
