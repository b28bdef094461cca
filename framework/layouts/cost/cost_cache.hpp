// What steps have been measured to cost, in memory and in a file.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "lacuna/framework/layouts/cost/step_timer.hpp"

namespace lacuna {

/// The costs of classes of weights. The file (`LACUNA_CACHE_DIR`, else $XDG_CACHE_HOME/lacuna, else
/// ~/.cache/lacuna) has a line "key masked_ms compressed_ms" for each, and is read once; one that
/// cannot be written is done without.
class CostCache {
 public:
  /// The costs of a class, measured if they are not known, which sets `measured_now`.
  LayoutCosts find(const WeightClass& c, bool& measured_now);

  /// What is told, once, when measuring has taken more than a second and goes on.
  void announce(std::function<void(const std::string& text)> say);

 private:
  void read();
  LayoutCosts measure(const WeightClass& c);

  std::mutex mutex_;
  bool read_ = false;
  std::function<void(const std::string& text)> say_;
  double measured_seconds_ = 0.0;
  std::map<std::string, LayoutCosts> costs_;
};

}  // namespace lacuna
