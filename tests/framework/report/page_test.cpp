// The page as text; tests/report/browser_test.py looks at one in a browser.
#include "lacuna/framework/report/page.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/records/json_text.hpp"
#include "lacuna/framework/records/png_image.hpp"
#include "temporary_folder.h"
#include "throws.h"

namespace lacuna::page_test {
namespace {

constexpr const char* kConfig =
    "data: {type: glyphs}\nmodel: [flatten, {type: linear, out_features: 10}]\n"
    "train: {epochs: 1, seed: 3}\nrun_dir: x\n";

constexpr const char* kMetrics =
    R"({"step": 10, "epoch": 0.5, "split": "train", "loss": 2.0, "accuracy": 0.25, "lr": 0.1, "seconds": 0.5}
{"step": 20, "epoch": 1.0, "split": "train", "loss": 1.0, "accuracy": 0.5, "lr": 0.1, "seconds": 1.5}
{"step": 20, "epoch": 1.0, "split": "test", "loss": 1.25, "accuracy": 0.625, "lr": 0.1, "seconds": 1.5}
)";

// A run's folder as far as the page looks at it.
std::string make_run(const TemporaryFolder& folder, const std::string& name,
                     const std::string& metrics = kMetrics) {
  const std::string run = folder / name;
  std::filesystem::create_directories(run);
  write_text(run + "/config.yaml", kConfig);
  write_text(run + "/metrics.jsonl", metrics);
  return run;
}

Config data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"lacuna-report\">";
  const size_t first = page.find(begin) + begin.size();
  const auto data = parse_json(page.substr(first, page.find("</script>", first) - first));
  EXPECT_TRUE(data.has_value());
  return data.value_or(Config());
}

TEST(ReadRun, GivesCurvesAndTheTimeOfAStep) {
  const TemporaryFolder folder;
  const RunData run = read_run(make_run(folder, "a"), 0);
  EXPECT_EQ(run.state, "unfinished");
  EXPECT_EQ(run.splits.at("train").at("loss").values, (std::vector<double>{2.0, 1.0}));
  EXPECT_EQ(run.splits.at("test").at("accuracy").steps, (std::vector<double>{20.0}));
  EXPECT_EQ(run.step_seconds.values, (std::vector<double>{0.05, 0.1}));
  EXPECT_TRUE(run.layers.empty());
}

TEST(ReadRun, LeavesOutDamagedLinesAndSaysHowMany) {
  const TemporaryFolder folder;
  const std::string metrics = std::string("\xff\xfe\n{\"step\": 1\n[1, 2]\n{\"step\": \"x\"}\n") +
                              kMetrics + "{\"step\": 30, \"split\": \"tr";
  const RunData run = read_run(make_run(folder, "a", metrics), 0);
  EXPECT_EQ(run.damaged_lines, 4);  // what is being written at the end is no damage
  EXPECT_EQ(run.splits.at("train").at("loss").values.size(), 2u);
  EXPECT_THAT(run.remarks, testing::Contains(testing::HasSubstr("4 lines of metrics.jsonl")));
}

TEST(ReadRun, KnowsWhatWasChangedOnTheWay) {
  const TemporaryFolder folder;
  const std::string run = make_run(folder, "a"), other = make_run(folder, "b");
  write_text(run + "/changes.jsonl",
             "{\"step\": 15, \"key\": \"optimizer.lr\", \"old\": 0.3, \"new\": 0.1}\n");
  const std::vector<RunData> runs = read_runs({run, other}, 0);
  const std::string page = render_page(runs, {});
  EXPECT_THAT(page,
              testing::HasSubstr("<li>changed at step 15: optimizer.lr from 0.3 to 0.1</li>"));
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("Mean and spread over seeds")));
  const Config data = data_of(page);
  EXPECT_EQ(data.at("differences").items()[0].at("key").text(), "changed.optimizer.lr");
  EXPECT_EQ(data.at("runs").items()[0].at("changes").items()[0].required<int64_t>("step"), 15);
  write_text(run + "/changes.jsonl", "{\"step\": 15}\n");
  EXPECT_THAT(read_run(run, 0).remarks,
              testing::Contains(testing::HasSubstr("changes.jsonl could not be read")));
}

TEST(ReadRun, KnowsThatAProcessTrainsInTheFolder) {
  const TemporaryFolder folder;
  const std::string run = make_run(folder, "a");
  const int descriptor = ::open(run.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(descriptor, LOCK_EX), 0);
  EXPECT_EQ(read_run(run, 0).state, "running");
  ::close(descriptor);
  EXPECT_EQ(read_run(run, 0).state, "unfinished");
  write_text(run + "/summary.json", R"({"stopped_early": true, "nnz": 5})");
  EXPECT_EQ(read_run(run, 0).state, "stopped early");
  write_text(run + "/summary.json", R"({"stopped_ea)");
  EXPECT_THAT(read_run(run, 0).remarks, testing::Contains("summary.json could not be read"));
}

