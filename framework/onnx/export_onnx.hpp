// Models as ONNX files, for runtimes of others.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/onnx/model_file.hpp"

namespace lacuna {

/// Writes a model as it evaluates, by operators of ONNX's opset 13 (layer_norm, GELU and attention
/// by simpler ones), with zeros where its weights are masked. Names of weights are the parameters'.
///
/// Its inputs are `input` [batch, ...] of floats, as the model is given them (normalized), or,
/// where the model begins with a token embedding, `input_ids` [batch, sequence] of int64; then
/// `attention_mask` and `token_type_ids`, if its layers use them (of attention only what is not
/// causal does). Its output is `output`. The sizes of `batch` and `sequence` are free; a sequence
/// may not be longer than its position embedding. *Shapes:* `example` is what the model is given,
/// without the batch. `metadata` goes into the file (metadata_props). Linear layers whose weights
/// are among `int8` are written in int8, with QuantizeLinear and DequantizeLinear. Returns the
/// number of weights that became sparse initializers, which not every tool reads;
/// `before_writing` is called with it before there is a file.
///
/// *Errors:* Error that names a layer which has no form in ONNX (a class of a user's, inputs or
/// outputs that are sparsified, a batch_norm without running statistics), where the values have 2
/// GiB or more, and where the file cannot be written. Nothing is written then. *Cost:* memory for
/// twice the values, dense; with `values` Sparse three times.
size_t export_onnx(Module& model, const Shape& example,
                   const std::map<std::string, std::string>& metadata, const std::string& path,
                   OnnxValues values = OnnxValues::Dense,
                   const std::vector<OnnxInt8Weight>& int8 = {},
                   const CountSparse& before_writing = {});

}  // namespace lacuna
