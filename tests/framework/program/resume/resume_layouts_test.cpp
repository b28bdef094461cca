// Runs that go on in the layout of their checkpoint, or in another one.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "framework/program/runs.h"
#include "lacuna/framework/param/saved_parameter.hpp"

namespace lacuna::resume_layouts_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ResumeLayouts : public RunFixture {
 protected:
  static std::string sparsity(const std::string& layout) {
    return "sparsity={algorithm: set, sparsity: 0.8, update: {freq: 3}, param_filter: "
           "default, layout: " +
           layout + "}";
  }
  // Killed at step 6, with a checkpoint of step 4.
  void begin(const std::string& layout) {
    ASSERT_EQ(train({"--set", sparsity(layout)}, "run", {.fault = "step.between:6"}).code, -9);
  }
  Ended resume(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"train", "--resume", "--run-dir", run_dir()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lacuna(arguments);
  }
  StateDict state(int64_t step, const std::string& name = "run") const {
    return read_checkpoint(checkpoint(step, name)).state;
  }
  std::string layout_at(int64_t step, const std::string& name = "run") const {
    const StateDict model = state(step, name).below("model");
    return std::string(SavedParameter(model, "fc1.weight").layout().name());
  }
};

// In the logical shape.
std::vector<float> values_of(const StateDict& model, const std::string& name) {
  const SavedParameter saved(model, name);
  Parameter parameter(saved.shape(), Initializer::constant(0.0));
  parameter.set_name(name);
  saved.restore(parameter, saved.pattern(&masked_layout()));
  return parameter.to_dense().to_vector();
}

// A state of the optimizer for the nonzeros, whichever layout it was saved in.
std::vector<float> state_of(const StateDict& run, const std::string& name, const char* slot) {
  const auto& saved = run.get<Tensor>("optimizer/" + name + "/" + slot);
  const StateDict model = run.below("model");
  const SavedParameter parameter(model, name);
  if (saved.shape() != parameter.shape()) return saved.to_vector();
  std::vector<float> elements;
  parameter.pattern()->positions().for_each(
      [&](int64_t flat) { elements.push_back(saved.data()[flat]); });
  return elements;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << i;
}

TEST_F(ResumeLayouts, TheSameLayoutGoesOnBitForBit) {
  for (const char* layout : {"csr", "masked", "auto"}) {
    const std::string whole = std::string("whole_") + layout;
    ASSERT_EQ(train({"--set", sparsity(layout)}, whole).code, 0);
    std::filesystem::remove_all(run_dir());
    begin(layout);
    ASSERT_EQ(resume().code, 0);
    EXPECT_THAT(differences(state(18), state(18, whole)), IsEmpty()) << layout;
    if (layout != std::string("auto")) {
      EXPECT_EQ(layout_at(18), layout);
    }
    EXPECT_EQ(timeless_events(run_dir()), timeless_events(run_dir(whole)));
  }
}

TEST_F(ResumeLayouts, AnotherLayoutGoesOnWithTheSameNumbers) {
  const std::vector<std::pair<std::string, std::string>> changes = {{"csr", "masked"},
                                                                    {"masked", "csr"}};
  for (const auto& [from, to] : changes) {
    ASSERT_EQ(train({"--set", sparsity(from)}, "whole_" + from).code, 0);
    std::filesystem::remove_all(run_dir());
    begin(from);
    const Ended ended = resume({"--set", "sparsity.layout=" + to});
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(layout_at(18), to);
    EXPECT_EQ(load_yaml(run_dir() + "/config.yaml").at("sparsity").at("layout").text(), to);
    const StateDict here = state(18), there = state(18, "whole_" + from);
    for (const char* name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}) {
      expect_near(values_of(here.below("model"), name), values_of(there.below("model"), name));
      for (const char* slot : {"exp_avg", "exp_avg_sq"}) {
        expect_near(state_of(here, name, slot), state_of(there, name, slot));
      }
    }
  }
}

TEST_F(ResumeLayouts, RunsWithTheGreedySearchContinueWithTheExactOne) {
  const auto sparsity = [](const char* search) {
    return "sparsity={algorithm: set, pattern: {type: nm, n: 2, m: 4, transposable: true, "
           "search: " +
           std::string(search) + "}, update: {freq: 3}, param_filter: [fc1.weight]}";
  };
  ASSERT_EQ(train({"--set", sparsity("exact")}, "whole").code, 0);
  ASSERT_EQ(train({"--set", sparsity("greedy")}, "run", {.fault = "step.between:6"}).code, -9);
  const Ended ended = resume();
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("the greedy search no longer exists"));
  EXPECT_THAT(differences(state(18), state(18, "whole")), IsEmpty());
}

