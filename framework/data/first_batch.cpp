#include "lacuna/framework/data/first_batch.hpp"

namespace lacuna {

bool gives_tensor(const Dataset& data, const char* name) {
  const int64_t first = 0;
  return data.size() > 0 && data.vocabulary_size() == 0 &&
         data.gather({&first, 1}).named.contains(name);
}

}  // namespace lacuna
