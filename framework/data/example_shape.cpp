#include "lacuna/framework/data/example_shape.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lacuna/framework/core/plural.hpp"

namespace lacuna {
namespace {

constexpr const char* kKey = "shape";

Shape read_shape(const Config& data) {
  const Config node = data.get(kKey);
  const char* expected = "a list of one to four sizes, each at least 1, as [1, 28, 28]";
  if (!node.is_list()) node.fail(expected);
  const auto sizes = node.as<std::vector<int64_t>>();
  const bool fits = !sizes.empty() && sizes.size() <= 4 &&
                    std::ranges::all_of(sizes, [](int64_t size) { return size >= 1; }) &&
                    std::ranges::all_of(sizes, [](int64_t size) { return size < 1 << 15; });
  if (!fits) node.error(fmt::format("expected {}, found {}", expected, node.to_json()));
  return Shape(std::span<const int64_t>(sizes));
}

}  // namespace

DataSplits with_given_shape(const Config& data, DataSplits splits) {
  if (!data.has(kKey)) return splits;
  const Shape shape = read_shape(data);
  for (auto* split : {&splits.train, &splits.validation, &splits.test}) {
    if (*split == nullptr) continue;
    const auto* arrays = dynamic_cast<const ArrayDataset*>(split->get());
    if (arrays == nullptr) {
      data.get(kKey).error(
          "this key is for examples that are arrays of numbers, such as images and tables; leave "
          "it out");
    }
    const Shape& found = arrays->example_shape();
    if (found.numel() != shape.numel()) {
      data.get(kKey).error(fmt::format("{} has {}, and the examples have {} (shape {})",
                                       shape.to_string(), plural(shape.numel(), "value"),
                                       found.numel(), found.to_string()));
    }
    Examples examples = arrays->examples();
    examples.example_shape = shape;
    *split = std::make_shared<const ArrayDataset>(std::move(examples));
  }
  return splits;
}

void take_given_shape(const Config& data, const Shape& trained, Examples& examples) {
  if (data.peek(kKey).is_null() || examples.example_shape.numel() != trained.numel()) return;
  examples.example_shape = trained;
}

}  // namespace lacuna
