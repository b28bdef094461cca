// The header of a safetensors file: between its JSON and plain values. Its claims on the data are
// checked elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// The longest header that readers of the format take, in bytes.
inline constexpr uint64_t kMostHeaderBytes = 100'000'000;

/// A tensor as the header has it: nothing is known to fit together yet.
struct SafetensorsRecord {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> sizes;  ///< at most Shape::kMaxRank
  uint64_t begin = 0, end = 0;  ///< from the end of the header
};

struct SafetensorsHeader {
  std::vector<SafetensorsRecord> tensors;
  std::map<std::string, std::string> metadata;
};

/// *Errors:* DataError, without the file's name, when the text is not JSON in UTF-8, when it has
/// anything but what the format has, or a key twice, and for more than Shape::kMaxRank
/// dimensions. *Cost:* O(length) in time and memory, however deep the JSON.
SafetensorsHeader parse_safetensors_header(std::string_view text);

/// The JSON. *Errors:* StateError when a name or the metadata is not UTF-8.
std::string render_safetensors_header(const SafetensorsHeader& header);

}  // namespace lacuna
