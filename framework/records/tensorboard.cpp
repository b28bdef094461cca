#include "lacuna/framework/records/tensorboard.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/records/json_text.hpp"

namespace lacuna {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kMostPixels = 400;

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Removes the event files and makes the folder; the new file's path.
std::string make_place(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw StateError("cannot make the folder '" + folder + "': " + error.message());
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      old.push_back(entry.path());
    }
  }
  for (const fs::path& path : old) {
    if (!fs::remove(path, error)) {
      throw StateError("cannot remove '" + path.string() + "': " + error.message());
    }
  }
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"localhost"};
  return fmt::format("{}/events.out.tfevents.{:010}.{}.{}", folder, static_cast<int64_t>(now()),
                     host.data(), ::getpid());
}

// Files of masks in the order of their steps, which their names have.
std::vector<std::string> mask_files(const std::string& run_folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_folder + "/masks", error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(".h5")) files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

// Numbers of an event of masks, each under a tag of its own before the parameter's name.
void add_update(const Config& event, std::vector<EventFile::Scalar>& scalars) {
  const auto parameter = event.required<std::string>("parameter");
  for (const char* key :
       {"churn", "dropped", "grown", "nnz", "ever_active", "dead_rows", "dead_columns"}) {
    if (const auto value = event.optional<double>(key)) {
      scalars.emplace_back(std::string(key) + "/" + parameter, *value);
    }
  }
}

void add_losses(const Config& event, const std::string& split,
                std::vector<EventFile::Scalar>& scalars) {
  std::vector<std::string_view> keys = {"loss",           "accuracy",       "top5_accuracy",
                                        "precision_at_1", "precision_at_3", "precision_at_5",
                                        "perplexity"};
  if (split == "train") keys.insert(keys.end(), {"lr", "examples_per_second"});
  for (const std::string_view key : keys) {
    if (const auto value = event.optional<double>(key)) {
      scalars.emplace_back(split + "/" + std::string(key), *value);
    }
  }
  if (!event.has("sparsity")) return;
  for (const auto& [name, fractions] : event.at("sparsity").entries()) {
    for (const char* key : {"target", "actual"}) {
      if (const auto value = fractions.optional<double>(key)) {
        scalars.emplace_back("sparsity/" + name + "/" + key, *value);
      }
    }
  }
}

}  // namespace

TensorBoard::TensorBoard(const std::string& run_folder) {
  const std::string path = make_place(run_folder + "/tensorboard");
  std::vector<Config> events;
  std::ifstream metrics(run_folder + "/metrics.jsonl", std::ios::binary);
  for (std::string line; std::getline(metrics, line);) {
    const auto event = parse_json(line);
    if (!event || !event->is_map() || !event->has("split") || !event->has("step")) continue;
    if (const auto seconds = event->optional<double>("seconds")) {
      seconds_ = std::max(seconds_, *seconds);
    }
    events.push_back(*event);
  }
  began_ = now() - seconds_;
  seconds_ = 0.0;
  file_ = std::make_unique<EventFile>(path, began_);
  for (const Config& event : events) write(event);
  for (const std::string& file : mask_files(run_folder)) write_masks(file);
}

void TensorBoard::write(const Config& event) {
  const auto split = event.required<std::string>("split");
  std::vector<EventFile::Scalar> scalars;
  if (split == "update") {
    add_update(event, scalars);
  } else {
    add_losses(event, split, scalars);
  }
  seconds_ = event.get("seconds").is_null() ? seconds_ : event.required<double>("seconds");
  file_->write(event.required<int64_t>("step"), began_ + seconds_, scalars);
}

void TensorBoard::write_masks(const std::string& path) {
  if (!pictured_.insert(path).second) return;
  try {
    const StepMasks masks = read_masks(path);
    for (const MaskRecord& mask : masks.masks) {
      file_->write(masks.step, began_ + seconds_, "mask/" + mask.name,
                   picture_of(mask, kMostPixels));
    }
  } catch (const Error& error) {  // a file of an earlier process, damaged since
    log_warning(std::string(error.what()) + "; TensorBoard does not get its pictures");
  }
}

}  // namespace lacuna
