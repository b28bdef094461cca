#include "lacuna/framework/train/checks/sparsifier_checks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <vector>

#include "lacuna/framework/autograd/tokens/token_ids.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/nn/evaluation_mode.hpp"

namespace lacuna {
namespace {

// Inputs of zeros, of tokens where the data is.
Variable blank_input(const Dataset& data, int64_t examples) {
  std::vector<int64_t> sizes{examples};
  std::ranges::copy(data.example_shape().sizes(), std::back_inserter(sizes));
  const Shape shape(sizes);
  if (data.vocabulary_size() == 0) return Variable(Tensor::zeros(shape));
  return token_ids(IndexTensor(shape, std::vector<int64_t>(static_cast<size_t>(shape.numel()), 0)));
}

}  // namespace

void require_sparsifiers_fit(Module& model, const Config& section, const Dataset& data,
                             const std::map<int64_t, BatchOrigin>& batches) {
  const EvaluationMode mode(model);
  for (const auto& [examples, origin] : batches) {
    const std::string batch =
        fmt::format("{} ({} example{})", origin.name, examples, examples == 1 ? "" : "s");
    const auto fail_for_memory = [&, &key = origin.key](const std::string& what) {
      throw Error(
          fmt::format("{}; {} runs at once where activations are sparsified; a smaller {} "
                      "or model needs less",
                      what, batch, key));
    };
    try {
      model(blank_input(data, examples));
    } catch (const ShapeError& error) {
      section.error(fmt::format("in {}: {}", batch, error.what()));
    } catch (const MemoryError& error) {
      fail_for_memory(error.what());
    } catch (const std::bad_alloc& error) {
      fail_for_memory(describe(error));
    }
  }
}

}  // namespace lacuna
