#include "model/pass_profile.h"

#include <sys/resource.h>

#include <algorithm>
#include <span>
#include <utility>

#include "common/clock.h"
#include "lacuna/framework/nn/module_rows.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna::bench {
namespace {

constexpr double kFloatBytes = 4.0;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Page faults of this process that needed no disk.
int64_t minor_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// The first pass warms up.
template <class T>
std::span<const T> counted(const std::vector<T>& passes) {
  return std::span(passes).subspan(passes.size() > 1 ? 1 : 0);
}

// The name of the nodes whose products a module of that type has.
std::string node_of(std::string_view type) {
  if (type == "tied_linear") return "linear";
  if (type == "patch_embedding") return "conv2d";
  return std::string(type);
}

double nonzeros(const Parameter& weight) { return static_cast<double>(weight.pattern()->nnz()); }

}  // namespace

PassProfile::PassProfile(const Module& model, const Shape& example, int64_t examples)
    : model_(model), example_(example), examples_(examples) {
  for (const ModuleRow& row : module_rows(model, example)) {
    // A group may have the path of what is in it.
    const bool is_group = !row.module->children().empty();
    const auto [entry, is_new] =
        type_of_.try_emplace(row.module->path(), std::string(row.module->type()));
    if (!is_new && !is_group) entry->second = row.module->type();
  }
}

PassProfile::Pass::Pass(PassProfile& profile)
    : profile_(profile),
      outer_(profile_sink()),
      faults_(minor_faults()),
      trace_([&profile](const NodeRun& node) { profile.add_node(node); }) {
  profile.passes_.emplace_back();
  profile.moved_.clear();
  set_profile_sink(&profile);
}

PassProfile::Pass::~Pass() {
  set_profile_sink(outer_);
  profile_.faults_.push_back(static_cast<double>(minor_faults() - faults_));
}

void PassProfile::drop_last() {
  passes_.pop_back();
  faults_.pop_back();
}

void PassProfile::begin(const ProfiledWork& work) {
  open_.push_back(
      {.is_layer = work.kind == lacuna::Work::Layer, .path = work.name, .start = Clock::now()});
}

void PassProfile::end(uint64_t) {
  const Span span = open_.back();
  open_.pop_back();
  if (!span.is_layer) return;
  const double seconds = seconds_since(span.start);
  add("forward " + type_of_[std::string(span.path)], seconds - span.inner);
  if (!open_.empty()) open_.back().inner += seconds;
}

void PassProfile::add_node(const NodeRun& node) {
  add("backward " + node.name, node.seconds);
  double bytes = static_cast<double>(node.saved_bytes);
  bytes += kFloatBytes * static_cast<double>(node.output_shape.numel());
  for (const Shape& shape : node.input_shapes) {
    bytes += kFloatBytes * static_cast<double>(shape.numel());
  }
  moved_[node.name].push_back(bytes);
}

std::map<std::string, double> PassProfile::ms_by_kind() const {
  std::map<std::string, std::vector<double>> samples;
  for (const auto& pass : counted(passes_)) {
    for (const auto& [kind, seconds] : pass) samples[kind].push_back(1e3 * seconds);
  }
  std::map<std::string, double> medians;
  for (auto& [kind, values] : samples) medians[kind] = median(std::move(values));
  return medians;
}

double PassProfile::page_faults() const {
  const auto faults = counted(faults_);
  return faults.empty() ? 0.0 : median({faults.begin(), faults.end()});
}

std::map<std::string, double> PassProfile::bound_ms_by_kind(const MachineLimits& limits) const {
  std::map<std::string, double> bounds, backward_operations, weight_bytes;
  const std::vector<ModuleRow> rows = module_rows(model_, example_);
  const std::vector<Flops> flops = flops_of_modules(rows, nonzeros);
  const auto examples = static_cast<double>(examples_);
  for (size_t i = 0; i < rows.size(); ++i) {
    const ModuleRow& row = rows[i];
    if (!row.module->children().empty() || !row.input || !row.output) continue;
    const double weights = row.weight == nullptr ? 0.0 : kFloatBytes * nonzeros(*row.weight);
    const double moved =
        kFloatBytes * examples * static_cast<double>(row.input->numel() + row.output->numel());
    const std::string type(row.module->type());
    bounds["forward " + type] += limits.bound_ms(examples * flops[i].forward, moved + weights);
    backward_operations[node_of(type)] += examples * (flops[i].training - flops[i].forward);
    weight_bytes[node_of(type)] += 2.0 * weights;  // values and their gradient
  }
  for (const auto& [name, of_nodes] : moved_) {
    double by_bytes = weight_bytes[name] / limits.gb_per_s(weight_bytes[name]) / 1e6;
    for (const double bytes : of_nodes) by_bytes += limits.bound_ms(0.0, bytes);
    bounds["backward " + name] =
        std::max(limits.bound_ms(backward_operations[name], 0.0), by_bytes);
  }
  return bounds;
}

}  // namespace lacuna::bench
