// Values that are loaded, assigned or written while an algorithm is at work stay: a step without a
// learning rate changes nothing, and neither does the end of the algorithm.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/sparsity/configure.h"
#include "test_model.h"

namespace lacuna::given_values_test {
namespace {

std::unique_ptr<SparsityAlgorithm> algorithm_of(const std::string& keys) {
  register_builtins();
  return configure(parse_yaml("{algorithm: " + keys + "}", "c.yaml"), 0);
}

// A trained model with other values than those of a new one.
StateDict trained(const std::string& keys) {
  TestModel t(7);
  std::unique_ptr<SparsityAlgorithm> algorithm;
  if (!keys.empty()) t.apply(*(algorithm = algorithm_of(keys)));
  for (int i = 0; i < 3; ++i) t.step();
  return t.model.state_dict();
}

TEST(GivenValues, StayInAStepWithoutALearningRate) {
  const std::vector<std::string> algorithms = {
      "static, sparsity: 0.5",
      "set, sparsity: 0.5, update: {freq: 1000}",
      "rigl, sparsity: 0.5, layout: masked, update: {freq: 1000}",
      "gmp, sparsity: {type: polynomial, init: 0.5, final: 0.9, start: 0, end: 2000}, update: "
      "{freq: 1000}",
      "snfs, sparsity: 0.5, update: {freq: 1000}",
      "srigl, sparsity: 0.5, update: {freq: 1000}",
      "ste, sparsity: 0.5, update: {freq: 1000}",
      "ste, sparsity: 0.5, layout: masked, update: {freq: 1000}",
      "ste, sparsity: 0.5, pattern: {type: block, rows: 2, cols: 2}, update: {freq: 1000}",
      "semi_sparse, pattern: {type: nm, n: 2, m: 4}, every: 1000"};
  const std::map<std::string, std::function<void(TestModel&, const std::string&)>> ways = {
      {"a state with masks",
       [](TestModel& t, const std::string& keys) { t.model.load_state_dict(trained(keys)); }},
      {"a dense state",
       [](TestModel& t, const std::string&) { t.model.load_state_dict(trained("")); }},
      {"assigned", [](TestModel& t,
                      const std::string&) { t.weight().assign(TestModel(9).weight().to_dense()); }},
      {"written",
       [](TestModel& t, const std::string&) {
         for (float& value : t.weight().mutable_values().mutable_storage()) value *= 2.0f;
       }},
  };
  for (const std::string& keys : algorithms) {
    for (const auto& [way, give] : ways) {
      SCOPED_TRACE(keys + ": " + way);
      TestModel t;
      t.optimizer = std::make_unique<Adam>(t.model.parameters(), AdamOptions{.lr = 0.0});
      const auto algorithm = algorithm_of(keys);
      t.apply(*algorithm);
      t.step();
      const std::vector<float> before = whole(t.weight());
      give(t, keys);
      t.weight().prune();
      const std::vector<float> given = whole(t.weight());
      ASSERT_NE(given, before);
      t.step();
      EXPECT_EQ(whole(t.weight()), given);
      const ByteArray mask = t.weight().mask();
      give(t, keys);  // what is written twice is four times as large
      t.weight().prune();
      const std::vector<float> last = whole(t.weight());
      algorithm->release();
      const std::vector<float> left = whole(t.weight());
      for (size_t i = 0; i < left.size(); ++i) {
        if (mask.values[i] == 0) continue;
        ASSERT_EQ(left[i], last[i]) << i;
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::given_values_test
