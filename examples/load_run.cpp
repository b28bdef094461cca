// A trained run from C++: opened, inspected and used on images.
// usage: load_run RUN
#include <algorithm>
#include <cstdio>
#include <exception>

#include "lacuna/lacuna.h"

using namespace lacuna;

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  const LoadedRun run = load_run(argv[1]);
  std::printf("%s, step %lld\n", run.checkpoint.c_str(), static_cast<long long>(run.step));
  for (const ParameterPtr& parameter : run.model->parameters()) {
    std::printf("%s %s: density %.3f\n", parameter->name().c_str(),
                parameter->shape().to_string().c_str(), parameter->pattern()->density());
  }

  // Two images, black and white: bytes, as in the training data's files.
  const auto pixels = static_cast<size_t>(run.inputs.example_shape.numel());
  std::vector<uint8_t> bytes(2 * pixels, 0);
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(pixels), bytes.end(), uint8_t{255});
  const Tensor outputs = run.predict({.example_shape = run.inputs.example_shape, .inputs = bytes});
  std::printf("outputs %s, the first %.4f\n", outputs.shape().to_string().c_str(),
              static_cast<double>(outputs.data()[0]));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
