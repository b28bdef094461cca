// NumPy's archives, as data.type: npz reads them: labels, and numbers.
#include "lacuna/framework/config/config.h"
#include "lacuna/framework/data/types/npz_dataset.hpp"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile file("data.npz");
  file.write(fuzz::text_of(data, size));
  for (const char* task : {"classification", "regression"}) {
    for (const bool has_test : {false, true}) {
      Config config = Config::map({{"path", file.path()}, {"task", task}});
      if (has_test) {
        config.set("test_inputs", "test_inputs");
        config.set("test_targets", "test_targets");
      }
      fuzz::answer([&] { load_npz(config, 1); });
    }
  }
  fuzz::answer([&] { read_numpy_inputs(file.path(), Config::map(), Shape{3}); });
  return 0;
}
