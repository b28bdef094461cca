// What `lacuna train` prints about a run: how it begins, and its result.
#pragma once

#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/train/parts/experiment.hpp"

namespace lacuna {

/// At most nine lines for the beginning: data and steps, the model, its sparsity, how it is
/// stored, what stays dense and why, what it runs on.
std::vector<std::string> run_header(const Experiment& experiment);
/// A line for each parameter, with its layout and up to which density that is used: details.
std::vector<std::string> parameter_lines(const Experiment& experiment);

/// What a trained model is for: outputs for new inputs, or a text that goes on; of tokens whose
/// vocabulary is not known there is neither.
enum class NextUse { Predict, Generate, Evaluation };
NextUse next_use(const Dataset& trained_on);

/// A table of at most fifteen lines of what summary.json holds, where things are, and what to type
/// next.
std::vector<std::string> result_table(const Config& summary, const std::string& run_folder,
                                      bool has_best_checkpoint, NextUse next);
/// The result alone: "test accuracy 98.58 % (best 98.62 % at step 1413), sparsity 90.0 %, runs/x".
std::string result_line(const Config& summary, const std::string& run_folder);

}  // namespace lacuna
