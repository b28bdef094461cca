// The PositionEmbedding layer.
#pragma once

#include <cstdint>

#include "lacuna/framework/nn/init.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// Adds a vector for each position: y[:, t] = x[:, t] + weight[t]. *Shapes:* [batch, T, features],
/// kept, T at most `positions`. The parameter is `weight` [positions, features] or, in the bare
/// form, one with the layer's own name [1, positions, features]. Sinusoidal vectors are fixed and
/// not saved.
class PositionEmbedding final : public Module {
 public:
  enum class Form {
    Layer,     ///< `<name>.weight` [positions, features], as in GPT-2 and BERT
    Parameter  ///< `<name>` [1, positions, features], as in ViT
  };
  enum class Kind {
    Learned,
    /// sin(t / 10000^(2i/features)) at 2i and the cosine at 2i + 1. *Source:* Vaswani et al.,
    /// arXiv:1706.03762, section 3.5.
    Sinusoidal
  };
  struct Options {
    int64_t positions = 0;
    int64_t features = 0;
    Form form = Form::Layer;
    Kind kind = Kind::Learned;
    WeightDraw init = {WeightInit::Normal, 1.0};  ///< as in TokenEmbedding
  };

  /// *Errors:* ConfigError unless both sizes are at least 1, and on an init as in TokenEmbedding.
  explicit PositionEmbedding(const Options& options);

  std::string_view type() const override { return "position_embedding"; }
  const Options& options() const { return options_; }
  /// *Errors:* ShapeError if the sequence is longer than `positions`.
  Shape output_shape(const Shape& input) const override;
  /// Null if the vectors are fixed.
  const ParameterPtr& weight() const { return weight_; }
  /// [positions, features] if they are fixed.
  const Tensor& vectors() const { return fixed_; }

 protected:
  Variable forward(const Variable& input) override;

 private:
  Options options_;
  ParameterPtr weight_;
  Tensor fixed_;  // [positions, features]
};

}  // namespace lacuna
