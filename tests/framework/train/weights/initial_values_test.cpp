// `model.init_from` in a configuration: where values come from, and what is said of mistakes in it.
#include <gmock/gmock.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/storage/safetensors_file.hpp"
#include "lacuna/framework/io/yaml.h"
#include "lacuna/framework/train/parts/experiment.hpp"
#include "lacuna/framework/train/weights/model_file.h"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::initial_values_test {
namespace {

using testing::Contains;
using testing::Each;
using testing::Not;

class InitFrom : public testing::Test {
 protected:
  // A run with fc1.weight [4, 784], fc1.bias, fc2.weight [10, 4], fc2.bias.
  std::unique_ptr<Experiment> build(const std::string& init_from, Start start = Start::Fresh,
                                    const std::string& more = "") {
    return build_experiment(parse_yaml("data: {type: glyphs, train_size: 20, test_size: 10}\n"
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
                                       "run.yaml"),
                            start);
  }
  std::string write(const std::string& prefix = "") {
    write_safetensors(folder_ / "w.safetensors",
                      {{prefix + "fc1.weight", Tensor::full({4, 784}, 1)},
                       {prefix + "fc1.bias", Tensor::full({4}, 2)},
                       {prefix + "fc2.weight", Tensor::full({10, 4}, 3)},
                       {prefix + "fc2.bias", Tensor::full({10}, 4)}});
    return folder_ / "w.safetensors";
  }
  template <class Exception = ConfigError>
  void refused(const std::string& init_from, const std::string& words) {
    expect_throws<Exception>([&] { build(init_from); }, words);
  }
  static std::vector<float> values(const Experiment& experiment, const char* name) {
    return experiment.model->parameter(name)->to_dense().to_vector();
  }

