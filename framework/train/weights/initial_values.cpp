#include "lacuna/framework/train/weights/initial_values.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/config/pattern_shape.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/plural.hpp"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/layouts/mask_set.h"
#include "lacuna/framework/nn/other_model_error.hpp"
#include "lacuna/framework/train/checks/column_checks.hpp"
#include "lacuna/framework/train/checks/vocabulary_checks.hpp"
#include "lacuna/framework/train/weights/model_file.h"
#include "lacuna/sparsity/configure.h"

namespace lacuna {
namespace {

// A glob, or a list of them.
std::vector<std::string> globs(const Config& node) {
  if (node.is_null()) return {};
  if (node.is_scalar()) return {node.as<std::string>()};
  if (!node.is_list()) node.fail("a glob or a list of globs");
  return node.as<std::vector<std::string>>();
}

std::vector<WeightNames::Rename> rules(const Config& node) {
  if (node.is_null()) return {};
  if (!node.is_list()) node.fail("a list of maps with `from` and `to`");
  std::vector<WeightNames::Rename> list;
  for (const Config& item : node.items()) {
    if (!item.is_map()) item.fail("a map with `from` and `to`");
    list.push_back(
        {.from = item.required<std::string>("from"), .to = item.required<std::string>("to")});
  }
  return list;
}

// What is wrong with a file is reported at what named it: a command line's argument, or a key.
std::string named_by(const Config& path) {
  const SourcePosition& position = path.position();
  const bool is_argument =
      position.line == 0 && !position.file.empty() && !position.file.starts_with("--set ");
  return is_argument ? position.file : path.where();
}

WeightNames names_of(const Config& source) {
  if (!source.is_map()) return {};
  return {.rename = rules(source.get("rename")),
          .skip = globs(source.get("skip")),
          .find_pattern = source.optional<bool>("find_pattern").value_or(false)};
}

// What the `init_from` of a `model` section names, if it is there.
LoadedWeights load_initial_values(const Config& model_section, Module& model) {
  if (!model_section.is_map()) return {};
  const Config source = model_section.get("init_from");
  if (source.is_null()) return {};
  if (!source.is_map() && !source.is_scalar()) {
    source.fail("a file or run folder, or a map with `path`");
  }
  const WeightNames names = names_of(source);
  const Config path = source.is_map() ? source.at("path") : source;
  const auto file = path.as<std::string>();
  source.require_all_read();
  return at_position(source, [&] {
    try {
      return load_weights(file, model, names);
    } catch (const OtherModelError& error) {
      throw OtherModelError(named_by(path) + ": " + error.what());
    } catch (const CheckpointError& error) {
      throw CheckpointError(named_by(path) + ": " + error.what());
    }
  });
}

// The model's first layer reads columns by their place.
void check_columns(const Config& source, const LoadedWeights& trained, const DataSplits& data) {
  const ColumnDifference difference =
      compare_columns({.inputs = trained.columns, .label = {}, .categories = trained.categories},
                      {.inputs = data.columns, .label = {}, .categories = data.categories});
  const bool skips = !source.peek("skip").is_null();
  const Config path = source.is_map() ? source.peek("path") : source;
  if (!difference.moved.empty() && !skips) {
    throw ConfigError(named_by(path) + ": the loaded weights come from a run on a table, and " +
                      difference.moved);
  }
  const std::string text = difference.moved + difference.renamed;
  if (text.empty() || data.train->vocabulary_size() > 0) return;  // sentences are found by name
  log_warning(named_by(path) +
              ": the loaded weights come from a run on a table with other columns, and read these "
              "by position: " +
              text);
}

// The algorithm of an entry, made to be asked how its masks begin: with `init_method: inherit`
// where it takes that key. Null where the entry is wrong, which is reported where the run's is
// made.
std::unique_ptr<SparsityAlgorithm> algorithm_of(const Config& entry) {
  Config inheriting = entry.clone();  // reading marks keys as read
  if (!entry.has("init_method")) inheriting.set("init_method", "inherit");
  for (const Config& given : {inheriting, entry.clone()}) {
    try {
      return configure(given, 0);
    } catch (const ConfigError&) {
      continue;
    }
  }
  return nullptr;
}

bool has_mask(const Pattern& pattern) { return pattern.nnz() < pattern.numel(); }

bool has_masks(const SparsityAlgorithm& algorithm, const Module& model) {
  return std::ranges::any_of(model.parameters(), [&](const ParameterPtr& parameter) {
    return has_mask(*parameter->pattern()) && algorithm.filter().matches(*parameter);
  });
}

// First masks of loaded values are the masks that were loaded with them, pruned by magnitude where
// more is asked for, unless the entry states how they are made: nobody wants them pruned at random.
// Adds the method that makes them, if there is one.
void choose_init_method(Config entry, const Module& model, FirstValues& values) {
  if (!entry.is_map()) return;
  const auto algorithm = algorithm_of(entry);
  if (algorithm == nullptr) return;
  const FirstMasks begins = algorithm->first_masks();
  if (begins == FirstMasks::Largest) {
    values.methods.insert("topk");
  } else if (entry.has("init_method")) {
    values.methods.insert(entry.get("init_method").text());
  } else if (algorithm->inherits_masks()) {  // it reads the key
    const bool is_masked = has_masks(*algorithm, model);
    if (begins == FirstMasks::Own) {
      values.could_inherit |= is_masked;
    } else if (is_masked || (begins == FirstMasks::Made && algorithm->begins_sparse())) {
      entry.set("init_method", "inherit");
      values.methods.insert("inherit");
    }
  }
}

// The entries of a sparsity section whose masks are there in the beginning.
std::vector<Config> first_entries(const Config& section) {
  if (section.is_list()) return section.items();
  if (!section.is_map()) return {};
  if (!section.has("phases")) return {section};
  const Config phases = section.at("phases");
  if (!phases.is_list() || phases.items().empty()) return {};
  return {phases.items().front()};
}

// The first of some parameters, and how many there are in addition.
std::string first_of(const std::vector<std::string>& names) {
  return names.size() == 1 ? names.front()
                           : fmt::format("{} and {} more", names.front(), names.size() - 1);
}

// Parameters of one fate.
struct Fate {
  std::vector<std::string> names;
  int64_t before = 0, after = 0, common = 0;  // nonzeros
  void add(const Parameter& parameter, const Pattern& loaded, int64_t in_common) {
    names.push_back(parameter.name());
    before += loaded.nnz();
    after += parameter.pattern()->nnz();
    common += in_common;
  }
};

int64_t in_common(const PatternPtr& a, const PatternPtr& b) {
  if (a == b || !has_mask(*b)) return a->nnz();
  return has_mask(*a) ? count_common(MaskSet(a), MaskSet(b)) : b->nnz();
}

// As a configuration has it.
std::string in_yaml(const PatternShape& pattern) {
  if (pattern.is_block()) {
    return fmt::format("{{type: block, rows: {}, cols: {}}}", pattern.unit_rows(),
                       pattern.unit_columns());
  }
  const std::string group =
      pattern.unit_rows() > 1 ? fmt::format(", group: {}", pattern.unit_rows()) : "";
  return fmt::format("{{type: nm, n: {}, m: {}{}{}}}", pattern.n(), pattern.m(), group,
                     pattern.is_transposable() ? ", transposable: true" : "");
}

// That the pattern a weight was loaded with is not the one it has now; empty where it is, or had
// none.
std::string pattern_note(const Parameter& parameter, const Pattern& loaded,
                         const SparsityAlgorithm* algorithm) {
  const PatternShape before = loaded.layout().pattern_shape();
  if (algorithm == nullptr || !before.is_structured() || parameter.sparsified_by.empty()) return "";
  const PatternShape own = algorithm->pattern(parameter);
  if (own == before) return "";
  if (own.is_structured()) {
    return fmt::format("{}: the pattern {} of the sparsity section ({}) replaces {}, {}",
                       parameter.name(), own.description(), parameter.sparsified_by,
                       before.description(), "which the loaded weight has");
  }
  return fmt::format(
      "{}: the pattern {} of the loaded weight is not kept: the sparsity section ({}) names none, "
      "so it is stored as {}; give `pattern: {}` there to keep it",
      parameter.name(), before.description(), parameter.sparsified_by,
      parameter.pattern()->layout().name(), in_yaml(before));
}

}  // namespace

FirstValues load_first_values(Config& config, Module& model, const DataSplits& data) {
  const Config section_of_model = config.at("model");
  LoadedWeights loaded = load_initial_values(section_of_model, model);
  if (!section_of_model.is_map() || section_of_model.get("init_from").is_null()) return {};
  Config section = config.get("sparsity");
  if (section.is_number()) {
    const SourcePosition given = section.position();
    section = Config::map({{"sparsity", section.clone()}});
    section.set_position(given);
    config.set("sparsity", section);
  }
  for (const std::string& warning : loaded.warnings) log_warning(warning);
  check_columns(section_of_model.get("init_from"), loaded, data);
  FirstValues values{.notes = std::move(loaded.notes)};
  if (loaded.is_quantized && config.peek("quantize.algorithm").text() != "qat") {
    values.notes.emplace_back(
        "the weights are those of a quantized run, and are trained in float32; with quantize: "
        "{algorithm: qat}, the grids of int8 are part of the training");
  }
  if (!has_same_vocabulary(*data.train, loaded.tokenizer)) {
    log_warning(section_of_model.get("init_from").where() +
                ": the loaded weights come from a run on text with a different vocabulary than the "
                "data's, so their rows mean other tokens here; give the data that run's "
                "vocabulary, or `skip` the table of tokens");
  }
  for (const ParameterPtr& parameter : model.parameters()) {
    values.patterns[parameter->name()] = parameter->pattern();
  }
  for (const Config& entry : first_entries(section)) choose_init_method(entry, model, values);
  return values;
}

std::vector<Int8Weight> first_int8(const Config& model_section, Module& model) {
  const Config source = model_section.is_map() ? model_section.get("init_from") : Config();
  if (source.is_null()) return {};
  const Config path = source.is_map() ? source.at("path") : source;
  return load_int8(path.as<std::string>(), model, names_of(source));
}

void FirstValues::add_mask_notes(const Module& model, const SparsityAlgorithm* algorithm) {
  Fate pruned, drawn, kept, opened;
  for (const ParameterPtr& parameter : model.parameters()) {
    const auto loaded = patterns.find(parameter->name());
    if (loaded == patterns.end()) continue;
    const int64_t before = loaded->second->nnz(), after = parameter->pattern()->nnz();
    if (!has_mask(*loaded->second) && !has_mask(*parameter->pattern())) continue;
    const int64_t common = in_common(loaded->second, parameter->pattern());
    const bool is_kept = common == before && common == after;
    Fate& fate = is_kept ? kept : after > before ? opened : common < after ? drawn : pruned;
    fate.add(*parameter, *loaded->second, common);
  }
  const std::string how =
      methods.empty() ? ""
                      : "; init_method: " +
                            join(std::vector<std::string>(methods.begin(), methods.end()), ", ");
  const bool takes_largest =
      std::ranges::all_of(methods, [](const auto& m) { return m == "inherit" || m == "topk"; });
  if (!pruned.names.empty()) {
    notes.push_back(fmt::format("the loaded weights were pruned {}, from {} to {} ({}){}",
                                takes_largest ? "by magnitude" : "by init_method",
                                plural(pruned.before, "nonzero"), pruned.after,
                                first_of(pruned.names), how));
  }
  if (!drawn.names.empty()) {
    notes.push_back(fmt::format(
        "the loaded masks are not kept: of {} that init_method chose, {} {} among the {} that were "
        "loaded ({}){}",
        plural(drawn.after, "nonzero"), drawn.common, drawn.common == 1 ? "is" : "are",
        drawn.before, first_of(drawn.names), how));
  }
  if (!kept.names.empty()) {
    notes.push_back(fmt::format("the loaded masks are kept: {} ({}){}",
                                plural(kept.after, "nonzero"), first_of(kept.names), how));
  }
  if (!opened.names.empty()) {
    const std::string fate =
        fmt::format("the loaded masks are not kept: they had {}, and {} begins with {} ({})",
                    plural(opened.before, "nonzero"),
                    algorithm == nullptr ? "the run" : std::string(algorithm->type()), opened.after,
                    first_of(opened.names));
    if (could_inherit) {
      warnings.push_back(fate + "; `init_method: inherit` in the sparsity section keeps them");
    } else {
      notes.push_back(fate);
    }
  }
  for (const ParameterPtr& parameter : model.parameters()) {
    const auto loaded = patterns.find(parameter->name());
    if (loaded == patterns.end()) continue;
    const std::string note = pattern_note(*parameter, *loaded->second, algorithm);
    if (!note.empty()) notes.push_back(note);
  }
}

}  // namespace lacuna
