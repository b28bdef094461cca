// Configurations that cannot be meant: exit code 2, a message that says where and what, and nothing
// left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/program/runs.h"

namespace lacuna::bad_config_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kGood =
    "data: {type: glyphs, train_size: 50, test_size: 20}\n"
    "model:\n"
    "  - flatten\n"
    "  - {type: linear, name: fc1, out_features: 12}\n"
    "  - relu\n"
    "  - {type: linear, name: fc2, out_features: 10}\n"
    "optimizer: {type: adam, lr: 0.01}\n"
    "train: {epochs: 1, batch_size: 10, threads: 1}\n";

class BadConfig : public RunFixture {
 protected:
  BadConfig() { write_text(config(), kGood); }

  void refused(const Ended& ended, const std::string& message, const std::string& about) {
    EXPECT_EQ(ended.code, 2) << about << "\n" << ended.err;
    EXPECT_THAT(ended.err, HasSubstr(message)) << about;
    EXPECT_EQ(ended.out, "") << about;
    EXPECT_EQ(listing(folder_.path()), "config.yaml") << about;
  }
  /// A --set to the good configuration and words of the message.
  void refuses(const std::string& setting, const std::string& message) {
    refused(train({"--set", setting}), message, setting);
  }
  void refuses_text(const std::string& yaml, const std::string& message) {
    write_text(config(), yaml);
    refused(train(), message, yaml);
  }
};

TEST_F(BadConfig, OfTheCommandLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "error: a command is missing; commands: train, plan, prune, shrink, quantize, eval, "},
      {{"trian"}, "error: unknown command 'trian'; did you mean 'train'? (lacuna --help"},
      {{"-x"}, "error: unknown command '-x'; valid names: train, "},
      {{"train"}, "error: train needs a CONFIG file (or --resume with --run-dir)"},
      {{"train", folder_ / "missing.yaml"},
       "error: cannot read config '" + (folder_ / "missing.yaml") + "': No such file or directory"},
      {{"train", folder_.path()},
       "error: cannot read config '" + folder_.path() + "': Is a directory"},
      {{"train", config(), "--foo"}, "error: unknown option '--foo'; options: --help, --set, "},
      {{"train", config(), "--sett", "a=b"},
       "error: unknown option '--sett'; did you mean '--set'? (lacuna train --help shows more)\n"},
      {{"train", config(), "--sparsity", "0.9"},
       "error: unknown option '--sparsity'; this is a key of the configuration: --set "
       "sparsity.sparsity=0.9 (lacuna train --help shows more)\n"},
      {{"train", config(), "--lr=0.1"}, "configuration: --set optimizer.lr=0.1 (lacuna train"},
      {{"plan", config(), "--batch_size", "8"}, "configuration: --set train.batch_size=8 ("},
      {{"plan", config(), "--density", "0.1"}, "configuration: --set sparsity.sparsity=0.9 ("},
      {{"plan", config(), "--epochs"}, "configuration: --set train.epochs=VALUE ("},
      {{"eval", "x", "--data-dir", "/d"}, "configuration: --set data.dir=/d ("},
      {{"train", config(), "--optimizer.lr=3"}, "configuration: --set optimizer.lr=3 ("},
      {{"eval", "--checkpoint", "x"},
       "error: unknown option '--checkpoint'; give it without a name: lacuna eval CHECKPOINT "
       "(lacuna eval"},
      {{"prune", "--config", "x"}, "give it without a name: lacuna prune CHECKPOINT CONFIG"},
      {{"train", "--config", "x"},
       "unknown option '--config'; give it without a name: lacuna train CONFIG"},
      {{"inspect", "x", "--sparsity"}, "unknown option '--sparsity'; options: --help, --last, "},
      {{"predict", "x", "y", "--outt=z"}, "error: unknown option '--outt'; did you mean '--out'?"},
      {{"train", config(), "other"},
       "error: 'other' is one argument too many: lacuna train takes CONFIG (lacuna train --help"},
      {{"train", config(), "--set"},
       "error: --set needs a value: --set PATH=VALUE (lacuna train --help shows more)\n"},
      {{"train", config(), "--seed", "1", "--seed", "2"},
       "error: --seed is given 2 times; give it once\n"},
      {{"train", config(), "--quiet", "-v"},
       "error: --quiet and --verbose are both given; give one of them\n"},
      {{"train", config(), "--resume=later"}, "error: --resume takes no value"},
      {{"train", config(), "--verify", "0"},
       "error: --verify: expected a number of steps from 1 to 1000000000, found 0\n"},
      {{"train", config(), "--verify", "99999999999999999999"},
       "error: --verify: expected a number of steps from 1 to 1000000000, found "
       "99999999999999999999\n"},
      {{"generate", "x", "--top-k", "0x10"},
       "error: --top-k: expected a number of tokens from 0 to 1000000000, found 0x10\n"},
      {{"generate", "x", "--temperature", ""},
       "error: --temperature: expected a finite number of at least 0, found nothing\n"},
      {{"generate", "x", "--temperature", "1e999"},
       "error: --temperature: expected a finite number of at least 0, found 1e999\n"},
      {{"generate", "x", "--seed", "-1"},
       "error: --seed: expected a seed from 0 to 9200000000000000000, found -1\n"},
      {{"generate", "x", "--threads", "99999999999999999999"},
       "error: --threads: expected a number of threads from 1 to 100000, found "
       "99999999999999999999\n"},
      {{"train", config(), "--run-dir", ""}, "error: the run folder's name is empty"},
      {{"train", config(), "--threads", "-1"},
       "train.threads: expected an integer from 0 to 1024, found '-1'"},
      {{"train", config(), "--threads", "two"}, "train.threads: expected an integer, found 'two'"},
      {{"train", config(), "--threads", "99999999999"}, "an integer from 0 to 1024"},
      {{"train", config(), "--seed", "-1"},
       "train.seed: expected an integer from 0 to 9223372036854775807, found '-1'"},
      {{"train", config(), "--seed", "99999999999999999999"}, "train.seed: expected an integer"},
      {{"eval"},
       "error: lacuna eval needs CHECKPOINT: checkpoint file or run folder (lacuna eval --help "
       "shows more)\n"},
      {{"predict", "x", "y"},
       "error: lacuna predict needs --out FILE: CSV file to write; - for the standard output "
       "(lacuna predict --help shows more)\n"},
      {{"list"}, "error: lacuna list needs WHAT: algorithms, sparsifiers, layouts, "},
      {{"plan"},
       "error: lacuna plan needs CONFIG: YAML file (docs/reference/config.md) (lacuna plan --help"},
      {{"info", "now"},
       "error: 'now' is one argument too many: lacuna info takes only options (lacuna info"}};
  for (const auto& [arguments, message] : cases) {
    refused(run_lacuna(arguments), message, arguments.empty() ? "none" : arguments.back());
  }
}

