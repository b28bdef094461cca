#include "lacuna/framework/program/settings/layout_config.hpp"

#include <gtest/gtest.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "throws.h"

namespace lacuna::layout_config_test {
namespace {

Config with_layout(const std::string& yaml) {
  Config config = parse_yaml(yaml, "test");
  set_sparsity_layout(config, "masked");
  return config;
}

TEST(SetLayout, ReachesEveryEntry) {
  const auto expect = [](const std::string& before, const std::string& after) {
    EXPECT_EQ(with_layout(before).to_json(), parse_yaml(after, "test").to_json());
  };
  expect("sparsity: {algorithm: set, layout: csr}", "sparsity: {algorithm: set, layout: masked}");
  expect("sparsity: 0.5", "sparsity: {algorithm: static, sparsity: 0.5, layout: masked}");
  expect("sparsity: [{sparsity: 0.5}, {sparsity: 0.6, layout: csr}]",
         "sparsity: [{sparsity: 0.5, layout: masked}, {sparsity: 0.6, layout: masked}]");
  expect("sparsity: {phases: [{until: 5}, {algorithm: set}]}",
         "sparsity: {phases: [{until: 5, layout: masked}, {algorithm: set, layout: masked}], "
         "layout: masked}");
  expect("train: {seed: 1}", "train: {seed: 1}");
}

TEST(SetLayout, ForgetsWhatWasChosen) {
  EXPECT_FALSE(with_layout("{sparsity: 0.5, csr_up_to: {fc1.weight: 0.5}}").has("csr_up_to"));
}

TEST(SetLayout, OfSparsifyReachesWeightsAlone) {
  Config config = parse_yaml(
      "sparsifiers: [{tensor: fc1.output, sparsifier: keep_all}, {tensor: fc1.weight, sparsifier: "
      "keep_all, layout: csr}, {tensor: '*.weight', sparsifier: keep_all}]\n"
      "csr_up_to: {fc1.weight: 0.5}\n",
      "test");
  EXPECT_TRUE(sparsifies_weights(config));
  set_sparsify_layout(config, "masked");
  EXPECT_EQ(config.to_json(),
            parse_yaml("sparsifiers: [{tensor: fc1.output, sparsifier: keep_all}, {tensor: "
                       "fc1.weight, sparsifier: keep_all, layout: masked}, {tensor: '*.weight', "
                       "sparsifier: keep_all, layout: masked}]",
                       "test")
                .to_json());
  Config none = parse_yaml("sparsifiers: [{tensor: fc1.output, sparsifier: keep_all}]", "test");
  EXPECT_FALSE(sparsifies_weights(none));
  expect_throws<ConfigError>([&] { set_sparsify_layout(none, "masked"); },
                             "sparsifiers: no entry is for weights");
}

TEST(IsLayoutPath, KnowsThemAll) {
  for (const char* path :
       {"sparsity.layout", "sparsity.0.layout", "sparsity.12.layout", "sparsity.phases.1.layout",
        "sparsifiers.layout", "sparsifiers.3.layout"}) {
    EXPECT_TRUE(is_layout_path(path)) << path;
  }
  for (const char* path :
       {"sparsity", "layout", "sparsity.0layout", "sparsity.x.layout", "sparsity.layouts",
        "sparsity.phaseslayout", "sparsity..layout", "sparsity.init_method.layout", "train.layout",
        "sparsifiers.phases.1.layout", "sparsifiers.0.sparsifier.layout"}) {
    EXPECT_FALSE(is_layout_path(path)) << path;
  }
}

}  // namespace
}  // namespace lacuna::layout_config_test
