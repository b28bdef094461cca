// What the block benchmark compares: an encoder block of BERT, its linear layers in one layout.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/sparsity/algorithm.h"

namespace lacuna::bench {

/// The sizes of a block, and of what it is given.
struct BlockSize {
  int64_t examples = 8;
  int64_t tokens = 128;  ///< of an example
  int64_t features = 768;
  int64_t hidden = 3072;  ///< of the MLP
  int64_t heads = 12;
};

/// How the six weights of the linear layers are stored: "dense", or the `sparsity` section of a
/// configuration without param_filter.
struct BlockStorage {
  std::string layout = "dense";
  double sparsity = 0.0;
  std::string section = {};  ///< empty where dense
};

/// Attention and MLP, each followed by the addition of what it was given, and a layer_norm.
class EncoderBlock {
 public:
  EncoderBlock(const BlockSize& size, const BlockStorage& storage);

  /// *Shapes:* x and dy [examples, tokens, features].
  void forward(const Tensor& x);
  void backward(const Tensor& dy);
  const Tensor& output() const { return output_.value(); }
  const Tensor& input_gradient() const { return input_.gradient(); }
  /// Medians over the passes but the first, in ms: "forward", and of the backward pass the nodes of
  /// each name together, "backward linear".
  std::map<std::string, double> ms_by_kind() const;
  /// Multiplications and additions of a pass, of the nonzeros and of attention: forward, or with
  /// all gradients.
  double operations(bool with_backward) const;
  /// "csr", or "csr in 4 of 6" where others are stored in another way.
  std::string stored() const;

 private:
  std::unique_ptr<Sequential> model_;
  std::unique_ptr<SparsityAlgorithm> algorithm_;  // null where dense
  Variable input_, output_;
  std::vector<std::map<std::string, double>> seconds_;  // of each pass
};

/// The block's products by oneDNN's sgemm, one after the other and nothing between them: those of
/// the six linear layers, and of each head's queries with keys and weights with values.
class BlockProducts {
 public:
  explicit BlockProducts(const BlockSize& size);
  void forward();
  void backward();

 private:
  struct Product {
    Tensor x, weight, y, dx, dw;
    int64_t times = 1;  // in a block
  };

  std::vector<Product> products_;
};

}  // namespace lacuna::bench
