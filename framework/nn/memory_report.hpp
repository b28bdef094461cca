// The memory that a model's parameters take, as a run reports it at its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// A map for each parameter: name, shape, layout, nnz, bytes (values, derived, gradient, states,
/// index, total) and bytes_per_nonzero. docs/reference/run-folder.md describes it.
Config memory_report(const Module& model);

/// Lines for the log: one for each parameter that is not dense, and one for all together.
std::vector<std::string> memory_lines(const Module& model);

/// Bytes that values, gradients and states of the same numbers would take if every position had
/// them.
int64_t dense_bytes(const Module& model);

/// Bytes over nonzeros; 0 without any.
double bytes_per_nonzero(int64_t bytes, int64_t nnz);

}  // namespace lacuna
