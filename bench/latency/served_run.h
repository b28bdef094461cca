// A trained run that the latency benchmark asks for answers, in float32 and, if it has them, int8.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/interop/load_run.h"

namespace lacuna::bench {

/// A run in each of its precisions.
class ServedRun {
 public:
  /// *Errors:* those of load_run; ConfigError if the inputs are lists of features, or tokens
  /// without a vocabulary.
  explicit ServedRun(const std::string& folder);

  const std::string& folder() const { return folder_; }
  /// Part of the masked weights that is zero; 0 without masks.
  double sparsity() const;
  /// Drawn inputs; where the model takes tokens, whole sequences of its largest length.
  Batch draw(int64_t examples) const;
  /// The models, batch normalizations folded: "float32", and "int8" of a quantized run.
  struct Precision {
    std::string name;
    Module* model;
  };
  std::vector<Precision> precisions() const;

 private:
  std::string folder_;
  LoadedRun float32_, int8_;  // the second without a model if the run is not quantized
};

}  // namespace lacuna::bench
