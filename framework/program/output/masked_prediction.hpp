// What `lacuna predict` does with a masked language model: it fills the gaps in texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/program/output/csv_writer.hpp"
#include "lacuna/framework/train/input_format.h"

namespace lacuna {

/// Whether the run of this configuration has learned to predict hidden tokens.
bool is_masked_language_model(const Config& config);

/// A line of text, as a model is given it.
struct MaskedLine {
  std::vector<int64_t> ids;
  std::vector<int64_t> masks;  ///< places in it, ascending
};

/// The lines of the files; `data` is the run's section. *Errors:* DataError "file:line: …" on a
/// line without a mask, with more tokens than the model was trained on, or that cannot be encoded;
/// with the path on an empty file.
std::vector<MaskedLine> read_masked_lines(const std::vector<std::string>& paths, const Config& data,
                                          const InputFormat& format);

/// Writes the likeliest token for each mask, with its probability. Lines count from 1, over all
/// files, masks from 1 in each line. Returns the number of masks. *Cost:* a forward pass for each
/// line.
int64_t fill_masks(Module& model, const std::vector<MaskedLine>& lines, const InputFormat& format,
                   CsvWriter& writer);

}  // namespace lacuna
