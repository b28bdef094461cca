#include "lacuna/framework/data/sampling.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "lacuna/framework/core/error.h"
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

}  // namespace
}  // namespace lacuna::sampling_test
