// A graph as an ONNX file, checked by the standard's own library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lacuna/framework/nn/onnx_graph.h"
#include "lacuna/framework/onnx/int8_weight.hpp"

namespace lacuna {

/// *Errors:* Error where so many bytes of values are more than one ONNX file can hold.
void require_onnx_size(uint64_t bytes);

/// How values are stored. Sparse: matrices with less than a third of nonzeros as sparse
/// initializers (in coordinates, 12 bytes a nonzero), the others as dense ones.
enum class OnnxValues { Dense, Sparse };

using CountSparse = std::function<void(size_t sparse_initializers)>;

/// Writes the graph whole or not at all, with opset 13 and these texts as metadata, and its linear
/// products with these weights in int8 (int8_nodes.hpp). The model is
/// checked first, shapes inferred strictly (of sparse values: as dense ones, because inference does
/// not read sparse initializers). `before_writing`, if there is one, is called with the number of
/// sparse initializers, which is returned too. *Errors:* Error where it has more than 2 GiB, the
/// most that one file can hold, the checker refuses it, or it cannot be written.
size_t write_onnx_file(const OnnxGraph& graph, const std::map<std::string, std::string>& metadata,
                       const std::string& path, OnnxValues values = OnnxValues::Dense,
                       const std::vector<OnnxInt8Weight>& int8 = {},
                       const CountSparse& before_writing = {});

}  // namespace lacuna
