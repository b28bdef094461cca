// `parametrization: sparse_mup` with weights that are loaded, and with masks that the first step
// makes.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "framework/train/training_steps.h"
#include "lacuna/framework/io/checkpoint.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/parts/parametrization.hpp"
#include "temporary_folder.h"

namespace lacuna::loaded_scale_test {
namespace {

std::string config(const std::string& source, const std::string& more) {
  const std::string layers =
      "[flatten, {type: linear, name: fc1, out_features: 64}, relu, {type: linear, name: fc2, "
      "out_features: 64}, relu, {type: linear, name: fc3, out_features: 10}]";
  return "data: {type: glyphs, train_size: 40, test_size: 10}\nmodel: {" +
         (source.empty() ? "" : "init_from: " + source + ", ") + "layers: " + layers +
         "}\ntrain: {batch_size: 20, threads: 1, steps: 8}\noptimizer: {type: adam, lr: 0.01}\n" +
         "parametrization: {type: sparse_mup, base_width: 16" + more;
}

std::unique_ptr<Experiment> build(const std::string& source, const std::string& more = "}\n") {
  return build_experiment(parse_yaml(config(source, more), "e.yaml"));
}

std::map<std::string, Parametrization::Row> rows_of(const Experiment& e) {
  std::map<std::string, Parametrization::Row> rows;
  for (const Parametrization::Row& row : e.parametrization->rows(*e.optimizer)) {
    rows[row.sized->parameter->name()] = row;
  }
  return rows;
}

void save(const Experiment& e, const std::string& path) {
  write_checkpoint(path, {.state = e.state_dict(), .config_yaml = e.config.to_yaml(), .step = 1});
}

TEST(LoadedScale, OutputsThatWereDividedStaySo) {
  const TemporaryFolder folder;
  const auto trained = build("");
  ASSERT_DOUBLE_EQ(rows_of(*trained).at("fc3.weight").update.lr, 0.25);
  save(*trained, folder / "divided.h5");
  const auto next = build(folder / "divided.h5");
  EXPECT_DOUBLE_EQ(rows_of(*next).at("fc3.weight").update.lr, 0.25);
  EXPECT_DOUBLE_EQ(rows_of(*next).at("fc2.weight").first, 1.0);  // loaded, and not scaled
  // So it is in a third run, and in what is resumed of the second.
  save(*next, folder / "again.h5");
  EXPECT_DOUBLE_EQ(rows_of(*build(folder / "again.h5")).at("fc3.weight").update.lr, 0.25);
  const auto resumed = build_experiment(next->config, Start::FromCheckpoint);
  resumed->parametrization->load_state_dict(next->state_dict().below("parametrization"));
  EXPECT_DOUBLE_EQ(rows_of(*resumed).at("fc3.weight").update.lr, 0.25);
}

TEST(LoadedScale, OutputsThatWereNotDividedStaySo) {
  const TemporaryFolder folder;
  save(*build("", ", output_multiplier: false}\n"), folder / "whole.h5");
  const auto next = build(folder / "whole.h5");
  EXPECT_DOUBLE_EQ(rows_of(*next).at("fc3.weight").update.lr, 1.0);
  save(*next, folder / "again.h5");
  EXPECT_DOUBLE_EQ(rows_of(*build(folder / "again.h5")).at("fc3.weight").update.lr, 1.0);
}

TEST(LoadedScale, FirstDensitiesAreThoseOfTheMasksThatTheFirstStepMakes) {
  for (const char* density : {"first", "present"}) {
    const auto e = build("", std::string(", density: ") + density +
                                 "}\nsparsity: {algorithm: snip, sparsity: 0.9}\n");
    take_steps(*e, 1);
    const Parameter& weight = *e->model->parameter("fc2.weight");
    const int64_t nnz = weight.pattern()->nnz();
    ASSERT_NE(nnz, 410);  // the share of 10 % that was planned
    EXPECT_EQ(e->state_dict().count("parametrization/fc2.weight/nnz"), nnz);
    const double present = static_cast<double>(nnz) / (64.0 * 64.0);
    EXPECT_DOUBLE_EQ(e->optimizer->factors(weight).lr, 1.0 / (4.0 * present)) << density;
  }
}

}  // namespace
}  // namespace lacuna::loaded_scale_test
