#include "lacuna/framework/data/sampling.h"

#include <gmock/gmock.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/data/loader.h"
#include "lacuna/framework/io/yaml.h"
#include "throws.h"

namespace lacuna::sampling_test {
namespace {

using testing::ElementsAre;

std::shared_ptr<const ArrayDataset> classes() {
  return std::make_shared<const ArrayDataset>(Examples{.example_shape = {1},
                                                       .inputs = std::vector<float>{1, 2, 3, 4},
                                                       .labels = {2, 0, 1, 2},
                                                       .num_classes = 3});
}

std::shared_ptr<const ArrayDataset> values() {
  return std::make_shared<const ArrayDataset>(Examples{.example_shape = {1},
                                                       .inputs = std::vector<float>{1, 2},
                                                       .targets = {1, 2},
                                                       .num_outputs = 1});
}

TEST(Sampling, IsReadAndItsDefaultWritten) {
  const Config data = parse_yaml("{type: csv}", "s.yaml");
  EXPECT_EQ(read_sampling(data, *classes()), Sampling::Once);
  EXPECT_EQ(data.required<std::string>("sampling"), "once");
  EXPECT_EQ(read_sampling(parse_yaml("{sampling: balanced}", "s.yaml"), *classes()),
            Sampling::Balanced);
}

TEST(Sampling, SaysWhatIsWrong) {
  expect_throws<ConfigError>(
      [] { read_sampling(parse_yaml("{sampling: often}", "s.yaml"), *classes()); },
      "s.yaml:1:12: sampling: expected once or balanced, found 'often'");
  expect_throws<ConfigError>(
      [] { read_sampling(parse_yaml("{sampling: balanced}", "s.yaml"), *values()); },
      "s.yaml:1:12: sampling: balanced is for examples that have one class each; leave it out");
}

TEST(Sampling, KnowsTheLabelsOfExamples) {
  EXPECT_TRUE(has_example_labels(*classes()));
  EXPECT_FALSE(has_example_labels(*values()));
  EXPECT_THAT(all_labels(*classes()), ElementsAre(2, 0, 1, 2));
  EXPECT_THAT(all_labels(*subset(classes(), {3, 1})), ElementsAre(2, 0));
  const std::vector<int64_t> outside{4};
  expect_throws<StateError>([&] { classes()->labels_of(outside); }, "example 4 is out of range");
}

// As docs/guides/training.md has it: repetitions of a rare example differ.
TEST(Sampling, ChangesEachDrawOfABalancedEpochInItsOwnWay) {
  Examples examples{.example_shape = Shape{8, 8}, .inputs = {}, .num_classes = 2};
  std::vector<float> pixels;
  for (int i = 0; i < 12 * 64; ++i) pixels.push_back(static_cast<float>(i));
  examples.inputs = pixels;
  examples.labels.assign(12, 0);
  examples.labels[5] = 1;
  Loader loader(std::make_shared<const ArrayDataset>(std::move(examples)),
                {.batch_size = 1,
                 .seed = 3,
                 .augment = {.crop = 3, .flip = true},
                 .sampling = Sampling::Balanced});
  std::set<std::vector<float>> seen;
  for (int64_t batch = 0; batch < 12; ++batch) {
    const Batch drawn = loader.next();
    if (drawn.labels.values()[0] == 1) seen.insert(drawn.inputs.to_vector());
  }
  EXPECT_GE(seen.size(), 5u);  // of six
}

}  // namespace
}  // namespace lacuna::sampling_test
