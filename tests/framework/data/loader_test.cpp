#include "lacuna/framework/data/loader.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "framework/data/data_files.h"
#include "lacuna/framework/core/error.h"

namespace lacuna::loader_test {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Examples that hold their own index; gathering throws while `failing` names one of them.
class Indices final : public Dataset {
 public:
  explicit Indices(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  const Shape& example_shape() const override { return shape_; }
  int64_t num_classes() const override { return size_; }
  int64_t num_outputs() const override { return 0; }
  Batch gather(std::span<const int64_t> indices) const override {
    ++gathered;
    if (std::ranges::find(indices, failing.load()) != indices.end()) {
      throw DataError("example " + std::to_string(failing) + " is broken");
    }
    const auto count = static_cast<int64_t>(indices.size());
    std::vector<float> values(indices.begin(), indices.end());
    return {.inputs = Tensor::from(Shape{count, 1}, values),
            .labels = IndexTensor(Shape{count}, {indices.begin(), indices.end()}),
            .targets = {},
            .size = count};
  }

  mutable std::atomic<int> gathered{0};
  std::atomic<int64_t> failing{-1};

 private:
  int64_t size_;
  Shape shape_{1};
};

std::shared_ptr<const Indices> indices(int64_t size) {
  return std::make_shared<const Indices>(size);
}

std::vector<int64_t> labels_of(const Batch& batch) {
  return {batch.labels.values().begin(), batch.labels.values().end()};
}

std::vector<std::vector<int64_t>> take(Loader& loader, int64_t count) {
  std::vector<std::vector<int64_t>> batches;
  for (int64_t i = 0; i < count; ++i) batches.push_back(labels_of(loader.next()));
  return batches;
}

// Images of 3 × 3 pixels, each of a value of its own.
std::shared_ptr<const Dataset> numbered_images(int64_t count) {
  Examples examples;
  examples.example_shape = Shape{1, 3, 3};
  std::vector<float> pixels;
  for (int64_t i = 0; i < 9 * count; ++i) pixels.push_back(static_cast<float>(i + 1));
  examples.inputs = std::move(pixels);
  examples.labels.assign(static_cast<size_t>(count), 0);
  examples.num_classes = 2;
  return std::make_shared<const ArrayDataset>(std::move(examples));
}

std::vector<std::vector<float>> take_inputs(Loader& loader, int64_t count) {
  std::vector<std::vector<float>> batches;
  for (int64_t i = 0; i < count; ++i) batches.push_back(loader.next().inputs.to_vector());
  return batches;
}

class LoaderWithPrefetch : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Depths, LoaderWithPrefetch, ::testing::Values(0, 1, 3));

TEST_P(LoaderWithPrefetch, KeepsTheOrderWithoutShuffling) {
  Loader loader(indices(5), {.batch_size = 2, .shuffle = Shuffle::None, .prefetch = GetParam()});
  EXPECT_EQ(loader.batches_per_epoch(), 3);
  EXPECT_THAT(take(loader, 4),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4), ElementsAre(0, 1)));
}

TEST_P(LoaderWithPrefetch, DropsTheLastPartialBatch) {
  Loader loader(indices(5), {.batch_size = 2,
                             .shuffle = Shuffle::None,
                             .last_batch = LastBatch::Drop,
                             .prefetch = GetParam()});
  EXPECT_EQ(loader.batches_per_epoch(), 2);
  EXPECT_THAT(take(loader, 3),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(0, 1)));
}

