// What processes must have in common is compared at the start, and what differs is named, once.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/distributed/job.h"
#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/version.h"
#include "lacuna/framework/distributed/communicator.h"
#include "lacuna/framework/job/job.hpp"
#include "paths.h"
#include "throws.h"

namespace lacuna::agreement_test {
namespace {

using testing::HasSubstr;

const std::string kModel = R"(
model:
  - flatten
  - {type: linear, name: fc1, out_features: 40}
  - relu
  - {type: linear, name: fc2, out_features: 10}
optimizer: {type: adam, lr: 0.003}
)";
const std::string kGlyphs = "data: {type: glyphs, train_size: 128, test_size: 30}\n";
const std::string kTrain = "train: {steps: 6, batch_size: 32, log_every: 1}\n";

class Agreement : public JobFixture {
 protected:
  Agreement() { write_text(config(), kGlyphs + kModel + kTrain); }

  /// Two processes, each started by its own words, which stand before the program's name.
  Ended run_two(const std::vector<std::string>& first, const std::vector<std::string>& second,
                const std::vector<std::string>& arguments) const {
    std::vector<std::string> all{"-np", "1"};
    const auto add = [&](const std::vector<std::string>& words) {
      all.insert(all.end(), words.begin(), words.end());
      all.push_back(kProgram);
      all.insert(all.end(), arguments.begin(), arguments.end());
    };
    add(first);
    all.insert(all.end(), {":", "-np", "1"});
    add(second);
    return run_processes(all);
  }
  std::vector<std::string> new_run() const { return {"train", config(), "--run-dir", run_dir()}; }
};

TEST_F(Agreement, MistakesAreToldOnce) {
  const Ended key = run(4, "run", {"--set", "train.stepz=4"});
  EXPECT_EQ(key.code, 2);
  EXPECT_EQ(count_of(key.err, "unknown key 'stepz'"), 1u) << key.err;
  const Ended option = run_job(3, {"train", config(), "--stepz", "4"});
  EXPECT_NE(option.code, 0);
  EXPECT_EQ(count_of(option.err, "--stepz"), 1u) << option.err;
  EXPECT_THAT(option.err, HasSubstr("error: process 0 on "));
  const Ended command = run_job(3, {"eval", "nothing"});
  EXPECT_EQ(command.code, 2);
  EXPECT_EQ(count_of(command.err, "lacuna eval is for one process"), 1u) << command.err;
}

// Before it has joined the others, too.
TEST_F(Agreement, AMistakeOfOneProcessIsToldWithItsNumber) {
  const Ended ended = run_job(1, {"train", config(), "--run-dir", run_dir(), ":", "-np", "1",
                                  kProgram, "train", config(), "--stepz"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(count_of(ended.err, "error: process 1 on "), 1u) << ended.err;
}

// As where each node asks its own disk whether the run is there.
TEST_F(Agreement, OneThatGoesOnAndOneThatBeginsAreNoticed) {
  ASSERT_EQ(run(0, "run").code, 0);
  const std::vector<std::string> on{"train", "--resume", "--run-dir", run_dir()}, begin = new_run();
  for (const bool first_goes_on : {true, false}) {
    std::vector<std::string> words = first_goes_on ? on : begin;
    words.insert(words.end(), {":", "-np", "1", kProgram});
    const std::vector<std::string>& others = first_goes_on ? begin : on;
    words.insert(words.end(), others.begin(), others.end());
    const Ended ended = run_job(1, words, give_up_after(30));
    EXPECT_EQ(ended.code, 1) << ended.err;
    EXPECT_EQ(count_of(ended.err, "the processes differ in what they were started for"), 1u)
        << ended.err;
    EXPECT_THAT(ended.err,
                HasSubstr(first_goes_on ? "process 0 has --resume, process 1 has a new run"
                                        : "process 0 has a new run, process 1 has --resume"));
  }
}

// Which knows of no other process: all would train the same run.
TEST_F(Agreement, TheLauncherOfAnotherMpiIsNoticed) {
  const Ended ended = run_lacuna(new_run(), {.in_child = [] {
                                   ::setenv("PMI_SIZE", "2", 1);
                                   ::setenv("PMI_RANK", "0", 1);
                                 }});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("a launcher started 2 processes, but "));
  EXPECT_THAT(ended.err, HasSubstr(" sees only this one"));
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
}

TEST_F(Agreement, InfoTellsOfEachProcess) {
  const Ended ended = run_job(2, {"info"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(count_of(ended.out, "instruction set"), 2u) << ended.out;
}

// What there is none of makes nothing depend on the number of processes.
TEST_F(Agreement, LocalNormsAreToldOfWhereThereAreNorms) {
  const std::string told = "so results depend on the number of processes";
  const std::vector<std::string> local{"--set", "train.batch_norm=local"};
  const Ended without = run(2, "without", local);
  ASSERT_EQ(without.code, 0) << without.err;
  EXPECT_EQ(count_of(without.err, told), 0u) << without.err;
  EXPECT_EQ(count_of(without.err, "any number of processes gives the same"), 1u) << without.err;
  std::string text = read_text(config());
  text.replace(text.find("  - relu"), 8, "  - {type: batch_norm, name: bn}");
  write_text(config(), text);
  const Ended with = run(2, "with", local);
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(count_of(with.err, told), 1u) << with.err;
}

// A run that is compared with one of a single process is compared with the right one.
TEST_F(Agreement, TheHeaderNamesTheShardsThatGiveTheSame) {
  const Ended job = run(2, "job");
  ASSERT_EQ(job.code, 0) << job.err;
  EXPECT_EQ(count_of(job.err,
                     "by 2 processes, in 8 shards: any number of processes gives the same results, "
                     "those of train.shards: 8 in one process, not of train.shards: 0"),
            1u)
      << job.err;
  const auto state = [&](const std::string& name) {
    return find_checkpoint(run_dir(name)).read().state;
  };
  for (const char* shards : {"8", "0"}) {
    const Ended alone = train({"--set", std::string("train.shards=") + shards}, shards);
    ASSERT_EQ(alone.code, 0) << alone.err;
  }
  EXPECT_THAT(differences(state("job"), state("8")), testing::IsEmpty());
  EXPECT_THAT(differences(state("job"), state("0")), testing::Not(testing::IsEmpty()));
}

TEST_F(Agreement, DifferentConfigurationsAreNoticed) {
  const std::string other = folder_.write("other.yaml", read_text(config()) + "# the same\n");
  std::string text = read_text(config());
  text.replace(text.find("lr: 0.003"), 9, "lr: 0.004");
  write_text(other, text);
  const Ended ended = run_job(1, {"train", config(), "--run-dir", run_dir(), ":", "-np", "1",
                                  kProgram, "train", other, "--run-dir", run_dir()});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("the processes have read different configurations"));
  EXPECT_THAT(ended.err, HasSubstr("0.004"));
}

TEST_F(Agreement, DifferentInstructionSetsAreNoticed) {
  const Ended ended = run_two({}, {"env", "LACUNA_INSTRUCTION_SET=reference"}, new_run());
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(count_of(ended.err, "the processes differ in the instruction set"), 1u) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("process 1 has reference"));
  EXPECT_THAT(ended.err, HasSubstr("LACUNA_INSTRUCTION_SET"));
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
}

TEST_F(Agreement, DifferentKindsOfProcessorsAreNoticed) {
  const Ended ended =
      run_two({"env", "LACUNA_PROCESSOR=amd"}, {"env", "LACUNA_PROCESSOR=intel"}, new_run());
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(count_of(ended.err, "the processes differ in the kind of processor"), 1u) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("LACUNA_PROCESSOR"));
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
}

// Of another process that says something else of itself: the `differing`-th text it is asked for.
class Other final : public Communicator {
 public:
  explicit Other(int differing) : left_(differing) {}
  std::vector<std::string> gather_texts(const std::string& own) override {
    return {own, left_-- == 0 ? "another" : own};
  }
  int rank() const override { return 0; }
  int size() const override { return 2; }

