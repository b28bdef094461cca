// Int8 weights with scales in safetensors files: what is read is finite, and as the scales say.
#include <cmath>
#include <map>
#include <string>

#include "lacuna/framework/io/storage/array_file.hpp"
#include "lacuna/framework/train/weights/int8_weight.hpp"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile file("int8.safetensors");
  file.write(fuzz::text_of(data, size));
  fuzz::answer([&] {
    const auto arrays = open_array_file(file.path());
    std::map<std::string, size_t> places;
    for (size_t i = 0; i < arrays->arrays().size(); ++i) places[arrays->arrays()[i].name] = i;
    for (const auto& [name, weight] : find_int8(*arrays, places)) {
      fuzz::require(!places.contains(name), "an int8 weight is an array still");
      for (const bool is_turned : {false, true}) {
        fuzz::answer([&, &at = weight] {
          const Int8Weight read = read_int8(*arrays, at, is_turned);
          fuzz::require(read.values.values.size() == static_cast<size_t>(read.values.shape.numel()),
                        "the values are not as many as the shape says");
          fuzz::require(read.scales.size() == static_cast<size_t>(read.values.shape[0]),
                        "the scales are not those of outputs");
          fuzz::require(
              read.folded_scales.empty() || read.folded_scales.size() == read.scales.size(),
              "the scales with a norm are not those of outputs");
          if (read.input) {
            fuzz::require(
                read.input->scale > 0.0f && read.input->zero >= 0 && read.input->zero <= 255,
                "the grid of inputs is none");
          }
        });
      }
      fuzz::answer([&, &at = weight] { read_dequantized(*arrays, at); });
    }
  });
  return 0;
}
