#include "lacuna/framework/quantize/quantize_options.hpp"

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/sparsity/calibration/calibration_run.hpp"

namespace lacuna {
namespace {

// The value of a key that is one of some names, of which the first is the default.
template <class T>
T read_name(const Config& section, const char* key,
            const std::vector<std::pair<std::string, T>>& choices) {
  const auto name = section.get<std::string>(key, choices.front().first);
  std::vector<std::string> names;
  for (const auto& [choice, value] : choices) {
    if (choice == name) return value;
    names.push_back(choice);
  }
  section.get(key).fail(join(names, " or "));
}

// A map that may be left out.
Config section_of(const Config& section, const char* key) {
  if (!section.has(key)) Config(section).set(key, Config::map());
  const Config found = section.get(key);
  if (!found.is_map()) found.fail("a map");
  return found;
}

// Without a grid, activations have none of the keys that describe one.
void require_no_grid(const Config& activations) {
  for (const char* key : {"bits", "observer", "percentile"}) {
    if (!activations.has(key)) continue;
    activations.get(key).error(
        fmt::format("activations are not rounded with `when: none`; leave `{}` out", key));
  }
}

void require_eight_bits(const Config& section) {
  if (section.get<int64_t>("bits", 8) != 8) section.get("bits").fail("8, the only supported width");
}

std::vector<std::string> read_filter(const Config& section) {
  const Config filter = section.get("param_filter");
  if (filter.is_null()) return {};
  if (filter.is_scalar()) return {filter.as<std::string>()};
  const auto globs = filter.as<std::vector<std::string>>();
  if (globs.empty()) filter.fail("at least one glob");
  return globs;
}

// When the fake quantization of a training begins, and when its grids stay.
void read_training(const Config& section, QuantizeOptions& options) {
  if (options.smooth > 0.0) {
    section.get("smooth").error(
        "qat trains the weights and does not smooth; quantize with gptq and `smooth` first, or "
        "leave it out");
  }
  const auto read = [&](const char* key, double fallback) {
    return require_range(section, key, section.get<double>(key, fallback), 0.0, 1e6);
  };
  options.start_epoch = read("start_epoch", options.start_epoch);
  options.scales =
      read_name<QuantizeOptions::Scales>(section, "scales",
                                         {{"observed", QuantizeOptions::Scales::Observed},
                                          {"learned", QuantizeOptions::Scales::Learned}});
  if (options.scales == QuantizeOptions::Scales::Learned) {
    if (!section.has("freeze_after")) return;
    section.get("freeze_after")
        .error("learned scales are trained to the end of the run; leave freeze_after out");
  }
  options.freeze_after = read("freeze_after", options.freeze_after);
}

void require_enough(const Config& calibration, int64_t examples) {
  if (examples >= QuantizeOptions::kFewestExamples) return;
  calibration.error(
      fmt::format("{} are too few to calibrate on; give at least {} (the default is {})",
                  plural(examples, "example"), QuantizeOptions::kFewestExamples,
                  CalibrationOptions::kDefaultExamples));
}

}  // namespace

const char* to_string(QuantizeOptions::Algorithm algorithm) {
  switch (algorithm) {
    case QuantizeOptions::Algorithm::Nearest:
      return "nearest";
    case QuantizeOptions::Algorithm::Gptq:
      return "gptq";
    case QuantizeOptions::Algorithm::Qat:
      return "qat";
  }
  return "";
}

CalibrationOptions QuantizeOptions::calibration_on(const Config& section, int64_t there,
                                                   int64_t batch_size) const {
  const CalibrationOptions all = calibration.completed(there, batch_size);
  const Config place = calibration_place(section);
  const int64_t needed = std::max(*all.examples, kFewestExamples);
  if (needed > there) place.error(calibration_needs(needed, there));
  require_enough(place, *all.examples);
  return all;
}

QuantizeOptions QuantizeOptions::from_config(const Config& section) {
  if (!section.is_map()) section.fail("a map, as {algorithm: gptq}; {} for the defaults");
  QuantizeOptions options;
  options.algorithm = read_name<Algorithm>(
      section, "algorithm",
      {{"gptq", Algorithm::Gptq}, {"nearest", Algorithm::Nearest}, {"qat", Algorithm::Qat}});
  const Config weights = section_of(section, "weights");
  require_eight_bits(weights);
  read_name<int>(weights, "per", {{"channel", 0}});
  options.clip =
      read_name<GridClip>(weights, "clip", {{"mse", GridClip::Mse}, {"max", GridClip::Max}});
  const Config activations = section_of(section, "activations");
  options.when =
      read_name<When>(activations, "when",
                      {{"static", When::Static}, {"dynamic", When::Dynamic}, {"none", When::None}});
  if (options.when == When::None) {
    require_no_grid(activations);
  } else {
    require_eight_bits(activations);
  }
  if (options.when == When::Static) {
    options.observer = read_name<Observer>(activations, "observer",
                                           {{"percentile", Observer::Percentile},
                                            {"min_max", Observer::MinMax},
                                            {"mse", Observer::Mse}});
  }
  if (options.when == When::Static && options.observer == Observer::Percentile) {
    options.percentile =
        require_range(activations, "percentile",
                      activations.get<double>("percentile", options.percentile), 50.0, 100.0);
  }
  options.param_filter = read_filter(section);
  options.smooth =
      require_range(section, "smooth", section.get<double>("smooth", options.smooth), 0.0, 1.0);
  if (options.smooth > 0.0 && options.when == When::None) {
    section.get("smooth").error(
        "smoothing makes activations easier to round, and with `when: none` they are not rounded; "
        "leave it out");
  }
  if (options.algorithm == Algorithm::Qat) read_training(section, options);
  if (options.needs_examples()) {
    const Config calibration = section.get("calibration");
    options.calibration = CalibrationOptions::from_config(calibration);
    if (const auto examples = options.calibration.examples) {
      require_enough(calibration_place(section), *examples);
    }
  } else if (section.has("calibration")) {
    section.get("calibration")
        .error(fmt::format("{} with {} activations learns nothing from examples; leave "
                           "`calibration` out",
                           to_string(options.algorithm),
                           options.when == When::None ? "float32" : "dynamic"));
  }
  section.require_all_read();
  return options;
}

}  // namespace lacuna
