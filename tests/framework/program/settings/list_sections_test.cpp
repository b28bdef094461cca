#include "lacuna/framework/program/settings/list_sections.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/program/settings/config_changes.hpp"
#include "throws.h"

namespace lacuna::list_sections_test {
namespace {

using Cases = std::vector<std::pair<std::string, std::string>>;

void refuses(const std::string& yaml, const Cases& cases) {
  for (const auto& [assignment, message] : cases) {
    Config config = parse_yaml(yaml, "c.yaml");
    const Config before = config.clone();
    const auto apply = [&, given = assignment] { apply_overrides(config, {given}); };
    expect_throws<ConfigError>(apply, message);
    expect_throws<ConfigError>(apply, "--set " + assignment + ": c.yaml:1:");
    EXPECT_EQ(config, before) << assignment;
  }
}

TEST(ListSections, ShowTheMapOfAModelThatIsAList) {
  refuses("model: [flatten, {type: linear, out_features: 10}]\n",
          {{"model.sparse_gradient=true",
            "8: model is a list of layers, not a map with `sparse_gradient`; write it as a map, as "
            "in model: {layers: [...], sparse_gradient: true}"},
           {"model.attention_scale=0.5", "in model: {layers: [...], attention_scale: 0.5}"},
           {"model.init_fan_in=nonzeros", "in model: {layers: [...], init_fan_in: nonzeros}"},
           {"model.init_from.path=w.npz", "in model: {layers: [...], init_from: {path: w.npz}}"},
           {"model.init_from=/a/path/of/more/than/thirty/characters",
            "in model: {layers: [...], init_from: ...}"},
           {"model.type=bert",
            "to replace the layers, set model itself, as in --set 'model={type: bert}'"},
           {"model.layers=[relu]", "set one of them, as in model.0, or model itself"},
           {"model.layers.1.out_features=5", "set one of them, as in model.0, or model itself"}});
}

TEST(ListSections, NameTheEntryOfWhichAKeyIs) {
  refuses("sparsity: [{sparsity: 0.9, param_filter: a}, {sparsity: 0.8, param_filter: b}]\n",
          {{"sparsity.sparsity=0.5",
            "11: sparsity is a list of entries, not a map with `sparsity`; set it in one of them, "
            "as in sparsity.0.sparsity"},
           {"sparsity.update.freq=5", "as in sparsity.0.update.freq"}});
  refuses("sparsifiers: [{tensor: fc1.output, sparsifier: {type: scalar_threshold}}]\n",
          {{"sparsifiers.tensor=fc2.output", "as in sparsifiers.0.tensor"}});
}

TEST(ListSections, LeaveOtherPathsToTheList) {
  for (const char* key : {"x", "7", "fc1.bias"}) {
    Config config = parse_yaml("model: [flatten]\n", "c.yaml");
    expect_throws<ConfigError>(
        [&] { apply_overrides(config, {std::string("model.") + key + "=1"}); },
        "is not an index of this list, whose length is 1");
  }
  Config config = parse_yaml("model: {layers: [flatten]}\nsparsity: [{sparsity: 0.9}]\n", "c.yaml");
  apply_overrides(config, {"model.sparse_gradient=true", "sparsity.0.sparsity=0.5"});
  EXPECT_TRUE(config.at("model").required<bool>("sparse_gradient"));
  EXPECT_EQ(config.at("sparsity").items()[0].required<double>("sparsity"), 0.5);
}

}  // namespace
}  // namespace lacuna::list_sections_test
