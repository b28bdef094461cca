#include "common/row.h"

#include "common/report.h"
#include "lacuna/framework/kernels/instruction_set.hpp"

namespace lacuna::bench {

std::string Rate::share_text() const {
  return operations == 0.0 ? "" : fixed(100.0 * l1_share(), 0) + " %";
}

std::string Rate::quiet_text() const {
  const std::string text = std::to_string(time.quiet) + "/" + std::to_string(time.repetitions);
  return time.is_quiet ? text : "(" + text + ")";
}

void add_time(Config& row, const Rate& rate) {
  const Timing& time = rate.time;
  const bool is_arithmetic = rate.operations != 0.0;
  row.set("ms", time.median_ms);
  row.set("spread", time.spread);
  row.set("repetitions", time.repetitions);
  row.set("quiet_samples", time.quiet);
  row.set("moment", time.is_quiet ? "quiet" : "any");
  row.set("busy_ms", time.busy_ms == 0.0 ? Config() : Config(time.busy_ms));
  row.set("l1_fed_gflops", time.l1_fed_gflops);
  row.set("fma_gflops", time.fma_gflops);
  row.set("gflops_nonzeros", is_arithmetic ? Config(rate.gflops_nonzeros()) : Config());
  row.set("l1_share", is_arithmetic ? Config(rate.l1_share()) : Config());
  row.set("instruction_set", active_instruction_set());
}

}  // namespace lacuna::bench