TEST(ReadRun, RefusesWhatIsNoRun) {
  const TemporaryFolder folder;
  expect_throws<DataError>([&] { read_run(folder / "missing", 0); }, "there is no run folder");
  expect_throws<DataError>([&] { read_run(folder.path(), 0); }, "has no config.yaml");
}

TEST(ReadRuns, CallsEachByTheEndOfItsPathThatNoOtherHas) {
  const TemporaryFolder folder;
  const auto runs =
      read_runs({make_run(folder, "a/x"), make_run(folder, "b/x"), make_run(folder, "c/y")}, 0);
  EXPECT_EQ(runs[0].name, "a/x");
  EXPECT_EQ(runs[1].name, "b/x");
  EXPECT_EQ(runs[2].name, "y");
}

TEST(Page, HoldsItsDataAndFetchesNothing) {
  const TemporaryFolder folder;
  const std::string page = render_page(read_runs({make_run(folder, "a")}, 400));
  const Config data = data_of(page);
  EXPECT_EQ(data.at("format").as<int64_t>(), 1);
  EXPECT_EQ(data.at("results").items()[0].at("accuracy").as<double>(), 0.625);
  const Config loss = data.at("charts").items()[0];
  EXPECT_EQ(loss.at("id").text(), "chart-loss");
  EXPECT_EQ(loss.at("series").items()[0].at("y").as<std::vector<double>>(),
            (std::vector<double>{2.0, 1.0}));
  EXPECT_THAT(page, testing::HasSubstr("62.50 %"));
  EXPECT_THAT(page, testing::HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, testing::HasSubstr("Copyright (c)"));  // uPlot's licence
  EXPECT_EQ(page.find("src=\"http"), std::string::npos);
  EXPECT_EQ(page.find("href=\"http"), std::string::npos);
}

TEST(Page, ShowsR2OfARegression) {
  const TemporaryFolder folder;
  constexpr const char* kRegression =
      R"({"step": 10, "split": "test", "loss": 2.5, "r2": 0.875, "mae": 1.0, "rmse": 1.5}
{"step": 20, "split": "test", "loss": 3.5, "r2": 0.75, "mae": 1.0, "rmse": 1.5}
)";
  const std::string page = render_page(read_runs({make_run(folder, "a", kRegression)}, 0));
  EXPECT_THAT(page, testing::HasSubstr("<th class=\"number\">R²</th><th class=\"number\">MAE</th>"
                                       "<th class=\"number\">RMSE</th>"));
  EXPECT_THAT(page, testing::HasSubstr("<td class=\"number\">0.7500</td>"));
  EXPECT_THAT(page, testing::HasSubstr("<td class=\"number\">0.8750</td>"));
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("accuracy</th>")));
  const Config data = data_of(page);
  EXPECT_EQ(data.at("results").items()[0].at("best_r2").as<double>(), 0.875);
  EXPECT_EQ(data.at("charts").items()[1].at("id").text(), "chart-r2");
}

TEST(Page, ShowsNamesWithMarkupAsTheyAre) {
  const TemporaryFolder folder;
  const std::string name = "<script>alert(1)<!--\"'&\xff";
  const std::string update =
      R"({"step": 5, "split": "update", "parameter": "</script><b>w", "dropped": 1, "grown": 2})"
      "\n";
  const std::string page = render_page(read_runs({make_run(folder, name, kMetrics + update)}, 400));
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("</script><b>w"), std::string::npos);
  EXPECT_THAT(page, testing::HasSubstr("&lt;script&gt;alert(1)&lt;!--&quot;&#39;&amp;"));
  EXPECT_EQ(data_of(page).at("runs").items()[0].at("layers").items()[0].at("name").text(),
            "</script><b>w");
}

TEST(Page, ShowsTenRunsAndWhereTheyDiffer) {
  const TemporaryFolder folder;
  std::vector<std::string> folders;
  for (int i = 0; i < 10; ++i) {
    folders.push_back(make_run(folder, "run" + std::to_string(i)));
    write_text(folders.back() + "/config.yaml",
               std::string(kConfig) + "optimizer: {lr: 0." + std::to_string(i + 1) + "}\n");
  }
  const Config data = data_of(render_page(read_runs(folders, 400)));
  EXPECT_EQ(data.at("runs").items().size(), 10u);
  ASSERT_EQ(data.at("differences").items().size(), 1u);
  EXPECT_EQ(data.at("differences").items()[0].at("key").text(), "optimizer.lr");
  EXPECT_EQ(data.at("charts").items()[0].at("series").items().size(), 10u);
}

