#include "lacuna/framework/train/loop/profiler.hpp"

#include <algorithm>

namespace lacuna {
namespace {

bool is_part(Work kind) { return kind >= Work::Layer; }

size_t index_of(Work kind) { return static_cast<size_t>(kind); }

}  // namespace

const char* name_of(Work kind) {
  switch (kind) {
    case Work::Step:
      return "step";
    case Work::Data:
      return "data";
    case Work::Forward:
      return "forward";
    case Work::Teacher:
      return "teacher";
    case Work::Backward:
      return "backward";
    case Work::Exchange:
      return "exchange";
    case Work::Optimizer:
      return "optimizer";
    case Work::Masks:
      return "masks";
    case Work::Average:
      return "average";
    case Work::Evaluation:
      return "evaluation";
    case Work::Checkpoint:
      return "checkpoints";
    case Work::Metrics:
      return "metrics";
    default:
      return "other";
  }
}

SecondsByKind Profile::total() const {
  SecondsByKind total = outside;
  for (const Layer& layer : layers) {
    for (size_t kind = 0; kind < total.size(); ++kind) total[kind] += layer.seconds[kind];
  }
  return total;
}

Profiler::Profiler(Module& model) {
  for (Module* module : model.modules()) {
    const int layer = add_layer(module->path(), std::string(module->type()));
    for (const auto& [name, parameter] : module->own_parameters()) {
      parameters_.emplace(parameter->name(), layer);
    }
  }
  stack_.push_back({.name = index_of_name("run")});
  set_profile_sink(this);
}

Profiler::~Profiler() { set_profile_sink(nullptr); }

int Profiler::add_layer(const std::string& path, std::string type) {
  const int layer = static_cast<int>(profile_.layers.size());
  if (layers_.emplace(path, layer).second) {
    profile_.layers.push_back({.path = path, .type = std::move(type)});
  }
  return layers_.at(path);
}

int Profiler::index_of_name(std::string_view name) {
  const auto found = names_.find(name);
  if (found != names_.end()) return found->second;
  const int index = static_cast<int>(profile_.names.size());
  names_.emplace(name, index);
  profile_.names.emplace_back(name);
  return index;
}

int Profiler::owner_of(uint64_t place) const {
  const auto after = std::ranges::upper_bound(places_, place, {}, &std::pair<uint64_t, int>::first);
  return after == places_.begin() ? -1 : std::prev(after)->second;
}

// A teacher's layers are not the model's.
int Profiler::layer_of(const ProfiledWork& work, Work phase) {
  if (!is_part(work.kind) || phase == Work::Teacher) return -1;
  if (work.kind == Work::Node) return owner_of(work.place);
  if (work.kind == Work::Layer) {
    const auto found = layers_.find(work.name);
    return found == layers_.end() ? add_layer(std::string(work.name), "") : found->second;
  }
  const auto found = parameters_.find(work.name);
  return found == parameters_.end() ? -1 : found->second;
}

void Profiler::begin(const ProfiledWork& work) {
  if (work.kind == Work::Step) {
    ++profile_.steps;
    places_.clear();
    if (profile_.events.size() < kMostEvents) profile_.event_steps = profile_.steps;
  }
  const Work phase = is_part(work.kind)        ? stack_.back().phase
                     : work.kind == Work::Step ? Work::Other
                                               : work.kind;
  Frame frame{.kind = work.kind, .phase = phase, .layer = layer_of(work, phase)};
  frame.name = index_of_name(work.name.empty() ? name_of(work.kind) : work.name);
  if (work.kind == Work::Layer && phase == Work::Forward) {
    places_.emplace_back(work.place, frame.layer);
  }
  frame.begin = now();
  stack_.push_back(frame);
}

void Profiler::end(uint64_t place) {
  const Frame frame = stack_.back();
  stack_.pop_back();
  count(frame, now() - frame.begin);
  if (frame.kind == Work::Layer && frame.phase == Work::Forward) {
    places_.emplace_back(place, stack_.back().layer);
  }
}

// Whole steps alone are kept as events, so that a picture does not end within one.
void Profiler::count(const Frame& frame, double seconds) {
  SecondsByKind& to = frame.layer < 0 ? profile_.outside
                                      : profile_.layers[static_cast<size_t>(frame.layer)].seconds;
  to[index_of(frame.phase)] += std::max(0.0, seconds - frame.inner);
  if (!stack_.empty()) stack_.back().inner += seconds;
  if (profile_.event_steps < profile_.steps) return;
  profile_.events.push_back({.kind = frame.phase,
                             .layer = frame.layer,
                             .name = frame.name,
                             .begin = frame.begin,
                             .seconds = seconds});
}

Profile Profiler::finish() {
  set_profile_sink(nullptr);
  profile_.seconds = now();
  while (!stack_.empty()) {
    const Frame frame = stack_.back();
    stack_.pop_back();
    count(frame, profile_.seconds - frame.begin);
  }
  return std::move(profile_);
}

}  // namespace lacuna