TEST_P(LoaderWithPrefetch, SeesEachExampleOnceAnEpochInAnotherOrder) {
  Loader loader(indices(97), {.batch_size = 10, .prefetch = GetParam()});
  std::vector<std::vector<int64_t>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> seen;
    for (const auto& batch : take(loader, 10)) seen.insert(seen.end(), batch.begin(), batch.end());
    epochs.push_back(seen);
    std::ranges::sort(seen);
    for (int64_t i = 0; i < 97; ++i) ASSERT_EQ(seen[static_cast<size_t>(i)], i);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST_P(LoaderWithPrefetch, GivesTheSameBatchesAsWithoutPrefetch) {
  const auto data = indices(31);
  Loader plain(data, {.batch_size = 4, .seed = 5, .prefetch = 0});
  Loader loader(data, {.batch_size = 4, .seed = 5, .prefetch = GetParam()});
  EXPECT_EQ(take(loader, 30), take(plain, 30));
}

TEST_P(LoaderWithPrefetch, CountsEpochsAndBatches) {
  Loader loader(indices(5), {.batch_size = 2, .prefetch = GetParam()});
  EXPECT_EQ(loader.epoch(), 0);
  EXPECT_EQ(loader.batch_in_epoch(), 0);
  take(loader, 2);
  EXPECT_EQ(loader.epoch(), 0);
  EXPECT_EQ(loader.batch_in_epoch(), 2);
  loader.next();
  EXPECT_EQ(loader.epoch(), 1);
  EXPECT_EQ(loader.batch_in_epoch(), 0);
}

TEST_P(LoaderWithPrefetch, ContinuesExactlyFromAState) {
  const auto data = indices(23);
  const LoaderOptions options{.batch_size = 4, .seed = 9, .prefetch = GetParam()};
  for (const int64_t before : {0, 1, 5, 6, 7, 18}) {
    Loader loader(data, options);
    take(loader, before);
    const StateDict state = loader.state();
    const auto expected = take(loader, 15);
    Loader fresh(data, options);
    fresh.load_state(state);
    EXPECT_EQ(take(fresh, 15), expected) << before;
    loader.load_state(state);  // and back in the loader that has gone on
    EXPECT_EQ(take(loader, 15), expected) << before;
  }
}

TEST_P(LoaderWithPrefetch, AugmentsAsAFunctionOfEpochAndExample) {
  const auto data = numbered_images(7);
  const AugmentOptions augment{.crop = 1, .flip = true, .cutout = 1};
  Loader loader(data, {.batch_size = 3,
                       .shuffle = Shuffle::None,
                       .seed = 5,
                       .prefetch = GetParam(),
                       .augment = augment});
  const Tensor all = data->gather(std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}).inputs;
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<float> seen;
    for (const auto& batch : take_inputs(loader, 3)) {
      seen.insert(seen.end(), batch.begin(), batch.end());
    }
    EXPECT_EQ(seen, augmented(all, std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}, augment,
                              {.seed = 5, .epoch = epoch})
                        .to_vector());
  }
}

TEST_P(LoaderWithPrefetch, ContinuesAugmentedFromAState) {
  const auto data = numbered_images(23);
  const LoaderOptions options{.batch_size = 4,
                              .seed = 9,
                              .prefetch = GetParam(),
                              .augment = {.crop = 1, .flip = true, .cutout = 2}};
  for (const int64_t before : {0, 1, 5, 6, 7, 18}) {
    Loader loader(data, options);
    take_inputs(loader, before);
    const StateDict state = loader.state();
    const auto expected = take_inputs(loader, 15);
    Loader fresh(data, options);
    fresh.load_state(state);
    EXPECT_EQ(take_inputs(fresh, 15), expected) << before;
  }
}

TEST_P(LoaderWithPrefetch, ThrowsAtTheBatchThatFailsAndTriesItAgain) {
  const auto data = std::make_shared<Indices>(6);
  data->failing = 3;
  Loader loader(data, {.batch_size = 2, .shuffle = Shuffle::None, .prefetch = GetParam()});
  EXPECT_THAT(labels_of(loader.next()), ElementsAre(0, 1));
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(message_of<DataError>([&] { loader.next(); }), "example 3 is broken");
    EXPECT_EQ(loader.batch_in_epoch(), 1);
  }
  data->failing = -1;
  EXPECT_THAT(labels_of(loader.next()), ElementsAre(2, 3));
  EXPECT_THAT(labels_of(loader.next()), ElementsAre(4, 5));
}

TEST_P(LoaderWithPrefetch, StopsAtAnyMoment) {
  const auto data = indices(1000);
  for (int64_t taken = 0; taken < 40; ++taken) {
    Loader loader(data, {.batch_size = 7, .prefetch = GetParam()});
    take(loader, taken % 5);
  }
}

TEST(Loader, BatchLargerThanTheDataSetIsTheWholeOfIt) {
  Loader loader(indices(3), {.batch_size = 100, .shuffle = Shuffle::None});
  EXPECT_EQ(loader.batches_per_epoch(), 1);
  EXPECT_THAT(labels_of(loader.next()), ElementsAre(0, 1, 2));
}

TEST(Loader, SeedsGiveDifferentOrders) {
  const auto data = indices(50);
  Loader one(data, {.batch_size = 50, .seed = 1}), two(data, {.batch_size = 50, .seed = 2});
  EXPECT_NE(take(one, 1), take(two, 1));
}