TEST_F(BadConfig, OfSettings) {
  refuses("foo", "error: --set foo: expected PATH=VALUE, as in train.epochs=5");
  refuses("=3", "error: --set =3: expected PATH=VALUE");
  refuses("a=[1", "error: --set a=[1: not valid YAML: ");
  refuses("model.9.p=3", "model: '9' is not an index of this list, whose length is 4");
  refuses("data..x=3", "an empty name in the path");
  refuses("data.type.x=3",
          "data.type: is the value 'glyphs' and has no 'x'; to replace it, set 'data.type' itself");
}

TEST_F(BadConfig, ThatIsNoYaml) {
  const std::string at = "error: " + config();
  refuses_text("data: {type: glyphs\nmodel: [\n", at + ":2:6: not valid YAML: ");
  refuses_text("", at + ": is empty; expected a configuration");
  refuses_text(std::string("\0\1", 2), at + ":1:1: the control character 0 is not text");
  refuses_text("- a\n", at + ":1:1: expected a map with model, data, optimizer and train, found a "
                             "list of 1");
  refuses_text("hello\n", at + ":1:1: expected a map with model, data, optimizer and train, found "
                               "'hello'");
  refuses_text("data: 1\ndata: 2\n", at + ":2:1: the key 'data' is given twice; first in line 1");
}