  TemporaryFolder folder_;
  std::string stored_;  // the layout's name
};

TEST_F(InitFrom, APathOrAMap) {
  const std::string path = write();
  for (const std::string& source : {path, "{path: " + path + "}"}) {
    const auto experiment = build(source);
    EXPECT_THAT(values(*experiment, "fc1.weight"), Each(1));
    EXPECT_THAT(values(*experiment, "fc2.bias"), Each(4));
  }
}

TEST_F(InitFrom, RenamesAndSkips) {
  const std::string path = write("module.");
  for (const char* skip : {"'fc2.*'", "['fc2.*']", "[fc2.weight, fc2.bias]"}) {
    const auto experiment =
        build("{path: " + path + ", rename: [{from: 'module.*', to: '*'}], skip: " + skip + "}");
    EXPECT_THAT(values(*experiment, "fc1.weight"), Each(1));
    EXPECT_THAT(values(*experiment, "fc2.weight"), Not(Each(3)));
  }
}

TEST_F(InitFrom, AMapTakesRunFoldersAndCheckpoints) {
  const auto first = build("null");
  first->model->parameter("fc1.bias")->assign(Tensor::full({4}, 7));
  std::filesystem::create_directories(folder_ / "run/checkpoints");
  save_model(folder_ / "run/checkpoints/step-0000000001.h5", *first->model);
  for (const char* source : {"run", "run/checkpoints/step-0000000001.h5"}) {
    const auto whole = build("{path: " + (folder_ / source) + "}");
    EXPECT_THAT(values(*whole, "fc1.bias"), Each(7));
    EXPECT_EQ(values(*whole, "fc2.weight"), values(*first, "fc2.weight"));
    const auto part = build("{path: " + (folder_ / source) + ", skip: 'fc1.*'}");
    EXPECT_THAT(values(*part, "fc1.bias"), Not(Each(7)));
  }
}

// The mask is chosen by the values that were loaded.
TEST_F(InitFrom, ComesBeforeSparsity) {
  const auto experiment =
      build(write(), Start::Fresh,
            "sparsity: {sparsity: 0.5, param_filter: fc1.weight, init_method: topk}\n");
  const std::vector<float> weight = values(*experiment, "fc1.weight");
  EXPECT_EQ(std::ranges::count(weight, 1.0f), 4 * 784 / 2);
  EXPECT_EQ(std::ranges::count(weight, 0.0f), 4 * 784 / 2);
}

// A pattern that was found is either what the weight is stored in, or the log says what is.
TEST_F(InitFrom, APatternThatIsFoundIsKeptOrSaidToBeDropped) {
  std::vector<float> values(4 * 784, 1.0f);
  for (size_t i = 0; i < values.size(); ++i) {
    if ((i + i / 784) % 4 < 2) values[i] = 0.0f;  // two of four
  }
  write_safetensors(folder_ / "w.safetensors", {{"fc1.weight", Tensor::from({4, 784}, values)},
                                                {"fc1.bias", Tensor::full({4}, 2)},
                                                {"fc2.weight", Tensor::full({10, 4}, 3)},
                                                {"fc2.bias", Tensor::full({10}, 4)}});
  const auto notes = [&](const std::string& sparsity) {
    const auto experiment =
        build("{path: " + (folder_ / "w.safetensors") + ", find_pattern: true}", Start::Fresh,
              "sparsity: {param_filter: fc1.weight, " + sparsity + "}\n");
    stored_ = experiment->model->parameter("fc1.weight")->pattern()->layout().name();
    return experiment->notes;
  };
  const auto dropped = testing::HasSubstr("fc1.weight: the pattern 2:4");
  const std::vector<std::string> of_wanda = notes("algorithm: wanda, sparsity: 0.6");
  EXPECT_FALSE(stored_.starts_with("nm"));
  EXPECT_THAT(of_wanda,
              Contains("fc1.weight: the pattern 2:4 transposable of the loaded weight is not kept: "
                       "the sparsity section (wanda) names none, so it is stored as " +
                       stored_ +
                       "; give `pattern: {type: nm, n: 2, m: 4, transposable: true}` there to keep "
                       "it"));
  EXPECT_THAT(notes("algorithm: static"), Contains(dropped));
  EXPECT_THAT(notes("pattern: {type: nm, n: 3, m: 4}"),
              Contains("fc1.weight: the pattern 3:4 of the sparsity section (static) replaces 2:4 "
                       "transposable, which the loaded weight has"));
  EXPECT_THAT(notes("algorithm: magnitude, pattern: {type: nm, n: 2, m: 4, transposable: true}"),
              Not(Contains(dropped)));
}

TEST_F(InitFrom, IsNotReadAgainWhereACheckpointFollows) {
  const auto experiment = build("{path: gone.safetensors, rename: [{from: a, to: b}], skip: [c]}",
                                Start::FromCheckpoint);
  EXPECT_EQ(experiment->config.get("model").get("init_from").get("path").text(),
            "gone.safetensors");
}

TEST_F(InitFrom, MistakesInTheConfigurationHaveTheirPosition) {
  refused("[a, b]",
          "run.yaml:3:14: model.init_from: expected a file or run folder, or a map with "
          "`path`, found a list");
  refused("{skip: a}", "run.yaml:3:14: model.init_from.path: a required key is missing");
  refused("{path: a, skips: b}",
          "model.init_from.skips: unknown key 'skips'; did you mean 'skip'?");
  refused("{path: a, skip: {b: c}}",
          "model.init_from.skip: expected a glob or a list of globs, found a map");
  refused("{path: a, rename: b}",
          "model.init_from.rename: expected a list of maps with `from` and `to`, found 'b'");
  refused("{path: a, rename: [b]}",
          "model.init_from.rename.0: expected a map with `from` and `to`, found 'b'");
  refused("{path: a, rename: [{from: b}]}",
          "model.init_from.rename.0.to: a required key is missing");
  refused("{path: a, rename: [{from: b, too: c, to: d}]}",
          "model.init_from.rename.0.too: unknown key 'too'; did you mean 'to'?");
  refused("{path: a, rename: [{from: b, to: '*'}]}",
          "run.yaml:3:14: model.init_from: rename: '*' has more stars than 'b'");
  refused("{path: " + write() + ", skip: [fc3.*]}",
          "run.yaml:3:14: model.init_from: skip: 'fc3.*' matches neither a name of the model nor "
          "one in '");
}

TEST_F(InitFrom, FilesThatDoNotFitAreNamedWithThePosition) {
  refused<CheckpointError>(folder_ / "none.safetensors",
                           "run.yaml:3:14: model.init_from: cannot read '" +
                               (folder_ / "none.safetensors") + "': No such file or directory");
  const std::string path = write("module.");
  refused<CheckpointError>(path, "run.yaml:3:14: model.init_from: the values in '" + path +
                                     "' belong to a different model: 'fc1.weight' [4, 784] is in "
                                     "the model only; 'fc1.bias' [4] is in the model only;");
}

}  // namespace
}  // namespace lacuna::initial_values_test