TEST(Loader, PrefetchesNoMoreThanItsDepth) {
  const auto data = indices(100);
  Loader loader(data, {.batch_size = 1, .prefetch = 2});
  loader.next();
  // Two in the queue, and none in work: the thread waits for room before it draws.
  while (data->gathered < 3) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(data->gathered, 3);
}

TEST(Loader, StateDoesNotCountPrefetchedBatches) {
  const auto data = indices(100);
  Loader loader(data, {.batch_size = 1, .prefetch = 5});
  loader.next();
  while (data->gathered < 6) std::this_thread::yield();
  EXPECT_EQ(loader.state().get<int64_t>("batch"), 1);
}

TEST(Loader, RefusesTheStateOfAnotherStream) {
  const auto data = indices(10);
  const LoaderOptions options{.batch_size = 2, .seed = 3, .prefetch = 0};
  Loader loader(data, options);
  loader.next();
  const StateDict state = loader.state();
  const auto message = [&](int64_t size, LoaderOptions other) {
    Loader target(indices(size), other);
    return message_of<CheckpointError>([&] { target.load_state(state); });
  };
  EXPECT_THAT(message(11, options), HasSubstr("dataset_size 10, this loader has 11"));
  EXPECT_THAT(message(10, {.batch_size = 5, .seed = 3}),
              HasSubstr("batch_size 2, this loader has 5"));
  EXPECT_THAT(message(10, {.batch_size = 2, .seed = 4}), HasSubstr("seed 3, this loader has 4"));
  EXPECT_THAT(message(10, {.batch_size = 2, .shuffle = Shuffle::None, .seed = 3}),
              HasSubstr("shuffle 1, this loader has 0"));
  EXPECT_THAT(message(10, {.batch_size = 2, .last_batch = LastBatch::Drop, .seed = 3}),
              HasSubstr("drop_last 0, this loader has 1"));
}

TEST(Loader, RefusesTheStateOfAnotherAugmentation) {
  const auto data = numbered_images(4);
  Loader plain(data, {.batch_size = 2});
  Loader augmenting(data, {.batch_size = 2, .augment = {.crop = 1, .flip = true}});
  EXPECT_FALSE(plain.state().contains("augment"));
  EXPECT_THAT(message_of<CheckpointError>([&] { plain.load_state(augmenting.state()); }),
              HasSubstr("augment 'crop 1, flip', this loader has 'none'"));
  EXPECT_THAT(message_of<CheckpointError>([&] { augmenting.load_state(plain.state()); }),
              HasSubstr("augment 'none', this loader has 'crop 1, flip'"));
}

// Nine of ten examples are of class 0. Pixels tell which example it is.
std::shared_ptr<const Dataset> unequal_classes() {
  Examples examples;
  examples.example_shape = Shape{1};
  examples.num_classes = 2;
  std::vector<float> values;
  for (int i = 0; i < 30; ++i) {
    values.push_back(static_cast<float>(i));
    examples.labels.push_back(i % 10 == 9 ? 1 : 0);
  }
  examples.inputs = std::move(values);
  return std::make_shared<const ArrayDataset>(std::move(examples));
}

TEST_P(LoaderWithPrefetch, DrawsClassesEquallyOftenAndContinuesFromAState) {
  const LoaderOptions options{
      .batch_size = 7, .seed = 2, .prefetch = GetParam(), .sampling = Sampling::Balanced};
  Loader loader(unequal_classes(), options);
  int64_t rare = 0;
  for (int64_t batch = 0; batch < 5; ++batch) {
    for (const int64_t label : labels_of(loader.next())) rare += label;
  }
  EXPECT_EQ(rare, 15);
  const StateDict state = loader.state();
  const auto expected = take_inputs(loader, 8);
  Loader fresh(unequal_classes(), options);
  fresh.load_state(state);
  EXPECT_EQ(take_inputs(fresh, 8), expected);
}

