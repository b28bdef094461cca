// The index of a model whose tensors are in several safetensors files:
// model.safetensors.index.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lacuna {

/// The longest index that is read, in bytes.
inline constexpr uint64_t kMostIndexBytes = 100'000'000;
/// The most files that an index may name.
inline constexpr size_t kMostShards = 10'000;

/// Where each tensor is: the name of a file next to the index, by the tensor's name.
///
/// The text is a JSON object with `weight_map`, an object of texts; what else is there is passed
/// over. *Errors:* DataError, without the index's name, when the text is not JSON in UTF-8, has no
/// weight_map, has it or a tensor twice, or names a file that is not next to it: a file's name has
/// no '/' or '\', is not "..", and ends in .safetensors. *Cost:* O(length) in time and memory,
/// however deep the JSON.
std::map<std::string, std::string> parse_safetensors_index(std::string_view text);

}  // namespace lacuna
