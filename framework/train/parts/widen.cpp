#include "lacuna/framework/train/parts/widen.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "lacuna/framework/config/names.h"
#include "lacuna/framework/model/presets/presets.hpp"

namespace lacuna {
namespace {

constexpr int64_t kWidest = 64;       // times the width that is written
constexpr int64_t kStep = 8;          // widths are multiples of it
constexpr int64_t kPatternStep = 16;  // the same for patterns and wide layers

struct Width {
  std::string path;
  int64_t written = 0;
};

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Numbers under these keys, here and below.
void find_widths(const Config& node, const std::vector<std::string>& keys,
                 std::vector<Width>& widths) {
  for (const auto& [key, value] : node.children()) {
    if (node.is_map() && contains(keys, key) && value.is_number()) {
      widths.push_back({value.path(), value.as<int64_t>()});
    } else {
      find_widths(value, keys, widths);
    }
  }
}

// Makes `step` divisible by the parts into which patterns and groups of a section `sparsity`, its
// entries and its phases cut widths. Values out of range are reported elsewhere.
void divide_by_parts(const Config& sparsity, int64_t& step) {
  static const std::vector<std::string> parts = {
      "rows", "cols", "m", "group", "balance_in_groups", "balance_out_groups"};
  constexpr double kMost = 4096;
  for (const auto& [key, value] : sparsity.children()) {
    if (key == "pattern" && !value.is_null()) step = std::lcm(step, kPatternStep);
    const bool is_part = sparsity.is_map() && contains(parts, key) && value.is_number();
    if (is_part && value.as<double>() >= 1.0 && value.as<double>() <= kMost) {
      step = std::lcm(step, std::llround(value.as<double>()));
    }
    divide_by_parts(value, step);
  }
}

// Whether a section `sparsity`, an entry or a phase of it masks whole units.
bool masks_units(const Config& sparsity) {
  const auto& parts = sparsity.children();
  return std::ranges::any_of(parts, [&](const auto& part) {
    const auto& [key, value] = part;
    return (key == "algorithm" && value.is_scalar() && to_lower(value.text()) == "structured") ||
           masks_units(value);
  });
}

// The model's outputs are no width: its last layer is left out, unless it is a group.
std::vector<Width> widths_of_layers(const Config& model, const std::vector<std::string>& keys) {
  std::vector<Width> widths;
  Config layers = model.peek("layers");
  find_widths(model.peek("define"), keys, widths);
  while (layers.is_list() && !layers.children().empty()) {
    const auto& all = layers.children();
    for (size_t i = 0; i + 1 < all.size(); ++i) find_widths(all[i].second, keys, widths);
    layers = all.back().second.peek("layers");
  }
  return widths;
}

class Widener {
 public:
  Widener(const Config& config, const WidenOptions& options, const CostOfConfig& cost)
      : config_(config.clone()),
        node_(config.at("model").at("widen")),
        options_(options),
        cost_(cost) {
    Config model = config_.at("model");
    model.erase("widen");
    Config dense = config_.clone();
    dense_ = cost_(dense, false);  // which writes a preset's keys
    find_widths_in(dense.at("model"));
  }

  Widening widen() {
    if (masks_units(config_.peek("sparsity"))) {
      node_.error(
          "structured masks units, whose number is not planned for other widths; leave `widen` or "
          "the algorithm out");
    }
    int64_t narrow = (widths_.front().written + unit_ - 1) / unit_, wide = narrow;
    const int64_t most = std::max(narrow, kWidest * widths_.front().written / unit_);
    while (cost_at(wide) < wanted()) {
      narrow = wide;
      if (wide >= most) fail_too_wide();
      wide = std::min(2 * wide, most);
    }
    while (wide - narrow > 1) {
      const int64_t between = (narrow + wide) / 2;
      (cost_at(between) < wanted() ? narrow : wide) = between;
    }
    const auto distance = [&](int64_t units) { return std::abs(cost_at(units) - wanted()); };
    const int64_t best = distance(narrow) < distance(wide) ? narrow : wide;
    Widening widening{.changes = {}, .dense = dense_, .widened = costs_.at(best)};
    for (const Width& width : widths_) {
      widening.changes.push_back({width.path, width.written, widened(width, best)});
    }
    return widening;
  }

