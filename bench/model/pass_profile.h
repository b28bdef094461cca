// Where the time of passes through a model goes, by kind of work, next to the least time that the
// processor would need.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/machine_limits.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/core/profile.hpp"
#include "lacuna/framework/nn/module.h"

namespace lacuna::bench {

/// Kinds of work: "forward conv2d", the modules of that type together, each without those inside
/// it; "backward conv2d", the nodes of that name; and what the pass itself adds. What a module
/// leaves to the next one, as a batch_norm does to a ReLU, counts there.
class PassProfile final : public ProfileSink {
 public:
  /// Of passes over so many examples of that shape.
  PassProfile(const Module& model, const Shape& example, int64_t examples);

  /// A pass that is under way while it lives.
  class Pass {
   public:
    explicit Pass(PassProfile& profile);
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    PassProfile& profile_;
    ProfileSink* outer_;
    int64_t faults_;
    BackwardTrace trace_;
  };
  void add(const std::string& kind, double seconds) { passes_.back()[kind] += seconds; }
  /// The last pass counts for nothing.
  void drop_last();

  /// Medians over the passes but the first, in ms.
  std::map<std::string, double> ms_by_kind() const;
  /// The median over the same passes of the pages that the system had to provide during one: memory
  /// that was given back between passes, or within.
  double page_faults() const;
  /// The least ms of each kind whose work is known: operations on nonzeros, inputs and outputs and
  /// what the forward pass has saved each moved once, at the rate of the smallest level of memory
  /// that holds them. Convolutions by Winograd's algorithm take fewer operations.
  std::map<std::string, double> bound_ms_by_kind(const MachineLimits& limits) const;

  void begin(const ProfiledWork& work) override;
  void end(uint64_t place) override;
  void pause() override {}
  void go_on() override {}

 private:
  struct Span {
    bool is_layer = false;
    std::string_view path;
    std::chrono::steady_clock::time_point start;
    double inner = 0.0;  // seconds of layers inside
  };
  struct Cost {
    double operations = 0.0, bytes = 0.0;
  };

  void add_node(const NodeRun& node);

  const Module& model_;
  Shape example_;
  int64_t examples_;
  std::unordered_map<std::string, std::string> type_of_;  // by path
  std::vector<Span> open_;
  std::vector<std::map<std::string, double>> passes_;  // seconds
  std::vector<double> faults_;                         // of each pass
  std::map<std::string, std::vector<double>> moved_;   // by the last pass's nodes, bytes
};

}  // namespace lacuna::bench
