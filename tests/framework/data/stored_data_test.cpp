// The hashes that data is known by again: of every type, each value on the disk counts.
#include "framework/data/stored_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "lacuna/framework/core/parallel.h"
#include "lacuna/framework/data/load_data.h"
#include "lacuna/framework/io/yaml.h"

namespace lacuna::stored_data_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StoredDataHash : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!dataset_registry().contains("glyphs")) register_datasets(dataset_registry());
  }
  static SplitHashes hashes_of(const std::string& section, uint64_t seed = 0) {
    return load_data(parse_yaml(section, "data"), seed).hashes;
  }
  // `section` with one more key.
  static std::string with(std::string section, const std::string& key) {
    section.insert(section.rfind('}'), ", " + key);
    return section;
  }
  // What differs, as flips say it.
  static std::vector<std::string> differences(const SplitHashes& a, const SplitHashes& b) {
    std::vector<std::string> found;
    const auto compare = [&](const std::string& split, const std::optional<DataHash>& one,
                             const std::optional<DataHash>& other) {
      ASSERT_EQ(one.has_value(), other.has_value());
      if (!one) return;
      if (one->size != other->size) found.push_back(split + " size");
      if (one->inputs != other->inputs) found.push_back(split + " inputs");
      if (one->answers != other->answers) found.push_back(split + " labels or targets");
    };
    compare("training", a.train, b.train);
    compare("validation", a.validation, b.validation);
    compare("test", a.test, b.test);
    return found;
  }

  const TemporaryFolder folder_;
  const std::vector<StoredData> all_ = all_stored_data(folder_);
};

// A type that is added is to be tried here, too.
TEST_F(StoredDataHash, IsTriedForEveryType) {
  DatasetRegistry built_in("dataset");
  register_datasets(built_in);
  std::set<std::string> tried;
  for (const StoredData& data : all_) tried.insert(data.type);
  const std::vector<std::string> names = built_in.names();
  EXPECT_EQ(tried, std::set<std::string>(names.begin(), names.end()));
}

TEST_F(StoredDataHash, SeesEachValueOnTheDisk) {
  for (const StoredData& data : all_) {
    const SplitHashes before = hashes_of(data.section);
    EXPECT_THAT(differences(before, hashes_of(data.section)), IsEmpty()) << data.name;
    for (const Flip& flip : data.flips) {
      const std::string original = read_text(flip.path);
      ASSERT_NE(original, flip.bytes) << data.name << ": " << flip.what;
      write_text(flip.path, flip.bytes);
      EXPECT_THAT(differences(before, hashes_of(data.section)), ElementsAre(flip.what))
          << data.name << ": " << flip.path;
      write_text(flip.path, original);
    }
  }
}

// What is made of the examples afterwards, and by whom, is another matter.
TEST_F(StoredDataHash, HangsOnNothingButTheData) {
  for (const StoredData& data : all_) {
    const SplitHashes before = hashes_of(data.section);
    EXPECT_THAT(differences(before, hashes_of(data.section, 7)), IsEmpty()) << data.name;
    set_num_threads(2);
    EXPECT_THAT(differences(before, hashes_of(data.section)), IsEmpty()) << data.name;
    set_num_threads(1);
    const bool is_array = data.model == stored::kDense && data.type != "synthetic";
    if (!is_array || data.section.find("normalize:") != std::string::npos) continue;
    for (const char* key :
         {"normalize: standard", "normalize: {mean: 0.5, std: 3}", "augment: {mixup: 0.2}"}) {
      EXPECT_THAT(differences(before, hashes_of(with(data.section, key))), IsEmpty())
          << data.name << ": " << key;
    }
  }
}

TEST_F(StoredDataHash, IsTheSameWhereTextStaysInItsFiles) {
  EXPECT_EQ(
      hashes_of(stored::labelled(folder_, "one", ", tokenizer: bytes").section),
      hashes_of(stored::labelled(folder_, "one", ", tokenizer: bytes, streamed: true").section));
  const std::string pairs = stored::pairs(folder_).section;
  EXPECT_EQ(hashes_of(pairs), hashes_of(with(pairs, "streamed: true")));
}

TEST_F(StoredDataHash, OfDrawnDataIsThatOfItsSeed) {
  for (const StoredData& data : all_) {
    if (!data.flips.empty()) continue;
    EXPECT_THAT(differences(hashes_of(data.section), hashes_of(with(data.section, "seed: 1"))),
                ElementsAre("training inputs", "training labels or targets", "test inputs",
                            "test labels or targets"))
        << data.name;
  }
}

TEST_F(StoredDataHash, LeavesOutWhatTheLimitLeavesOut) {
  for (const StoredData& data : all_) {
    const bool has_examples = data.type == "csv" || data.type == "mnist" || data.name == "hdf5" ||
                              data.name == "sentences" || data.name == "streamed";
    if (!has_examples) continue;
    const SplitHashes before = hashes_of(with(data.section, "limit: 12"));
    EXPECT_EQ(before.train->size, 12);
    for (const Flip& flip : data.flips) {
      const std::string original = read_text(flip.path);
      write_text(flip.path, flip.bytes);
      const auto now = differences(before, hashes_of(with(data.section, "limit: 12")));
      write_text(flip.path, original);
      // The last value of a table and of the arrays is beyond it.
      const bool is_beyond = (data.type == "csv" && flip.what == "training labels or targets") ||
                             (data.type == "hdf5" && flip.what.starts_with("training"));
      EXPECT_EQ(now.empty(), is_beyond) << data.name << ": " << flip.what;
    }
  }
}

// Larger data is hashed at some places alone, small data as if it were large here.
TEST_F(StoredDataHash, OfLargeDataTakesSamples) {
  constexpr HashLimits kSome{.all_up_to = 8, .samples = 5}, kAll;
  for (const StoredData& data : all_) {
    const auto train = load_data(parse_yaml(data.section, "data"), 0).train;
    const DataHash some = train->hash(train->size(), kSome), all = train->hash(train->size(), kAll);
    EXPECT_EQ(some, train->hash(train->size(), kSome)) << data.name;
    EXPECT_EQ(some.size, all.size) << data.name;
    const std::set<std::string> whole{"sentences", "streamed", "masked_sentences"};
    const bool is_sampled = !whole.contains(data.name);  // of which each example has a hash
    EXPECT_EQ(some.inputs != all.inputs, is_sampled) << data.name;
  }
}

}  // namespace
}  // namespace lacuna::stored_data_test
