#include "lacuna/framework/config/familiar_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lacuna/framework/config/config.h"
#include "lacuna/framework/config/names.h"
#include "throws.h"

namespace lacuna::familiar_names_test {
namespace {

using Names = std::vector<std::string>;

TEST(FamiliarNames, SuggestWhatTheCandidatesHave) {
  const Names convolution = {"out_channels", "kernel", "stride", "padding", "bias"};
  EXPECT_EQ(suggest_familiar("filters", convolution), "did you mean 'out_channels'?");
  EXPECT_EQ(suggest_familiar("kernel_size", convolution), "did you mean 'kernel'?");
  EXPECT_EQ(suggest_familiar("use_bias", convolution), "did you mean 'bias'?");
  // One word, and what it is in each place.
  EXPECT_EQ(suggest_familiar("hidden_size", Names{"out_features", "bias"}),
            "did you mean 'out_features'?");
  EXPECT_EQ(suggest_familiar("d_model", Names{"n_embd", "n_head"}), "did you mean 'n_embd'?");
  EXPECT_EQ(suggest_familiar("num_layers", Names{"dim", "n_layers"}), "did you mean 'n_layers'?");
}

TEST(FamiliarNames, AreComparedWithoutCaseUnderscoresAndModules) {
  const Names layers = {"batch_norm", "linear", "relu", "conv2d"};
  EXPECT_EQ(suggest_name("BatchNorm", layers), "did you mean 'batch_norm'?");
  EXPECT_EQ(suggest_name("torch.nn.BatchNorm2d", layers), "did you mean 'batch_norm'?");
  EXPECT_EQ(suggest_name("layers.Dense", layers), "did you mean 'linear'?");
  EXPECT_EQ(suggest_name("nn.ReLU", layers), "did you mean 'relu'?");
  EXPECT_EQ(suggest_name("Softmax", layers), "leave it out: cross_entropy applies the softmax");
}

TEST(FamiliarNames, AreNotWhatIsSpokenOfElsewhere) {
  EXPECT_EQ(suggest_familiar("learning_rate", Names{"price", "width"}), "");
  EXPECT_EQ(suggest_name("Softmax", Names{"price", "width"}), "valid names: price, width");
  EXPECT_EQ(suggest_familiar("kernel", Names{"kernel"}), "");
}

TEST(FamiliarNames, LeadToTheKeyOfAnotherSection) {
  const Names train = {"epochs", "batch_size", "seed"};
  EXPECT_EQ(suggest_key("learning_rate", "train", train), "here it is 'optimizer.lr'");
  EXPECT_EQ(suggest_key("lr", "train", train), "here it is 'optimizer.lr'");
  EXPECT_EQ(suggest_key("epochs", "optimizer", Names{"lr", "eps"}), "here it is 'train.epochs'");
  EXPECT_EQ(suggest_key("max_epochs", "", Names{"model", "train"}), "here it is 'train.epochs'");
  EXPECT_EQ(suggest_key("max_epochs", "train", train), "did you mean 'epochs'?");
  EXPECT_EQ(suggest_key("device", "train", train),
            "leave it out: lacuna trains on CPUs, with train.threads threads");
  // A slip is a slip first, and a key that its own section does not take is not offered.
  EXPECT_EQ(suggest_key("epoch", "train", train), "did you mean 'epochs'?");
  EXPECT_EQ(suggest_key("context", "data", Names{"dir", "limit"}), "valid names: dir, limit");
  EXPECT_EQ(familiar_key("batch-size"), "train.batch_size");
  EXPECT_EQ(familiar_key("nothing"), "");
}

TEST(FamiliarNames, SayWhatDiffers) {
  EXPECT_THAT(suggest_key("lr_scheduler", "", Names{"model"}),
              testing::StartsWith("here it is 'optimizer.lr'. lr takes a schedule, as in lr: {"));
  EXPECT_EQ(suggest_key("beta_1", "optimizer", Names{"betas", "lr"}),
            "did you mean 'betas'? Both go into one list, as in betas: [0.9, 0.999]");
}

TEST(FamiliarNames, NameTheKeyThatIsMissing) {
  const Config layer = Config::map({{"type", "conv2d"}, {"filters", 8}});
  layer.required<std::string>("type");
  expect_throws<ConfigError>([&] { layer.required<int>("out_channels"); },
                             "filters: unknown key 'filters'; did you mean 'out_channels', which "
                             "is required and missing?");
}

}  // namespace
}  // namespace lacuna::familiar_names_test
