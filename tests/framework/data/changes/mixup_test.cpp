#include "lacuna/framework/data/changes/mixup.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/data/loader.h"

namespace lacuna::mixup_test {
namespace {

using test::message_of;
using ::testing::HasSubstr;

TEST(Mixup, DrawsFromTheBetaDistribution) {
  for (const double alpha : {0.05, 0.2, 0.7, 1.0, 1.3, 4.0, 32.0}) {
    const CounterRng rng(1, "test");
    constexpr int kDraws = 20000;
    double sum = 0.0, squares = 0.0;
    for (uint64_t i = 0; i < kDraws; ++i) {
      const double b = draw_beta(rng, i, alpha);
      ASSERT_GE(b, 0.0);
      ASSERT_LE(b, 1.0);
      sum += b;
      squares += (b - 0.5) * (b - 0.5);
    }
    const double variance = 1.0 / (4.0 * (2.0 * alpha + 1.0));
    EXPECT_NEAR(sum / kDraws, 0.5, 4.0 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws, variance, 0.05 * variance) << alpha;
  }
}

TEST(Mixup, GivesTheOwnLabelTheLargerShare) {
  std::vector<int64_t> indices(2000);
  std::iota(indices.begin(), indices.end(), int64_t{0});
  const CounterRng rng(3, "test", 1);
  const auto mixtures = draw_mixtures(indices, 10, 0.4, rng);
  std::set<int64_t> others;
  for (const Mixture& mixture : mixtures) {
    EXPECT_GE(mixture.own_share, 0.5f);
    EXPECT_LE(mixture.own_share, 1.0f);
    others.insert(mixture.other);
  }
  EXPECT_EQ(others.size(), 10u);
  EXPECT_EQ(*others.begin(), 0);
  const auto alone = draw_mixtures(std::vector<int64_t>{77}, 10, 0.4, rng);
  EXPECT_EQ(alone[0].other, mixtures[77].other);
  EXPECT_EQ(alone[0].own_share, mixtures[77].own_share);
}

// Draws are made many at a time; they are those of each example's own places.
TEST(Mixup, DrawsTheNumbersOfEachExample) {
  const CounterRng rng(3, "test", 1);
  for (const double alpha : {0.2, 1.0, 4.0}) {
    for (const int64_t count : {0, 1, 7, 8, 9, 100}) {
      std::vector<int64_t> indices(static_cast<size_t>(count));
      std::iota(indices.begin(), indices.end(), int64_t{40});
      const auto mixtures = draw_mixtures(indices, 1000, alpha, rng);
      ASSERT_EQ(mixtures.size(), indices.size());
      for (size_t i = 0; i < indices.size(); ++i) {
        const auto place = 2 * static_cast<uint64_t>(indices[i]);
        const double b = draw_beta(rng, place, alpha);
        EXPECT_EQ(mixtures[i].own_share, static_cast<float>(std::max(b, 1.0 - b)));
        EXPECT_EQ(mixtures[i].other, static_cast<int64_t>(rng.below((place + 1) << 32, 1000)));
      }
    }
  }
  // As drawn one at a time, up to the last bits of the logarithm.
  EXPECT_NEAR(draw_beta(rng, 5, 0.2), 0.99971681499965548, 1e-12);
  EXPECT_NEAR(draw_beta(rng, 6, 4.0), 0.55413580981512367, 1e-12);
}

TEST(Mixup, MixesExamples) {
  Tensor own = Tensor::from(Shape{2, 2}, std::vector<float>{0, 4, 8, 12});
  mix(own, Tensor::from(Shape{2, 2}, std::vector<float>{4, 0, 0, 0}),
      std::vector<Mixture>{{0, 0.75f}, {0, 0.5f}});
  EXPECT_EQ(own.to_vector(), (std::vector<float>{1, 3, 4, 6}));
}

// Example i is the image [i, i, i, i] of class i.
std::shared_ptr<const ArrayDataset> images(int64_t count) {
  Examples examples{.example_shape = Shape{2, 2}, .inputs = std::vector<float>()};
  for (int64_t i = 0; i < count; ++i) {
    for (int k = 0; k < 4; ++k) std::get<1>(examples.inputs).push_back(static_cast<float>(i));
    examples.labels.push_back(i);
  }
  examples.num_classes = count;
  return std::make_shared<const ArrayDataset>(std::move(examples));
}

TEST(Mixup, ComesOutOfTheLoader) {
  const auto batches = [&](int prefetch, int64_t batch_size) {
    Loader loader(
        images(12),
        {.batch_size = batch_size, .seed = 5, .prefetch = prefetch, .augment = {.mixup = 0.5}});
    std::vector<Batch> all;
    for (int64_t i = 0; i < 24 / batch_size; ++i) all.push_back(loader.next());
    return all;
  };
  std::map<int64_t, float> of_example;  // in epoch 0
  for (const Batch& batch : batches(0, 4)) {
    ASSERT_EQ(batch.own_shares.size(), 4u);
    for (size_t i = 0; i < 4; ++i) {
      const float share = batch.own_shares[i];
      const auto own = static_cast<float>(batch.labels.values()[i]),
                 other = static_cast<float>(batch.other_labels.values()[i]);
      EXPECT_FLOAT_EQ(batch.inputs.data()[4 * i + 3], share * own + (1.0f - share) * other);
      of_example.emplace(batch.labels.values()[i], share);
    }
  }
  EXPECT_EQ(of_example.size(), 12u);
  const auto ahead = batches(3, 6);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(ahead[0].own_shares[i], of_example.at(ahead[0].labels.values()[i]));
  }
}

TEST(Mixup, MixesTargets) {
  Examples examples{.example_shape = Shape{1},
                    .inputs = std::vector<float>{0, 10},
                    .targets = {0, 1},
                    .num_outputs = 1};
  Loader loader(std::make_shared<const ArrayDataset>(std::move(examples)),
                {.batch_size = 2, .augment = {.mixup = 1.0}});
  for (int i = 0; i < 5; ++i) {
    const Batch batch = loader.next();
    EXPECT_TRUE(batch.own_shares.empty());
    EXPECT_FLOAT_EQ(batch.inputs.data()[0], 10.0f * batch.targets.data()[0]);
  }
}

TEST(Mixup, IsReadWithTheOtherChanges) {
  if (!dataset_registry().contains("glyphs")) register_datasets(dataset_registry());
  Config data = Config::map({{"type", "colour_glyphs"}, {"train_size", 8}, {"test_size", 4}});
  const auto with = [&](const Config& augment) {
    Config copy = data.clone();
    copy.set("augment", augment);
    return load_data(copy, 0);
  };
  const DataSplits splits =
      with(Config::map({{"crop", 2},
                        {"mixup", 0.2},
                        {"rand_augment", Config::map({{"operations", 2}, {"magnitude", 9}})}}));
  EXPECT_EQ(splits.augment.to_string(), "crop 2, rand_augment 2 of magnitude 9, mixup 0.2");
  EXPECT_EQ(splits.augment.byte_scales, (std::vector<float>(3, 1.0f / 255.0f)));
  EXPECT_THAT(message_of<ConfigError>([&] {
                with(Config::map({{"mixup", -0.1}}));
              }),
              HasSubstr("mixup must be in [0, 64], found -0.1"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                with(Config::map({{"rand_augment", Config::map({{"magnitude", 31}})}}));
              }),
              HasSubstr("rand_augment's magnitude must be in [0, 30], found 31"));
  data = Config::map({{"type", "synthetic"}, {"features", 4}, {"classes", 2}, {"train_size", 8}});
  EXPECT_EQ(with(Config::map({{"mixup", 0.2}})).augment.to_string(), "mixup 0.2");
  EXPECT_THAT(message_of<ConfigError>([&] {
                with(Config::map({{"rand_augment", Config::map({{"operations", 1}})}}));
              }),
              HasSubstr("rand_augment is for images, which are stored as bytes"));
}

}  // namespace
}  // namespace lacuna::mixup_test
