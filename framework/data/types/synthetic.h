// The `synthetic` dataset: noisy class means of any width, computed when they are needed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/data/load_data.h"

namespace lacuna {

struct SyntheticOptions {
  int64_t features = 1024;      ///< in [1, 2^31)
  int64_t classes = 10;         ///< in [2, kMaxClasses]
  double informative = 0.1;     ///< features whose mean a class sets, as a fraction in (0, 1]
  double noise = 1.0;           ///< standard deviation of the noise on the means; ≥ 0
  int64_t size = 20000;         ///< number of examples, ≥ 1
  uint64_t seed = 0;            ///< of class means and examples
  std::string split = "train";  ///< examples of another split differ, class means do not
};

/// Classification that can be learned, with inputs of any width. A class has a mean of +1 or −1 at
/// its informative features, drawn with replacement, and 0 elsewhere; an example is the mean of its
/// class, which is drawn uniformly, plus uniform noise. Example i is a pure function of the options
/// and i. *Cost:* the class means are kept, 5 bytes for each informative feature of a class; an
/// example is computed again for each batch, at about 1 ns per feature, on the calling thread.
class SyntheticDataset final : public Dataset {
 public:
  /// *Errors:* StateError on options out of range.
  explicit SyntheticDataset(SyntheticOptions options);

  int64_t size() const override { return options_.size; }
  const Shape& example_shape() const override { return shape_; }
  int64_t num_classes() const override { return options_.classes; }
  int64_t num_outputs() const override { return 0; }
  Batch gather(std::span<const int64_t> indices) const override;

 private:
  // The features where a class has a mean other than 0, and these means.
  struct ClassMean {
    std::vector<uint32_t> features;
    std::vector<int8_t> signs;
  };

  int64_t label(int64_t index) const;
  void write_example(int64_t index, int64_t label, std::span<float> out) const;

  SyntheticOptions options_;
  Shape shape_;
  CounterRng labels_;
  std::vector<ClassMean> means_;  // by class
};

/// Keys of `data` (in addition to those of load_data; it has no `normalize`):
///
/// - `features`, `classes`, `informative`, `noise`: see SyntheticOptions. Defaults 1024, 10, 0.1
///   and 1.0.
/// - `train_size`, `test_size`: number of examples. Defaults 20000 and 4000.
/// - `seed`: another seed gives other class means and examples. Default 0, whatever the run's seed
///   is.
///
/// *Errors:* ConfigError on values out of range.
DataSplits load_synthetic(const Config& data, uint64_t seed);

}  // namespace lacuna
