// Measured costs of steps, in memory and in a file.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "lacuna/framework/layouts/cost/step_timer.hpp"

namespace lacuna {

/// The generation of the kernels. Raise it with every change that makes a kernel of any layout, or
/// of the optimizers' updates, faster or slower, and with every change of how steps are timed or of
/// what a key means. Earlier measurements in any cache are then ignored.
inline constexpr int kKernelGeneration = 5;

/// The first line of the file of costs.
std::string cost_file_header();

/// The costs of classes of weights. The file step-costs-VERSION.txt (in `LACUNA_CACHE_DIR`, else
/// $XDG_CACHE_HOME/lacuna, else ~/.cache/lacuna) has a header with the generation of the kernels,
/// then one line "key masked_ms compressed_ms" per class. It is read once; if it cannot be written,
/// costs stay in memory. A file with another first line, or with none, belongs to other kernels: it
/// is ignored and replaced.
class CostCache {
 public:
  /// The costs of a class. If they are not known, measures them and sets `measured_now`.
  LayoutCosts find(const WeightClass& c, bool& measured_now);

  /// A message that is reported once, if measuring has taken more than a second and continues.
  void announce(std::function<void(const std::string& text)> say);

 private:
  void read();
  void append(const std::string& key, const LayoutCosts& costs) const;
  LayoutCosts measure(const WeightClass& c);

  std::mutex mutex_;
  bool read_ = false;
  bool is_kept_ = true;  // whether measurements can be written to the file
  std::function<void(const std::string& text)> say_;
  double measured_seconds_ = 0.0;
  std::map<std::string, LayoutCosts> costs_;
};

}  // namespace lacuna
