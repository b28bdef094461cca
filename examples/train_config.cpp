// A configuration trained from C++, as `lacuna train` does it, watching its steps.
// usage: train_config CONFIG RUN_DIR [KEY=VALUE ...]
#include <cstdio>
#include <exception>

#include "lacuna/lacuna.h"

using namespace lacuna;

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  register_builtins();
  TrainRequest request{.config = {.path = argv[1], .overrides = {argv + 3, argv + argc}},
                       .run_dir = argv[2]};
  std::printf("%s", plan_run(request.config).text.c_str());
  request.on_step = [](const TrainedStep& step) {
    if (step.step % 10 == 0)
      std::printf("step %d loss %.4f\n", static_cast<int>(step.step), step.loss);
    return step.loss > 0.01;  // false: the run writes a checkpoint and ends
  };
  const TrainedRun run = train_run(request);
  const auto metrics = read_metrics(run.run_dir);
  std::printf("%lld steps, %zu evaluations\n", static_cast<long long>(run.step),
              metrics.at("test").numbers.at("loss").size());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