  // Nothing else is asked of it.
  std::vector<std::vector<double>> gather(std::span<const double>) override { return {}; }
  void swap(int, std::span<const double>, std::span<double>) override {}
  std::unique_ptr<PendingMessages> start(int, std::span<const Outgoing>,
                                         std::span<const Incoming>) override {
    return nullptr;
  }
  std::unique_ptr<PendingMessages> start_sum(std::span<const float>, std::span<float>) override {
    return nullptr;
  }
  int last_tag() const override { return 0; }
  std::vector<std::vector<int64_t>> gather_numbers(std::span<const int64_t>) override { return {}; }
  std::string from_first(const std::string& bytes) override { return bytes; }
  [[noreturn]] void abort(int) override { std::abort(); }
  void leave() override {}
  int64_t bytes_sent() const override { return 0; }
  int64_t bytes_gathered() const override { return 0; }

 private:
  int left_;
};

TEST(SameProgram, NamesWhatDiffers) {
  const std::vector<std::string> names = {
      "the processes differ in their version: process 0 has " + std::string(kVersion) +
          ", process 1 has another",
      "the processes differ in the revision of their arithmetic",
      "the processes differ in the instruction set",
      "the processes differ in the kind of processor that their kernels are chosen by (set "
      "LACUNA_PROCESSOR to one kind for all)",
      "the processes differ in what computes their dense products",
      "the processes differ in the number of blocks of dense products"};
  for (size_t i = 0; i < names.size(); ++i) {
    Other other(static_cast<int>(i));
    expect_throws<StateError>([&] { require_same_program(other); }, names[i]);
  }
  Other same(-1);
  EXPECT_NO_THROW(require_same_program(same));
}

// A node has the data under the same path, and another has not, or other data: folders of processes
// stand for those of nodes.
class Nodes : public Agreement {
 protected:
  Nodes() {
    for (const char* node : {"first", "second"}) std::filesystem::create_directory(folder_ / node);
    write_text(config(), R"(
data: {type: text, path: /proc/self/cwd/text.txt, tokenizer: characters, context: 8, validation: 0.2}
model: {type: gpt2, n_layer: 1, n_head: 1, n_embd: 8, n_positions: 8}
optimizer: {type: adam, lr: 0.003}
)" + kTrain);
    folder_.write("first/text.txt", text(40));
  }
  static std::string text(int lines) {
    std::string all;
    for (int i = 0; i < lines; ++i) all += "to be or not to be\n";
    return all;
  }
  Ended run_on_both() const {
    return run_two({"-wdir", folder_ / "first"}, {"-wdir", folder_ / "second"}, new_run());
  }
};

TEST_F(Nodes, DataThatOneLacksIsNamedWithIt) {
  const Ended ended = run_on_both();
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_EQ(count_of(ended.err, "error: "), 1u) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("process 1 on "));
  EXPECT_THAT(ended.err, HasSubstr("/proc/self/cwd/text.txt"));
}

