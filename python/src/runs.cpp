// Runs: trained, planned, evaluated, pruned, shrunk, compared, swept, exported and imported.
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "binding.hpp"
#include "callables.hpp"
#include "lacuna/framework/interop/export_run.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/program/actions/compare_runs.h"
#include "lacuna/framework/program/actions/evaluate_run.h"
#include "lacuna/framework/program/actions/import_weights.h"
#include "lacuna/framework/program/actions/plan_run.h"
#include "lacuna/framework/program/actions/prune_run.h"
#include "lacuna/framework/program/actions/quantize_run.h"
#include "lacuna/framework/program/actions/run_records.h"
#include "lacuna/framework/program/actions/shrink_run.h"
#include "lacuna/framework/program/actions/sweep_runs.h"
#include "lacuna/framework/program/actions/train_run.h"
#include "lacuna/framework/program/program.h"

namespace lacuna::python {
namespace {

using Texts = std::vector<std::string>;

// A dict, a file's name, or YAML text, which has more than one line.
GivenConfig given_config(const py::object& source, const Texts& overrides) {
  GivenConfig given{.overrides = overrides};
  if (source.is_none()) return given;
  const bool is_text = py::isinstance<py::str>(source);
  if (is_text && source.cast<std::string>().find('\n') != std::string::npos) {
    given.tree = parse_yaml(source.cast<std::string>(), "configuration");
  } else if (is_text || py::hasattr(source, "__fspath__")) {
    given.path = py::module_::import("os").attr("fspath")(source).cast<std::string>();
  } else {
    given.tree = to_config_with_callables(source);
  }
  return given;
}

// What the section `data` says of its type, if anything.
py::object data_type(const py::object& source) {
  const GivenConfig given = given_config(source, {});
  const Config tree = given.path.empty() ? given.tree : load_yaml(given.path);
  const Config type = tree.is_map() ? tree.peek("data.type") : Config();
  return type.is_scalar() ? py::object(py::str(type.text())) : py::object(py::none());
}

// "key=value" of each entry. Values are written as JSON, which YAML reads.
Texts assignments(const py::object& values) {
  Texts all;
  if (values.is_none()) return all;
  if (!py::isinstance<py::dict>(values)) return values.cast<Texts>();
  for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(values)) {
    all.push_back(key.cast<std::string>() + "=" + to_config(value).to_json());
  }
  return all;
}

// A signal that reached Python's own handler, as while data was read.
void raise_pending_signals() {
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

// A signal that ended a run after its checkpoint goes on as Python has it.
void raise_signal(int signal) {
  if (signal == 0) return;
  if (signal == SIGINT) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  } else {
    PyErr_SetObject(PyExc_SystemExit, py::int_(128 + signal).ptr());
  }
  throw py::error_already_set();
}

int signal_of(RunEnd end) {
  switch (end) {
    case RunEnd::Interrupted:
      return SIGINT;
    case RunEnd::Terminated:
      return SIGTERM;
    case RunEnd::HungUp:
      return SIGHUP;
    case RunEnd::Finished:
    case RunEnd::StoppedEarly:
    case RunEnd::Stopped:
      break;
  }
  return 0;
}

const char* in_words(RunEnd end) {
  if (end == RunEnd::StoppedEarly) return "stopped early";
  return end == RunEnd::Finished ? "finished" : "stopped";
}

// Calls a Python function after each step; its arguments but the loss change rarely.
class StepCallback {
 public:
  explicit StepCallback(py::object function) : function_(std::move(function)) {}

  bool operator()(const TrainedStep& step) {
    const py::gil_scoped_acquire gil;
    if (!metrics_ || step.has_new_metrics) metrics_ = from_config(step.metrics);
    const py::object goes_on = function_(step.step, step.loss, metrics_);
    if (goes_on.is_none()) return true;
    const int is_true = PyObject_IsTrue(goes_on.ptr());
    if (is_true < 0) throw py::error_already_set();
    return is_true == 1;
  }

