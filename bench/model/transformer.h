// The transformers that the model benchmark trains, their blocks' weights in one layout.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/config/named_tensors.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/optimizers/adam.h"
#include "lacuna/sparsity/algorithm.h"
#include "model/pass_profile.h"

namespace lacuna::bench {

/// A transformer, and what a step of it is given.
struct Transformer {
  std::string name;
  std::string title;
  std::string preset;  ///< gpt2, bert, vit
  int64_t layers = 4;
  int64_t heads = 4;
  int64_t features = 128;
  int64_t hidden = 512;  ///< of the MLP
  int64_t classes = 65;  ///< of gpt2 the vocabulary, each token having a label
  int64_t vocabulary = 65;
  int64_t batch = 12;
  int64_t length = 64;  ///< tokens of an example; vit has one for each patch, and one more
  int64_t size = 0;     ///< vit: of the images, which have 3 channels
  int64_t patch = 0;
  double dropout = 0.0;  ///< everywhere: of embeddings, attention and branches

  int64_t tokens() const { return size == 0 ? length : (size / patch) * (size / patch) + 1; }
  /// First values by seed 0.
  std::unique_ptr<Sequential> build() const;
};

/// "gpt_mini" (nanoGPT's for a CPU), "gpt_4x192", "gpt_6x384" (nanoGPT's for a GPU, at 16
/// examples), "bert_base", "vit_s", "vit_cifar"; null for another name.
std::unique_ptr<Transformer> find_transformer(const std::string& name);
const std::vector<std::string>& transformer_names();
/// The same of next to no size, for testing the program.
Transformer tiny(Transformer transformer);

/// How the weights of the blocks' linear layers are stored: "dense", or the `sparsity` section of a
/// configuration without param_filter and layout.
struct BlockWeights {
  std::string layout = "dense";
  double sparsity = 0.0;
  std::string section = {};  ///< empty where dense
};

/// Trains on one batch of noise by AdamW. Next to PassProfile's kinds of work, there are "forward"
/// as a whole, with the loss, and "optimizer".
class TransformerTrainee {
 public:
  /// `examples`: those of the batch. Layouts are chosen for the transformer's own.
  TransformerTrainee(const Transformer& transformer, int64_t examples, const BlockWeights& weights);
  ~TransformerTrainee() { algorithm_.reset(); }  // which hooks the optimizer
  TransformerTrainee(const TransformerTrainee&) = delete;
  TransformerTrainee& operator=(const TransformerTrainee&) = delete;

  /// One whole step: forward, loss, backward, update, masking. Returns the loss.
  float step();
  /// A step that counts for nothing: see ImageNetwork.
  void warm_up() {
    step();
    profile_->drop_last();
  }
  /// Where the time of steps goes.
  const PassProfile& profile() const { return *profile_; }
  /// Multiplications and additions of a step, of the nonzeros and of attention.
  double operations() const;
  /// "csr", or "csr in 20 of 24" where others are stored in another way.
  std::string stored() const;

 private:
  std::unique_ptr<Sequential> model_;
  std::unique_ptr<SparsityAlgorithm> algorithm_;  // null where dense
  std::unique_ptr<AdamW> optimizer_;
  Tensor images_;
  NamedTensors ids_;
  IndexTensor labels_;
  std::unique_ptr<PassProfile> profile_;
};

}  // namespace lacuna::bench
