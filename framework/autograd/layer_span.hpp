// LayerSpan: a module's forward pass, for a profiler, which finds by its places the module that an
// operation of the backward pass belongs to.
#pragma once

#include <string_view>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/profile.hpp"

namespace lacuna {

/// The module of that path is under way while it lives. A profiler costs places in the order of
/// nodes, which changes no order among them.
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