 private:
  py::object function_, metrics_;
};

// A folder that is not a run is reported where the run is opened.
void take_functions_of_run(TrainRequest& request) {
  Config& given = request.config.tree;
  const Config named = given.is_map() ? given.peek("run_dir") : Config();
  const std::string folder =
      request.run_dir.value_or(named.is_scalar() ? named.text() : std::string());
  if (!given.is_map() || !std::filesystem::exists(folder + "/config.yaml")) return;
  take_functions_for(read_run_config(folder), given);
}

py::tuple train(const py::object& config, const Texts& overrides,
                std::optional<std::string> run_dir, bool resume, bool change,
                const py::object& on_step) {
  TrainRequest request{.config = given_config(config, overrides),
                       .run_dir = std::move(run_dir),
                       .resume = resume,
                       .change = change};
  if (resume) take_functions_of_run(request);
  request.on_begin = [] {
    const py::gil_scoped_acquire gil;
    raise_pending_signals();
  };
  StepCallback callback(on_step);
  if (!on_step.is_none()) request.on_step = std::ref(callback);
  TrainedRun run;
  {
    const py::gil_scoped_release released;
    run = train_run(request);
  }
  raise_signal(signal_of(run.end));
  return py::make_tuple(run.run_dir, in_words(run.end), run.step);
}

py::tuple plan(const py::object& config, const Texts& overrides, double seconds) {
  const GivenConfig given = given_config(config, overrides);
  RunPlan planned;
  {
    const py::gil_scoped_release released;
    planned = plan_run(given, {.seconds = seconds});
  }
  return py::make_tuple(from_config(planned.report), planned.text, from_config(planned.config));
}

py::dict evaluate_folder(const std::string& run, const Texts& overrides, bool last,
                         bool data_changed) {
  RunEvaluation evaluation;
  {
    const py::gil_scoped_release released;
    evaluation =
        evaluate_run(run, {.last = last, .overrides = overrides, .data_changed = data_changed});
  }
  py::dict splits;
  for (Config entry : evaluation.splits.items()) {
    const std::string split = entry.peek("split").text();
    entry.erase("split");
    splits[py::str(split)] = from_config(entry);
  }
  return splits;
}

// Runs without the interpreter's lock.
template <class Action>
py::object report_of(Action action) {
  const Config report = [&] {
    const py::gil_scoped_release released;
    return action().report;
  }();
  return from_config(report);
}

py::object quantize(const std::string& source, const py::object& config, const Texts& overrides,
                    const std::string& run_dir, bool last) {
  const GivenConfig given = given_config(config, overrides);
  const QuantizeRequest request{.checkpoint = source,
                                .config_path = given.path,
                                .config = given.tree,
                                .run_dir = run_dir,
                                .overrides = overrides,
                                .last = last};
  return report_of([&] { return quantize_run(request); });
}

py::object prune(const std::string& source, const py::object& config, const Texts& overrides,
                 const std::string& run_dir, std::optional<std::string> sparsity,
                 std::optional<std::string> method, bool last) {
  const GivenConfig given = given_config(config, overrides);
  const PruneRequest request{.checkpoint = source,
                             .config_path = given.path,
                             .config = given.tree,
                             .sparsity = std::move(sparsity),
                             .method = std::move(method),
                             .run_dir = run_dir,
                             .overrides = overrides,
                             .last = last};
  return report_of([&] { return prune_run(request); });
}

py::object shrink(const std::string& source, const py::object& config, const Texts& overrides,
                  const std::string& run_dir, std::optional<std::string> to,
                  std::optional<std::string> method, bool last) {
  const GivenConfig given = given_config(config, overrides);
  const ShrinkRequest request{.checkpoint = source,
                              .config_path = given.path,
                              .config = given.tree,
                              .method = std::move(method),
                              .to = std::move(to),
                              .run_dir = run_dir,
                              .overrides = overrides,
                              .last = last};
  return report_of([&] { return shrink_run(request); });
}

py::tuple sweep(const py::object& config, const Texts& overrides, const Texts& over,
                const std::string& run_dir, int64_t seeds, int64_t jobs, int64_t random,
                int64_t random_seed, const Texts& program) {
  const GivenConfig given = given_config(config, {});
  const SweepRequest request{.config_path = given.path,
                             .config = given.tree,
                             .over = over,
                             .overrides = overrides,
                             .run_dir = run_dir,
                             .seeds = seeds,
                             .jobs = jobs,
                             .random = random,
                             .random_seed = random_seed,
                             .program = program};
  SweepResult swept;
  {
    const py::gil_scoped_release released;
    swept = sweep_runs(request);
  }
  raise_signal(swept.signal);
  return py::make_tuple(swept.runs, swept.failed, swept.text, swept.page);
}

Texts export_to(const std::string& run, const std::string& format, const std::string& path,
                bool masks, bool sparse, const std::string& only, bool overwrite, bool card,
                bool last) {
  const py::gil_scoped_release released;
  return export_run(run, path,
                    {.format = format,
                     .masks = masks,
                     .sparse = sparse,
                     .only = only,
                     .overwrite = overwrite,
                     .card = card,
                     .kept = last ? KeptCheckpoint::Last : KeptCheckpoint::Best})
      .notes;
}

Texts import_from(const std::string& file, const py::object& config, const Texts& overrides,
                  const std::string& run_dir, bool find_pattern) {
  const ImportRequest request{.file = file,
                              .config = given_config(config, overrides),
                              .run_dir = run_dir,
                              .find_pattern = find_pattern};
  const py::gil_scoped_release released;
  return import_weights(request).notes;
}

py::array_t<double> column(const std::vector<double>& values) {
  return py::array_t<double>(static_cast<py::ssize_t>(values.size()), values.data());
}

py::dict metrics(const std::string& run_dir) {
  py::dict splits;
  for (const auto& [split, columns] : read_metrics(run_dir)) {
    py::dict arrays;
    for (const auto& [name, values] : columns.numbers) arrays[py::str(name)] = column(values);
    for (const auto& [name, texts] : columns.texts) {
      arrays[py::str(name)] = py::module_::import("numpy").attr("array")(py::cast(texts));
    }
    splits[py::str(split)] = arrays;
  }
  return splits;
}

py::list kept_masks(const std::string& run_dir, int64_t most) {
  std::vector<KeptPicture> pictures;
  {
    const py::gil_scoped_release released;
    pictures = newest_masks(run_dir, most);
  }
  py::list all;
  for (const KeptPicture& one : pictures) {
    all.append(py::make_tuple(one.parameter, one.step, one.density, py::bytes(one.png)));
  }
  return all;
}

int run_command(const Texts& arguments) {
  Texts all{"lacuna"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& argument : all) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const py::gil_scoped_release released;
  return run_program(static_cast<int>(all.size()), argv.data());
}

}  // namespace

