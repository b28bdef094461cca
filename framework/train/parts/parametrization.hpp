// The `parametrization` of a configuration: first values and rates of each parameter, by its width
// and density.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/state_dict.h"
#include "lacuna/framework/train/parts/parameter_roles.hpp"
#include "lacuna/optimizers/optimizer.h"
#include "lacuna/sparsity/algorithm.h"

namespace lacuna {

/// The options of the section.
struct ParametrizationOptions {
  /// Which density of a weight counts for its rates.
  enum class Density { First, Present };
  /// Changes under which lr · weight_decay stays the same.
  enum class Decay {
    None,   ///< at none: weight decay is as written
    Width,  ///< of widths
    All,    ///< of widths and densities
  };

  double base_width = 64.0;                    ///< of the network whose settings these are
  double base_density = 1.0;                   ///< of its sparse weights, in (0, 1]
  std::optional<double> width = std::nullopt;  ///< of this network; absent: the preset's, or each
                                               ///< layer's own
  bool output_multiplier = true;               ///< whether outputs are divided by the width
  bool attention_scale = true;                 ///< whether q · k is divided by the width of a head
  Decay weight_decay = Decay::Width;
  Density density = Density::Present;
};

/// Reads the section, and writes its defaults into it. *Errors:* ConfigError with the position.
ParametrizationOptions read_parametrization(const Config& section);

/// What becomes of a parameter: its first values are multiplied by `first`.
struct ParameterScale {
  double first = 1.0;
  UpdateFactors update = {};
};

/// The rules of `sparse_mup`. `density`: of the weight, over that of the base. *Requires* a rule
/// other than UpdateRule::Other.
///
/// A weight's sum over its inputs keeps its size, and so does what a step changes of it, if with m
/// times the inputs, of which a part ρ is there, its deviation is divided by √(m ρ) and a step of
/// Adam by m ρ; gradients of inner features are m times smaller, which counts for SGD, for eps and
/// for a decay that is added to the gradient. *Sources:* Yang et al., arXiv:2203.03466, table 3
/// (widths; outputs are divided in the head's own weights, not behind them, which is the same); Dey
/// et al., arXiv:2405.15743 (density, for Adam). For SGD and for decay it is derived here.
ParameterScale sparse_mup(UpdateRule rule, const SizedParameter& parameter, double density,
                          const ParametrizationOptions& options);

/// The parametrization of an experiment.
class Parametrization {
 public:
  /// *Requires* a built model and an optimizer with rules.
  Parametrization(const ParametrizationOptions& options, std::vector<SizedParameter> parameters,
                  UpdateRule rule);

  /// Takes the nonzeros of the masks that there are, and what the first step prunes before it
  /// changes any value, for the first densities: as planned, and once it has pruned, as the masks
  /// are. `algorithm`: null where there is none.
  void take_first_densities(const SparsityAlgorithm* algorithm,
                            const std::vector<PlannedParameter>& plan);
  /// Multiplies the first values by their factors. Loaded values keep theirs: without this call
  /// their factors are 1.
  void scale_first_values();
  /// Gives the optimizer its factors. *Lifetime:* the optimizer's steps end before this.
  void follow(Optimizer& optimizer);

  /// One parameter, as `plan` prints it.
  struct Row {
    const SizedParameter* sized = nullptr;
    double density = 1.0;  ///< the first one, over the base's
    double first = 1.0;
    UpdateFactors update;
  };
  std::vector<Row> rows(const Optimizer& optimizer) const;

  /// "<name>/nnz": the first nonzeros; "output_multiplier": 1 where outputs are divided.
  StateDict state_dict() const;
  /// *Errors:* CheckpointError.
  void load_state_dict(const StateDict& state);

 private:
  double first_density(const SizedParameter& sized) const;
  UpdateFactors factors(const Parameter& parameter, int64_t steps_done) const;
  void take_pruned();

  ParametrizationOptions options_;
  std::vector<SizedParameter> parameters_;
  std::map<const Parameter*, size_t> index_;
  std::vector<int64_t> first_nnz_;
  std::vector<bool> is_sparse_;        // whether an algorithm has it, or it came with a mask
  std::vector<bool> is_pruned_first_;  // by the first step
  UpdateRule rule_;
  bool scales_values_ = false;
  HookHandle after_step_;
};

/// Whether values come from elsewhere (`model.init_from`): such a model keeps its own scale.
bool has_own_scale(const Config& config);

/// Sizes the parameters of a model by the configuration's `parametrization`. *Errors:* ConfigError.
SizedModel size_model(const Config& config, const ParametrizationOptions& options,
                      const ModelLayers& layers, Module& model, const Shape& example);

/// Writes `model.attention_scale` if the configuration's parametrization asks for one and nothing
/// else gives one; a list of layers becomes a map for it. Returns whether it did: the model is then
/// to be built again. *Errors:* ConfigError where attention layers would need different ones.
bool write_attention_scale(Config& config, const ModelLayers& layers, Module& model,
                           const Shape& example);

}  // namespace lacuna
