// `lacuna export` and `lacuna import` as commands: out of a run, into another, and on from there.
#include <gmock/gmock.h>

#include "framework/program/runs.h"

namespace lacuna::export_command_test {
namespace {

using testing::HasSubstr;

class ExportCommand : public RunFixture {
 protected:
  ExportCommand() {
    EXPECT_EQ(
        train({"--quiet", "--set", "sparsity={sparsity: 0.9, param_filter: fc1.weight}"}).code, 0);
  }
  Ended exported(const std::string& format, const std::string& name,
                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"export", run_dir(), "--format",
                                       format,   "--out",   folder_ / name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_lacuna(arguments);
  }
  static std::string results(const std::string& run) {
    Config report = parse_yaml(run_lacuna({"eval", run, "--json"}).out, "eval");
    return report.at("splits").to_json();
  }
};

TEST_F(ExportCommand, ARunGoesOutAndComesBackTheSame) {
  for (const char* format : {"safetensors", "npz"}) {
    const std::string name = std::string("w.") + format;
    const Ended out = exported(format, name, {"--masks"});
    EXPECT_EQ(out.code, 0) << out.err;
    EXPECT_THAT(out.out, HasSubstr("is now in"));
    const std::string again = folder_ / (std::string("again_") + format);
    const Ended in = run_lacuna({"import", folder_ / name, "--config", config(), "--out", again});
    EXPECT_EQ(in.code, 0) << in.err;
    EXPECT_THAT(in.out, HasSubstr("fc1.weight: unstructured"));
    EXPECT_EQ(results(again), results(run_dir()));
    EXPECT_EQ(run_lacuna({"train", "--resume", "--run-dir", again, "--quiet"}).code, 0);
    EXPECT_EQ(run_lacuna({"inspect", again}).code, 0);
  }
}

TEST_F(ExportCommand, ASparseOnnxFileComesBackTheSame) {
  const Ended out = exported("onnx", "w.onnx", {"--sparse"});
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_THAT(out.out, HasSubstr("a dense file would take"));
  EXPECT_THAT(out.err, HasSubstr("1 weight is stored as sparse initializers. OpenCV's dnn"));
  EXPECT_EQ(exported("onnx", "dense.onnx").err, "");
  const std::string again = folder_ / "again";
  const Ended in = run_lacuna(
      {"import", folder_ / "w.onnx", "--config", config(), "--find-pattern", "--out", again});
  EXPECT_EQ(in.code, 0) << in.err;
  EXPECT_THAT(in.out, HasSubstr("fc1.weight: unstructured"));
  EXPECT_EQ(results(again), results(run_dir()));
}

// What the card says is what the run's files say.
TEST_F(ExportCommand, WritesAModelCard) {
  const Ended ended = run_lacuna({"export", run_dir(), "--card", "--out", folder_ / "card.md"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("fill in its licence"));
  const std::string card = read_text(folder_ / "card.md");
  const Config told = summary(run_dir());
  char accuracy[64];
  std::snprintf(accuracy, sizeof accuracy, "| test accuracy | %.2f %% |",
                100.0 * told.required<double>("test_accuracy"));
  EXPECT_THAT(card, HasSubstr(accuracy));
  for (const Config& layer : told.at("parameters").items()) {
    EXPECT_THAT(card, HasSubstr("| `" + layer.at("name").text() + "` |"));
  }
  EXPECT_THAT(card, HasSubstr("license: unknown  # fill in"));
  EXPECT_THAT(card, HasSubstr("| type | glyphs |"));
  EXPECT_THAT(card, HasSubstr("lacuna predict run INPUT"));
  EXPECT_THAT(card, HasSubstr("```yaml\n"));
  EXPECT_EQ(card.find(folder_.path()), std::string::npos);  // no paths of the machine
  // Nothing is overwritten unasked, and a card is no weights.
  const Ended again = run_lacuna({"export", run_dir(), "--card", "--out", folder_ / "card.md"});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("use --overwrite"));
  const Ended none = run_lacuna({"export", run_dir(), "--out", folder_ / "x"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("--format is missing; formats: csr-npz, hf"));
  EXPECT_EQ(exported("npz", "x.npz", {"--card"}).code, 2);
  EXPECT_EQ(run_lacuna({"export", run_dir(), "--card", "--masks", "--out", folder_ / "x"}).code, 2);
}

TEST_F(ExportCommand, SizesOfSparseFilesArePrintedAgainstDenseOnes) {
  using testing::ContainsRegex;
  const std::string sizes = ": [0-9.]+ kB; a dense file would take about [0-9.]+ kB\n";
  EXPECT_THAT(exported("csr-npz", "w.npz").out, ContainsRegex(sizes));
  EXPECT_THAT(exported("onnx", "w.onnx", {"--sparse"}).out, ContainsRegex(sizes));
  EXPECT_THAT(exported("onnx", "dense.onnx").out, testing::Not(HasSubstr("a dense file")));
}

TEST_F(ExportCommand, MistakesEndWithTheCodeOfTheirKind) {
  EXPECT_EQ(exported("tar", "x").code, 2);
  EXPECT_THAT(exported("npzz", "x").err, HasSubstr("did you mean 'npz'?"));
  EXPECT_EQ(exported("hf", "x").code, 2);
  EXPECT_EQ(run_lacuna({"export", run_dir()}).code, 2);
  const Ended dash = run_lacuna({"export", run_dir(), "--format", "npz", "--out", "-"});
  EXPECT_EQ(dash.code, 2);
  EXPECT_EQ(dash.err,
            "error: export writes a file, not the standard output; give its name instead of '-'\n");
  EXPECT_EQ(exported("npz", "w.npz").code, 0);
  const Ended again = exported("npz", "w.npz");
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("use --overwrite"));
  EXPECT_EQ(exported("npz", "w.npz", {"--overwrite"}).code, 0);
  const std::string pickle = folder_.write("net.pth", "\x80\x02.");
  const Ended refused =
      run_lacuna({"import", pickle, "--config", config(), "--out", folder_ / "new"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("torch.load"));
  // What is wrong with the file is said before what is missing.
  folder_.write("noise.safetensors", "noise that is no header of anything");
  const Ended noise =
      run_lacuna({"import", folder_ / "noise.safetensors", "--out", folder_ / "new"});
  EXPECT_EQ(noise.code, 1);
  EXPECT_THAT(noise.err, HasSubstr("is not a valid safetensors file"));
  EXPECT_EQ(listing(folder_.path()), "config.yaml net.pth noise.safetensors run w.npz");
}

TEST_F(ExportCommand, AFullDiskLeavesNothing) {
  const ProcessOptions small{.max_file_bytes = 5000};
  for (const char* format : {"npz", "safetensors"}) {
    const Ended out =
        run_lacuna({"export", run_dir(), "--format", format, "--out", folder_ / "w"}, small);
    EXPECT_EQ(out.code, 1);
    EXPECT_THAT(out.err, HasSubstr("cannot write"));
  }
  EXPECT_EQ(exported("npz", "w.npz").code, 0);
  const Ended in = run_lacuna(
      {"import", folder_ / "w.npz", "--config", config(), "--out", folder_ / "new"}, small);
  EXPECT_EQ(in.code, 1);
  EXPECT_EQ(listing(folder_.path()), "config.yaml run w.npz");
}

}  // namespace
}  // namespace lacuna::export_command_test
