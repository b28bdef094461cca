// LoadedRun: a trained run for use from C++: its model, and the form of its inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/data/dataset.h"
#include "lacuna/framework/nn/sequential.h"
#include "lacuna/framework/train/evaluation.h"
#include "lacuna/framework/train/input_format.h"
#include "lacuna/framework/train/runs/run_folder.h"

namespace lacuna {

/// Examples in the caller's memory: bytes or floats, row-major.
struct ExampleView {
  Shape shape;  ///< [n, …example]
  std::variant<const uint8_t*, const float*> values;
};

/// The result of `load_run`. *Ownership:* all of it; the files are no longer needed.
struct LoadedRun {
  std::string checkpoint;  ///< the file that it was read from
  int64_t step = 0;        ///< optimizer steps that it had done
  Config config;           ///< the run's resolved configuration
  InputFormat inputs;      ///< shape, normalization, names of the classes, tokenizer
  /// In evaluation mode, each parameter in the layout and with the mask it was saved in. Its batch
  /// normalizations are still layers; `load_run_in_int8` folds those of a quantized run.
  std::unique_ptr<Sequential> model;
  bool is_averaged = false;  ///< whether the values are averages (`train.ema`), as `eval` uses them

  /// The model's outputs for inputs as they were in the training data's files: bytes for images,
  /// else floats, which are normalized like the training data. *Shapes:* [n, …output]. *Errors:*
  /// DataError when the examples have another shape than `inputs.example_shape`, or the inputs are
  /// tokens: for these, call the model with `token_ids`, in the scope of a NamedInputs.
  /// Outputs of regression are as in training: scaled if `inputs.target_std` is not empty
  /// (`in_target_unit`). *Cost:* batches of 256 examples, no gradient.
  Tensor predict(const Examples& examples) const;
  /// The same for examples in the caller's memory, which are read once; outputs of regression are
  /// in the targets' own unit.
  Tensor predict(const ExampleView& examples) const;
  /// The model's inputs for such examples: normalized. *Shapes:* [n, …example]. *Errors:* as
  /// `predict`.
  Tensor normalized(const ExampleView& examples) const;

  /// Whether answers are classes: integers, one for each example.
  bool has_classes() const;
  /// Loss and accuracy, or errors, by the run's loss, for examples with labels or targets as they
  /// were in the training data's files; `num_classes` need not be given. *Errors:* DataError as
  /// `predict`, and if there are no answers, or they do not fit the loss.
  Evaluation evaluate(Examples examples) const;

 private:
  void require_fitting(const ExampleView& examples) const;
  Tensor normalized(const ExampleView& examples, int64_t begin, int64_t count) const;
  Tensor run(const ExampleView& examples) const;
};

/// Opens a run folder (by default its best checkpoint if it keeps one, else the newest good one) or
/// a checkpoint file. *Errors:* CheckpointError if there is none, if it is damaged, or if it is a
/// model without the configuration of a run (as `save_model` writes it; `load_weights` reads that).
/// *Cost:* the checkpoint's values are in memory twice while it is loaded.
LoadedRun load_run(const std::string& run_or_checkpoint,
                   KeptCheckpoint kept = KeptCheckpoint::Best);

/// As load_run; the products of a quantized run are in int8, as `lacuna predict` computes them, and
/// its batch norms are parts of the products before them.
LoadedRun load_run_in_int8(const std::string& run_or_checkpoint,
                           KeptCheckpoint kept = KeptCheckpoint::Best);

}  // namespace lacuna
