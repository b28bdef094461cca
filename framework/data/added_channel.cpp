#include "lacuna/framework/data/added_channel.hpp"

#include <memory>
#include <string>
#include <utility>

namespace lacuna {

DataSplits with_added_channel(const Config& data, DataSplits splits) {
  constexpr const char* kKey = "add_channel";
  if (!data.has(kKey) || !data.required<bool>(kKey)) return splits;
  for (auto* split : {&splits.train, &splits.validation, &splits.test}) {
    if (*split == nullptr) continue;
    const auto* arrays = dynamic_cast<const ArrayDataset*>(split->get());
    const Shape& found = (*split)->example_shape();
    if (arrays == nullptr || found.rank() != 2) {
      data.get(kKey).error(
          "this key is for grey images of shape [rows, columns] that are stored as arrays; these "
          "examples " +
          (arrays == nullptr ? "come one by one: a dataset gives them as [1, rows, columns] itself"
                             : "have shape " + found.to_string()));
    }
    Examples examples = arrays->examples();
    examples.example_shape = Shape{1, found[0], found[1]};
    *split = std::make_shared<const ArrayDataset>(std::move(examples));
  }
  return splits;
}

Shape with_channel_of(const Shape& trained, const Shape& found) {
  const bool lacks_channel = found.rank() == 2 && trained == Shape{1, found[0], found[1]};
  return lacks_channel ? trained : found;
}

}  // namespace lacuna