TEST_F(BadConfig, OfSections) {
  const std::string at = "error: " + config();
  refuses("modle=3", "modle: unknown section 'modle'; did you mean 'model'?");
  refuses_text(std::string(kGood) + "sparsty: 0.5\n",
               at + ":9:10: sparsty: unknown section 'sparsty'; did you mean 'sparsity'?");
  refuses_text("data: {type: glyphs}\noptimizer: {type: adam}\n",
               at + ":1:1: model: a required key is missing");
  refuses_text("model: [relu]\noptimizer: {type: adam}\n",
               at + ":1:1: data: a required key is missing");
  refuses_text("model: [relu]\ndata: {type: glyphs}\n",
               at + ":1:1: optimizer: a required key is missing");
  write_text(config(), kGood);
  refuses("data=3", "data: expected a map, found '3'");
  refuses("model=3", "model: expected a list of layers, or a map with `layers`, found '3'");
  refuses("model={}", "model.layers: a required key is missing");
  refuses("model={layers: 3}", "model.layers: expected a list of layers, found '3'");
  refuses("model=[]", "model: expected at least one layer, found a list of 0 values");
  refuses("optimizer=adam", "optimizer: expected a map, found 'adam'");
  refuses("sparsity=text", "sparsity: expected a number, a map or a list of maps, found 'text'");
  refuses("train=[]", "train: expected a map, found a list of 0 values");
  refuses("loss=[]", "loss: expected text, found a list of 0 values");
  refused(run_lacuna({"train", config(), "--set", "run_dir=[]"}),
          "run_dir: expected text, found a list of 0 values", "run_dir");
}

TEST_F(BadConfig, OfLayers) {
  const std::string at = "error: " + config();
  refuses("model.0=flaten", "model.0: unknown layer 'flaten'; did you mean 'flatten'?");
  refuses("model.0={type: gpt2}",
          "model.0.type: 'gpt2' is a preset, which replaces all layers: `model: {type: gpt2, …}`");
  refuses("model.1.type=linaer", "model.1.type: unknown layer 'linaer'; did you mean 'linear'?");
  refuses("model.1={out_features: 3}", "model.1.type: a required key is missing");
  refuses("model.1=[linear]",
          "model.1: expected a layer: its type, or a map with `type`, found a "
          "list of 1");
  refuses("model.1=linear", "out_features: a required key is missing");
  refuses("model.1.out_featres=3",
          "model.1.out_featres: unknown key 'out_featres'; did you mean 'out_features'?");
  refuses("model.1.out_features=0", "expected an integer of at least 1, found '0'");
  refuses("model.1.out_features=x", "model.1.out_features: expected an integer, found 'x'");
  refuses("model.1.name=fc2", at + ":6:5: model.3: two layers are named 'fc2'; give one of them "
                                   "another `name`");
  refuses("model.1.name=a..b",
          "a layer's name must be text between single dots, without '/', found 'a..b'");
  refuses("model.0={type: sequential}", "model.0.layers: a required key is missing");
}

TEST_F(BadConfig, OfLayersThatDoNotFit) {
  const std::string at = "error: " + config();
  refuses("model.3.in_features=11",
          at + ":6:5: model.3: layer 'fc2' (linear) does not fit layer 'relu1' (relu) at " +
              config() +
              ":5:5, which gives shape [12] per example: in_features is 11, but the examples that "
              "reach this layer have shape [12]");
  refuses("model.1.in_features=700",
          "layer 'fc1' (linear) does not fit layer 'flatten1' (flatten) at " + config() +
              ":3:5, which gives shape [784]");
  refuses("model.0={type: linear, in_features: 3, out_features: 4}",
          "layer 'linear1' (linear) does not fit the data, which gives shape [28, 28]");
  refuses("model.3.out_features=9",
          at + ":6:5: model.3: layer 'fc2' (linear), the last one, gives shape [9] per example; "
               "the data has 10 classes, so it must give [10]");
  refuses("model.0=relu",
          "gives shape [28, 10] per example; the data has 10 classes, so it must "
          "give [10] (a flatten layer");
}

TEST_F(BadConfig, OfData) {
  refuses("data={}", "data.type: a required key is missing");
  refuses("data.type=glyph", "data.type: unknown dataset 'glyph'; did you mean 'glyphs'?");
  refuses("data.train_siz=3", "unknown key 'train_siz'; did you mean 'train_size'?");
  refuses("data.train_size=-3", "data.train_size: expected an integer of at least 1, found '-3'");
  refuses("data.normalize=foo", "expected none, unit, standard or {mean: m, std: s}");
  refuses("data.validation=50", "holds out 50 of 50 training examples");
  refuses("data={type: mnist}", "data.dir: a required key is missing");
}

