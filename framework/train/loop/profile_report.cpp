#include "lacuna/framework/train/loop/profile_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/progress.h"
#include "lacuna/framework/io/storage/file_system.hpp"

namespace lacuna {
namespace {

// In the order of the table's columns. The last ones have columns where they take a while.
constexpr std::array kColumns = {Work::Forward,  Work::Backward,   Work::Optimizer,  Work::Masks,
                                 Work::Data,     Work::Evaluation, Work::Checkpoint, Work::Teacher,
                                 Work::Exchange, Work::Average,    Work::Metrics};
constexpr size_t kAlways = 7;
constexpr double kWhile = 0.005;  // of all time

size_t place_of(Work kind) { return static_cast<size_t>(kind); }

double sum(const SecondsByKind& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

double milliseconds_per_step(const Profile& profile, double seconds) {
  return 1e3 * seconds / static_cast<double>(std::max<int64_t>(profile.steps, 1));
}

void add(const SecondsByKind& from, SecondsByKind& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

std::string path_of(const Profile::Layer& layer) {
  return layer.path.empty() ? "(model)" : layer.path;
}

std::vector<Work> columns_of(const Profile& profile) {
  const SecondsByKind total = profile.total();
  std::vector<Work> columns(kColumns.begin(), kColumns.begin() + kAlways);
  for (size_t i = kAlways; i < kColumns.size(); ++i) {
    if (total[place_of(kColumns[i])] >= kWhile * profile.seconds) columns.push_back(kColumns[i]);
  }
  return columns;
}

std::string cell(double milliseconds) {
  if (milliseconds < 0.0005) return "-";
  return milliseconds < 100.0 ? fmt::format("{:.3f}", milliseconds)
                              : fmt::format("{:.1f}", milliseconds);
}

// Work without a column counts as other.
std::string row(const Profile& profile, const std::vector<Work>& columns, const std::string& name,
                size_t width, const SecondsByKind& seconds) {
  std::string line = fmt::format("{:<{}}", name, width);
  double rest = sum(seconds);
  for (const Work kind : columns) {
    rest -= seconds[place_of(kind)];
    line += fmt::format(" {:>11}", cell(milliseconds_per_step(profile, seconds[place_of(kind)])));
  }
  const double all = sum(seconds);
  return line + fmt::format(" {:>9} {:>9} {:>6.1f}", cell(milliseconds_per_step(profile, rest)),
                            cell(milliseconds_per_step(profile, all)),
                            profile.seconds > 0.0 ? 100.0 * all / profile.seconds : 0.0);
}

// The layers that a table shows, in the model's order.
std::vector<const Profile::Layer*> shown_layers(const Profile& profile, size_t most) {
  std::vector<const Profile::Layer*> shown;
  for (const Profile::Layer& layer : profile.layers) {
    if (milliseconds_per_step(profile, sum(layer.seconds)) >= 0.0005) shown.push_back(&layer);
  }
  if (shown.size() <= most) return shown;
  std::vector<const Profile::Layer*> longest = shown;
  std::ranges::stable_sort(longest, std::greater<>(),
                           [](const Profile::Layer* layer) { return sum(layer->seconds); });
  longest.resize(most);
  std::erase_if(shown, [&](const Profile::Layer* layer) {
    return std::ranges::find(longest, layer) == longest.end();
  });
  return shown;
}

Config kinds_to_config(const Profile& profile, const SecondsByKind& seconds) {
  Config kinds = Config::map();
  for (const Work kind : kColumns) {
    kinds.set(name_of(kind), milliseconds_per_step(profile, seconds[place_of(kind)]));
  }
  kinds.set("other", milliseconds_per_step(profile, seconds[place_of(Work::Other)]));
  kinds.set("all", milliseconds_per_step(profile, sum(seconds)));
  return kinds;
}

}  // namespace

std::vector<std::string> profile_table(const Profile& profile, size_t layers) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format(
      "profile   {} steps in {:.3g} s, {:.4g} ms each including overhead; {} thread{}",
      grouped(profile.steps), profile.seconds, milliseconds_per_step(profile, profile.seconds),
      num_threads(), num_threads() == 1 ? "" : "s"));
  const std::vector<const Profile::Layer*> shown = shown_layers(profile, layers);
  SecondsByKind others = {};
  size_t hidden = 0;
  for (const Profile::Layer& layer : profile.layers) {
    if (std::ranges::find(shown, &layer) != shown.end()) continue;
    add(layer.seconds, others);
    hidden += sum(layer.seconds) > 0.0 ? 1 : 0;
  }
  const std::string rest = fmt::format("({} more layers)", hidden);
  std::vector<std::string> names;
  size_t width = std::max<size_t>(rest.size(), std::string_view("(outside of layers)").size());
  for (const Profile::Layer* layer : shown) {
    names.push_back(path_of(*layer) + (layer->type.empty() ? "" : "  " + layer->type));
    width = std::max(width, names.back().size());
  }
  const std::vector<Work> columns = columns_of(profile);
  std::string header = fmt::format("{:<{}}", "ms per step", width);
  for (const Work kind : columns) header += fmt::format(" {:>11}", name_of(kind));
  lines.push_back(header + fmt::format(" {:>9} {:>9} {:>6}", "other", "all", "%"));
  for (size_t i = 0; i < shown.size(); ++i) {
    lines.push_back(row(profile, columns, names[i], width, shown[i]->seconds));
  }
  if (hidden > 0) lines.push_back(row(profile, columns, rest, width, others));
  lines.push_back(row(profile, columns, "(outside of layers)", width, profile.outside));
  lines.push_back(row(profile, columns, "all", width, profile.total()));
  return lines;
}

Config to_config(const Profile& profile) {
  Config layers = Config::list();
  for (const Profile::Layer& layer : profile.layers) {
    Config entry = kinds_to_config(profile, layer.seconds);
    entry.set("path", layer.path);
    entry.set("type", layer.type);
    layers.push_back(entry);
  }
  return Config::map({{"steps", profile.steps},
                      {"seconds", profile.seconds},
                      {"threads", num_threads()},
                      {"trace_steps", profile.event_steps},
                      {"milliseconds_per_step", kinds_to_config(profile, profile.total())},
                      {"outside_of_layers", kinds_to_config(profile, profile.outside)},
                      {"layers", layers}});
}

// In microseconds; an event's end is where it began and how long it took.
std::string chrome_trace(const Profile& profile) {
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  const char* separator = "\n";
  for (const Profile::Event& event : profile.events) {
    const std::string& name = profile.names[static_cast<size_t>(event.name)];
    text += fmt::format(
        "{}{{\"name\": {}, \"cat\": \"{}\", \"ph\": \"X\", \"ts\": {:.3f}, \"dur\": {:.3f}, "
        "\"pid\": 1, \"tid\": 1",
        separator, Config(name.empty() ? "(model)" : name).to_json(), name_of(event.kind),
        1e6 * event.begin, 1e6 * event.seconds);
    if (event.layer >= 0) {
      const std::string layer = path_of(profile.layers[static_cast<size_t>(event.layer)]);
      text += fmt::format(", \"args\": {{\"layer\": {}}}", Config(layer).to_json());
    }
    text += "}";
    separator = ",\n";
  }
  return text + "\n]}\n";
}

void write_profile(const Profile& profile, const std::string& folder) {
  write_file_atomically(folder + "/profile.json", to_config(profile).to_json_indented());
  write_file_atomically(folder + "/profile_trace.json", chrome_trace(profile));
}

}  // namespace lacuna
