// What steps have been measured to cost, in memory and in a file.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "lacuna/framework/layouts/cost/step_timer.hpp"

namespace lacuna {

/// What the kernels' costs belong to: raise it with every change that makes a kernel of any layout,
/// or of the optimizers' updates, faster or slower, and with every change of how steps are timed or
/// of what a key means. What was measured before then counts no longer, in whoever's cache it is.
inline constexpr int kKernelGeneration = 5;

/// The first line of the file of costs.
std::string cost_file_header();

/// The costs of classes of weights. The file step-costs-VERSION.txt (in `LACUNA_CACHE_DIR`, else
/// $XDG_CACHE_HOME/lacuna, else ~/.cache/lacuna) has a header that states the generation of the
/// kernels, then a line "key masked_ms compressed_ms" for each, and is read once; one that cannot
/// be written is done without. A file with another first line, or none, is of other kernels: it is
/// passed over, and another one takes its place.
class CostCache {
 public:
  /// The costs of a class, measured if they are not known, which sets `measured_now`.
  LayoutCosts find(const WeightClass& c, bool& measured_now);

  /// What is told, once, when measuring has taken more than a second and goes on.
  void announce(std::function<void(const std::string& text)> say);

 private:
  void read();
  void append(const std::string& key, const LayoutCosts& costs) const;
  LayoutCosts measure(const WeightClass& c);

  std::mutex mutex_;
  bool read_ = false;
  bool is_kept_ = true;  // whether what is measured can go into the file
  std::function<void(const std::string& text)> say_;
  double measured_seconds_ = 0.0;
  std::map<std::string, LayoutCosts> costs_;
};

}  // namespace lacuna
