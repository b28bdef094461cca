#include "lacuna/framework/program/process_options.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/io/log.h"
#include "lacuna/framework/layouts/dense_fallback.h"
#include "lacuna/framework/train/train_options.h"

namespace lacuna {

void take_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // The lowest descriptor that is free is this one.
    const int flags = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", flags) < 0) return;
  }
}

void apply_process_options(const Config& config) {
  if (!config.is_map()) return;  // which is an error when the experiment is built
  // Of a clone: the experiment reads the section again, and writes its defaults.
  const TrainOptions train = TrainOptions::from_config(config.clone().get("train"));
  if (train.threads > 0) set_num_threads(train.threads);
  set_fallback_policy(train.layout_fallback);
  set_fallback_notice([](const std::string& text) { log_warning(text); });
}

}  // namespace lacuna