// What a folder says of when, where and how it was run, and of which classes were confused.
TEST(Page, ShowsTheStartAndTheConfusionMatrix) {
  const TemporaryFolder folder;
  const std::string run = make_run(folder, "a");
  write_text(run + "/started.jsonl",
             R"({"time": "2026-11-26T00:46:00Z", "machine": "A <fast> one", "threads": 2, )"
             R"("version": "1.2.3", "command": "lacuna train /disk/me/project/configs/x.yaml"})"
             "\n");
  write_text(
      run + "/confusion.json",
      R"({"step": 20, "split": "test", "classes": ["cat", "d<o>g"], "counts": [[3, 1], [0, 4]]})");
  const std::string page = render_page(read_runs({run}, 0));
  EXPECT_THAT(page, testing::HasSubstr("2026-11-26 00:46 UTC · A &lt;fast&gt; one · 2 threads · "
                                       "lacuna 1.2.3"));
  EXPECT_THAT(page, testing::HasSubstr("lacuna train …/configs/x.yaml"));
  EXPECT_THAT(page,
              testing::HasSubstr("<th>cat</th><td class=\"right\" style=\"--part:0.75\">3</td>"
                                 "<td class=\"wrong\" style=\"--part:0.25\">1</td>"
                                 "<td>75.0 %</td>"));
  EXPECT_EQ(page.find("d<o>g"), std::string::npos);
  for (const char* damaged : {R"({"counts": [[1, 2]]})", R"({"counts": [["x"]]})", "[1]", "{"}) {
    write_text(run + "/confusion.json", damaged);
    EXPECT_EQ(render_page(read_runs({run}, 0)).find("Confusion"), std::string::npos) << damaged;
  }
}

TEST(Page, NamesThePairsOfManyClasses) {
  const TemporaryFolder folder;
  const std::string run = make_run(folder, "a");
  std::string rows;
  for (int row = 0; row < 40; ++row) {
    rows += row == 0 ? "[" : ", [";
    for (int column = 0; column < 40; ++column) {
      rows += std::string(column == 0 ? "" : ", ") + (row == 7 && column == 9 ? "5" : "0");
    }
    rows += "]";
  }
  write_text(run + "/confusion.json", "{\"counts\": [" + rows + "]}");
  const std::string page = render_page(read_runs({run}, 0));
  EXPECT_THAT(page, testing::HasSubstr("The pairs of its 40 classes"));
  EXPECT_THAT(page, testing::HasSubstr("<td class=\"number\">7</td><td class=\"number\">9</td>"
                                       "<td class=\"number\">5</td><td class=\"number\">100.0 %"));
}

TEST(Page, GroupsRunsThatDifferInTheirSeeds) {
  const TemporaryFolder folder;
  std::vector<std::string> folders;
  for (const char* name : {"net_adam_s0", "net_adam_s1", "net_sgd_s0"}) {
    folders.push_back(make_run(folder, name));
    const bool is_sgd = std::string(name).find("sgd") != std::string::npos;
    write_text(folders.back() + "/config.yaml",
               std::string("data: {type: glyphs}\noptimizer: ") + (is_sgd ? "sgd" : "adam") +
                   "\ntrain: {seed: " + name[std::string(name).size() - 1] + "}\n");
    write_text(folders.back() + "/summary.json", "{}");
  }
  const std::string page = render_page(read_runs(folders, 0));
  const Config data = data_of(page);
  ASSERT_EQ(data.at("groups").items().size(), 2u);
  EXPECT_EQ(data.at("groups").items()[0].at("label").text(), "adam");
  EXPECT_EQ(data.at("groups").items()[0].at("runs").to_json(), "[0, 1]");
  EXPECT_EQ(data.at("charts").items()[0].at("bands").items().size(), 2u);
  EXPECT_THAT(page, testing::HasSubstr("<html lang=\"en\" class=\"grouped\">"));
  EXPECT_THAT(page, testing::HasSubstr("Mean and spread over seeds"));
  EXPECT_EQ(data.at("runs").items()[1].at("label").text(), "adam_s1");
  EXPECT_EQ(data.at("runs").items()[1].at("name").text(), "net_adam_s1");
}

TEST(Page, HasATableForEachTask) {
  const TemporaryFolder folder;
  const std::string one = make_run(folder, "one"), two = make_run(folder, "two");
  write_text(two + "/config.yaml", "data: {type: mnist}\n");
  const std::string page = render_page(read_runs({one, two}, 0));
  EXPECT_THAT(page, testing::HasSubstr("<h3>glyphs, classification</h3>"));
  EXPECT_THAT(page, testing::HasSubstr("<h3>mnist, classification</h3>"));
  EXPECT_THAT(page, testing::HasSubstr("<table id=\"results-1\">"));
}

