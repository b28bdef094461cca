// Mistakes in configurations that are found where nothing knows the file: exit code 2 all the same,
// and a message that names file and key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::config_places_test {
namespace {

using testing::HasSubstr;

class ConfigPlaces : public RunFixture {
 protected:
  void refuses(const std::string& setting, const std::string& message) const {
    const Ended ended = train({"--set", setting});
    EXPECT_EQ(ended.code, 2) << setting;
    EXPECT_THAT(ended.err, HasSubstr(message)) << setting;
    EXPECT_FALSE(std::filesystem::exists(run_dir())) << setting;
  }
};

// An error on a shape beyond 64 bits names the layer, whichever computation finds it.
TEST_F(ConfigPlaces, OfSizesThatCannotBe) {
  const auto doubled = [](const std::string& data, int times, const std::string& branch) {
    return "data: {type: " + data +
           ", train_size: 40, test_size: 8}\nmodel:\n  define:\n    p: "
           "{layers: [{type: parallel, layers: [" +
           branch +
           "]}]}\n  layers: [{type: p, name: q, "
           "repeat: " +
           std::to_string(times) +
           "}, flatten, {type: linear, out_features: 4}]\n"
           "optimizer: {type: adam}\ntrain: {steps: 2, batch_size: 8}\n";
  };
  for (const std::string& yaml :
       {doubled("synthetic", 60, "relu, tanh"), doubled("synthetic", 63, "relu, tanh, gelu"),
        doubled("glyphs", 53, "relu, tanh"), doubled("colour_glyphs", 58, "relu, tanh")}) {
    write_text(config(), yaml);
    for (const char* command : {"train", "plan"}) {
      const Ended ended = run_lacuna({command, config()}, {.folder = folder_.path()});
      EXPECT_EQ(ended.code, 2) << yaml;
      EXPECT_THAT(ended.err, HasSubstr("error: " + config() + ":4:")) << yaml;
      EXPECT_THAT(ended.err, HasSubstr("(parallel)")) << yaml;
    }
  }
}

TEST_F(ConfigPlaces, OfPresetsNamesTheirKeys) {
  const std::string begin =
      "data: {type: colour_glyphs, train_size: 20, test_size: 8}\noptimizer: {type: adam}\n"
      "train: {steps: 1}\nmodel: {type: ";
  for (const auto& [model, key] : std::vector<std::pair<std::string, std::string>>{
           {"vit, hidden_size: 0, patch_size: 4", "model.hidden_size: "},
           {"vit, hidden_size: 4611686018427387904, patch_size: 4", "model.hidden_size: "},
           {"vit, intermediate_size: true, patch_size: 4", "model.intermediate_size: "},
           {"vit, hidden_dropout_prob: 3, patch_size: 4", "model.hidden_dropout_prob: "},
           {"vit, num_hidden_layers: -1, patch_size: 4", "model.num_hidden_layers: "},
           {"cifar_resnet, width: 0", "model.width: "}}) {
    write_text(config(), begin + model + "}\n");
    const Ended ended = train();
    EXPECT_EQ(ended.code, 2) << model;
    EXPECT_THAT(ended.err, HasSubstr("error: " + config() + ":4:")) << model;
    EXPECT_THAT(ended.err, HasSubstr(key)) << model;
  }
  write_text(config(), begin + "cifar_resnet, width: 1e308}\n");
  EXPECT_THAT(train().err, HasSubstr("within the preset 'cifar_resnet' at " + config() + ":4:8"));
}

TEST_F(ConfigPlaces, OfLearningRatesThatFallBelowZero) {
  refuses("optimizer.lr={type: cosine, init: 0.1, minimum: -1, half_period: 3}",
          "optimizer.lr: the learning rate is -");
  refuses("optimizer.lr={type: linear, init: 0.1, slope: -0.05}", "optimizer.lr");
  refuses("optimizer.groups=[{params: '*.bias', lr: {type: power, init: -1.0, beta: 0.5}}]",
          "optimizer.groups.0.lr");
  // Only at the end of a run of more steps than are looked at.
  for (const int steps : {9999, 10001, 15000, 19999, 20003}) {
    const std::string slope = Config(-0.1 / (steps - 1.5)).text();
    const Ended ended =
        train({"--set", "optimizer.lr={type: linear, init: 0.1, slope: " + slope + "}", "--set",
               "train.steps=" + std::to_string(steps)});
    EXPECT_EQ(ended.code, 2) << steps;
    EXPECT_THAT(ended.err, HasSubstr("optimizer.lr")) << steps;
  }
}

}  // namespace
}  // namespace lacuna::config_places_test