 private:
  void find_widths_in(const Config& model) {
    const auto preset = preset_widths(model);
    if (preset) {
      for (const std::string& key : preset->keys) {
        const Config value = model.peek(key);
        if (value.is_number()) widths_.push_back({"model." + key, value.as<int64_t>()});
      }
    } else {
      widths_ = widths_of_layers(config_.at("model"), options_.keys);
      std::ranges::stable_sort(widths_, {}, &Width::written);
    }
    if (widths_.empty()) {
      node_.error(fmt::format("no layer or template has a numeric {}, so there is nothing to widen",
                              join(options_.keys, ", ")));
    }
    for (const Width& width : widths_) {
      if (width.written < 1)
        node_.error(fmt::format("{} is {}, which is not a width", width.path, width.written));
    }
    if (widths_.front().written >= 128) step_ = kPatternStep;
    divide_by_parts(config_.peek("sparsity"), step_);
    unit_ = step_;
    for (const std::string& key : preset ? preset->heads : std::vector<std::string>()) {
      const Config heads = model.peek(key);  // absent: it follows the others
      if (heads.is_number()) unit_ = std::lcm(unit_, 2 * std::max<int64_t>(1, heads.as<int64_t>()));
    }
  }

  [[noreturn]] void fail_too_wide() const {
    node_.error(fmt::format(
        "even {} times wider, it does not reach the {} of the dense model; its sparsity, or what "
        "stays dense, allows no such width",
        kWidest, options_.match == WidenOptions::Match::Flops ? "multiply-adds" : "parameters"));
  }

  // The first width in units; the others keep their ratio to it.
  int64_t widened(const Width& width, int64_t units) const {
    if (&width == &widths_.front()) return units * unit_;
    const double factor =
        static_cast<double>(units * unit_) / static_cast<double>(widths_.front().written);
    const double steps = factor * static_cast<double>(width.written) / static_cast<double>(step_);
    return step_ * std::max<int64_t>(1, std::llround(steps));
  }

  double wanted() const { return in_question(dense_); }
  double in_question(const ModelCost& cost) const {
    return options_.match == WidenOptions::Match::Flops ? cost.flops
                                                        : static_cast<double>(cost.nnz);
  }

  double cost_at(int64_t units) {
    const auto known = costs_.find(units);
    if (known != costs_.end()) return in_question(known->second);
    Config config = config_.clone();
    for (const Width& width : widths_) config.set_path(width.path, widened(width, units));
    return in_question(costs_[units] = cost_(config, true));
  }

  Config config_;  // without the key
  Config node_;    // where it was
  const WidenOptions& options_;
  const CostOfConfig& cost_;
  ModelCost dense_;
  std::vector<Width> widths_;
  int64_t step_ = kStep, unit_ = kStep;
  std::map<int64_t, ModelCost> costs_;  // by the units of the first width
};

}  // namespace

WidenOptions read_widen(const Config& model) {
  const Config node = model.at("widen");
  WidenOptions options;
  std::string match = "flops";
  if (node.is_map()) {
    match = node.required<std::string>("match");
    const Config keys = node.get("keys");
    if (keys.is_scalar() && !keys.is_null()) options.keys = {keys.as<std::string>()};
    if (keys.is_list()) options.keys = keys.as<std::vector<std::string>>();
    if (keys.is_list() && options.keys.empty()) keys.fail("at least one key");
    node.require_all_read();
  } else {
    match = node.as<std::string>();
  }
  if (match != "flops" && match != "parameters") {
    (node.is_map() ? node.at("match") : node).fail("flops or parameters");
  }
  if (match == "parameters") options.match = WidenOptions::Match::Parameters;
  if (is_preset(model) && !options.keys.empty()) {
    node.at("keys").error("a preset knows its widths; `keys` are for layers and templates");
  }
  if (!is_preset(model) && options.keys.empty()) {
    node.error(
        "the widths of this model are unknown; name keys of layers or arguments of templates: "
        "widen: {match: " +
        match + ", keys: [out_features]}");
  }
  return options;
}

std::string Widening::in_words(WidenOptions::Match match) const {
  std::vector<std::string> widths;
  for (const WidthChange& change : changes) {
    widths.push_back(fmt::format("{} {} → {}", change.path, change.written, change.widened));
  }
  return join(widths, ", ") +
         (match == WidenOptions::Match::Flops
              ? fmt::format(": {:.4g} million multiply-adds, dense {:.4g}", widened.flops / 2e6,
                            dense.flops / 2e6)
              : fmt::format(": {} nonzeros, dense {}", widened.nnz, dense.nnz));
}

Widening widen_model(Config& config, const CostOfConfig& cost) {
  const Config model = config.at("model");
  const WidenOptions options = read_widen(model);
  const Config node = model.at("widen");
  if (config.peek("sparsity").is_null()) {
    node.error("a model is widened by what sparsity saves, but there is no `sparsity`");
  }
  if (!model.peek("init_from").is_null() || !model.peek("from_hf").is_null()) {
    node.error("the loaded weights have the shapes that are written; leave out `widen`");
  }
  const Widening widening = Widener(config, options, cost).widen();
  Config(model).erase("widen");
  for (const WidthChange& change : widening.changes) {
    config.set_path(change.path, change.widened);
  }
  return widening;
}

}  // namespace lacuna