TEST_F(BadConfig, OfOptimizers) {
  refuses("optimizer={}", "optimizer.type: a required key is missing");
  refuses("optimizer.type=adm", "unknown optimizer 'adm'; did you mean 'adam'?");
  refuses("optimizer.lr=x", "optimizer.lr: expected a number, a list of numbers or a map");
  refuses("optimizer.lr=0.001 epochs", "optimizer.lr: expected a number, a list of numbers or");
  refuses("optimizer.weight_decay=1 step", "optimizer.weight_decay: expected");
  refuses("optimizer.lr=-1", "optimizer.lr: expected a finite number of at least 0");
  for (const char* key : {"optimizer.lr", "optimizer.weight_decay", "optimizer.eps"}) {
    refuses(std::string(key) + "=.inf",
            std::string(key) + ": expected a finite number of at least 0");
  }
  refuses("optimizer.lr={type: cosin}", "unknown schedule 'cosin'; did you mean 'cosine'?");
  refuses("optimizer.momentum=0.9", "optimizer.momentum: unknown key 'momentum'; valid names: ");
  refuses("optimizer.groups=[{params: foo*}]", "'foo*' matches no parameter");
  // Of its five steps a thousand times as many is the most.
  refuses("optimizer={type: adam, warmup: 5001}",
          "rises over 5001 steps, and the run ends after 5");
  EXPECT_EQ(train({"--set", "optimizer={type: adam, warmup: 5000}"}).code, 0);
}

TEST_F(BadConfig, OfSparsity) {
  refuses("sparsity=1.5", "sparsity: expected a sparsity in [0, 1), found '1.5'");
  refuses("sparsity={algorithm: rigel}",
          "unknown sparsity algorithm 'rigel'; did you mean 'rigl'?");
  refuses("sparsity=95", "expected a sparsity in [0, 1), as 0.95 for 95 %, found '95'");
  refuses("sparsity={sparsity: 99.9}", "expected a sparsity in [0, 1), as 0.999 for 99.9 %, found");
  refuses("sparsity={density: 5}", "expected a density in (0, 1], as 0.05 for 5 %, found '5'");
  refuses("sparsity={sparsity: 2}", "sparsity.sparsity: expected a number from 0.0 to 1.0");
  refuses("sparsity={sparsity: 0.5, foo: 3}", "sparsity.foo: unknown key 'foo'");
  refuses("sparsity={sparsity: 0.5, param_filter: fc3.weight}",
          "sparsity: param_filter 'fc3.weight' matches no parameter; ");
  refuses("sparsity={sparsity: 0.5, balance_in_groups: 7, param_filter: default}",
          "sparsity: parameter 'fc2.weight' of shape [10, 12] has 12 columns, which "
          "balance_in_groups = 7 does not divide");
  refuses("sparsity={algorithm: gmp, density: 0.5}", "use algorithm 'static'");
  refuses("sparsity={sparsity: 0.5, layout: nm}", "sparsity.layout: layout nm needs a pattern");
  const std::string semi_sparse =
      "sparsity={algorithm: semi_sparse, pattern: {type: nm, n: 2, m: 4}, param_filter: fc1.weight";
  for (const char* key : {"init_method: random", "distribution: erk", "balance_in_groups: 2"}) {
    refuses(semi_sparse + ", " + key + "}", "semi_sparse takes no `");
  }
  refuses(semi_sparse + ", every: 9}", "no update falls within its 5 steps");
  refuses("sparsity={algorithm: set, sparsity: 0.5, update: {steps: [2, -1]}}",
          "sparsity.update.steps: steps: expected steps of at least 0, found -1");
  refuses(
      "sparsity={algorithm: gmp, sparsity: {type: polynomial, init: 0, final: 0.5, start: 0, "
      "end: 4, power: -1}}",
      "sparsity.sparsity.power: expected a number above 0, found '-1'");
  refuses("sparsity={algorithm: gmp, sparsity: [0.1, .nan]}",
          "sparsity.sparsity.1: expected a number, found '.nan'");
  refuses("sparsity=0.9999",
          "sparsity: static: parameter 'fc1.weight' of shape [12, 784] begins without any nonzero");
}