// Shares of a batch are of the same batch, whatever the number of processes.
TEST(Loader, DrawsBalancedBatchesAlikeInShards) {
  LoaderOptions options{.batch_size = 7, .seed = 2, .shards = 4, .sampling = Sampling::Balanced};
  for (const int64_t processes : {1, 2, 4}) {
    std::vector<std::unique_ptr<Loader>> loaders;
    for (int64_t rank = 0; rank < processes; ++rank) {
      options.first_shard = rank * 4 / processes;
      options.last_shard = (rank + 1) * 4 / processes;
      loaders.push_back(std::make_unique<Loader>(unequal_classes(), options));
    }
    Loader plain(unequal_classes(), {.batch_size = 7, .seed = 2, .sampling = Sampling::Balanced});
    for (int64_t batch = 0; batch < 7; ++batch) {
      std::vector<float> joined;
      for (const auto& loader : loaders) {
        for (const BatchShards::Shard& shard : loader->next_shards().drawn) {
          const std::vector<float> part = shard.batch.inputs.to_vector();
          joined.insert(joined.end(), part.begin(), part.end());
        }
      }
      const std::vector<float> expected = plain.next().inputs.to_vector();
      if (expected.size() < 4) continue;  // too few for four shards: each process draws them all
      EXPECT_EQ(joined, expected) << processes << " processes, batch " << batch;
    }
  }
}

TEST(Loader, RefusesTheStateOfAnotherSampling) {
  Loader plain(unequal_classes(), {.batch_size = 2});
  Loader balanced(unequal_classes(), {.batch_size = 2, .sampling = Sampling::Balanced});
  EXPECT_FALSE(plain.state().contains("sampling"));
  EXPECT_THAT(message_of<CheckpointError>([&] { plain.load_state(balanced.state()); }),
              HasSubstr("sampling 'balanced', this loader has 'once'"));
  EXPECT_THAT(message_of<CheckpointError>([&] { balanced.load_state(plain.state()); }),
              HasSubstr("sampling 'once', this loader has 'balanced'"));
}

TEST(Loader, RefusesAStateOutsideOfAnEpochAndStaysAsItWas) {
  Loader loader(indices(10), {.batch_size = 2});
  take(loader, 3);
  StateDict state = loader.state();
  state.set("batch", int64_t{5});
  EXPECT_THAT(message_of<CheckpointError>([&] { loader.load_state(state); }),
              HasSubstr("is at batch 5 of epoch 0; expected one of 5 batches"));
  EXPECT_THAT(message_of<CheckpointError>([&] { loader.load_state(StateDict()); }),
              HasSubstr("the saved state has no 'dataset_size'"));
  EXPECT_EQ(loader.batch_in_epoch(), 3);
}

TEST(Loader, RefusesOptionsOutOfRange) {
  EXPECT_THAT(message_of<StateError>([] { Loader loader(nullptr); }),
              HasSubstr("a loader needs a dataset, found none"));
  EXPECT_THAT(message_of<StateError>([] { Loader loader(indices(3), {.batch_size = 0}); }),
              HasSubstr("batch_size must be at least 1, found 0"));
  EXPECT_THAT(message_of<StateError>([] { Loader loader(indices(3), {.prefetch = -1}); }),
              HasSubstr("prefetch must be at least 0, found -1"));
  EXPECT_THAT(message_of<DataError>([] { Loader loader(indices(0)); }), HasSubstr("is empty"));
  EXPECT_THAT(message_of<DataError>([] {
                Loader loader(indices(3), {.batch_size = 4, .last_batch = LastBatch::Drop});
              }),
              HasSubstr("a dataset of 3 examples has no whole batch of 4"));
}

TEST(Loader, RefusesAnAugmentationThatDoesNotFit) {
  EXPECT_THAT(
      message_of<DataError>([] { Loader loader(numbered_images(3), {.augment = {.crop = 3}}); }),
      HasSubstr("crop 3 must be smaller than the images, which are 3 x 3 pixels"));
  EXPECT_THAT(message_of<DataError>([] { Loader loader(indices(3), {.augment = {.flip = true}}); }),
              HasSubstr("only images can be augmented"));
}

TEST(ForEachBatch, VisitsAllExamplesInOrder) {
  std::vector<std::vector<int64_t>> seen;
  const auto visit = [&](const Batch& batch) { seen.push_back(labels_of(batch)); };
  for_each_batch(*indices(5), 2, visit);
  EXPECT_THAT(seen, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4)));
  seen.clear();
  for_each_batch(*indices(0), 2, visit);
  EXPECT_TRUE(seen.empty());
  EXPECT_THAT(message_of<StateError>([&] { for_each_batch(*indices(5), 0, visit); }),
              HasSubstr("batch_size must be at least 1, found 0"));
}

}  // namespace
}  // namespace lacuna::loader_test
