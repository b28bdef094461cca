#include "lacuna/framework/train/loop/mask_recorder.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/file_system.hpp"

namespace lacuna {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kMostBytes = 64'000'000;
constexpr int64_t kFiles = 5;

}  // namespace

std::vector<MaskDetail> choose_mask_details(const std::vector<int64_t>& numels) {
  std::vector<size_t> order(numels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return numels[i]; });
  std::vector<MaskDetail> details(numels.size(), MaskDetail::Tiles);
  int64_t left = kMostBytes / kFiles;
  for (const size_t i : order) {
    const int64_t bytes = (numels[i] + 7) / 8;
    if (bytes > left) break;
    left -= bytes;
    details[i] = MaskDetail::Positions;
  }
  return details;
}

std::vector<MaskRecord> record_masks(const Experiment& experiment) {
  std::vector<MaskRecord> masks;
  if (experiment.sparsity == nullptr) return masks;
  const std::vector<ParameterPtr>& parameters = experiment.sparsity->parameters();
  std::vector<int64_t> numels;
  for (const ParameterPtr& parameter : parameters) numels.push_back(parameter->numel());
  const std::vector<MaskDetail> details = choose_mask_details(numels);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const PatternPtr pattern = parameters[i]->pattern();
    if (parameters[i]->numel() == 0) continue;
    const auto visit = [&](const std::function<void(int64_t)>& take) {
      pattern->positions().for_each([&](int64_t flat) { take(flat); });
    };
    masks.push_back(record_mask(parameters[i]->name(), parameters[i]->shape(), visit, details[i]));
  }
  return masks;
}

MaskRecorder::MaskRecorder(const Experiment& experiment, std::string run_folder)
    : experiment_(experiment), folder_(std::move(run_folder) + "/masks") {}

std::string MaskRecorder::file(int64_t step) const {
  return fmt::format("{}/step-{:010}.h5", folder_, step);
}

void MaskRecorder::go_on_from(int64_t step) const {
  remove_temporary_files(folder_);
  std::vector<fs::path> later;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    int64_t of_file = 0;
    if (!name.starts_with("step-") || !name.ends_with(".h5")) continue;
    std::from_chars(name.data() + 5, name.data() + name.size() - 3, of_file);
    if (of_file > step) later.push_back(entry.path());
  }
  for (const fs::path& path : later) fs::remove(path, error);
}

bool MaskRecorder::is_due(int64_t step) const {
  const int64_t total = experiment_.total_steps();
  for (int64_t quarter = 0; quarter <= 4; ++quarter) {
    // Without a product that could be too large.
    if (step == total / 4 * quarter + total % 4 * quarter / 4) return true;
  }
  return false;
}

std::optional<std::string> MaskRecorder::write(int64_t step) const {
  const std::vector<MaskRecord> masks = record_masks(experiment_);
  if (masks.empty()) return std::nullopt;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw StateError("cannot make the folder '" + folder_ + "': " + error.message());
  write_masks(file(step), step, masks);
  return file(step);
}

}  // namespace lacuna
