// A run that was trained on a table whose first line names the columns, from C++: opened, and used
// on a table of new inputs. usage: load_table RUN TABLE.csv
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "lacuna/lacuna.h"

using namespace lacuna;

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  const LoadedRun run = load_run(argv[1]);
  const InputFormat& format = run.inputs;

  // Columns are found by their names, in any order; others are left out, the answers' too. Missing
  // values and dates are refused here.
  const CsvTable table = read_csv(
      argv[2], {.task = Task::None,
                .wanted = CsvColumns{format.columns, format.label_column, format.categories}});
  const Tensor outputs = run.predict(table.examples);  // normalized as the training data was

  const auto task = run.config.at("data").get<std::string>("task", "classification");
  const int64_t values = outputs.shape().features();
  for (int64_t i = 0; i < table.examples.size(); ++i) {
    const float* row = outputs.data() + i * values;
    if (task == "regression") {  // in the targets' own unit
      const bool is_scaled = !format.target_std.empty();
      const double mean = is_scaled ? format.target_mean[0] : 0.0,
                   scale = is_scaled ? format.target_std[0] : 1.0;
      std::printf("%.6g\n", static_cast<double>(row[0]) * scale + mean);
    } else {
      const auto best = static_cast<size_t>(std::max_element(row, row + values) - row);
      const bool has_names = !format.class_names.empty();
      std::printf("%s\n",
                  has_names ? format.class_names[best].c_str() : std::to_string(best).c_str());
    }
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