TEST_F(ResumeLayouts, WhatWasChosenStandsInTheConfigurationAndIsTakenFromThere) {
  begin("auto");
  const Config config = load_yaml(run_dir() + "/config.yaml");
  EXPECT_EQ(config.at("csr_up_to").entries().size(), 2u);
  // Another run of the same configuration goes by what it says.
  for (const auto& [limit, layout] : {std::pair{"0", "masked"}, std::pair{"1", "csr"}}) {
    ASSERT_EQ(
        run_lacuna({"train", run_dir() + "/config.yaml", "--run-dir", run_dir(layout), "--set",
                    std::string("csr_up_to={fc1.weight: ") + limit + ", fc2.weight: 0}", "--set",
                    "train.steps=4"})
            .code,
        0);
    EXPECT_EQ(layout_at(4, layout), layout);
  }
  // A layout that is asked for is no choice.
  ASSERT_EQ(run_lacuna({"train", run_dir() + "/config.yaml", "--run-dir", run_dir("asked"), "--set",
                        "sparsity.layout=csr", "--set", "train.steps=4"})
                .code,
            0);
  EXPECT_EQ(layout_at(4, "asked"), "csr");
  EXPECT_FALSE(load_yaml(run_dir("asked") + "/config.yaml").has("csr_up_to"));
}

TEST_F(ResumeLayouts, EachEntryOfAListAndEachPhaseHasItsOwn) {
  const std::string list =
      "sparsity=[{param_filter: fc1.weight, sparsity: 0.8}, {param_filter: fc2.weight, sparsity: "
      "0.5, layout: masked}]";
  ASSERT_EQ(train({"--set", list}, "run", {.fault = "step.between:6"}).code, -9);
  ASSERT_EQ(resume({"--set", "sparsity.0.layout=masked"}).code, 0);
  EXPECT_EQ(layout_at(18), "masked");
  std::filesystem::remove_all(run_dir());
  ASSERT_EQ(train({"--set", list}, "run", {.fault = "step.between:6"}).code, -9);
  ASSERT_EQ(resume({"--set", "sparsity.layout=csr"}).code, 0);
  const StateDict model = state(18).below("model");
  EXPECT_EQ(SavedParameter(model, "fc2.weight").layout().name(), "csr");
  std::filesystem::remove_all(run_dir());
  const std::string phases =
      "sparsity={phases: [{until: 5, sparsity: 0.8}, {algorithm: set, sparsity: 0.9}]}";
  ASSERT_EQ(train({"--set", phases}, "run", {.fault = "step.between:7"}).code, -9);
  ASSERT_EQ(resume({"--set", "sparsity.phases.1.layout=masked"}).code, 0);
  EXPECT_EQ(layout_at(18), "masked");
}

