// Weights in safetensors files of other tools, as models are given them: dense, by csr, by a
// bitmask, with masks, and in int8 with scales.
#include <cstdint>

#include "lacuna/framework/train/weights/stored_values.hpp"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

namespace {

// A model compares the shape before csr is made dense. Everything else is as long as the file.
constexpr int64_t kMostOfCsr = int64_t{1} << 20;

void require_int8(const Int8Weight& weight) {
  fuzz::require(weight.values.values.size() == static_cast<size_t>(weight.values.shape.numel()),
                "the values are not as many as the shape says");
  fuzz::require(weight.scales.size() == static_cast<size_t>(weight.values.shape[0]),
                "the scales are not those of outputs");
  fuzz::require(weight.folded_scales.empty() || weight.folded_scales.size() == weight.scales.size(),
                "the scales with a norm are not those of outputs");
  if (!weight.input) return;
  fuzz::require(weight.input->scale > 0.0f && weight.input->zero >= 0 && weight.input->zero <= 255,
                "the grid of inputs is none");
}

void require_copied(const StateDict& state, const StoredValues::Item& item) {
  fuzz::require(state.get<Tensor>("to").shape() == item.shape, "the values have another shape");
  if (item.mask.empty()) return;
  const auto& mask = state.get<ByteArray>("to_mask");
  fuzz::require(mask.shape == item.shape, "the mask has another shape");
  for (const uint8_t byte : mask.values) fuzz::require(byte <= 1, "a mask is not of 0 and 1");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile file("weights.safetensors");
  file.write(fuzz::text_of(data, size));
  fuzz::answer([&] {
    const auto stored = open_stored_arrays(file.path());
    for (const auto& [name, found] : stored->items()) {
      const StoredValues::Item& item = found;
      if (item.mask.ends_with(".indptr") && item.shape.numel() > kMostOfCsr) continue;
      if (item.type.empty()) {
        fuzz::answer([&, &at = name] {
          StateDict state;
          stored->copy(at, "to", state);
          require_copied(state, item);
        });
      }
      if (!item.is_int8) continue;
      for (const bool is_turned : {false, true}) {
        fuzz::answer([&, &at = name] { require_int8(stored->int8(at, is_turned)); });
      }
    }
  });
  return 0;
}