TEST_F(Nodes, OtherDataIsNoticed) {
  folder_.write("second/text.txt", text(50));
  const Ended ended = run_on_both();
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_EQ(count_of(ended.err, "the processes differ in their data"), 1u) << ended.err;
}

// Of as many examples, of the same tokens.
TEST_F(Nodes, OtherExamplesAreNoticed) {
  std::string other = text(40);
  for (size_t at = 0; (at = other.find("to be or not", at)) != std::string::npos; ++at) {
    other.replace(at, 12, "or be to not");
  }
  folder_.write("second/text.txt", other);
  const Ended ended = run_on_both();
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_EQ(count_of(ended.err, "the processes differ in their data: what is in examples"), 1u)
      << ended.err;
}

TEST_F(Nodes, AnotherTeacherIsNoticed) {
  write_text(config(), kGlyphs + kModel + kTrain);
  for (const char* node : {"first", "second"}) {
    const std::string seed = node == std::string("first") ? "1" : "2";
    ASSERT_EQ(run_lacuna({"train", config(), "--run-dir", folder_ / node + "/teacher", "--set",
                          "train.seed=" + seed})
                  .code,
              0);
  }
  write_text(config(), kGlyphs + kModel + kTrain +
                           "loss: {type: distillation, teacher: /proc/self/cwd/teacher}\n");
  const Ended ended = run_on_both();
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_EQ(count_of(ended.err, "the processes differ in the values of the teacher"), 1u)
      << ended.err;
}