TEST_F(ResumeLayouts, ANumberTakesALayoutToo) {
  ASSERT_EQ(train({"--set", "sparsity=0.8"}, "run", {.fault = "step.between:6"}).code, -9);
  const Ended ended = resume({"--set", "sparsity.layout=masked"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(layout_at(18), "masked");
}

TEST_F(ResumeLayouts, SparsifiedWeightsTakeAnotherLayout) {
  const std::string given =
      "sparsify=[{tensor: fc1.output, sparsifier: {type: nm, n: 2, m: 4}}, {tensor: fc1.weight, "
      "sparsifier: {type: scalar_fraction, fraction: 0.8}, layout: csr}]";
  ASSERT_EQ(train({"--set", given}, "whole").code, 0);
  EXPECT_THAT(read_text(run_dir("whole") + "/config.yaml"),
              testing::AllOf(HasSubstr("\nsparsifiers:\n"), testing::Not(HasSubstr("sparsify:"))));
  for (const char* path : {"sparsifiers.layout", "sparsify.1.layout"}) {
    std::filesystem::remove_all(run_dir());
    ASSERT_EQ(train({"--set", given}, "run", {.fault = "step.between:6"}).code, -9);
    const Ended ended = resume({"--set", std::string(path) + "=masked"});
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(layout_at(18), "masked");
    EXPECT_EQ(layout_at(18, "whole"), "csr");
    expect_near(values_of(state(18).below("model"), "fc1.weight"),
                values_of(state(18, "whole").below("model"), "fc1.weight"));
  }
  std::filesystem::remove_all(run_dir());
  ASSERT_EQ(train({"--set", given}, "run", {.fault = "step.between:6"}).code, -9);
  const Ended ended = resume({"--set", "sparsify.0.layout=masked"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("sparsifiers.0.layout: unknown key 'layout'"));
}

TEST_F(ResumeLayouts, RefusesWhatIsNoLayout) {
  begin("csr");
  const Ended ended = resume({"--set", "sparsity.layout=cs"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.err, HasSubstr("unknown layout 'cs'; did you mean 'csr'?"));
  const auto refuses = [&](const std::string& limits, const std::string& message) {
    const Ended refused = train({"--set", "csr_up_to=" + limits, "--set", "sparsity=0.5"}, "new");
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr(message));
  };
  refuses("{fc1.wait: 0.5}", "the model has no parameter 'fc1.wait'; did you mean 'fc1.weight'?");
  refuses("{fc1.weight: 1.5}", "a density from 0 to 1");
  refuses("{fc1.weight: csr}", "csr_up_to.fc1.weight");
  refuses("0.5", "expected a map from parameters to densities");
}

TEST_F(ResumeLayouts, ACheckpointIsAsLargeAsItsNonzeros) {
  const std::string wide = "model.1.out_features=2000";
  const auto size = [&](const std::string& layout) {
    const std::string name = "wide_" + layout;
    EXPECT_EQ(train({"--set", wide, "--set", "train.steps=1", "--set",
                     "sparsity={sparsity: 0.99, param_filter: default, layout: " + layout + "}"},
                    name)
                  .code,
              0);
    return static_cast<int64_t>(std::filesystem::file_size(checkpoint(1, name)));
  };
  const int64_t nnz = 2000 * 784 / 100 + 2000 * 10 / 100, others = 2010 * 12 + 2020 * 8;
  EXPECT_GT(size("masked"), 784 * 2000 * 12);
  // Values, indices and two states; a bit for each position that was ever in the mask, deflated.
  EXPECT_LT(size("csr"), nnz * 16 + others + (784 + 10) * 2000 / 8 + 65536);
}

// The first interpreter that has h5py, or nothing.
std::string python_with_h5py() {
  for (const std::string python : {"python3", "/usr/bin/python3"}) {
    if (std::system((python + " -c 'import h5py, numpy' 2>/dev/null").c_str()) == 0) return python;
  }
  return "";
}

TEST_F(ResumeLayouts, PythonReadsACompressedParameterAsDocumented) {
  const std::string python = python_with_h5py();
  if (python.empty()) GTEST_SKIP() << "there is no python3 with h5py";
  ASSERT_EQ(train({"--set", sparsity("csr"), "--set", "train.steps=4"}).code, 0);
  const std::string script = folder_ / "read.py", out = folder_ / "weight.f32";
  write_text(script,
             "import sys, h5py, numpy\n"
             "with h5py.File(sys.argv[1]) as f:\n"
             "    g = f['/model/fc1.weight']\n"
             "    assert g['layout'].asstr()[()] == 'csr'\n"
             "    values, indices, indptr = g['values'][...], g['indices'][...], g['indptr'][...]\n"
             "    shape = tuple(g['shape'][...])\n"
             "    assert f['/optimizer/fc1.weight/exp_avg'].shape == values.shape\n"
             "try:\n"
             "    import scipy.sparse\n"
             "    dense = scipy.sparse.csr_matrix((values, indices, indptr), shape).toarray()\n"
             "except ImportError:\n"
             "    dense = numpy.zeros(shape, '<f4')\n"
             "    rows = numpy.repeat(numpy.arange(shape[0]), numpy.diff(indptr))\n"
             "    dense[rows, indices] = values\n"
             "dense.astype('<f4').tofile(sys.argv[2])\n");
  ASSERT_EQ(std::system((python + " " + script + " " + checkpoint(4) + " " + out).c_str()), 0);
  const std::string bytes = read_text(out);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  EXPECT_EQ(values, values_of(state(4).below("model"), "fc1.weight"));
}

}  // namespace
}  // namespace lacuna::resume_layouts_test