void bind_runs(py::module_& module) {
  module.def("_data_type", &data_type, py::arg("config"));
  module.def("_assignments", &assignments, py::arg("values"));
  module.def("_train", &train, py::arg("config"), py::arg("overrides"), py::arg("run_dir"),
             py::arg("resume"), py::arg("change"), py::arg("on_step"));
  module.def("_plan", &plan, py::arg("config"), py::arg("overrides"), py::arg("seconds"));
  module.def("_evaluate", &evaluate_folder, py::arg("run"), py::arg("overrides"), py::arg("last"),
             py::arg("data_changed"));
  module.def("_quantize", &quantize, py::arg("source"), py::arg("config"), py::arg("overrides"),
             py::arg("run_dir"), py::arg("last"));
  module.def("_prune", &prune, py::arg("source"), py::arg("config"), py::arg("overrides"),
             py::arg("run_dir"), py::arg("sparsity"), py::arg("method"), py::arg("last"));
  module.def("_shrink", &shrink, py::arg("source"), py::arg("config"), py::arg("overrides"),
             py::arg("run_dir"), py::arg("to"), py::arg("method"), py::arg("last"));
  module.def(
      "_compare",
      [](const Texts& runs, const std::string& by) {
        Config report;
        {
          const py::gil_scoped_release released;
          report = compare_runs(runs, by);
        }
        return from_config(report);
      },
      py::arg("runs"), py::arg("by"));
  module.def("_sweep", &sweep, py::arg("config"), py::arg("overrides"), py::arg("over"),
             py::arg("run_dir"), py::arg("seeds"), py::arg("jobs"), py::arg("random"),
             py::arg("random_seed"), py::arg("program"));
  module.def("_export", &export_to, py::arg("run"), py::arg("format"), py::arg("path"),
             py::arg("masks"), py::arg("sparse"), py::arg("only"), py::arg("overwrite"),
             py::arg("card"), py::arg("last"));
  module.def("_import", &import_from, py::arg("file"), py::arg("config"), py::arg("overrides"),
             py::arg("run_dir"), py::arg("find_pattern"));
  module.def("_read_metrics", &metrics, py::arg("run_dir"));
  module.def(
      "_read_summary",
      [](const std::string& run_dir) { return from_config(read_summary(run_dir)); },
      py::arg("run_dir"));
  module.def(
      "_read_config",
      [](const std::string& run_dir) { return from_config(read_run_config(run_dir)); },
      py::arg("run_dir"));
  module.def("_newest_masks", &kept_masks, py::arg("run_dir"), py::arg("most"));
  module.def("_run_program", &run_command, py::arg("arguments"));
}

}  // namespace lacuna::python
