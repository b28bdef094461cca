// CSV tables of more than numbers: the first byte chooses which columns are categories, dates or
// left out, and what becomes of missing values; the rest is the file.
#include <algorithm>
#include <cmath>

#include "lacuna/framework/data/types/csv.h"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const unsigned choice = data[0];
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  const bool has_header = (choice & 0x20) == 0;
  CsvOptions options;
  if ((choice & 1) != 0) options.categories[has_header ? "c" : "2"] = {};
  if ((choice & 2) != 0) {
    for (auto& [column, names] : options.categories) names = {"blue", "red"};
  }
  if ((choice & 4) != 0) options.dates[has_header ? "d" : "-2"] = "";
  if ((choice & 8) != 0) options.dates[has_header ? "d" : "3"] = "%m/%d/%y %H:%M";
  if ((choice & 0x10) != 0) options.missing = CsvMissing::Kept;
  if (!has_header) {
    options.header = CsvHeader::Absent;
    options.trained_columns = (choice & 2) != 0 ? 5 : 0;
  }
  if ((choice & 0x40) != 0) options.dropped = {has_header ? "b" : "1"};
  if ((choice & 0x80) != 0 && has_header) {
    options.wanted = CsvColumns{.inputs = {"a", "c", "d"}, .label = "y"};
  }
  fuzz::answer([&] {
    const CsvTable table = read_csv_text("fuzz.csv", text, options);
    const std::vector<float>& inputs = std::get<1>(table.examples.inputs);
    const auto features = static_cast<size_t>(table.examples.example_shape.numel());
    fuzz::require(inputs.size() % features == 0, "the inputs are no whole examples");
    fuzz::require(
        table.examples.labels.empty() || table.examples.labels.size() * features == inputs.size(),
        "there is another number of labels than of examples");
    for (const float value : inputs) {
      fuzz::require(
          std::isfinite(value) || (std::isnan(value) && options.missing == CsvMissing::Kept),
          "an input is no number");
    }
    for (const auto& [column, names] : table.categories) {
      fuzz::require(std::ranges::is_sorted(names) && !names.empty(), "categories out of order");
    }
  });
  return 0;
}
