#include "lacuna/framework/program/settings/config_changes.hpp"

#include <algorithm>
#include <array>

#include "lacuna/framework/config/earlier_keys.hpp"
#include "lacuna/framework/config/names.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/program/settings/keys.hpp"
#include "lacuna/framework/program/settings/layout_config.hpp"
#include "lacuna/framework/program/settings/list_sections.hpp"

namespace lacuna {
namespace {

bool is_path(const Config& value) { return value.is_scalar() && !value.is_number(); }
bool holds_out(const Config& value) { return value.is_number() && value.as<double>() != 0.0; }

// What is held out of the training data stays; where a split of its own lies is another matter.
bool may_change(const std::string& path, const Config& before, const Config& now) {
  if (path == "data.validation") return is_path(before) && is_path(now);
  if (path.starts_with("train.early_stopping")) return !before.is_null();  // none was judged so far
  if (path == "data.test" && (holds_out(before) || holds_out(now))) return false;
  return is_layout_path(path) || find_key(path).may_change;
}

std::string path_of(const std::string& assignment) {
  return assignment.substr(0, assignment.find('='));
}

// `sparsity.layout` and `sparsifiers.layout` are those of all entries. Returns whether it was one.
bool set_all_layouts(Config& config, const std::string& assignment) {
  const std::string path = path_of(assignment);
  const std::string section = path.substr(0, path.find('.'));
  if (path != section + ".layout" || !config.is_map() || !config.has(section)) return false;
  if (section != "sparsity" && section != "sparsifiers") return false;
  Config parsed = Config::map();
  apply_override(parsed, assignment);
  const Config layout = parsed.at(section).at("layout");
  section == "sparsity" ? set_sparsity_layout(config, layout) : set_sparsify_layout(config, layout);
  return true;
}

// A model section without where its values come from: what a run that goes on does not read again.
// A list of layers and a map that has nothing else mean the same.
Config without_origin(const Config& model) {
  Config copy = model.clone();
  if (!copy.is_map()) return copy;
  copy.erase("init_from");
  copy.erase("widen");
  return copy.entries().size() == 1 && copy.has("layers") ? copy.get("layers") : copy;
}

struct KeyDifference {
  std::string path;
  Config run, given;
  std::string line() const {
    return path + ": the run has " + value_in_words(run) + ", the configuration given " +
           value_in_words(given);
  }
};

// Whether two nodes differ in what is below them, at the same paths.
bool have_same_form(const Config& a, const Config& b) {
  return (a.is_map() && b.is_map()) ||
         (a.is_list() && b.is_list() && a.children().size() == b.children().size());
}

std::string joined(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

// A layer that is written as its type alone, as the map that it stands for next to `other`.
Config written_out(const Config& value, const Config& other) {
  const bool is_type = is_path(value) && other.is_map() && !other.peek("type").is_null();
  return is_type ? Config::map({{"type", value}}) : value;
}

// Where `given` has another value than the run's (which also contains defaults).
void compare(const Config& short_run, const Config& short_given, const std::string& path,
             std::vector<KeyDifference>& differences) {
  const Config run = written_out(short_run, short_given);
  const Config given = written_out(short_given, short_run);
  if (run == given) return;
  // The run contains computed weights as a list (train/class_balance.hpp).
  if (run.is_list() && given.is_scalar() && given.text() == "balanced") return;
  if (!have_same_form(run, given)) return differences.push_back({path, run, given});
  for (const auto& [key, value] : given.children()) {
    compare(run.peek(key), value, joined(path, key), differences);
  }
}

// Where two configurations differ; a key may be missing in either.
void find_changes(const Config& run, const Config& written, const std::string& path,
                  std::vector<KeyDifference>& changes) {
  if (run == written) return;
  if (!have_same_form(run, written)) return changes.push_back({path, run, written});
  for (const auto& [key, value] : run.children()) {
    find_changes(value, written.peek(key), joined(path, key), changes);
  }
  for (const auto& [key, value] : written.children()) {
    if (run.peek(key).is_null()) find_changes(Config(), value, joined(path, key), changes);
  }
}

std::vector<KeyDifference> changes_between(const Config& run, const Config& written) {
  std::vector<KeyDifference> changes;
  find_changes(run, written, "", changes);
  return changes;
}

[[noreturn]] void refuse_change(const std::string& change, const std::string& path,
                                const Config& before) {
  std::vector<std::string> paths;
  for (const KeyTraits& key : config_keys()) {  // run_dir follows the folder
    if (key.may_change && key.path != "run_dir") paths.push_back(key.path);
  }
  std::stable_partition(paths.begin(), paths.end(),
                        [](const auto& key) { return !key.starts_with("data."); });
  std::ranges::replace(paths, "data.validation", "data.validation (one path for another)");
  std::ranges::replace(paths, "train.early_stopping", "train.early_stopping (if the run has it)");
  throw ConfigError(change + ": a resumed run keeps " + path + " = " + value_in_words(before) +
                    "; only these may change: " + join(paths, ", ") +
                    "; and with --change the optimizer (not its type, nor momentum from or to 0), "
                    "which changes.jsonl then records");
}

[[noreturn]] void refuse_edit(const std::string& file, const KeyDifference& d) {
  refuse_change(file + ", " + d.path + " = " + value_in_words(d.given), d.path, d.run);
}

// "optimizer.lr" of what is in or below it: an optimizer's values change whole, so that a schedule
// is another schedule. Empty for other paths, and for its type, which has states of its own.
std::string optimizer_key(const std::string& path) {
  const std::string section = "optimizer.";
  if (!path.starts_with(section)) return "";
  const std::string key = path.substr(0, path.find('.', section.size()));
  return key == section + "type" ? "" : key;
}

// Whether an optimizer's state has the same arrays under both values of momentum.
bool keeps_states(const Config& run, const Config& changed) {
  const auto has_momentum = [](const Config& config) {
    const Config momentum = config.peek("optimizer.momentum");
    return momentum.is_number() && momentum.as<double>() != 0.0;
  };
  return has_momentum(run) == has_momentum(changed);
}

// Whether nothing is another in the optimizer that must stay.
bool may_change_optimizer(const Config& run, const Config& changed) {
  for (const KeyDifference& d : changes_between(run, changed)) {
    if (d.path.starts_with("optimizer") && optimizer_key(d.path).empty()) return false;
  }
  return keeps_states(run, changed);
}

// Sections that are measured and not chosen; new layouts have new ones.
bool is_measured(const std::string& path) { return find_key(path).is_measured; }

// "train" of "train.epochs", and "" of "train".
std::string parent_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// A key that went while one came that is nearly called so was misspelt.
void refuse_misspelt(const std::vector<KeyDifference>& changes) {
  for (const KeyDifference& added : changes) {
    if (!added.run.is_null() || is_measured(added.path)) continue;
    for (const KeyDifference& gone : changes) {
      const std::string name = last_part(gone.path), given = last_part(added.path);
      if (!gone.given.is_null() || parent_of(gone.path) != parent_of(added.path)) continue;
      if (!is_misspelling(given, name)) continue;
      added.given.error("unknown key '" + given + "'; did you mean '" + name + "'?");
    }
  }
}

// A key that came, where nothing asked for it, is no key at all. Which were asked for is known to
// the tree that an experiment was built of: it is tried as a part of that.
void refuse_unknown(const Config& resolved, const KeyDifference& added) {
  const std::string parent = parent_of(added.path), key = last_part(added.path);
  Config map = parent.empty() ? resolved : resolved.peek(parent);
  if (!map.is_map()) return;
  map.set(key, added.given.clone());
  try {
    map.require_all_read();
  } catch (const ConfigError& error) {
    const std::string problem = error.what();
    map.erase(key);
    if (problem.find("did you mean '" + key + "'") != std::string::npos) return;
    // Of a layer that is repeated the copies were read: not all of its keys are known here.
    const bool is_sure =
        !added.path.starts_with("model") || problem.find("did you mean") != std::string::npos;
    if (is_sure) throw;
  }
}

// `sparsity: 0.9` becomes a map when a layout is chosen for it.
void write_out_sparsity(Config& run, const Config& written) {
  const Config layout = written.peek("sparsity.layout");
  if (!run.peek("sparsity").is_scalar() || layout.is_null()) return;
  set_sparsity_layout(run, layout);
}

void put(Config& run, const std::string& path, const Config& value) {
  if (!value.is_null()) return run.set_path(path, value);
  const size_t dot = path.rfind('.');
  Config parent = dot == std::string::npos ? run : run.peek(path.substr(0, dot));
  if (parent.is_map()) parent.erase(path.substr(dot == std::string::npos ? 0 : dot + 1));
}

}  // namespace

std::vector<std::string> differences_in_words(const Config& before, const Config& now,
                                              const std::vector<std::string>& ignored) {
  rename_earlier_keys(before);
  rename_earlier_keys(now);
  std::vector<std::string> lines;
  for (const KeyDifference& d : changes_between(before, now)) {
    const bool is_ignored = std::ranges::any_of(ignored, [&](const std::string& key) {
      return d.path == key || d.path.starts_with(key + ".");
    });
    if (!is_ignored) lines.push_back(in_words({.key = d.path, .before = d.run, .after = d.given}));
  }
  return lines;
}

std::string in_words(const ConfigChange& change) {
  return change.key + " was " + value_in_words(change.before) + ", and is now " +
         value_in_words(change.after);
}

void take_changes(Config& run, const Config& written, const std::string& file,
                  const MayChange& may) {
  rename_earlier_keys(run);
  rename_earlier_keys(written);
  write_out_sparsity(run, written);
  const bool may_edit = may.optimizer && may_change_optimizer(run, written);
  Config told = run.clone();  // with what was recorded since
  for (const ConfigChange& change : may.recorded) put(told, change.key, change.after);
  const std::vector<KeyDifference> changes = changes_between(run, written);
  refuse_misspelt(changes);
  const bool has_other_layouts =
      std::ranges::any_of(changes, [](const KeyDifference& d) { return is_layout_path(d.path); });
  for (const KeyDifference& d : changes) {
    const std::string section = d.path.substr(0, d.path.find('.'));
    const std::string key = optimizer_key(d.path);
    const bool is_told = !key.empty() && told.peek(key) == written.peek(key);
    if (may_change(d.path, d.run, d.given)) {
      put(run, d.path, d.given);
    } else if (is_told || (!key.empty() && may_edit)) {
      put(run, key, written.peek(key));
    } else if (is_measured(d.path) && (has_other_layouts || run.peek(section).is_null())) {
      put(run, section, written.peek(section));
    } else if (!d.run.is_null() && !is_measured(d.path)) {
      refuse_edit(file, d);
    } else if (is_measured(d.path) && !(run.peek(section) == written.peek(section))) {
      refuse_edit(file, d);
    }
  }
}

void refuse_additions(const Config& resolved, const Config& written, const std::string& file,
                      const MayChange& may) {
  for (const KeyDifference& d : changes_between(resolved, written)) {
    if (d.given.is_null() || may_change(d.path, d.run, d.given) || is_measured(d.path)) continue;
    // Resolved, a schedule is written differently: steps for epochs, `cosine_once` for `cosine`.
    const std::string key = optimizer_key(d.path);
    const bool is_judged = may.optimizer && !key.empty() && !resolved.peek(key).is_null();
    if (is_judged) continue;
    if (d.run.is_null()) refuse_unknown(resolved, d);
    refuse_edit(file, d);
  }
}

void write_out_short_form(Config& config, const std::string& assignment) {
  struct Section {
    std::string_view name, key;
  };
  for (const auto [name, key] : {Section{"loss", "type"}, Section{"sparsity", "sparsity"}}) {
    if (!assignment.starts_with(std::string(name) + '.') || !config.is_map()) continue;
    const Config value = config.peek(name);
    if (!value.is_scalar() || value.is_null()) continue;
    Config section = Config::map({{std::string(key), value}});
    section.set_position(value.position());
    config.set(std::string(name), section);
  }
}

namespace {

// A run's length is given in one of these.
void erase_other_lengths(Config& config, const std::string& path) {
  const std::array<std::string, 3> units = {"epochs", "steps", "seconds"};
  const bool is_length =
      std::ranges::any_of(units, [&](const std::string& unit) { return path == "train." + unit; });
  if (!is_length || config.peek(path).is_null()) return;
  for (const std::string& unit : units) {
    if (path != "train." + unit) config.get("train").erase(unit);
  }
}

}  // namespace

void apply_assignment(Config& config, const std::string& assignment) {
  if (set_all_layouts(config, assignment)) return;
  write_out_short_form(config, assignment);
  require_map_for_key(config, assignment);
  apply_override(config, assignment);
  if (is_layout_path(path_of(assignment))) config.erase("csr_up_to");
}

void apply_overrides(Config& config, const std::vector<std::string>& assignments) {
  rename_earlier_keys(config);
  for (const std::string& given : assignments) {
    const std::string assignment = renamed_assignment(given);
    apply_assignment(config, assignment);
    erase_other_lengths(config, path_of(assignment));
  }
}

void apply_resume_overrides(Config& run, const std::vector<std::string>& assignments,
                            const MayChange& may) {
  rename_earlier_keys(run);
  for (const std::string& given : assignments) {
    const std::string assignment = renamed_assignment(given);
    Config changed = run.clone();
    apply_overrides(changed, {assignment});
    const std::string path = path_of(assignment);
    const Config before = run.peek(path);
    if (path == "run_dir" && !(before == changed.peek(path))) {
      throw ConfigError("--set " + assignment +
                        ": a run continues in its own folder, which --run-dir names");
    }
    const bool is_optimizer = path == "optimizer" || !optimizer_key(path).empty();
    const bool is_allowed = may_change(path, before, changed.peek(path)) ||
                            (is_optimizer && may.optimizer && may_change_optimizer(run, changed));
    if (!(before == changed.peek(path)) && !is_allowed) {
      refuse_change("--set " + assignment, path, before);
    }
    run = changed;
  }
}

std::vector<ConfigChange> optimizer_changes(const Config& before, const Config& asked,
                                            const Config& resolved, int64_t step) {
  std::vector<ConfigChange> changes;
  for (const KeyDifference& d : changes_between(before, asked)) {
    const std::string key = optimizer_key(d.path);
    const bool is_known =
        std::ranges::any_of(changes, [&](const ConfigChange& c) { return c.key == key; });
    if (key.empty() || is_known) continue;
    const Config old = before.peek(key), now = resolved.peek(key);
    if (!(old == now)) changes.push_back({.step = step, .key = key, .before = old, .after = now});
  }
  return changes;
}

void require_same_model(const Config& run, const Config& given) {
  if (given.is_null()) return;
  std::vector<KeyDifference> differences;
  compare(without_origin(run.get("model")), without_origin(given.get("model")), "model",
          differences);
  const Config model = given.peek("model");
  if (model.is_map() && !model.peek("widen").is_null()) {  // the run has the widths that it chose
    std::erase_if(differences,
                  [](const KeyDifference& d) { return d.run.is_number() && d.given.is_number(); });
  }
  if (differences.empty()) return;
  std::vector<std::string> lines;
  for (const KeyDifference& difference : differences) lines.push_back(difference.line());
  throw ConfigError("a run cannot be resumed with another model: " + join(lines, "; "));
}

std::vector<std::string> unused_changes(const Config& run, const Config& given) {
  std::vector<std::string> lines;
  if (given.is_null()) return lines;
  std::vector<KeyDifference> differences;
  compare(run, given, "", differences);
  for (const KeyDifference& difference : differences) {
    if (difference.path == "run_dir") continue;
    lines.push_back(difference.line() + "; the run's is used" +
                    (may_change(difference.path, difference.run, difference.given)
                         ? " (change it with --set)"
                         : ""));
  }
  return lines;
}

}  // namespace lacuna
