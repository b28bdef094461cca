// bench_memory: bytes that a sparse parameter in training takes, counted.
#include <string>

#include "common/program.h"
#include "memory/layer_memory.h"

namespace lacuna::bench {
namespace {

constexpr int64_t kBatch = 128;

void run(const Settings& settings, Report& report) {
  std::vector<int64_t> sides = {1024, 4096, 16384};
  std::vector<double> sparsities = {0.9, 0.95, 0.99};
  if (settings.size == Size::Quick) sides = {1024, 4096};
  if (settings.size == Size::Tiny) sides = {64};
  Table table{.title = "Memory of a linear layer in layout csr with Adam under RigL, batch " +
                       std::to_string(kBatch) +
                       "; bytes a nonzero are without 16 for each row and column",
              .columns = {"layer", "sparsity", "nonzeros", "bytes a nonzero, steady",
                          "and with all else that is held", "in an update",
                          "largest allocation, MiB", "dense array, MiB", "RSS, MiB"}};
  constexpr double kMiB = 1024.0 * 1024.0;
  for (const int64_t side : sides) {
    for (const double sparsity : sparsities) {
      const LayerMemory m = measure_memory(
          {.side = side,
           .batch = kBatch,
           .batches = 1,
           .sparsity = {.algorithm = "rigl", .layout = "csr", .sparsity = sparsity, .freq = 2}});
      const double dense = 4.0 * static_cast<double>(side) * static_cast<double>(side);
      report.add_row(Config::map({{"workload", "memory"},
                                  {"algorithm", "rigl"},
                                  {"batch", kBatch},
                                  {"in", side},
                                  {"out", side},
                                  {"threads", settings.threads},
                                  {"sparsity", sparsity},
                                  {"layout", "csr"},
                                  {"nnz", m.nnz},
                                  {"parameter_bytes", m.parameter},
                                  {"all_bytes", m.all},
                                  {"update_bytes", m.in_update},
                                  {"largest_allocation", m.largest},
                                  {"resident_bytes", m.resident},
                                  {"bytes_per_nonzero", m.per_nonzero(m.parameter, side)},
                                  {"all_bytes_per_nonzero", m.per_nonzero(m.all, side)},
                                  {"update_bytes_per_nonzero", m.per_nonzero(m.in_update, side)}}));
      table.rows.push_back(
          {std::to_string(side) + " → " + std::to_string(side), fixed(100 * sparsity, 0) + " %",
           std::to_string(m.nnz), fixed(m.per_nonzero(m.parameter, side), 1),
           fixed(m.per_nonzero(m.all, side), 1), fixed(m.per_nonzero(m.in_update, side), 1),
           fixed(static_cast<double>(m.largest) / kMiB, 1), fixed(dense / kMiB, 1),
           fixed(static_cast<double>(m.resident) / kMiB, 1)});
    }
  }
  report.summarize(std::move(table));
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  return lacuna::bench::run_program(argc, argv, "memory",
                                    "Bytes that a sparse parameter in training takes, counted",
                                    lacuna::bench::run);
}
