// Schedules that are Python functions. Within a configuration each is a map {type: python_function,
// number: N, process: P}; the functions are kept by their numbers for as long as the process lives.
#include "callables.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <compare>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/schedule.h"

namespace lacuna::python {
namespace {

constexpr const char* kType = "python_function";

using Function = std::function<double(int64_t step, int64_t updates)>;

// A function's number, and the process that gave it.
struct FunctionKey {
  std::string process;
  int64_t number = 0;
  auto operator<=>(const FunctionKey&) const = default;
};

std::map<FunctionKey, Function>& functions() {
  static auto* all = new std::map<FunctionKey, Function>;
  return *all;
}

// A name that no other process has: a forked one has another number.
std::string process_name() {
  static const auto drawn = std::random_device()();
  return fmt::format("p{:08x}-{}", drawn, getpid());
}

bool is_entry(const Config& value) {
  return value.is_map() && value.peek("type").is_scalar() && value.peek("type").text() == kType &&
         value.peek("number").is_number();
}

FunctionKey key_of(const Config& entry) {
  const Config process = entry.peek("process");  // runs of earlier versions have none
  return {.process = process.is_scalar() ? process.text() : "",
          .number = entry.peek("number").as<int64_t>()};
}

// The functions of a configuration by their paths.
void find_entries(const Config& config, const std::string& path,
                  std::vector<std::pair<std::string, Config>>& entries) {
  if (is_entry(config)) return entries.push_back({path, config});
  for (const auto& [key, value] : config.children()) {
    find_entries(value, path.empty() ? key : path + "." + key, entries);
  }
}

// Whether a function takes the number of updates, too.
bool takes_updates(const py::object& function) { return required_arguments(function) > 1; }

// Held by `keep`: a registry ends after the interpreter, when there is no GIL to take any more.
Function as_function(const py::object& callable) {
  return [kept = keep(callable), takes_both = takes_updates(callable)](int64_t step,
                                                                       int64_t updates) {
    const py::gil_scoped_acquire gil;
    const auto function =
        py::reinterpret_borrow<py::object>(static_cast<PyObject*>(const_cast<void*>(kept.get())));
    const py::object value = takes_both ? function(step, updates) : function(step);
    return value.cast<double>();
  };
}

py::object number_functions(const py::handle& value, int depth = 0) {
  // What is nested deeper holds itself, which to_config says.
  if (++depth > 100) return py::reinterpret_borrow<py::object>(value);
  if (py::isinstance<py::dict>(value)) {
    py::dict numbered;
    for (const auto& [key, item] : py::reinterpret_borrow<py::dict>(value)) {
      numbered[key] = number_functions(item, depth);
    }
    return numbered;
  }
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
    py::list numbered;
    for (const py::handle item : value) numbered.append(number_functions(item, depth));
    return numbered;
  }
  if (!is_function(value)) return py::reinterpret_borrow<py::object>(value);
  const FunctionKey key{process_name(), static_cast<int64_t>(functions().size())};
  functions()[key] = as_function(py::reinterpret_borrow<py::object>(value));
  py::dict entry;
  entry["type"] = kType;
  entry["number"] = key.number;
  entry["process"] = key.process;
  return entry;
}

Schedule make_schedule(const Config& config) {
  const FunctionKey key{
      config.get("process").is_null() ? "" : config.required<std::string>("process"),
      config.required<int64_t>("number")};
  const auto found = functions().find(key);
  if (found == functions().end()) {
    config.error(
        "this schedule is a function of another process: pass the configuration again, or name the "
        "function by lacuna.register before the run begins");
  }
  const Function function = found->second;
  return Schedule(
      [function](int64_t step, int64_t updates) {
        return static_cast<float>(function(step, updates));
      },
      config);
}

}  // namespace

size_t required_arguments(const py::object& function) {
  const auto inspect = py::module_::import("inspect");
  try {
    size_t count = 0;
    const py::object parameter = inspect.attr("Parameter");
    const py::object parameters = inspect.attr("signature")(function).attr("parameters");
    for (const py::handle one : parameters.attr("values")()) {
      const py::object kind = one.attr("kind");
      if (kind.equal(parameter.attr("POSITIONAL_ONLY")) ||
          kind.equal(parameter.attr("POSITIONAL_OR_KEYWORD"))) {
        if (one.attr("default").is(parameter.attr("empty"))) ++count;
      }
    }
    return count;
  } catch (py::error_already_set& error) {  // a function of C, which has no signature
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
    return 0;
  }
}

bool is_function(const py::handle& value) {
  const bool is_value =
      PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr()) || PyUnicode_Check(value.ptr());
  return !is_value && PyCallable_Check(value.ptr()) != 0;
}

Config to_config_with_callables(const py::handle& value) {
  return to_config(number_functions(value));
}

void take_functions_for(const Config& run, Config& given) {
  std::vector<std::pair<std::string, Config>> entries;
  find_entries(given, "", entries);
  for (const auto& [path, entry] : entries) {
    const Config before = run.peek(path);
    if (!is_entry(before)) continue;
    const FunctionKey key = key_of(before);
    const auto found = functions().find(key_of(entry));  // not there if it is the run's own entry
    if (key.process != process_name() && found != functions().end()) {
      functions()[key] = Function(found->second);
    }
    given.set_path(path, before.clone());
  }
}

void bind_callables(py::module_& module) {
  schedule_registry().add(kType, "a function of a Python program", make_schedule);
  module.def(
      "_register_schedule",
      [](const std::string& name, const py::object& callable) {
        const Function function = as_function(callable);
        schedule_registry().add(name, "a function of a Python program",
                                [function](const Config& config) {
                                  return Schedule(
                                      [function](int64_t step, int64_t updates) {
                                        return static_cast<float>(function(step, updates));
                                      },
                                      config);
                                });
      },
      py::arg("name"), py::arg("function"));
}

}  // namespace lacuna::python
