// bench_select: what selecting an N:M mask costs, next to the dense product it precedes.
#include <functional>
#include <string>
#include <vector>

#include "common/dense_opponent.h"
#include "common/operands.h"
#include "common/program.h"
#include "common/row.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "lacuna/framework/kernels/nm/nm_selection.hpp"
#include "lacuna/sparsity/masks/largest_part.hpp"

namespace lacuna::bench {
namespace {

constexpr int64_t kBatch = 128;

// Normally distributed, as weights are.
Tensor normal_weights(int64_t rows, int64_t columns) {
  const CounterRng rng(1, "weights");
  Tensor weights = Tensor::empty(Shape{rows, columns});
  uint64_t i = 0;
  for (float& w : weights.mutable_storage()) w = static_cast<float>(rng.normal(i++));
  return weights;
}

/// A selection to measure: of a mask, or of a matrix with its values.
struct Selection {
  std::string format;  // "2:4"
  std::string result;  // "mask" or "values"
  std::function<void()> run;
  std::function<BitMask()> mask;  // for the check
  int most_in_group = 0, group = 0;
  int least_in_group = 1;
};

/// The operands and results of one shape.
class Workload {
 public:
  Workload(int64_t in, int64_t out)
      : in_(in),
        out_(out),
        weights_(normal_weights(out, in)),
        values_(Tensor::zeros(Shape{out * in})),
        x_(random_tensor(Shape{kBatch, in}, "x")),
        y_(Tensor::zeros(Shape{kBatch, out})) {}

  void product() { opponent_forward(x_, weights_, y_); }

  std::vector<Selection> selections() {
    std::vector<Selection> all;
    for (const auto& [n, m] : {std::pair{2, 4}, {1, 4}, {4, 8}, {2, 8}}) {
      const NmMatrixForm form{.rows = out_, .columns = in_, .pattern = PatternShape::nm(n, m)};
      const std::string name = std::to_string(n) + ":" + std::to_string(m);
      const auto mask = [this, form] { return nm_select(form, weights_.storage()); };
      all.push_back({name, "mask", mask, mask, n, m});
      const auto values = [this, form] {
        nm_select_values(form, weights_.storage(), matrix_, values_.mutable_storage());
      };
      all.push_back({name, "values", values, [this, values] { return mask_of(values); }, n, m});
    }
    for (const auto& [name, pattern] : {std::pair{"2:4 g8", PatternShape::nm(2, 4, 8)},
                                        {"1:4 g8", PatternShape::nm(1, 4, 8)},
                                        {"block 16x16, 50 %", PatternShape::block(16, 16)},
                                        {"block 4x4, 50 %", PatternShape::block(4, 4)}}) {
      if (out_ % pattern.unit_rows() != 0 || in_ % pattern.unit_columns() != 0) continue;
      const auto mask = [this, pattern = pattern] {
        return largest_part(pattern, weights_, out_ * in_ / 2);
      };
      // Of blocks, any number may lie side by side.
      const bool is_nm = pattern.is_nm();
      all.push_back({name, "mask", mask, mask, is_nm ? pattern.n() : 4, 4, is_nm ? 1 : 0});
    }
    const auto mask = [this] { return transposable_select(out_, in_, weights_.storage()); };
    all.push_back({"2:4 transposable", "mask", mask, mask, 2, 4});
    return all;
  }

  // Every group must have no more than it may, and something must be kept of each.
  void check(const Selection& selection) const {
    const BitMask mask = selection.mask();
    std::vector<int> count(static_cast<size_t>(mask.size() / selection.group));
    mask.for_each([&](int64_t i) { ++count[static_cast<size_t>(i / selection.group)]; });
    for (const int found : count) {
      if (found >= selection.least_in_group && found <= selection.most_in_group) continue;
      throw Error("selection " + selection.format + ": a group has " + std::to_string(found) +
                  " weights, there should be " + std::to_string(selection.most_in_group));
    }
  }

 private:
  BitMask mask_of(const std::function<void()>& select) {
    select();
    BitMask mask = BitMask::zeros(out_ * in_);
    nm_for_each(matrix_, [&](int64_t slot, int64_t row, int64_t column) {
      if (values_.data()[slot] != weights_.data()[row * in_ + column]) {
        throw Error("a selected value is not the weight");
      }
      mask.set(row * in_ + column);
    });
    return mask;
  }

  int64_t in_, out_;
  Tensor weights_, values_, x_, y_;
  NmMatrix matrix_;
};

void add_row(const Selection& selection, int64_t in, int64_t out, const Timing& time,
             double dense_ms, const Settings& settings, Report& report) {
  Config json = Config::map({{"workload", "select"},
                             {"batch", kBatch},
                             {"in", in},
                             {"out", out},
                             {"threads", settings.threads},
                             {"format", selection.format},
                             {"result", selection.result},
                             {"dense_ms", dense_ms},
                             {"share", time.median_ms / dense_ms}});
  add_time(json, {time});
  report.add_row(std::move(json));
}

void run_shape(int64_t in, int64_t out, const Settings& settings, Report& report) {
  Workload workload(in, out);
  std::vector<Selection> selections = workload.selections();
  std::vector<Work> works = {{"dense", {[&] { workload.product(); }}}};
  for (const Selection& selection : selections) {
    workload.check(selection);
    works.push_back({selection.format + " " + selection.result, {selection.run}});
  }
  const auto timings = measure(works, settings.measuring());
  const double dense_ms = timings.at("dense")[0].median_ms;
  Table table{.title = "Selecting from weights " + std::to_string(out) + " × " +
                       std::to_string(in) + ", " + settings.threads_text() +
                       "; the dense product at batch " + std::to_string(kBatch) + " takes " +
                       fixed(dense_ms, 3) + " ms",
              .columns = {"format", "result", "ms", "spread", "quiet", "of the dense product"}};
  for (const Selection& selection : selections) {
    const Timing& time = timings.at(selection.format + " " + selection.result)[0];
    add_row(selection, in, out, time, dense_ms, settings, report);
    table.rows.push_back({selection.format, selection.result, fixed(time.median_ms, 3),
                          fixed(100 * time.spread, 1) + " %", Rate{time}.quiet_text(),
                          fixed(100 * time.median_ms / dense_ms, 1) + " %"});
  }
  report.summarize(std::move(table));
}

void run(const Settings& settings, Report& report) {
  std::vector<std::pair<int64_t, int64_t>> shapes = {{1024, 1024}, {1024, 4096}};  // in, out
  if (settings.size == Size::Quick) shapes.pop_back();
  if (settings.size == Size::Tiny) shapes = {{48, 40}};
  for (const auto& [in, out] : shapes) run_shape(in, out, settings, report);
}

}  // namespace
}  // namespace lacuna::bench

int main(int argc, char** argv) {
  return lacuna::bench::run_program(argc, argv, "select",
                                    "What selecting N:M masks costs next to the dense product",
                                    lacuna::bench::run);
}
