// Exports runs to other tools' files: `lacuna export`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/train/runs/run_folder.h"

namespace lacuna {

struct ExportOptions {
  /// One of `export_formats()`; empty with `card` alone.
  std::string format = "safetensors";
  /// Masks in addition to the weights, as arrays NAME_mask, as cstorch has them; without them, only
  /// a weight's zeros show where it has no connections.
  bool masks = false;
  /// Whether sparse weights are stored by their nonzeros: `safetensors` and `onnx` can.
  bool sparse = false;
  /// Which weights of a quantized run are written, "int8" or "float32"; empty: int8 where the
  /// format has it (safetensors, hf and onnx), else float32.
  std::string only = {};
  /// Whether an existing file at the path is replaced, or a folder that contains only files of an
  /// earlier export.
  bool overwrite = false;
  /// Whether a model card is written: on its own if `format` is empty, into the folder for `hf`.
  bool card = false;
  /// Which checkpoint of a run folder.
  KeptCheckpoint kept = KeptCheckpoint::Best;
  /// Called with each of ExportedRun::notes before the file is written.
  std::function<void(const std::string& note)> report_note = {};
};

struct ExportedRun {
  std::string checkpoint;  ///< the file that was read
  int64_t step = 0;        ///< of it
  /// Whether the weights are averages (`train.ema`), as `eval` takes them.
  bool is_averaged = false;
  int64_t bytes = 0;  ///< of the file; 0 of a folder and of a card
  /// Of a file of this format whose weights are all dense, about (csr-npz: of an npz); 0 where all
  /// are dense in this one, whatever their masks.
  int64_t dense_bytes = 0;
  /// What the model computes that the file does not state, and which tools do not read the file.
  std::vector<std::string> notes = {};
};

/// Names of the formats, each with a description of one line.
std::vector<std::pair<std::string, std::string>> export_formats();

/// Writes the weights of one of a run folder's checkpoints, or of a checkpoint file, to `path`,
/// whole or not at all. Values are float32 or, of a quantized run, int8 with scales, zero where a
/// mask has no position; parameters and buffers have their dotted names (`hf`: those of Hugging
/// Face's files). A weight that is tied to another is written once, under its owner's name.
/// docs/guides/interop.md describes the formats.
///
/// *Errors:* ConfigError on an unknown format, on one that cannot store masks or a card, and if a
/// format cannot hold the model; StateError if `path` exists, or cannot be written; those of
/// `load_run`. *Cost:* memory for the model, and for a dense copy of all of it.
ExportedRun export_run(const std::string& run_or_checkpoint, const std::string& path,
                       const ExportOptions& options);

}  // namespace lacuna
