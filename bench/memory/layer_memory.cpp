#include "memory/layer_memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <type_traits>

#include "lacuna/framework/core/error.h"
#include "memory/live_bytes.h"

namespace lacuna::bench {
namespace {

// What the child process sends: plain bytes.
struct Message {
  LayerMemory memory;
  char error[512] = {};
};
static_assert(std::is_trivially_copyable_v<Message>);

// The index that the next backward would build for the new pattern, and the copy of the values.
void build_derived(Parameter& weight, int64_t side) {
  const WeightReference reference = weight.as_weight(nullptr);
  weight.pattern()->layout().input_gradient(reference.view(), Tensor::zeros(Shape{1, side}));
}

LayerMemory train(const LayerOptions& options) {
  const int64_t resident_before = resident_bytes();
  reset_peak();
  const int64_t before = live_bytes();
  LayerTrainer trainer(options);
  Parameter& weight = trainer.weight();
  LayerMemory memory{.nnz = weight.pattern()->nnz()};
  for (int64_t step = 1; step <= 2 * options.sparsity.freq + 1; ++step) {
    trainer.forward_backward();
    const int64_t steady = weight.bytes(), held = live_bytes();
    const int64_t largest = largest_allocation();
    reset_peak();
    trainer.update();
    build_derived(weight, options.side);
    memory.largest = std::max({memory.largest, largest, largest_allocation()});
    if (trainer.algorithm().last_update().empty()) continue;
    memory.in_update = std::max(memory.in_update, steady + peak_live_bytes() - held);
  }
  memory.parameter = weight.bytes();
  memory.all = live_bytes() - before - trainer.batch_bytes();
  memory.resident = most_resident_bytes() - resident_before;
  return memory;
}

}  // namespace

LayerMemory measure_memory(const LayerOptions& options) {
  int ends[2];
  if (pipe(ends) != 0) throw Error("no pipe for an experiment's process");
  const pid_t child = fork();
  if (child < 0) throw Error("no process for an experiment");
  Message message;
  if (child == 0) {
    try {
      message.memory = train(options);
    } catch (const std::exception& error) {
      std::string(error.what()).copy(message.error, sizeof message.error - 1);
    }
    const bool sent = write(ends[1], &message, sizeof message) == sizeof message;
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  const bool received = read(ends[0], &message, sizeof message) == sizeof message;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!received) throw Error("an experiment's process ended without a result: out of memory?");
  if (message.error[0] != '\0') throw Error(message.error);
  return message.memory;
}

}  // namespace lacuna::bench
