// The first masks of weights that were loaded with masks: over all registered algorithms, those of
// users among them.
#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/builtins.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/weights/model_file.h"
#include "lacuna/sparsity/configure.h"
#include "lacuna/sparsity/set.h"
#include "temporary_folder.h"

namespace lacuna::first_masks_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// As the README's example: a subclass that says nothing of its first masks.
class UsersSet final : public Set {
 public:
  using Set::Set;
  std::string_view type() const override { return "users_set"; }
};

class UsersDynamic final : public DynamicSparsityAlgorithm {
 public:
  using DynamicSparsityAlgorithm::DynamicSparsityAlgorithm;
  std::string_view type() const override { return "users_dynamic"; }

 protected:
  MaskSet update_mask(const SparseWeight&, const MaskSet& mask, float) override { return mask; }
};

class UsersOwn final : public SparsityAlgorithm {
 public:
  using SparsityAlgorithm::SparsityAlgorithm;
  std::string_view type() const override { return "users_own"; }
  void update(Optimizer&) override { count_step(); }
};

// Reads no `init_method`, which would then be an unknown key.
std::unique_ptr<SparsityAlgorithm> make_without_keys(const Config& entry, uint64_t) {
  return std::make_unique<UsersOwn>(SparsityOptions{
      .sparsity = 0.5, .param_filter = ParameterFilter::from_config(entry.get("param_filter"))});
}

const bool registered =
    algorithm_registry().add("users_set", "of a test", make_drop_grow<UsersSet>) &&
    algorithm_registry().add("users_dynamic", "of a test", make_dynamic<UsersDynamic>) &&
    algorithm_registry().add("users_own", "of a test", make_algorithm<UsersOwn>) &&
    algorithm_registry().add("users_keyless", "of a test", make_without_keys);

