// LayerSpan marks a module's forward pass, so that a profiler can assign operations of the backward
// pass to modules by their places.
#pragma once

#include <string_view>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/profile.hpp"

namespace lacuna {

/// While it exists, the module of this path is running. A profiler reserves places in the order of
/// nodes, which does not change the order of the nodes.
class LayerSpan {
 public:
  explicit LayerSpan(std::string_view path) : sink_(profile_sink()) {
    if (sink_ != nullptr) sink_->begin({Work::Layer, path, reserve_place()});
  }
  ~LayerSpan() {
    if (sink_ != nullptr) sink_->end(reserve_place());
  }
  LayerSpan(const LayerSpan&) = delete;
  LayerSpan& operator=(const LayerSpan&) = delete;

 private:
  ProfileSink* sink_;
};

}  // namespace lacuna
