// The int8 part of checkpoints: layers, and float32 values made of them. As target checkpoint, the
// input is what follows the seal.
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/io/hdf5/hdf5_probe.hpp"
#include "lacuna/framework/io/storage/checkpoint_seal.hpp"
#include "lacuna/framework/quantize/float32_values.hpp"
#include "lacuna/framework/quantize/quantized_layer.hpp"
#include "lacuna/fuzz/reading_server.h"

using namespace lacuna;

namespace {

void read(std::string_view bytes, bool is_trusted) {
  static const fuzz::ScratchFile file("quantized");
  ::unlink(file.path().c_str());
  file.write(std::string(static_cast<size_t>(kSealBytes), '\0').append(bytes));
  seal_file(file.path(), kCheckpointFormat);
  if (is_trusted) trust_hdf5(file.path());
  fuzz::answer([&] {
    const StateDict state = CheckpointFile(file.path()).read().state;
    const std::vector<QuantizedLayer> layers = quantized_layers(state.below("quantized"));
    const StateDict again = state_of(layers);
    fuzz::require(quantized_layers(again).size() == layers.size(), "layers are lost");
    fuzz::answer([&] { model_state(state); });
    without_float32(state);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::ReadingServer server(read);
  server.take(fuzz::text_of(data, size));
  return 0;
}