TEST_F(Nodes, TheSameDataTrains) {
  folder_.write("second/text.txt", text(40));
  const Ended ended = run_on_both();
  EXPECT_EQ(ended.code, 0) << ended.err;
}

TEST_F(Agreement, ARunWithoutShardsIsToldToGoOnAlone) {
  ASSERT_EQ(run_lacuna({"train", config(), "--run-dir", run_dir()}).code, 0);
  const std::vector<std::string> on{"train",   "--resume", "--run-dir",
                                    run_dir(), "--set",    "train.steps=8"};
  const Ended many = run_job(2, on);
  EXPECT_EQ(many.code, 2);
  EXPECT_EQ(count_of(many.err, "2 processes were started, but shards: 0 needs exactly one"), 1u)
      << many.err;
  EXPECT_THAT(many.err, HasSubstr("lacuna train --resume --run-dir " + run_dir()));
  EXPECT_EQ(run_lacuna(on).code, 0);
  EXPECT_EQ(summary(run_dir()).required<int64_t>("steps"), 8);
  // One process is alone under a launcher, too.
  std::vector<std::string> further = on;
  further.back() = "train.steps=10";
  const Ended one = run_job(1, further);
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(summary(run_dir()).required<int64_t>("steps"), 10);
}

// In any order: numbers of processes that divide no shards, and the same but for rounding. All
// processes have the same parameters, or the counts of RigL's updates would not add up.
TEST_F(Agreement, FastReductionComesCloseByAnyNumberOfProcesses) {
  write_text(config(), kGlyphs + kModel + kTrain +
                           "sparsity: {algorithm: rigl, sparsity: 0.8, update: {freq: 3}, "
                           "param_filter: [fc1.weight]}\n");
  ASSERT_EQ(run(0, "exact").code, 0);
  const auto exact = summary(run_dir("exact")).required<double>("train_loss");
  for (const int processes : {1, 2, 3, 5}) {
    const std::string name = std::to_string(processes);
    const Ended ended = run(processes, name, {"--set", "train.reduction=fast"});
    ASSERT_EQ(ended.code, 0) << name << ": " << ended.err;
    const Config result = summary(run_dir(name));
    EXPECT_NEAR(result.required<double>("train_loss"), exact, 1e-4 * std::abs(exact)) << name;
    EXPECT_EQ(result.required<int64_t>("shards"), processes);
    if (processes == 1) continue;
    const double floats = static_cast<double>(result.required<int64_t>("nnz"));
    for (const Config& event : events(run_dir(name))) {
      if (event.required<std::string>("split") != "train" || event.required<int64_t>("step") != 2) {
        continue;
      }
      EXPECT_NEAR(event.required<double>("bytes_sent"),
                  4.0 * floats * 2.0 * (processes - 1) / processes, 0.02 * 8.0 * floats)
          << name;
    }
  }
  // From there any other number goes on.
  const Ended resumed =
      run_job(4, {"train", "--resume", "--run-dir", run_dir("3"), "--set", "train.steps=9"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
}

}  // namespace
}  // namespace lacuna::agreement_test
