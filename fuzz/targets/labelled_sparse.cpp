// Files of sparse examples with several labels each.
#include "lacuna/framework/data/sparse/labelled_sparse_file.hpp"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::ScratchFile file("labelled_sparse");
  file.write(fuzz::text_of(data, size));
  fuzz::answer([&] {
    const SparseExamples e = read_labelled_sparse(file.path());
    for (const int32_t id : e.feature_ids) {
      fuzz::require(id >= 0 && id < e.features, "a feature is out of range");
    }
    for (const int32_t label : e.label_ids) {
      fuzz::require(label >= 0 && label < e.labels, "a label is out of range");
    }
    fuzz::require(e.feature_begin.size() == e.label_begin.size(), "examples differ in number");
    fuzz::require(std::ranges::is_sorted(e.feature_begin) && std::ranges::is_sorted(e.label_begin),
                  "an example ends before it begins");
  });
  return 0;
}
