// What oneDNN takes for a model's products in int8.
#pragma once

#include <cstdint>
#include <memory>

#include "lacuna/framework/nn/module.h"
#include "latency/served_model.h"

namespace lacuna::bench {

/// The products of a model's linear layers and convolutions by oneDNN's primitives, dense, in int8,
/// with bias, ReLU and the step back to bytes, one after the other and nothing between them; all
/// formats are oneDNN's choice. Those of attention are float32, by its sgemm.
class Int8Products {
 public:
  Int8Products(const ServedNetwork& network, const Module& model, int64_t examples);
  ~Int8Products();
  Int8Products(const Int8Products&) = delete;
  Int8Products& operator=(const Int8Products&) = delete;

  /// Whether lacuna was built with oneDNN. *Requires* it of run.
  static bool are_there();
  void run();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lacuna::bench
