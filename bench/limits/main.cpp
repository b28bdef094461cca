// bench_limits: what the processor can do at most, by where its operands come from.
#include <cstdint>
#include <string>
#include <vector>

#include "common/machine_limits.h"
#include "common/program.h"
#include "common/row.h"

namespace lacuna::bench {
namespace {

void run(const Settings& settings, Report& report) {
  const std::vector<MemoryLevel> all = memory_levels(settings.size);
  std::vector<LevelLoop> loops;
  loops.reserve(all.size());
  std::vector<Work> works;
  for (const MemoryLevel& level : all) {
    LevelLoop& loop = loops.emplace_back(level);
    works.push_back({level.name, {[&loop] { loop.multiply(); }}});
    if (!loop.from_registers())
      works.push_back({level.name + ", read", {[&loop] { loop.read(); }}});
  }
  MeasureOptions options = settings.measuring();
  options.runs = 1;
  const auto timings = measure(works, options);
  Table table{.title = "What the processor can do, " + settings.threads_text(),
              .columns = {"operands from", "KiB a thread", "GFLOP/s, a multiply-add an operand",
                          "GB/s, added up", "spread", "quiet"}};
  for (size_t i = 0; i < all.size(); ++i) {
    const Timing& time = timings.at(all[i].name)[0];
    const Rate rate{.time = time, .operations = 2.0 * loops[i].elements()};
    Config json = Config::map({{"workload", "limits"},
                               {"level", all[i].name},
                               {"bytes", all[i].bytes},
                               {"threads", settings.threads},
                               {"gflops", rate.gflops_nonzeros()}});
    std::string read_text;
    if (!loops[i].from_registers()) {
      const double ms = timings.at(all[i].name + ", read")[0].median_ms;
      const double rate_of_reading = 4.0 * loops[i].elements() / ms / 1e6;
      json.set("gb_per_s", rate_of_reading);
      read_text = fixed(rate_of_reading, 1);
    }
    add_time(json, rate);
    report.add_row(std::move(json));
    table.rows.push_back({all[i].name, std::to_string(all[i].bytes / 1024),
                          fixed(rate.gflops_nonzeros(), 1), read_text,
                          fixed(100 * time.spread, 1) + " %", rate.quiet_text()});
  }
  report.summarize(std::move(table));
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  return lacuna::bench::run_program(
      argc, argv, "limits",
      "Rates of multiply-adds with an operand from each level of memory, and of reading there",
      lacuna::bench::run);
}
