#include "lacuna/framework/layouts/cost/cost_cache.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <limits>
#include <sstream>
#include <utility>

#include "lacuna/framework/layouts/cost/kept_times.hpp"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

fs::path cache_file() { return measurement_file("step-costs"); }

}  // namespace

std::string cost_file_header() {
  return "costs of steps, kernels of generation " + std::to_string(kKernelGeneration);
}

// A line is one write (for a new file, with the header), so that concurrent processes do not mix
// their lines. All digits are written, so that runs that read the file use the same numbers as the
// run that measured.
void CostCache::append(const std::string& key, const LayoutCosts& costs) const {
  const fs::path path = cache_file();
  if (path.empty() || !is_kept_) return;
  std::error_code ignored, missing;
  fs::create_directories(path.parent_path(), ignored);
  const bool is_new = fs::file_size(path, missing) == 0 || missing;
  std::ostringstream line;
  if (is_new) line << cost_file_header() << "\n";
  line << std::setprecision(std::numeric_limits<double>::max_digits10);
  line << key << " " << costs.masked_ms << " " << costs.compressed_ms << "\n";
  std::ofstream(path, std::ios::app) << line.str() << std::flush;
}

LayoutCosts CostCache::find(const WeightClass& c, bool& measured_now) {
  const std::lock_guard lock(mutex_);
  if (!read_) read();
  const std::string key = c.key();
  const auto found = costs_.find(key);
  if (found != costs_.end()) return found->second;
  measured_now = true;
  const LayoutCosts costs = measure(c);
  costs_[key] = costs;
  append(key, costs);
  return costs;
}

void CostCache::announce(std::function<void(const std::string& text)> say) {
  const std::lock_guard lock(mutex_);
  say_ = std::move(say);
}

LayoutCosts CostCache::measure(const WeightClass& c) {
  if (say_ && measured_seconds_ > 1.0) {
    const std::string file = cache_file().string();
    say_("measuring which layouts are faster on this machine; " +
         (file.empty() ? "there is no folder to cache the result (set LACUNA_CACHE_DIR)"
                       : "this is done once, and cached in " + file));
    say_ = nullptr;
  }
  const auto start = std::chrono::steady_clock::now();
  const LayoutCosts costs = time_steps(c);
  measured_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return costs;
}

void CostCache::read() {
  read_ = true;
  const fs::path path = cache_file();
  if (path.empty()) return;
  std::ifstream file(path);
  std::string line;
  if (std::getline(file, line) && line != cost_file_header()) {
    file.close();
    std::error_code error;
    fs::remove(path, error);  // of other kernels
    is_kept_ = !error;
    return;
  }
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string key;
    LayoutCosts costs;
    if (fields >> key >> costs.masked_ms >> costs.compressed_ms && costs.masked_ms > 0.0 &&
        costs.compressed_ms > 0.0) {
      costs_.emplace(key, costs);  // two processes may measure at once: the first counts
    }
  }
}

}  // namespace lacuna