TEST_F(BadConfig, OfSparsifiers) {
  const auto with = [](const std::string& tensor, const std::string& sparsifier) {
    return "sparsifiers=[{tensor: " + tensor + ", sparsifier: " + sparsifier + "}]";
  };
  refuses(with("fc3.output", "keep_all"), "sparsifiers.0.tensor: 'fc3.output' matches no layer; ");
  refuses(with("fc1.output", "nm"), "sparsifiers.0.sparsifier: n: a required key is missing");
  refuses(with("fc1.output", "{type: block_fraction, fraction: 0.5, rows: 1, cols: 1048577}"),
          "sparsifiers.0.sparsifier.cols: a block has at most 1048576 rows and columns");
  refuses(with("fc1.weight", "{type: nm, n: 2, m: 4}, layout: block"),
          "sparsifiers.0.layout: layout block needs a pattern of its type, not 2:4");
  refuses(with("fc1.weight", "{type: scalar_fraction, fraction: 0.5}, layout: nm"),
          "sparsifiers.0.layout: layout nm needs a pattern of its type; give auto, masked or csr");
  // Known before the first step, whatever batch it will be.
  const std::string three_rows = "{type: block_fraction, fraction: 0.5, rows: 3, cols: 2}";
  for (const char* tensor : {"fc1.output", "fc1.output.grad", "fc2.input", "fc2.input.grad"}) {
    refuses(with(tensor, three_rows), std::string("'") + tensor + "' of shape [");
    refuses(with(tensor, "{type: nm, n: 2, m: 5}"), "is not divisible by 5");
  }
  write_text(config(), kGood + std::string("sparsifiers: [{tensor: fc1.output, sparsifier: "
                                           "{type: nm, n: 2, m: 4, group: 10}}]\n"));
  refused(train({"--set", "data.limit=45"}),
          "sparsifiers: in the last batch of training (5 examples): tensor 'fc1.output' of shape "
          "[5, 12]",
          "the last batch");
  refused(train({"--set", "train.eval_batch_size=15"}), "sparsifiers: in ", "evaluation");
  EXPECT_EQ(train({"--set", "data.limit=45", "--set", "train.drop_last=true"}, "run").code, 0);
}

TEST_F(BadConfig, OfTraining) {
  refuses("train.epoch=3", "train.epoch: unknown key 'epoch'; did you mean 'epochs'?");
  refuses("train.epochs=0", "train.epochs: expected an integer of at least 1, found '0'");
  refuses("train.epochs=1.5", "train.epochs: expected an integer, found '1.5'");
  refuses("train.batch_size=0", "train.batch_size: expected an integer from 1 to 2147483647");
  refuses("train.accumulate=0", "train.accumulate: expected an integer from 1 to 2147483647");
  refuses("train.drop_last=maybe", "train.drop_last: expected true or false, found 'maybe'");
  refuses("train.eval_every=2 weeks",
          "train.eval_every: expected a number of steps of at least 1, "
          "'500 steps' or '2 epochs', found '2 weeks'");
  refuses("train.checkpoint=3", "train.checkpoint: expected a map, found '3'");
  refuses("train.checkpoint.keep_last=0", "expected an integer of at least 1, found '0'");
  refuses("train.checkpoint.keep_best=true",
          "train.checkpoint.keep_best: this needs a validation split, and there is none; hold one "
          "out with data.validation");
  refuses("train.early_stopping={}", "train.early_stopping: this needs a validation split");
  refuses("train.early_stopping={patience: 0}", "expected an integer of at least 1");
  refuses("train.threads=-2", "train.threads: expected an integer from 0 to 1024, found '-2'");
  refuses("train={epochs: 1, steps: 2}", "`epochs` and `steps` are both given");
}

TEST_F(BadConfig, OfTheLoss) {
  refuses("loss=mse",
          "loss: mse needs regression targets; the data has 10 classes: use "
          "cross_entropy");
  refuses("loss=cross",
          "loss: unknown loss 'cross'; valid names: cross_entropy, distillation, "
          "binary_cross_entropy, mse");
  refuses("loss={}", "loss.type: a required key is missing");
  refuses("loss={type: cross_entropy, label_smoothing: 1}",
          "loss.label_smoothing: expected a number in [0, 1), found '1'");
  refuses("loss={type: cross_entropy, smoothing: 0.1}", "unknown key 'smoothing'");
  refuses("loss={type: cross_entropy, class_weights: [1, 2]}",
          "loss.class_weights: expected 10 numbers, one for each class, found a list of 2 values");
  refuses("loss=binary_cross_entropy",
          "binary_cross_entropy needs two classes, or targets of 0 and 1 (regression); the data "
          "has 10 classes: use cross_entropy");
}

TEST_F(BadConfig, OfWhatIsTrainedAndAveraged) {
  refuses("model.1.trainable=maybe", "model.1.trainable: expected");
  refuses("train.ema=1", "train.ema: expected a number in [0, 1), found '1'");
  refuses("train.ema={decay: 0.9, begin: 3}", "unknown key 'begin'");
}

}  // namespace
}  // namespace lacuna::bad_config_test
