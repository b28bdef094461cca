// CSV: the first byte chooses the options, the rest is the file.
#include "lacuna/framework/data/types/csv.h"
#include "lacuna/fuzz/input.h"

using namespace lacuna;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const unsigned choice = data[0];
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  constexpr Task kTasks[] = {Task::Classification, Task::Regression, Task::None};
  constexpr CsvHeader kHeaders[] = {CsvHeader::Present, CsvHeader::Absent, CsvHeader::Guessed};
  CsvOptions options{.delimiter = (choice & 1) != 0 ? ';' : ',',
                     .header = kHeaders[(choice >> 1) % 3],
                     .task = kTasks[(choice >> 3) % 3]};
  if ((choice & 0x40) != 0) options.label_column = std::string("a");
  if ((choice & 0x80) != 0) options.wanted = CsvColumns{.inputs = {"b", "c"}, .label = "a"};
  fuzz::answer([&] {
    const CsvTable table = read_csv_text("fuzz.csv", text, options);
    const Examples& examples = table.examples;
    for (const int64_t label : examples.labels) {
      fuzz::require(label >= 0 && label < examples.num_classes, "a label is no class");
    }
  });
  return 0;
}