class FirstMasksTest : public testing::Test {
 protected:
  // A model with half of fc1.weight, to begin with.
  FirstMasksTest() {
    const auto first =
        build("null", "sparsity: {sparsity: 0.5, param_filter: fc1.weight}\ntrain: {seed: 3}\n");
    loaded_ = mask(*first);
    save_model(path_, *first->model);
  }
  static std::unique_ptr<Experiment> build(const std::string& init_from, const std::string& more) {
    return build_experiment(
        parse_yaml("data: {type: glyphs, train_size: 20, test_size: 10}\n"
                   "model:\n"
                   "  init_from: " +
                       init_from +
                       "\n"
                       "  layers:\n"
                       "    - flatten\n"
                       "    - {type: linear, name: fc1, out_features: 4}\n"
                       "    - {type: linear, name: fc2, out_features: 10}\n"
                       "optimizer: {type: adam}\n" +
                       more,
                   "run.yaml"));
  }
  std::unique_ptr<Experiment> from(const std::string& sparsity) const {
    return build(path_, "sparsity: " + sparsity + "\n");
  }
  static std::vector<int64_t> mask(const Experiment& experiment) {
    std::vector<int64_t> kept;
    MaskSet(experiment.model->parameter("fc1.weight")->pattern())
        .positions()
        .for_each([&](int64_t position) { kept.push_back(position); });
    return kept;
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "first.h5";
  std::vector<int64_t> loaded_;
};

constexpr const char* kRising =
    "sparsity: {type: polynomial, init: 0.5, final: 0.9, start: 0, end: 4}, update: {freq: 2}";

// What an algorithm needs besides its name; by default a sparsity of half.
std::string options_of(const std::string& name) {
  static const std::map<std::string, std::string> options = {
      {"gmp", kRising},
      {"saliency", kRising},
      {"ste", kRising},
      {"acdc", "sparsity: 0.5, update: {freq: 2}"},
      {"dense", ""},
      {"users_keyless", ""},
      {"semi_sparse", "pattern: {type: nm, n: 2, m: 4}"}};
  const auto own = options.find(name);
  return own == options.end() ? "sparsity: 0.5" : own->second;
}

TEST_F(FirstMasksTest, AreTheLoadedOnesOfAllAlgorithmsThatDoNotSayOtherwise) {
  register_builtins();
  ASSERT_TRUE(registered);
  for (const std::string& name : algorithm_registry().names()) {
    if (name == "structured") continue;  // takes no param_filter
    const std::string entry = "{algorithm: " + name + ", param_filter: fc1.weight" +
                              (options_of(name).empty() ? "" : ", " + options_of(name)) + "}";
    for (const std::string& section : {entry, "[" + entry + "]", "{phases: [" + entry + "]}"}) {
      const auto experiment = from(section);
      if (name == "dense") {
        EXPECT_EQ(mask(*experiment).size(), 4 * 784u) << section;
      } else if (name == "semi_sparse" || name == "srigl" || name == "users_keyless") {
        EXPECT_EQ(mask(*experiment).size(), loaded_.size()) << section;
        EXPECT_NE(mask(*experiment), loaded_) << section;
      } else {
        EXPECT_EQ(mask(*experiment), loaded_) << section;
        EXPECT_THAT(experiment->notes, Contains(HasSubstr("the loaded masks are kept"))) << section;
      }
      EXPECT_THAT(experiment->warnings, IsEmpty()) << section;
    }
  }
}

TEST_F(FirstMasksTest, OfPhasesAreThoseOfTheFirst) {
  const std::string other = ", param_filter: fc1.weight, sparsity: 0.5}";
  EXPECT_EQ(mask(*from("{phases: [{until: 3, algorithm: users_set" + other +
                       ", {algorithm: static" + other + "]}")),
            loaded_);
  const auto phases = configure(
      parse_yaml("{phases: [{until: 3, algorithm: acdc, sparsity: 0.5}, {algorithm: static, "
                 "sparsity: 0.5}]}",
                 "run.yaml"),
      0);
  EXPECT_EQ(phases->first_masks(), FirstMasks::Dense);
}

TEST_F(FirstMasksTest, ThatARisingScheduleDropsAreAWarning) {
  for (const char* name : {"gmp", "saliency", "ste"}) {
    const std::string entry = "{algorithm: " + std::string(name) +
                              ", param_filter: fc1.weight, update: {freq: 2}, sparsity: {type: "
                              "polynomial, init: 0.0, final: 0.9, start: 0, end: 4}";
    const auto dropped = from(entry + "}");
    EXPECT_EQ(mask(*dropped).size(), 4 * 784u) << name;
    EXPECT_THAT(dropped->warnings,
                testing::ElementsAre(HasSubstr("`init_method: inherit` in the sparsity section")))
        << name;
    const auto kept = from(entry + ", init_method: inherit}");
    EXPECT_EQ(mask(*kept), loaded_) << name;
    EXPECT_THAT(kept->warnings, IsEmpty()) << name;
  }
}

// What begins dense is not pruned by magnitude where the loaded weights are dense.
TEST_F(FirstMasksTest, OfDenseWeightsAreFullWhereAnAlgorithmBeginsDense) {
  for (const char* name : {"acdc", "snip"}) {
    const auto experiment = from("{algorithm: " + std::string(name) +
                                 ", param_filter: fc2.weight, " + options_of(name) + "}");
    EXPECT_EQ(experiment->model->parameter("fc2.weight")->pattern()->nnz(), 40) << name;
    EXPECT_EQ(mask(*experiment), loaded_) << name;
  }
}

// SNIP prunes by its own measure, and not by magnitude before it.
TEST_F(FirstMasksTest, OfSnipAreNotPrunedBeforeItsFirstStep) {
  const auto experiment = from("{algorithm: snip, param_filter: fc1.weight, sparsity: 0.9}");
  EXPECT_EQ(mask(*experiment), loaded_);
}

}  // namespace
}  // namespace lacuna::first_masks_test