// Curves of every step and masks at random, which nothing packs.
RunData large_run(int index, int64_t side) {
  Curve curve;
  for (int i = 0; i < 1000; ++i) curve.add(5.0 * i, 1.0 / (1.0 + i + 0.37 * index));
  RunData run{.folder = "r" + std::to_string(index), .name = "run" + std::to_string(index)};
  run.step_seconds = curve;
  for (const char* key : {"loss", "accuracy", "lr"}) run.splits["train"][key] = curve;
  uint32_t random = 1;
  for (int i = 0; i < 3; ++i) {
    LayerData& layer = run.layers.emplace_back();
    layer.name = "fc" + std::to_string(i) + ".weight";
    layer.target = layer.actual = layer.dropped = layer.grown = layer.ever_active = curve;
    for (int64_t picture = 0; picture < 2; ++picture) {
      std::vector<uint8_t> pixels(static_cast<size_t>(side * side));
      for (uint8_t& pixel : pixels) {
        random = random * 1664525u + 1013904223u;
        pixel = random >> 31 != 0 ? 255 : 0;
      }
      layer.picture_steps.push_back(100 * picture);
      layer.pictures.push_back({.width = side,
                                .height = side,
                                .tile_rows = 1,
                                .tile_columns = 1,
                                .png = encode_png(side, side, pixels, Palette{})});
    }
  }
  return run;
}

TEST(Page, OfManyRunsIsOfAFewMegabytes) {
  const auto size_of = [](int count) {
    std::vector<RunData> runs;
    for (int i = 0; i < count; ++i) {
      runs.push_back(large_run(i, picture_side(static_cast<size_t>(count), 400)));
    }
    return render_page(runs).size();
  };
  EXPECT_LT(size_of(74), size_t{4'000'000});
}

TEST(Page, PicturesOfManyRunsAreSmaller) {
  EXPECT_EQ(picture_side(1, 400), 400);
  EXPECT_EQ(picture_side(4, 400), 400);
  EXPECT_EQ(picture_side(16, 400), 200);
  EXPECT_EQ(picture_side(1'000'000, 400), 48);
  EXPECT_EQ(picture_side(1'000'000, 20), 20);
  EXPECT_EQ(picture_side(74, 0), 0);  // none
}

TEST(Page, IsWrittenOverNoFileOfARun) {
  const TemporaryFolder folder;
  const auto runs = read_runs({make_run(folder, "a")}, 0);
  expect_throws<ConfigError>([&] { write_page(folder / "a/config.yaml", runs); },
                             "among the files of the run");
  expect_throws<ConfigError>([&] { write_page(folder / "b/../a/metrics.jsonl", runs); },
                             "among the files of the run");
  expect_throws<ConfigError>([&] { write_page(folder / "a", runs); }, "is a folder");
  EXPECT_EQ(read_text(folder / "a/config.yaml"), kConfig);
  write_page(folder / "a/report.html", runs);
  EXPECT_EQ(read_text(folder / "a/report.html").substr(0, 15), "<!DOCTYPE html>");
}

TEST(Page, IsWrittenThroughALinkWhichStays) {
  const TemporaryFolder folder;
  const auto runs = read_runs({make_run(folder, "a")}, 0);
  std::filesystem::create_directory(folder / "site");
  write_text(folder / "site/page.html", "<!doctype html>old");
  std::filesystem::create_symlink("site/page.html", folder / "link.html");
  std::filesystem::create_symlink("link.html", folder / "second.html");
  write_page(folder / "second.html", runs);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.html"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "second.html"));
  EXPECT_EQ(read_text(folder / "site/page.html").substr(0, 15), "<!DOCTYPE html>");
  // To where nothing is yet, by a whole path.
  std::filesystem::create_symlink(folder / "site/new.html", folder / "new.html");
  write_page(folder / "new.html", runs);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "new.html"));
  EXPECT_TRUE(std::filesystem::is_regular_file(folder / "site/new.html"));
  EXPECT_EQ(listing(folder / "site"), "new.html page.html");
  // No way around what is refused, and no way without an end.
  std::filesystem::create_symlink("a/summary.json", folder / "own.html");
  expect_throws<ConfigError>([&] { write_page(folder / "own.html", runs); },
                             "among the files of the run");
  std::filesystem::create_symlink("round.html", folder / "round.html");
  expect_throws<ConfigError>([&] { write_page(folder / "round.html", runs); },
                             "round.html' is a link to itself");
}

}  // namespace
}  // namespace lacuna::page_test
